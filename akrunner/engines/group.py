"""The processes of one attempt, and the host's ends of their pipes: they are started, asked and ended together.

::

    feeder thread    source -> chunks -> deal -> encode -> pipe of each worker
    reader threads   pipe of each task -> one queue (`TaskGroup.events`)
    log threads      the lines that each task prints -> its log, and the observer
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from akrunner.cluster.tf_config import tf_config
from akrunner.engines import report
from akrunner.engines.base import Launcher
from akrunner.engines.conversation import Conversation
from akrunner.engines.feeder import Feeder, StreamFeeder
from akrunner.engines.jobrun import JobRun
from akrunner.engines.onlooker import Onlooker
from akrunner.engines.supervision.actions import Closing
from akrunner.errors import StartError
from akrunner.foreign import in_words
from akrunner.launch.events import Event, TableFailed
from akrunner.launch.logs import LogPump
from akrunner.launch.process import stop_all
from akrunner.launch.session import EVENTS, TaskSession, close_all, wait_for_exits
from akrunner.spec import TaskSpec
from akrunner.wire import STACKS_SIGNAL, frames

#: seconds that tasks have to print their stacks
_STACKS_SECONDS = 0.3
_LOOK_SECONDS = 1.0
#: seconds that the threads of all sessions have to finish, once the processes have ended
_THREADS_SECONDS = 2.0

#: set once this process has begun to start a task: a command that is stopped then has stopped tasks
BEGUN = threading.Event()


class TaskGroup:
    """The processes of one attempt.

    Attributes:
        sessions: the sessions of the tasks that were started.
        conversations: the conversations about tables, of the tasks that have asked for a table.
        events: everything that the tasks send.
        feeder: the thread that feeds the rows to the tasks.
        streaming: the same thread if the job is a stream, whose rows come while the scripts run; None if it is not.
    """

    def __init__(self, run: JobRun, launcher: Launcher, onlooker: Onlooker) -> None:
        self.sessions: dict[TaskSpec, TaskSession] = {}
        self.conversations: dict[TaskSpec, Conversation] = {}
        self.events: queue.Queue[Event] = queue.Queue(EVENTS)
        self.streaming = StreamFeeder(run.job, run.source, self.sessions) if run.job.mode == "stream" else None
        self.feeder = self.streaming or Feeder(run.job, run.source, self.sessions)
        self._run = run
        self._launcher = launcher
        self._onlooker = onlooker

    def find_places(self) -> Mapping[TaskSpec, str]:
        """Wait until it is known where the tasks are to run, and return their addresses (`Launcher.addresses`)."""
        addresses = self._launcher.addresses()
        self._take_notes()
        elsewhere = self._launcher.feeder(self.sessions)
        if elsewhere is not None:
            self.feeder = elsewhere
            self.streaming = elsewhere if self.streaming is not None else None
        return addresses

    def spawn(self, addresses: Mapping[TaskSpec, str], attempt: int) -> None:
        """Start every process, and the feeder.

        Raises:
            StartError: the system allows no more processes, threads or files.
        """
        run = self._run
        for task in run.job.cluster.tasks:
            config = tf_config(run.job.cluster, addresses, task)
            context = self._launcher.context(task, config, attempt)
            run.work.save_context(task, context)
            BEGUN.set()
            with _starting(task):
                process = self._launcher.start(task)
                copy = run.kept.log(task, attempt)
                log = LogPump(process.log_fd, run.work.log_path(task), self._onlooker.echo(task), copy=copy)
                self.sessions[task] = TaskSession(task, process, log, context, self.events, self._conversing(task))
        self.feeder.start()

    def _conversing(self, task: TaskSpec) -> Callable[[frames.FrameWriter], Conversation] | None:
        """Return a function that makes the answerer of a task's requests about tables; None if the job has no tables."""
        tables = self._run.tables
        if tables is None:
            return None

        def failing(error: BaseException, what: str) -> None:
            self.sessions[task].post(TableFailed(task, error, what))

        def made(writer: frames.FrameWriter) -> Conversation:
            self.conversations[task] = Conversation(tables, task, writer, failing)
            return self.conversations[task]

        return made

    def start(self) -> None:
        """Tell every task to enter `main`."""
        self._launcher.ready()
        for session in self.sessions.values():
            with contextlib.suppress(OSError):
                session.start()
        if self.streaming is not None:
            self.streaming.started.set()

    # -- what is seen of them

    @property
    def error(self) -> BaseException | None:
        """The exception that has ended one of the host's threads; None if there is none."""
        if self.feeder.error is not None:
            return self.feeder.error
        for session in self.sessions.values():
            if session.error is not None:
                return session.error
        return None

    @property
    def bytes_sent(self) -> int:
        return sum(session.writer.bytes for session in self.sessions.values())

    @property
    def rows_sent(self) -> int:
        return sum(session.rows_sent for session in self.sessions.values())

    @property
    def rows_given(self) -> int:
        """The rows sent, and, of a stream, those dropped because they came after the script had returned."""
        return self.rows_sent + (self.streaming.rows_dropped if self.streaming is not None else 0)

    def sample(self) -> float:
        """Measure memory and processor time. Returns the processor seconds of all processes."""
        for session in self.sessions.values():
            session.process.sample()
        return sum(session.process.sampled_cpu for session in self.sessions.values())

    def used(self) -> dict[str, dict[str, float]]:
        """Return by task what its process uses, as last measured, and what it was sent (fields of `akrunner.history.samples.Sample`)."""
        sessions = {task.name: session for task, session in self.sessions.items()}
        return {
            "task_bytes_in": {name: session.writer.bytes for name, session in sessions.items()},
            "memory": {name: session.process.sampled_memory for name, session in sessions.items()},
            "rss": {name: session.process.sampled_rss for name, session in sessions.items()},
            "cpu_seconds": {name: session.process.sampled_cpu for name, session in sessions.items()},
        }

    def look_closely(self) -> tuple[float, float]:
        """Watch the processes for a second.

        Returns:
            The processor seconds that they and all their descendants used, and the seconds in which they used them.
        """
        before = self._trees()
        time.sleep(_LOOK_SECONDS)
        return self._trees() - before, _LOOK_SECONDS

    def _trees(self) -> float:
        return sum(session.process.tree_cpu() for session in self.sessions.values())

    def stacks(self, tasks: Sequence[TaskSpec], quietly: bool = False) -> dict[TaskSpec, str]:
        """Ask tasks for the stacks of their threads, wait a moment, and return what their logs have of them.

        Args:
            quietly: whether to hide the stacks from the observer.
        """
        running = [self.sessions[task] for task in tasks]
        before = {session: session.log.position for session in running}
        self._onlooker.no_stacks = quietly
        try:
            for session in running:
                session.process.signal(STACKS_SIGNAL)
            time.sleep(_STACKS_SECONDS if running else 0)
        finally:
            self._onlooker.no_stacks = False
        return {session.task: session.log.since(before[session]) or session.log.tail(60) for session in running}

    # -- the end

    def end(self, closing: Closing) -> None:
        """End every process and every thread of the attempt, whatever happened before, and whatever one of the steps raises."""
        sessions = list(self.sessions.values())
        with contextlib.ExitStack() as last_first:
            last_first.callback(self.feeder.join)
            for conversation in self.conversations.values():
                last_first.callback(conversation.join)
            last_first.callback(self._look_at_logs)
            last_first.callback(close_all, sessions, _THREADS_SECONDS)
            last_first.callback(self._take_notes)
            last_first.callback(self._launcher.ended)
            last_first.callback(self._end_processes, closing)
            for session in sessions:
                last_first.callback(session.deafen)
            for conversation in self.conversations.values():
                last_first.callback(conversation.stop)
            last_first.callback(self.feeder.stop)

    def _take_notes(self) -> None:
        # an attempt after the first one may say the same again
        self._run.warnings.extend(note for note in self._launcher.notes() if note not in self._run.warnings)

    def _end_processes(self, closing: Closing) -> None:
        for session in self._of(closing.let_go):
            session.stop()
        late = [session.task.name for session in wait_for_exits(self._of(closing.wait_for), closing.grace)]
        if late:
            self._run.warnings.append(
                f"{', '.join(late)} had finished, but did not end within {closing.grace:g} s (an exit handler that hangs?); "
                "killed"
            )
        stop_all([session.process for session in self._of(closing.end)], closing.grace)

    def _of(self, tasks: Sequence[TaskSpec]) -> list[TaskSession]:
        """Return the sessions of those of the tasks that were started."""
        return [self.sessions[task] for task in tasks if task in self.sessions]

    def _look_at_logs(self) -> None:
        for task, session in self.sessions.items():
            if session.log.unwritten is not None:
                why = in_words(session.log.unwritten, self._run.work.path)
                self._run.warnings.append(f"[{task.name}] its log is not whole: {why} (TMPDIR, or work_dir=)")
        self._run.warnings.extend(self._run.kept.end_attempt())


@contextlib.contextmanager
def _starting(task: TaskSpec) -> Iterator[None]:
    """Turn the error that the system raises when it allows no more processes, threads or files into a StartError that
    names the limit."""
    try:
        yield
    except (OSError, MemoryError, RuntimeError) as e:
        raise StartError(f"[{task.name}] cannot be started: {report.with_limit(e)}") from e
