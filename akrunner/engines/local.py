"""The local engine: the tasks are child processes of this one.

::

    feeder thread    source -> chunks -> deal -> encode -> pipe of each worker
    reader threads   pipe of each task -> events
    this thread      events -> states, rows -> sink; deadlines; the end
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional

import numpy as np
import pyarrow as pa

from akrunner import codec
from akrunner.cluster.ports import PortHold
from akrunner.cluster.tf_config import tf_config
from akrunner.engines import report
from akrunner.engines.base import AnswerSink, Observer, Outcome, Progress, RowSink, RowSource
from akrunner.engines.feeder import Feeder, StreamFeeder
from akrunner.engines.tensorboard import EventFiles
from akrunner.engines.workdir import WorkDir
from akrunner.errors import DataError, JobCancelledError, JobError
from akrunner.launch.files import lay_out
from akrunner.launch.guard import Guard
from akrunner.launch.process import oom_kills, stop_all, sweep
from akrunner.launch.session import EVENTS, Event, TaskSession, wait_for_exits
from akrunner.spec import JobSpec, TaskSpec
from akrunner.wire import STACKS_SIGNAL, frames

_TICK = 0.1
#: after the first failure, how long others may still report one that came before it
_GATHER = 0.1


class LocalEngine:
    """Child processes of this one, on this machine; see `akrunner.engines.base.Engine`."""

    name = "local"

    def run(
        self,
        job: JobSpec,
        source: RowSource,
        sink: Optional[RowSink],
        observer: Optional[Observer],
        cancel: Optional[threading.Event] = None,
    ) -> Outcome:
        """As `Engine.run`."""
        return _LocalRun(job, source, sink, observer, cancel).run()


class _LocalRun:
    """One job, from spawning to the last process gone."""

    def __init__(
        self,
        job: JobSpec,
        source: RowSource,
        sink: Optional[RowSink],
        observer: Optional[Observer],
        cancel: Optional[threading.Event],
    ) -> None:
        self.job = job
        self.sink = sink
        self.observer = observer
        self.cancel = cancel
        self.began = time.monotonic()
        self.began_epoch = time.time()
        self.mark = uuid.uuid4().hex
        self.events: "queue.Queue[Event]" = queue.Queue(EVENTS)
        self.sessions: Dict[TaskSpec, TaskSession] = {}
        self.results: Dict[TaskSpec, report.TaskRecord] = {task: report.TaskRecord() for task in job.cluster.tasks}
        self.failures: Dict[TaskSpec, report.Failed] = {}
        self.fail_at: Optional[float] = None
        self.reports: List[Dict[str, Any]] = []
        self.entered_at: Optional[float] = None
        self.started = False
        self.streaming = StreamFeeder(job, source, self.sessions) if job.mode == "stream" else None
        self.feeder = self.streaming or Feeder(job, source, self.sessions)
        self.oom_before = oom_kills()
        self.board = EventFiles(job.tensorboard) if job.tensorboard is not None else None

    def run(self) -> Outcome:
        work = self.work = WorkDir.create(self.job)
        try:
            with Guard() as guard, contextlib.closing(PortHold(len(self.job.cluster.tasks))) as self.ports:
                if not work.keep:
                    guard.remove(work.path)
                try:
                    self.spawn(work, guard)
                    self.supervise()
                finally:
                    self.end(guard)
            work.take_model(self.job)
            outcome = self.outcome(work)
        except (_Failed, _TimedOut) as e:
            raise self.explained(e, work.close_failed()) from None
        except BaseException:
            work.close_failed()
            raise
        work.close()
        return outcome

    # -- before

    def spawn(self, work: WorkDir, guard: Guard) -> None:
        tasks = self.job.cluster.tasks
        addresses = dict(zip(tasks, self.ports.addresses))
        for task in tasks:
            lay_out(self.job.script, work.files_dir(task))
        for task in tasks:
            config = tf_config(self.job.cluster, addresses, task)
            context = work.context(self.job, task, config)
            work.save_context(task, context)
            session = TaskSession(
                task,
                python=self.job.python,
                bundle=work.bundle,
                context=_constant(context),
                cwd=work.files_dir(task),
                # what libraries leave in the temp directory (TensorFlow does, when it is killed) goes with the job
                env={"TMPDIR": work.temp_dir(task), **self.job.task_env},
                mark=self.mark,
                log_path=work.log_path(task),
                events=self.events,
                echo=self.echo(task),
            )
            self.sessions[task] = session
            guard.watch(session.process.pid)
        self.feeder.start()

    def echo(self, task: TaskSpec) -> Optional[Callable[[str], None]]:
        observer = self.observer
        if observer is None or not self.job.keep:
            return None
        return lambda line: observer.log(task.name, line)

    # -- meanwhile

    def supervise(self) -> None:
        last = 0.0
        while not self.done():
            try:
                event: Optional[Event] = self.events.get(timeout=_TICK)
            except queue.Empty:
                event = None
            if event is not None:
                getattr(self, "on_" + event.kind)(event)
            now = time.monotonic()
            if now - last > _TICK:
                last = now
                for session in self.sessions.values():
                    session.process.sample()
                if self.observer is not None:
                    self.observer.progress(self.progress())
            self.check(now)
        if self.observer is not None:
            self.observer.progress(self.progress())

    def done(self) -> bool:
        """Every task that was fed has said that it is done."""
        return all(self.results[task].state == "finished" for task in self.job.cluster.fed)

    def check(self, now: float) -> None:
        """What no event says: deadlines, and the feeder's own failure."""
        if self.fail_at is not None:
            if now >= self.fail_at:
                raise _Failed
            return
        if self.cancel is not None and self.cancel.is_set():
            raise JobCancelledError("the job was stopped by its caller")
        if self.feeder.error is not None:
            raise self.feeder.error
        if self.job.timeout is not None and now - self.began > self.job.timeout:
            raise _TimedOut(self.stacks())
        late = [t for t, r in self.results.items() if r.state == "starting"]
        if late and now - self.began > self.job.start_timeout:
            for task in late:
                what = f"said nothing for {self.job.start_timeout:g} s after it was started (start_timeout=)"
                self.fail(task, report.Failed("start", what, time.time_ns()))
        fed = self.streaming is not None or self.feeder.finished
        if not self.started and fed and all(r.ready for r in self.results.values()):
            self.started = True
            self.work.save_shares({task.name: session.rows_sent for task, session in self.sessions.items()})
            if sys.platform != "linux":
                self.ports.close()
            for session in self.sessions.values():
                with contextlib.suppress(OSError):
                    session.start()
            if self.streaming is not None:
                self.streaming.started.set()

    def fail(self, task: TaskSpec, failed: report.Failed) -> None:
        """Note a failure; the job ends a moment later, so that an earlier one can still be told from its consequences."""
        self.failures.setdefault(task, failed)
        self.results[task].state = "failed"
        if self.fail_at is None:
            self.fail_at = time.monotonic() + _GATHER

    def on_opened(self, event: Event) -> None:
        self.results[event.task].state = "importing"

    def on_ready(self, event: Event) -> None:
        result = self.results[event.task]
        result.state, result.ready = "ready", True
        result.rows_in = event.data["rows"]
        result.input_wait_ns = event.data["waited_ns"]
        if self.streaming is not None:
            return
        sent = self.sessions[event.task].rows_sent
        if result.rows_in != sent:
            what = f"received {result.rows_in} rows of the {sent} it was sent"
            self.fail(event.task, report.Failed("lost", what, time.time_ns()))

    def on_entered(self, event: Event) -> None:
        self.results[event.task].state = "running"
        if self.entered_at is None:
            self.entered_at = time.monotonic()

    def on_output(self, event: Event) -> None:
        assert event.frame is not None
        result, frame = self.results[event.task], event.frame
        schema = self.job.output_schema
        if schema is None:
            return
        try:
            batch = _decode(schema, frame, result.rows_out)
        except DataError as e:
            self.fail(event.task, report.Failed("output", f"wrote a row that the output schema refuses: {e}", time.time_ns()))
            return
        result.rows_out += batch.num_rows
        result.bytes_out += len(frame.payload)
        if self.sink is not None:
            self.sink.write(event.task, batch)

    def on_refused(self, event: Event) -> None:
        if isinstance(self.sink, AnswerSink):
            self.sink.refused(event.task, event.data)

    def on_report(self, event: Event) -> None:
        data = event.data
        result = self.results[event.task]
        result.metrics = data["metrics"]
        if self.board is not None:
            self.board.write(event.task.name, data["metrics"], data["step"], data["time_ns"])
        self.reports.append({"task": event.task.name, "step": data["step"], "time_ns": data["time_ns"], **data["metrics"]})

    def on_closed(self, event: Event) -> None:
        result, body = self.results[event.task], event.data
        result.main_ns, result.output_blocked_ns = body["main_ns"], body["output_blocked_ns"]
        if self.streaming is not None:
            result.rows_in = body["rows_read"]
        if not body["ok"]:
            self.fail(event.task, report.Failed.from_record(body["failure"]))
        elif event.task not in self.failures:
            if self.job.output_schema is not None and body["rows"] != result.rows_out:
                what = f"wrote {body['rows']} rows, {result.rows_out} arrived"
                self.fail(event.task, report.Failed("lost", what, time.time_ns()))
            else:
                result.state = "finished"

    def on_broken(self, event: Event) -> None:
        self.fail(event.task, report.Failed("broken", f"broke the protocol: {event.error}", time.time_ns()))

    def on_ended(self, event: Event) -> None:
        """Its pipe has ended: after its last word that is all right, before it is not."""
        result = self.results[event.task]
        if result.state in ("finished", "failed"):
            return
        process = self.sessions[event.task].process
        kind = "start" if result.state == "starting" else "died"
        ended = process.wait(1.0)
        if ended is None:
            self.fail(event.task, report.Failed(kind, "closed its pipe to the host and ran on", time.time_ns()))
            return
        words = ended.words(out_of_memory=oom_kills() > self.oom_before)
        before = {
            "starting": "before it said that it had started",
            "importing": "while it imported the script or took its rows",
        }
        where = before.get(result.state, "in main(), without saying that it was done")
        self.fail(event.task, report.Failed(kind, f"ended {where}: {words}", ended.time_ns))

    # -- after

    def end(self, guard: Guard) -> None:
        """Every process gone, every thread of ours at its end; whatever happened before."""
        self.feeder.stop()
        if self.board is not None:
            self.board.close()
        sessions = list(self.sessions.values())
        for session in sessions:
            session.deafen()
        finished = [s for s in sessions if self.results[s.task].state == "finished"]
        if len(finished) and not self.failures:
            wait_for_exits(finished, self.job.exit_grace)
        stop_all([session.process for session in sessions], self.job.exit_grace)
        sweep(self.mark, self.began_epoch)
        for session in sessions:
            session.close()
            guard.forget(session.process.pid)
        self.feeder.join()

    def stacks(self) -> Dict[TaskSpec, str]:
        """Ask every task that still runs for the stacks of its threads; they are in its log a moment later."""
        running = [s for t, s in self.sessions.items() if self.results[t].state not in ("starting", "finished")]
        for session in running:
            session.process.signal(STACKS_SIGNAL)
        time.sleep(0.3 if running else 0)
        return {session.task: session.log.tail(60) for session in running}

    def progress(self) -> Progress:
        sessions = self.sessions.values()
        results = self.results
        return Progress(
            seconds=time.monotonic() - self.began,
            rows_in=sum(s.rows_sent for s in sessions),
            bytes_in=sum(s.writer.bytes for s in sessions),
            rows_out=sum(r.rows_out for r in results.values()),
            bytes_out=sum(r.bytes_out for r in results.values()),
            states={task.name: result.state for task, result in results.items()},
            reports={task.name: result.metrics for task, result in results.items() if result.metrics},
        )

    def outcome(self, work: WorkDir) -> Outcome:
        return report.outcome(
            self.job,
            self.sessions,
            self.results,
            work,
            shares=self.feeder.dealer.shares,
            seconds=time.monotonic() - self.began,
            start_seconds=(self.entered_at or self.began) - self.began,
            feed_seconds=self.feeder.seconds,
            reports=self.reports,
            rows_unread=self.rows_unread(),
        )

    def rows_unread(self) -> int:
        """Of a stream whose script returned before it had ended."""
        if self.streaming is None:
            return 0
        sent = sum(session.rows_sent for session in self.sessions.values())
        return sent + self.streaming.rows_dropped - sum(result.rows_in for result in self.results.values())

    def explained(self, error: "_Failed | _TimedOut", kept: str) -> JobError:
        """The exception the caller gets. `kept`: the directory the logs are in."""
        if isinstance(error, _TimedOut):
            return report.timeout_error(self.job, error.stacks, self.results, kept)
        return report.job_error(self.failures, self.sessions, self.results, kept)


class _Failed(Exception):
    """Some task has failed; `failures` says which."""


class _TimedOut(Exception):
    def __init__(self, stacks: Mapping[TaskSpec, str]) -> None:
        super().__init__()
        self.stacks = stacks


def _decode(schema: Any, frame: frames.Frame, first_row: int) -> pa.RecordBatch:
    if frame.kind == frames.COLUMNS:
        return codec.decode_columns(schema, frame.payload, first_row)
    lengths = np.frombuffer(frame.payload, np.uint32, frame.count).astype(np.int64)
    return codec.decode_examples(schema, np.frombuffer(frame.payload, np.uint8)[4 * frame.count :], lengths, first_row)


def _constant(context: Mapping[str, Any]) -> Callable[[], Mapping[str, Any]]:
    return lambda: context
