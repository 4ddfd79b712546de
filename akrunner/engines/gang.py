"""One attempt at a job: every task from spawning to the last process gone.

::

    feeder thread    source -> chunks -> deal -> encode -> pipe of each worker
    reader threads   pipe of each task -> events
    this thread      events -> states, rows -> sink; deadlines; the end

The end: chief and workers are done, or serve (in PAI mode their processes stay until all are); the evaluator gets its time; then who only serves is told to
stop; then all processes go.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import Any, Callable, Collection, Dict, Iterator, List, Mapping, Optional

from akrunner import codec
from akrunner.cluster.tf_config import tf_config
from akrunner.engines import doctor, report
from akrunner.engines.base import AnswerSink, Observer, Outcome, Progress, RowSink, RowSource
from akrunner.engines.columns import OutputColumns
from akrunner.engines.conversation import Conversation
from akrunner.engines.feeder import Feeder, StreamFeeder
from akrunner.engines.launcher import Launcher
from akrunner.engines.patience import Patience
from akrunner.engines.tables import JobTables
from akrunner.engines.tensorboard import EventFiles
from akrunner.engines.workdir import WorkDir
from akrunner.errors import (
    AkrunnerError,
    DataError,
    JobCancelledError,
    JobError,
    ProtocolError,
    StartError,
    TaskFailure,
    WriteError,
)
from akrunner.foreign import in_words, underway
from akrunner.launch import cgroups
from akrunner.launch.guard import Guard
from akrunner.launch.logs import LogPump
from akrunner.launch.process import stop_all
from akrunner.launch.session import EVENTS, Event, TaskSession, wait_for_exits
from akrunner.spec import EVALUATOR, PS, JobSpec, TaskSpec
from akrunner.wire import STACKS_SIGNAL, frames

_TICK = 0.1
#: after the first failure, how long others may still report one that came before it
_GATHER = 0.1
#: when the chief of those who serve it is done: how long until somebody looks whether the others are in `server.join()`; then twice as long, up to the most
_FIRST_LOOK, _LAST_LOOK = 0.2, 10.0
#: how long a parameter server that does not say that it serves may go on when all others are done, where rows are written
_ROWS_GRACE = 0.5
#: how long the end of a process may stay unknown that no longer takes its rows
_GONE_WAIT = 5.0


class GangFailed(Exception):
    """An attempt failed.

    Attributes:
        kind, root: for the failure policy. error: (directory the logs are in, warnings so far) -> what the caller gets.
    """

    def __init__(self, kind: str, root: TaskFailure, error: Callable[[str, List[str]], JobError]) -> None:
        super().__init__(root.what)
        self.kind = kind
        self.root = root
        self.error = error


class Gang:
    """One attempt. Args: began: when the job did; attempt: 0, or how many there were before; warnings: so far, more are added."""

    def __init__(
        self,
        job: JobSpec,
        source: RowSource,
        sink: Optional[RowSink],
        observer: Optional[Observer],
        cancel: Optional[threading.Event],
        launcher: Launcher,
        work: WorkDir,
        began: float,
        attempt: int,
        warnings: List[str],
        guard: Guard,
        patience: Patience,
        tables: Optional[JobTables] = None,
    ) -> None:
        self.job = job
        self.wait = job.supervision
        self.sink = sink
        self.columns = OutputColumns(job)
        self.observer = observer
        self.cancel = cancel
        self.launcher = launcher
        self.work = work
        self.job_began = began
        self.attempt = attempt
        self.warnings = warnings
        self.guard = guard
        self.patience = patience
        self.began = self.spawned = time.monotonic()
        self.events: "queue.Queue[Event]" = queue.Queue(EVENTS)
        self.sessions: Dict[TaskSpec, TaskSession] = {}
        self.tables = tables
        self.asked: Dict[TaskSpec, Conversation] = {}
        self.results: Dict[TaskSpec, report.TaskRecord] = {task: report.TaskRecord() for task in job.cluster.tasks}
        self.failures: Dict[TaskSpec, report.Failed] = {}
        self.fail_at: Optional[float] = None
        self.reports: List[Dict[str, Any]] = []
        self.entered_at: Optional[float] = None
        self.started = False
        self.stopping = False
        #: of those that stay when they are done: whether they still do
        self.staying = bool(job.staying)
        self.events_taken = 0
        self.last_look = 0.0
        self.next_look = _FIRST_LOOK
        self.chief_done: Optional[float] = None
        self.looking = False
        self.streaming = StreamFeeder(job, source, self.sessions) if job.mode == "stream" else None
        self.feeder = self.streaming or Feeder(job, source, self.sessions)
        self.oom_before = cgroups.killed()
        self.stall = doctor.StallWatch(self.wait.stall_timeout, self.sessions)
        self.board = EventFiles(job.tensorboard, warnings) if job.tensorboard is not None else None

    def run(self) -> Outcome:
        """Raises: GangFailed; whatever the source, the sink or the caller's cancelling raises."""
        job = self.job
        with self.launcher:
            try:
                with self.patience.heard():
                    self.spawn()
                    self.supervise()
            except _TimedOut as e:
                stacks = e.stacks
                raise self.failed("timeout", lambda kept: report.timeout_error(job, stacks, self.results, kept)) from None
            except _Stalled as e:
                told = e.told
                raise self.failed("stalled", lambda kept: report.stall_error(told, kept)) from None
            except _Failed:
                pass
            finally:
                self.end()
            if not self.failures:
                self.launcher.take_model()
            else:
                self.launcher.explain()
        if self.failures:
            kind, root = report.first_failure(self.failures, self.sessions)
            raise self.failed(kind, lambda kept: report.job_error(self.failures, self.sessions, self.results, kept), root)
        return self.outcome()

    def inputs(self) -> Dict[str, Dict[str, Any]]:
        """What the tasks that have said their last word measured of their input, by task."""
        return report.measured(self.results)

    def failed(
        self, kind: str, error: Callable[[str], JobError], root: TaskFailure = TaskFailure("job", "nothing moved any more")
    ) -> GangFailed:
        def explained(kept: str, warnings: List[str]) -> JobError:
            made = error(kept)
            made.warnings = tuple(warnings)
            return made

        return GangFailed(kind, root, explained)

    # -- before

    def spawn(self) -> None:
        tasks = self.job.cluster.tasks
        addresses = self.launcher.addresses()
        elsewhere = self.launcher.feeder(self.sessions)
        if elsewhere is not None:
            self.feeder = elsewhere
            self.streaming = elsewhere if self.streaming is not None else None
        self.spawned = time.monotonic()
        for task in tasks:
            config = tf_config(self.job.cluster, addresses, task)
            context = self.launcher.context(task, config, self.attempt)
            self.work.save_context(task, context)
            with self.starting(task):
                process = self.launcher.start(task)
            log = LogPump(process.log_fd, self.work.log_path(task), self.echo(task))
            self.sessions[task] = TaskSession(task, process, log, context, self.events, self.conversing(task))
        self.feeder.start()

    def conversing(self, task: TaskSpec) -> Optional[Callable[[frames.FrameWriter], Conversation]]:
        """What makes the one who answers what a task asks of tables; None: the job has none."""
        tables = self.tables
        if tables is None:
            return None

        def failing(kind: str, what: str) -> None:
            self.sessions[task].post("table", {"type": kind, "what": what})

        def made(writer: frames.FrameWriter) -> Conversation:
            self.asked[task] = Conversation(tables, task, writer, failing)
            return self.asked[task]

        return made

    @contextlib.contextmanager
    def starting(self, task: TaskSpec) -> Iterator[None]:
        """What the system says when there can be no more processes, threads or files -> a StartError that names the limit."""
        try:
            yield
        except (OSError, MemoryError, RuntimeError) as e:
            raise StartError(f"[{task.name}] cannot be started: {report.with_limit(e)}") from e

    def echo(self, task: TaskSpec) -> Optional[Callable[[str], None]]:
        observer = self.observer
        if observer is None:
            return None

        def tell(line: str) -> None:
            if self.looking and doctor.is_stack(line):
                # of a job that may well be in order
                return
            with observing("log"):
                observer.log(task.name, line)

        return tell

    def tell_progress(self) -> None:
        if self.observer is not None:
            with observing("progress"):
                self.observer.progress(self.progress())

    # -- meanwhile

    def supervise(self) -> None:
        self.attend(self.done)
        self.let_go()
        evaluators = [task for task in self.job.cluster.tasks if task.role == EVALUATOR]
        if not self.attend(lambda: self.have_ended(evaluators), self.wait.evaluator_timeout):
            self.warnings.append(
                f"[evaluator:0] was still in main() {self.wait.evaluator_timeout:g} s after chief and workers were done, and was "
                "ended (evaluator_timeout=)"
            )
        self.let_write()
        others = [task for task, result in self.results.items() if result.state != "finished"]
        self.stopping = True
        for task in others:
            self.sessions[task].stop()
        if not self.attend(lambda: self.have_ended(others), self.wait.exit_grace):
            late = [task.name for task in others if self.results[task].state not in ("finished", "ended")]
            self.warnings.append(f"{', '.join(late)} did not end within {self.wait.exit_grace:g} s of being told to; killed")
        self.tell_progress()

    def let_go(self) -> None:
        """The processes that have stayed with TensorFlow's servers in them, though their scripts have ended, may go."""
        stay = self.job.staying if self.staying else ()
        self.staying = False
        for task in stay:
            if task in self.sessions and self.results[task].state == "finished":
                self.sessions[task].stop()

    def let_write(self) -> None:
        """A parameter server that does not say that it serves may be about to write rows."""
        servers = [task for task in self.job.cluster.tasks if task.role == PS] if self.columns.schema is not None else []

        def running() -> List[TaskSpec]:
            return [task for task in servers if self.results[task].state == "running"]

        if not running() or self.attend(lambda: not running(), _ROWS_GRACE):
            return
        stacks = self.stacks(running())
        for task in running():
            if not doctor.waits(stacks.get(task, "")):
                self.warnings.append(
                    f"[{task.name}] was ended in main(), as chief and workers were done: what it may yet have written is not there. A parameter server says that "
                    "it serves: return task_config.serve()"
                )

    def check_servers(self, now: float) -> None:
        """Whether workers that only serve a chief, who is done, are in `server.join()`: they do not say so."""
        awaited = self.job.cluster.awaited
        if not self.job.cluster.coordinator or self.stopping or self.results[awaited[0]].state != "finished":
            return
        self.chief_done = now if self.chief_done is None else self.chief_done
        left = [task for task in awaited if self.results[task].state == "running"]
        if not left or now - self.chief_done < self.next_look:
            return
        self.next_look += min(2 * self.next_look, _LAST_LOOK)
        stacks = self.stacks(left)
        for task in left:
            if doctor.in_join(stacks.get(task, "")) and self.results[task].state == "running":
                self.results[task].state = "serving"

    def attend(self, until: Callable[[], bool], seconds: Optional[float] = None) -> bool:
        """Take events until something is so, for at most so long; whether it is."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not until():
            if deadline is not None and time.monotonic() > deadline:
                return False
            try:
                event: Optional[Event] = self.events.get(timeout=_TICK)
            except queue.Empty:
                event = None
            if event is not None:
                self.events_taken += 1
                getattr(self, "on_" + event.kind)(event)
            now = time.monotonic()
            if now - self.last_look > _TICK:
                self.last_look = now
                for session in self.sessions.values():
                    session.process.sample()
                self.tell_progress()
                self.check_guard()
                self.check_stall(now)
            self.check(now)
        return True

    def done(self) -> bool:
        """Chief and workers have said that they are done, but for those that only serve."""
        results = [self.results[task] for task in self.job.cluster.awaited]
        return results[0].state == "finished" and all(result.state in ("finished", "serving") for result in results)

    def have_ended(self, tasks: List[TaskSpec]) -> bool:
        return all(self.results[task].state in ("finished", "ended") for task in tasks)

    def check(self, now: float) -> None:
        """What no event says: deadlines, and the feeder's own failure."""
        if self.fail_at is not None:
            if now >= self.fail_at:
                raise _Failed
            return
        if self.cancel is not None and self.cancel.is_set():
            raise JobCancelledError("the job was stopped by its caller")
        self.check_threads(now)
        self.check_servers(now)
        try:
            self.launcher.check()
        except JobError as e:
            self.fail(self.job.cluster.tasks[0], report.Failed("died", str(e), time.time_ns()))
        if self.wait.timeout is not None and now - self.job_began > self.wait.timeout:
            raise _TimedOut(self.stacks())
        late = [t for t, r in self.results.items() if r.state == "starting"]
        if late and now - self.spawned > self.wait.start_timeout:
            for task in late:
                what = f"said nothing for {self.wait.start_timeout:g} s after it was started (start_timeout=)"
                self.fail(task, report.Failed("start", what, time.time_ns()))
        fed = self.streaming is not None or self.feeder.finished
        if not self.started and fed and all(r.ready for r in self.results.values()):
            self.started = True
            self.work.save_shares({task.name: session.rows_sent for task, session in self.sessions.items()}, self.feeder.splits)
            self.warnings += report.empty_splits(self.job.split, self.feeder.splits)
            self.launcher.ready()
            for session in self.sessions.values():
                with contextlib.suppress(OSError):
                    session.start()
            if self.streaming is not None:
                self.streaming.started.set()

    def check_threads(self, now: float) -> None:
        """Raises: whatever a thread of ours has ended with."""
        if self.feeder.error is not None:
            raise self.feeder.error
        for task, session in self.sessions.items():
            if session.error is not None:
                raise session.error
            if self.feeder.refused is session and self.streaming is None and now > self.feeder.refused_at + _GONE_WAIT:
                # its end would have been noticed by now
                self.fail(task, report.Failed("died", "no longer takes rows, and runs on", time.time_ns()))

    def check_guard(self) -> None:
        told = self.guard.check()
        if told is not None:
            self.warnings.append(told)

    def check_stall(self, now: float) -> None:
        """Whether anything still moves."""
        in_source = self.feeder.in_source
        if (self.streaming is not None and in_source) or self.stopping or self.fail_at is not None:
            # a stream may be silent as long as it likes
            self.stall.moved(now)
            return
        soon = {"finished", "running"} == {self.results[task].state for task in self.job.cluster.awaited}
        moved = self.events_taken + (self.tables.moved if self.tables is not None else 0)
        if not self.stall.stalled(moved, now, self.events.qsize, soon):
            return
        vain = self.waits_in_vain() if soon else ""
        if not vain and self.stall.later():
            return
        told = doctor.describe(
            round(self.stall.quiet()) if vain else self.wait.stall_timeout,
            self.sessions,
            self.results,
            self.stacks(),
            waiting_frames=self.events.qsize(),
            in_source=in_source,
            vain=vain,
        )
        self.work.save_stall(told)
        # a slow source is none of the tasks' doing
        if self.wait.stall_action == "fail" and not in_source:
            raise _Stalled(told)
        self.warnings.append(told)
        self.stall.later()  # what was told once is not told again as soon
        self.stall.moved(time.monotonic())

    def waits_in_vain(self) -> str:
        """Look at those that are not done. Returns: whom they wait for in vain, in words; "": for nobody."""
        awaited = self.job.cluster.awaited
        self.looking = True
        stacks = self.stacks(awaited)
        self.looking = False
        there = [task for task in self.job.staying if self.sessions[task].process.exit is None]
        return doctor.in_vain(awaited, self.results, stacks, there)

    def fail(self, task: TaskSpec, failed: report.Failed) -> None:
        """Note a failure; the job ends a moment later, so that an earlier one can still be told from its consequences."""
        if self.stopping:
            # the work was done; it only had to go
            self.results[task].state = "ended"
            self.warnings.append(f"[{task.name}] {failed.what}, when it was told to end")
            return
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

    def on_serving(self, event: Event) -> None:
        self.results[event.task].state = "serving"

    def on_output(self, event: Event) -> None:
        assert event.frame is not None
        result, frame = self.results[event.task], event.frame
        try:
            schema = self.columns.of(event.task, frame)
            if schema is None:
                return
            batch = codec.decode_frame(schema, frame, result.rows_out)
        except DataError as e:
            self.fail_output(event.task, str(e))
            return
        except ProtocolError as e:
            self.fail_protocol(event.task, e)
            return
        result.rows_out += batch.num_rows
        result.bytes_out += len(frame.payload)
        if self.sink is not None:
            with underway(WriteError, "output"):
                self.sink.write(event.task, batch)

    def on_passed(self, event: Event) -> None:
        """Rows it has written went on without us."""
        if "lost" in event.data:
            raise WriteError(event.data["lost"])
        if "error" in event.data:
            self.fail_output(event.task, event.data["error"])
        elif "broken" in event.data:
            self.fail_protocol(event.task, event.data["broken"])
        else:
            self.results[event.task].rows_out += event.data["rows"]
            self.results[event.task].bytes_out += event.data["bytes"]

    def on_table(self, event: Event) -> None:
        """What it wrote to a table cannot be kept, or rows were lost on their way."""
        kind, what = event.data["type"], event.data["what"]
        if kind == "WriteError":
            raise WriteError(f"[{event.task.name}] {what}")
        kinds = {"InputLostError": "lost", "DataError": "output", "ProtocolError": "broken", "WireError": "broken"}
        if kind not in kinds:
            raise JobError(f"the job could not go on: {what}; a fault in akrunner itself")
        before = {"output": "wrote a ", "broken": "broke the protocol: "}.get(kinds[kind], "")
        self.fail(event.task, report.Failed(kinds[kind], before + what, time.time_ns()))

    def fail_output(self, task: TaskSpec, why: str) -> None:
        self.fail(task, report.Failed("output", self.columns.refused(why), time.time_ns()))

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
        result.rows_dropped, result.rows_padded = body["rows_dropped"], body["rows_padded"]
        result.notes, result.unasked, result.asked = body["notes"], body.get("unasked"), body.get("asked") is True
        result.input = body.get("input")
        if self.streaming is not None:
            result.rows_in = body["rows_read"]
        if not body["ok"]:
            failed = report.Failed.from_record(body["failure"], self.job.schema)
            self.fail(event.task, report.with_full_disks(failed, self.disks()))
        elif event.task not in self.failures:
            if (self.job.output_schema is not None or self.job.output_inferred) and body["rows"] != result.rows_out:
                what = f"wrote {body['rows']} rows, {result.rows_out} arrived"
                self.fail(event.task, report.Failed("lost", what, time.time_ns()))
            elif self.asked and self.asked[event.task].unfinished():
                table = self.asked[event.task].unfinished()[0]
                what = f"was done before the rows it wrote to table {table} had all arrived"
                self.fail(event.task, report.Failed("lost", what, time.time_ns()))
            else:
                result.state = "finished"

    def disks(self) -> Dict[str, str]:
        """What tasks write to -> the parameter that says where."""
        places = {self.work.path: "TMPDIR, or work_dir="}
        if self.job.checkpoint_dir is not None:
            places[self.job.checkpoint_dir] = "checkpoint_dir="
        return places

    def on_broken(self, event: Event) -> None:
        self.fail_protocol(event.task, event.error)

    def fail_protocol(self, task: TaskSpec, why: object) -> None:
        self.fail(task, report.Failed("broken", f"broke the protocol: {why}", time.time_ns()))

    def on_ended(self, event: Event) -> None:
        """Its pipe has ended: after its last word that is all right, unless it was to stay; before it is not."""
        result = self.results[event.task]
        process = self.sessions[event.task].process
        if result.state == "finished" and self.staying and event.task in self.job.staying:
            ended = process.wait(1.0)
            if ended is None or ended.code == 0:
                # it has ended itself: nobody may need it
                return
        elif result.state in ("finished", "failed", "ended"):
            return
        kind = "start" if result.state == "starting" else "died"
        ended = process.wait(1.0)
        if ended is None:
            self.fail(event.task, report.Failed(kind, "closed its pipe to the host and ran on", time.time_ns()))
            return
        words = ended.words(out_of_memory=cgroups.killed() > self.oom_before)
        before = {
            "starting": "before it said that it had started",
            "importing": "while it imported the script or took its rows",
            "finished": "after its script was done, while others may have needed its TensorFlow server",
        }
        running = "in the script" if self.job.script.program else "in main()"
        where = before.get(result.state, f"{running}, without saying that it was done")
        self.fail(event.task, report.Failed(kind, f"ended {where}: {words}", ended.time_ns))

    # -- after

    def end(self) -> None:
        """Every process gone, every thread of ours at its end; whatever happened before, and whatever one of the steps raises."""
        sessions = list(self.sessions.values())
        with contextlib.ExitStack() as last_first:
            if self.board is not None:
                last_first.callback(self.board.close)
            last_first.callback(self.feeder.join)
            for asked in self.asked.values():
                last_first.callback(asked.join)
            last_first.callback(self.look_at_logs)
            for session in reversed(sessions):
                last_first.callback(session.close)
            last_first.callback(self.launcher.ended)
            last_first.callback(self.end_processes, sessions)
            for session in sessions:
                last_first.callback(session.deafen)
            for asked in self.asked.values():
                last_first.callback(asked.stop)
            last_first.callback(self.feeder.stop)

    def look_at_logs(self) -> None:
        for task, session in self.sessions.items():
            if session.log.unwritten is not None:
                why = in_words(session.log.unwritten, self.work.path)
                self.warnings.append(f"[{task.name}] its log is not whole: {why} (TMPDIR, or work_dir=)")

    def end_processes(self, sessions: List[TaskSession]) -> None:
        finished = [s for s in sessions if self.results[s.task].state == "finished"]
        self.let_go()
        # who was let go only now has exit handlers to run, whatever has failed elsewhere
        if finished and (self.job.staying or not self.failures):
            late = [session.task.name for session in wait_for_exits(finished, self.wait.exit_grace)]
            if late:
                self.warnings.append(
                    f"{', '.join(late)} had finished, but did not end within {self.wait.exit_grace:g} s (an exit handler that "
                    "hangs?); killed"
                )
        stop_all([session.process for session in sessions], self.wait.exit_grace)

    def stacks(self, of: Optional[Collection[TaskSpec]] = None) -> Dict[TaskSpec, str]:
        """Ask every task that still runs for the stacks of its threads; they are in its log a moment later. Args: of: only these."""
        tasks = self.sessions if of is None else of
        running = [self.sessions[t] for t in tasks if self.results[t].state not in ("starting", "finished", "ended")]
        before = {session: session.log.position for session in running}
        for session in running:
            session.process.signal(STACKS_SIGNAL)
        time.sleep(0.3 if running else 0)
        return {session.task: session.log.since(before[session]) or session.log.tail(60) for session in running}

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
            warnings=tuple(self.warnings),
        )

    def outcome(self) -> Outcome:
        return report.outcome(
            self.job,
            self.sessions,
            self.results,
            self.work,
            shares=self.feeder.dealer.shares,
            seconds=time.monotonic() - self.job_began,
            start_seconds=(self.entered_at or self.began) - self.began,
            feed_seconds=self.feeder.seconds,
            reports=self.reports,
            rows_unread=self.rows_unread(),
            attempt=self.attempt,
            warnings=[*self.warnings, *self.columns.warnings],
            starts=self.launcher.starts(),
        )

    def rows_unread(self) -> int:
        """Of a stream whose script returned before it had ended."""
        if self.streaming is None:
            return 0
        sent = sum(session.rows_sent for session in self.sessions.values())
        return sent + self.streaming.rows_dropped - sum(result.rows_in for result in self.results.values())


@contextlib.contextmanager
def observing(method: str) -> Iterator[None]:
    """What an observer raises -> a JobError that says so."""
    try:
        yield
    except AkrunnerError:
        raise
    except Exception as e:
        raise JobError(f"observer: {method}() raised {type(e).__name__}: {e}") from e


class _Failed(Exception):
    """Some task has failed; `failures` says which."""


class _TimedOut(Exception):
    def __init__(self, stacks: Mapping[TaskSpec, str]) -> None:
        super().__init__()
        self.stacks = stacks


class _Stalled(Exception):
    def __init__(self, told: str) -> None:
        super().__init__()
        self.told = told
