"""The processes of one attempt, with the host's ends of them: started together, asked together, ended together.

::

    feeder thread    source -> chunks -> deal -> encode -> pipe of each worker
    reader threads   pipe of each task -> one queue (`TaskGroup.events`)
    log threads      what each task prints -> its log, and whoever looks on
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from akrunner.cluster.tf_config import tf_config
from akrunner.engines import report
from akrunner.engines.conversation import Conversation
from akrunner.engines.feeder import Feeder, StreamFeeder
from akrunner.engines.jobrun import JobRun
from akrunner.engines.launcher import Launcher
from akrunner.engines.onlooker import Onlooker
from akrunner.engines.supervision.actions import Closing
from akrunner.errors import StartError
from akrunner.foreign import in_words
from akrunner.launch.logs import LogPump
from akrunner.launch.process import stop_all
from akrunner.launch.session import EVENTS, Event, EventKind, TaskSession, wait_for_exits
from akrunner.spec import TaskSpec
from akrunner.wire import STACKS_SIGNAL, frames

#: how long tasks have to print their stacks
_STACKS_SECONDS = 0.3
_LOOK_SECONDS = 1.0


class TaskGroup:
    """The processes of one attempt.

    Attributes:
        sessions: of those that were started; conversations: about tables, of those that have asked.
        events: what the tasks say.
        feeder: who brings the rows; streaming: the same, of a stream, whose rows come while the scripts run.
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
        """Wait until it is known where the tasks are to run. Returns: `Launcher.addresses`."""
        addresses = self._launcher.addresses()
        elsewhere = self._launcher.feeder(self.sessions)
        if elsewhere is not None:
            self.feeder = elsewhere
            self.streaming = elsewhere if self.streaming is not None else None
        return addresses

    def spawn(self, addresses: Mapping[TaskSpec, str], attempt: int) -> None:
        """Start every process, and the feeder. Raises: StartError: the system lets no more be started."""
        run = self._run
        for task in run.job.cluster.tasks:
            config = tf_config(run.job.cluster, addresses, task)
            context = self._launcher.context(task, config, attempt)
            run.work.save_context(task, context)
            with _starting(task):
                process = self._launcher.start(task)
            log = LogPump(process.log_fd, run.work.log_path(task), self._onlooker.echo(task))
            self.sessions[task] = TaskSession(task, process, log, context, self.events, self._conversing(task))
        self.feeder.start()

    def _conversing(self, task: TaskSpec) -> Callable[[frames.FrameWriter], Conversation] | None:
        """What makes the one who answers what a task asks of tables; None: the job has none."""
        tables = self._run.tables
        if tables is None:
            return None

        def failing(kind: str, what: str) -> None:
            self.sessions[task].post(EventKind.TABLE, {"type": kind, "what": what})

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
        """What a thread of the host has ended with; None while all is well."""
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
        """Sent, or, of a stream, dropped because they came too late for a script that had returned."""
        return self.rows_sent + (self.streaming.rows_dropped if self.streaming is not None else 0)

    def sample(self) -> float:
        """Look at memory and processor time. Returns: processor seconds of all processes."""
        for session in self.sessions.values():
            session.process.sample()
        return sum(session.process.sampled_cpu for session in self.sessions.values())

    def look_closely(self) -> tuple[float, float]:
        """Watch them for a second. Returns: processor seconds that they and all they have started used, in so many seconds."""
        before = self._trees()
        time.sleep(_LOOK_SECONDS)
        return self._trees() - before, _LOOK_SECONDS

    def _trees(self) -> float:
        return sum(session.process.tree_cpu() for session in self.sessions.values())

    def stacks(self, tasks: Sequence[TaskSpec], quietly: bool = False) -> dict[TaskSpec, str]:
        """Ask tasks for the stacks of their threads; they are in the log a moment later. Args: quietly: nobody who looks on is shown them."""
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
        """End every process and every thread of ours; whatever happened before, and whatever one of the steps raises."""
        sessions = list(self.sessions.values())
        with contextlib.ExitStack() as last_first:
            last_first.callback(self.feeder.join)
            for conversation in self.conversations.values():
                last_first.callback(conversation.join)
            last_first.callback(self._look_at_logs)
            for session in reversed(sessions):
                last_first.callback(session.close)
            last_first.callback(self._launcher.ended)
            last_first.callback(self._end_processes, closing)
            for session in sessions:
                last_first.callback(session.deafen)
            for conversation in self.conversations.values():
                last_first.callback(conversation.stop)
            last_first.callback(self.feeder.stop)

    def _end_processes(self, closing: Closing) -> None:
        for session in self._of(closing.let_go):
            session.stop()
        late = [session.task.name for session in wait_for_exits(self._of(closing.wait_for), closing.grace)]
        if late:
            self._run.warnings.append(
                f"{', '.join(late)} had finished, but did not end within {closing.grace:g} s (an exit handler that hangs?); killed"
            )
        stop_all([session.process for session in self._of(closing.end)], closing.grace)

    def _of(self, tasks: Sequence[TaskSpec]) -> list[TaskSession]:
        """Sessions of those of the tasks that were started."""
        return [self.sessions[task] for task in tasks if task in self.sessions]

    def _look_at_logs(self) -> None:
        for task, session in self.sessions.items():
            if session.log.unwritten is not None:
                why = in_words(session.log.unwritten, self._run.work.path)
                self._run.warnings.append(f"[{task.name}] its log is not whole: {why} (TMPDIR, or work_dir=)")


@contextlib.contextmanager
def _starting(task: TaskSpec) -> Iterator[None]:
    """What the system says when there can be no more processes, threads or files -> a StartError that names the limit."""
    try:
        yield
    except (OSError, MemoryError, RuntimeError) as e:
        raise StartError(f"[{task.name}] cannot be started: {report.with_limit(e)}") from e
