"""Runs one attempt at a job, from the start of the first task to the end of the last process.

::

    TaskGroup (`group`)        processes, feeder, readers  --events-->  Receiver (`receiving`): rows -> sink; what it means
    this thread                what it means, the clock    -->          supervision.machine: decides
                               <-- actions: start, stop, stacks, a verdict
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import Any

from akrunner.cluster.failure import FailureKind
from akrunner.engines import report
from akrunner.engines.base import Launcher, Outcome, Progress, TaskProgress
from akrunner.engines.group import TaskGroup
from akrunner.engines.jobrun import JobRun
from akrunner.engines.onlooker import Onlooker
from akrunner.engines.receiving import Receiver
from akrunner.engines.supervision import actions as do
from akrunner.engines.supervision import deadlock, machine
from akrunner.engines.supervision import events as on
from akrunner.engines.supervision.stall import Facts
from akrunner.engines.supervision.states import Ending, Moment, Rules, State, Verdict
from akrunner.errors import JobCancelledError, JobError, TaskFailure
from akrunner.spec import JobSpec, TaskSpec

_TICK = 0.1
#: seconds to wait for the end of a process whose pipe has ended
_EXIT_WAIT = 1.0
_NOBODY = TaskFailure("job", "nothing moved any more")


class AttemptFailed(Exception):
    """An attempt has failed.

    Attributes:
        kind, root: what failed; the failure policy decides by these.
    """

    def __init__(self, kind: FailureKind, root: TaskFailure, error: Callable[[str], JobError]) -> None:
        super().__init__(root.what)
        self.kind = kind
        self.root = root
        self._error = error

    def error(self, kept: str, warnings: list[str]) -> JobError:
        """Return the error that the caller of the job gets.

        Args:
            kept: the directory the logs are in; "" if they were not kept.
            warnings: the warnings so far.
        """
        made = self._error(kept)
        made.warnings = tuple(warnings)
        return made


class Supervisor:
    """Runs one attempt.

    Args:
        attempt: the number of attempts before this one.
    """

    def __init__(self, run: JobRun, launcher: Launcher, attempt: int) -> None:
        self._run = run
        self._launcher = launcher
        self._attempt = attempt
        self._began = time.monotonic()
        self._onlooker = Onlooker(run.observer)
        self._group = TaskGroup(run, launcher, self._onlooker)
        self._receiver = Receiver(run, self._group, self._onlooker)
        self._state = State.first(Rules.of(run.job), run.counted, self._began)
        self._taken = 0
        self._stalls = 0
        self._last_look = 0.0

    def run(self) -> Outcome:
        """Run the attempt to its end.

        Raises:
            AttemptFailed: the attempt failed.
            Exception: whatever the source, the sink or a cancellation by the caller raises.
        """
        self._run.kept.begin_attempt(self._attempt)
        with self._launcher:
            try:
                with self._run.patience.heard():
                    addresses = self._group.find_places()
                    self._happened(on.Spawning())
                    self._group.spawn(addresses, self._attempt)
                    verdict = self._supervise()
            finally:
                self._end()
            if verdict.ending is Ending.SUCCEEDED:
                self._launcher.take_model()
            elif verdict.ending is Ending.FAILED:
                self._launcher.explain()
        if verdict.ending is not Ending.SUCCEEDED:
            raise _error(verdict, self._run.job, self._group, self._state)
        return self._outcome()

    def inputs(self) -> dict[str, dict[str, Any]]:
        """Return by task what the tasks that have sent their last message measured of their input."""
        return report.measured(self._state.tasks)

    def _supervise(self) -> Verdict:
        """Handle events until there is a verdict."""
        events = self._group.events
        while self._state.verdict is None:
            try:
                event = events.get(timeout=_TICK)
            except queue.Empty:
                pass
            else:
                self._taken += 1
                means = self._receiver.take(event, self._state)
                if means is not None:
                    self._happened(means)
            self._look_around()
            now = time.monotonic()
            if now - self._last_look >= _TICK:
                self._last_look = now
                self._tick()
        if self._state.verdict.ending is Ending.SUCCEEDED:
            self._onlooker.tell(self._progress)
        self._run.kept.sample(self._progress, self._group.used, last=True)
        return self._state.verdict

    def _happened(self, event: on.Event) -> None:
        """Let the state machine decide what follows from an event, and carry out its actions."""
        self._state, actions = machine.step(self._state, event, Moment(time.monotonic(), time.time_ns()))
        if type(event) is not on.Wrote:
            self._run.kept.states({task.name: record.state.value for task, record in self._state.tasks.items()})
        for action in actions:
            answer = _CARRY_OUT[type(action)](self, action)
            if answer is not None:
                self._happened(answer)

    def _look_around(self) -> None:
        """Check whether the caller has cancelled the job, and what has become of the host's own threads."""
        if self._run.cancel is not None and self._run.cancel.is_set():
            self._happened(on.Cancelled())
        error = self._group.error
        if error is not None:
            self._happened(on.HostFault(error))
        feeder = self._group.feeder
        if feeder.finished and not self._state.fed:
            self._happened(on.Fed())
        if feeder.refused is not None and self._group.streaming is None and self._state.refused is None:
            self._happened(on.Refused(feeder.refused.task, feeder.refused_at))

    def _tick(self) -> None:
        cpu = self._group.sample()
        self._run.hear()
        self._onlooker.tell(self._progress)
        self._run.kept.sample(self._progress, self._group.used)
        told = self._run.guard.check()
        if told is not None:
            self._run.warnings.append(told)
        tables = self._run.tables
        moved = self._taken + (tables.moved if tables is not None else 0)
        self._happened(on.Tick(Facts(moved, self._group.bytes_sent, cpu, self._group.feeder.in_source)))
        if not self._state.failures and self._state.verdict is None:
            try:
                self._launcher.check()
            except JobError as e:
                self._happened(on.PlacesFailed(str(e)))

    # -- what is decided

    def _start(self, action: do.Start) -> None:
        run, feeder = self._run, self._group.feeder
        rows = {task.name: session.rows_sent for task, session in self._group.sessions.items()}
        run.work.save_shares(rows, feeder.splits)
        run.warnings.extend(report.empty_splits(run.job.split, feeder.splits))
        self._group.start()

    def _stop(self, action: do.Stop) -> None:
        self._group.sessions[action.task].stop()

    def _warn(self, action: do.Warn) -> None:
        self._run.warnings.append(action.what)

    def _await_exit(self, action: do.AwaitExit) -> on.Event:
        ended = self._group.sessions[action.task].process.wait(_EXIT_WAIT)
        if ended is None:
            return on.Exited(action.task)
        return on.Exited(action.task, ended.words(), ended.code == 0, ended.time_ns)

    def _ask_stacks(self, action: do.AskStacks) -> on.Event:
        asked = [task for task in action.tasks if self._state.tasks[task].state.prints_stacks]
        return on.Stacks(action.purpose, self._group.stacks(asked, action.quietly))

    def _look_closely(self, action: do.LookClosely) -> on.Event:
        cpu, seconds = self._group.look_closely()
        return on.LookedClosely(cpu, seconds, self._group.events.qsize())

    def _tell_stall(self, action: do.TellStall) -> on.Event:
        self._stalls += 1
        tasks = self._state.tasks
        told = deadlock.describe(
            action.seconds,
            self._group.sessions,
            tasks,
            self._group.stacks([task for task in tasks if tasks[task].state.prints_stacks]),
            waiting_frames=self._group.events.qsize(),
            in_source=self._state.stall.facts.in_source,
            vain=action.vain,
        )
        self._run.work.save_stall(told)
        return on.StallTold(told, action.fatal)

    # -- after

    def _end(self) -> None:
        try:
            self._group.end(machine.closing(self._state))
        finally:
            self._run.hear()

    def _progress(self) -> Progress:
        tasks, feeder = self._state.tasks, self._group.feeder
        return Progress(
            seconds=time.monotonic() - self._began,
            rows_in=self._group.rows_sent,
            bytes_in=self._group.bytes_sent,
            rows_out=sum(record.rows_out for record in tasks.values()),
            bytes_out=sum(record.bytes_out for record in tasks.values()),
            states={task.name: record.state.value for task, record in tasks.items()},
            reports=self._receiver.metrics,
            warnings=tuple(self._run.warnings),
            tasks={task.name: self._task_progress(task) for task in tasks},
            rows_total=feeder.extent.rows if feeder.extent is not None else None,
            share_read=feeder.share_read,
            fed=feeder.finished,
            attempt=self._attempt,
            stalls=self._stalls,
        )

    def _task_progress(self, task: TaskSpec) -> TaskProgress:
        session = self._group.sessions.get(task)
        sent = session.rows_sent if session is not None else 0
        step = self._receiver.latest.get(task.name, {}).get("step")
        return TaskProgress(sent, self._state.tasks[task].rows_out, step, self._receiver.reached.get(task.name))

    def _outcome(self) -> Outcome:
        group, tasks = self._group, self._state.tasks
        read = sum(record.rows_in for record in tasks.values())
        return report.outcome(
            self._run.job,
            group.sessions,
            tasks,
            self._run.work,
            shares=group.feeder.partitioner.shares,
            seconds=time.monotonic() - self._run.began,
            start_seconds=(self._state.entered_at or self._began) - self._began,
            feed_seconds=group.feeder.seconds,
            reports=self._receiver.reports,
            rows_unread=group.rows_given - read if group.streaming is not None else 0,
            attempt=self._attempt,
            warnings=[*self._run.warnings, *self._receiver.warnings],
            starts=self._launcher.starts(),
        )


#: a kind of action -> the method that carries it out. Not kept on the instance: its bound methods would make a reference
#: cycle, which would keep a finished job, and its model's files, alive
_CARRY_OUT: dict[type, Callable[[Supervisor, Any], on.Event | None]] = {
    do.Start: Supervisor._start,
    do.Stop: Supervisor._stop,
    do.Warn: Supervisor._warn,
    do.AwaitExit: Supervisor._await_exit,
    do.AskStacks: Supervisor._ask_stacks,
    do.LookClosely: Supervisor._look_closely,
    do.TellStall: Supervisor._tell_stall,
}


def _error(verdict: Verdict, job: JobSpec, group: TaskGroup, state: State) -> BaseException:
    """Return the exception for a verdict other than success."""
    sessions, tasks = group.sessions, state.tasks
    if verdict.error is not None:
        return verdict.error
    if verdict.ending is Ending.CANCELLED:
        return JobCancelledError("the job was stopped by its caller")
    if verdict.ending is Ending.TIMED_OUT:
        in_source = state.stall.facts.in_source
        return AttemptFailed(
            FailureKind.TIMEOUT, _NOBODY, lambda kept: report.timeout_error(job, verdict.stacks, tasks, kept, in_source)
        )
    if verdict.ending is Ending.STALLED:
        return AttemptFailed(FailureKind.STALLED, _NOBODY, lambda kept: report.stall_error(verdict.told, tasks, kept))
    task, failed = verdict.failures[0]
    root = report.task_failure(task, failed, sessions[task], "")
    return AttemptFailed(failed.kind, root, lambda kept: report.job_error(verdict.failures, sessions, tasks, kept))
