"""Handles the messages of the tasks.

::

    rows          -> decoded -> sink, and counted
    reports       -> kept, also with the run; written to event files for TensorBoard; told to an observer that takes them
    all others    -> events for the attempt's state machine (`akrunner.engines.supervision.events`)
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, assert_never

from akrunner import codec
from akrunner.cluster.failure import FailureKind
from akrunner.engines import report
from akrunner.engines.base import AnswerSink, MarkedSink, MarkedSource, Reached
from akrunner.engines.group import TaskGroup
from akrunner.engines.jobrun import JobRun
from akrunner.engines.onlooker import Onlooker
from akrunner.engines.output_columns import OutputColumns
from akrunner.engines.supervision import events as on
from akrunner.engines.supervision.states import Failed, LastWord, State
from akrunner.errors import DataError, InputLostError, JobError, ProtocolError, WriteError
from akrunner.foreign import underway
from akrunner.history.reported import join
from akrunner.launch import events as said
from akrunner.spec import TaskSpec
from akrunner.wire.frames import WireError
from akrunner.wire.messages import TAKEN

#: how a table's rows failed, by the exception's type; any other exception is a fault of akrunner
_TABLE_KINDS: Mapping[type[BaseException], FailureKind] = {
    InputLostError: FailureKind.LOST,
    DataError: FailureKind.OUTPUT,
    ProtocolError: FailureKind.BROKEN,
    WireError: FailureKind.BROKEN,
}
_TABLE_WORDS = {FailureKind.OUTPUT: "wrote a ", FailureKind.BROKEN: "broke the protocol: "}


class Receiver:
    """Handles the messages of a group's tasks.

    Attributes:
        reports: everything the tasks reported.
        latest: what each task reported last, by its name, as `akrunner.history.reported.latest`.
        reached: how far the script of each task is, by its name, of those that know it.
    """

    def __init__(self, run: JobRun, group: TaskGroup, onlooker: Onlooker) -> None:
        self.reports: list[dict[str, Any]] = []
        self.latest: dict[str, dict[str, Any]] = {}
        self.reached: dict[str, Reached] = {}
        self._run = run
        self._group = group
        self._columns = OutputColumns(run.job)
        self._onlooker = onlooker

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """The metrics that each task reported last, by its name. A task that has reported none, or taken them back, is left out."""
        found = {task: {name: one for name, one in told.items() if name != "step"} for task, told in self.latest.items()}
        return {task: metrics for task, metrics in found.items() if metrics}

    def take(self, event: said.Event, state: State) -> on.Event | None:
        """Handle one message of a task.

        Args:
            state: the attempt's state before the message.
        Returns:
            What it means for the attempt; None if it changes nothing there.
        Raises:
            WriteError: the rows cannot be stored. Whatever else a sink raises is raised too.
            JobError: a fault of akrunner.
        """
        match event:
            case said.Opened():
                return on.Opened(event.task)
            case said.Ready():
                return self._ready(event)
            case said.Entered():
                return on.Entered(event.task)
            case said.Serving():
                return on.Serving(event.task)
            case said.Output():
                return self._output(event, state)
            case said.Passed():
                return self._passed(event)
            case said.Closed():
                return self._closed(event)
            case said.Ended():
                return on.PipeEnded(event.task)
            case said.Broken():
                return _broken(event.task, event.error)
            case said.TableFailed():
                return self._table(event)
            case said.Refused() | said.Answered() | said.Due() | said.Report() | said.Reached():
                self._pass_on(event)
                return None
            case _:
                assert_never(event)

    def _pass_on(self, event: said.Refused | said.Answered | said.Due | said.Report | said.Reached) -> None:
        """Handle a message that changes nothing for the attempt."""
        sink, source = self._run.sink, self._run.source
        match event:
            case said.Refused():
                if isinstance(sink, AnswerSink):
                    sink.refused(event.task, event.body)
            case said.Answered():
                if isinstance(sink, MarkedSink):
                    sink.answered(event.task, event.number)
            case said.Due():
                if isinstance(source, MarkedSource) and source.arriving is not None:
                    source.arriving.due(event.number)
            case said.Report():
                self._report(event)
            case said.Reached():
                self.reached[event.task.name] = Reached(**event.body)
            case _:
                assert_never(event)

    @property
    def warnings(self) -> list[str]:
        """Warnings about the columns of the rows that the tasks wrote. Complete when the job has ended."""
        return self._columns.warnings

    def _ready(self, event: said.Ready) -> on.Event:
        sent = self._group.sessions[event.task].rows_sent
        return on.Ready(event.task, event.body["rows"], sent, event.body["waited_ns"])

    def _output(self, event: said.Output, state: State) -> on.Event | None:
        try:
            schema = self._columns.of(event.task, event.frame)
            if schema is None:
                return None
            rows = state.tasks[event.task].rows_out
            batch = codec.decode_frame(schema, event.frame, rows, rounding=not self._columns.inferred)
        except DataError as e:
            return self._refused_row(event.task, str(e))
        except ProtocolError as e:
            return _broken(event.task, e)
        if self._run.sink is not None:
            with underway(WriteError, "output"):
                self._run.sink.write(event.task, batch)
        return on.Wrote(event.task, batch.num_rows, len(event.frame.payload))

    def _passed(self, event: said.Passed) -> on.Event:
        """Count rows that a task wrote and that went to their destination without passing through the host."""
        if "lost" in event.body:
            raise WriteError(event.body["lost"])
        if "error" in event.body:
            return self._refused_row(event.task, event.body["error"])
        if "broken" in event.body:
            return _broken(event.task, event.body["broken"])
        return on.Wrote(event.task, event.body["rows"], event.body["bytes"])

    def _table(self, event: said.TableFailed) -> on.Event:
        """Return the failure of a task whose rows for a table cannot be kept, or were lost on their way."""
        if isinstance(event.error, WriteError):
            raise WriteError(f"[{event.task.name}] {event.what}")
        kind = next((kind for error, kind in _TABLE_KINDS.items() if isinstance(event.error, error)), None)
        if kind is None:
            fault = JobError(f"the job could not go on: {event.what}; a fault in akrunner itself")
            fault.fault = True
            raise fault
        return _failed(event.task, kind, _TABLE_WORDS.get(kind, "") + event.what)

    def _refused_row(self, task: TaskSpec, why: str) -> on.Event:
        return _failed(task, FailureKind.OUTPUT, self._columns.refused(why))

    def _report(self, event: said.Report) -> None:
        name, data = event.task.name, event.body
        # report() refuses these names in the script; from here on nothing tells them from the fields
        metrics = {metric: value for metric, value in data["metrics"].items() if metric not in TAKEN}
        if self._run.board is not None:
            self._run.board.write(name, metrics, data["step"], data["time_ns"])
        self.reports.append({"task": name, "step": data["step"], "time_ns": data["time_ns"], **metrics})
        join(self.latest, self.reports[-1])
        self._run.kept.report(self.reports[-1])
        self._onlooker.report(self.reports[-1])

    def _closed(self, event: said.Closed) -> on.Event:
        body = event.body
        failed = None
        if not body["ok"]:
            job = self._run.job
            failed = report.with_full_disks(report.of_record(body["failure"], job.schema, job.user_params), self._run.disks)
        conversation = self._group.conversations.get(event.task)
        unfinished = conversation.unfinished() if conversation is not None else []
        return on.Closed(event.task, LastWord.of(body), body["rows"], body["rows_read"], failed, (*unfinished, "")[0])


def _failed(task: TaskSpec, kind: FailureKind, what: str) -> on.TaskFailed:
    return on.TaskFailed(task, Failed(kind, what, time.time_ns()))


def _broken(task: TaskSpec, why: object) -> on.TaskFailed:
    return _failed(task, FailureKind.BROKEN, f"broke the protocol: {why}")
