"""The state machine of an attempt: (state, event, moment) -> (state, actions). It does nothing else.

::

    WORKING      until chief and workers are done, or only serve (in PAI mode their processes stay until all are done)
    EVALUATING   the evaluator is given its time
    WRITING      a parameter server that has not said that it serves may be about to write rows
    STOPPING     tasks that only serve were told to stop; a failure now is only a warning, and the attempt has succeeded
    any of them  -> a verdict. A failure leads to it a moment after the first one was noticed, so that an earlier failure can
                    still be told from its consequences
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from akrunner.cluster.failure import FailureKind, root_cause_first
from akrunner.engines.supervision import events as on
from akrunner.engines.supervision import quiet
from akrunner.engines.supervision.actions import Action, AskStacks, AwaitExit, Closing, Start, Stop, Warn
from akrunner.engines.supervision.states import Ending, Failed, Moment, Phase, State, TaskState, Verdict
from akrunner.spec import EVALUATOR, PS, TaskSpec

#: seconds in which, after the first failure, other tasks may report one that came before it
GATHER = 0.1
#: seconds that a parameter server that has not said that it serves may go on when all others are done, if rows are written
ROWS_GRACE = 0.5
#: seconds after which a process that takes no more rows, and whose end is not known, counts as failed
GONE_WAIT = 5.0

Step = tuple[State, tuple[Action, ...]]

_DONE = (TaskState.FINISHED, TaskState.ENDED)


def step(state: State, event: on.Event, at: Moment) -> Step:
    """Return what follows from an event. A state with a verdict does not change any more.

    Args:
        state: the attempt before the event.
        event: what happened, or the answer to an action.
        at: when it happened.
    Returns:
        The attempt after the event, and the actions to carry out, in this order, before the next event.
    """
    if state.verdict is not None:
        return state, ()
    if type(event) is on.Wrote:
        # nothing else follows from rows, and they come often
        return state.with_rows(event.task, event.rows, event.bytes), ()
    state, actions = _ON[type(event)](state, event, at)
    state, more = _advanced(state, at)
    return state, (*actions, *more)


def closing(state: State) -> Closing:
    """Return how to end the processes of an attempt that is over, for whatever reason."""
    finished = state.among(state.rules.cluster.tasks, TaskState.FINISHED)
    stay = state.rules.staying if state.staying else ()
    # a task that is let go only now has exit handlers to run, whatever has failed elsewhere
    waits = finished if state.rules.staying or not state.failures else ()
    return Closing(
        tuple(task for task in stay if task in finished), waits, state.rules.cluster.tasks, state.rules.wait.exit_grace
    )


# -- what tasks say, and what becomes of them


def _moved(state: State, task: TaskSpec, to: TaskState, **known: Any) -> State:
    """Note that a task has got further. A task that has failed, or was told to end and has ended, stays as it is."""
    record = state.tasks[task]
    new = record.state if record.state in (TaskState.FAILED, TaskState.ENDED) else to
    return state.having(task, replace(record, state=new, **known))


def _opened(state: State, event: on.Opened, at: Moment) -> Step:
    return _moved(state, event.task, TaskState.IMPORTING), ()


def _ready(state: State, event: on.Ready, at: Moment) -> Step:
    state = _moved(state, event.task, TaskState.READY, ready=True, rows_in=event.rows, input_wait_ns=event.waited_ns)
    if state.rules.streaming or event.rows == event.sent:
        return state, ()
    what = f"received {event.rows} rows of the {event.sent} it was sent"
    return _fail(state, event.task, Failed(FailureKind.LOST, what, at.time_ns), at)


def _entered(state: State, event: on.Entered, at: Moment) -> Step:
    state = _moved(state, event.task, TaskState.RUNNING)
    return (state if state.entered_at is not None else replace(state, entered_at=at.now)), ()


def _serving(state: State, event: on.Serving, at: Moment) -> Step:
    return _moved(state, event.task, TaskState.SERVING), ()


def _closed(state: State, event: on.Closed, at: Moment) -> Step:
    task, record = event.task, replace(state.tasks[event.task], word=event.word)
    if state.rules.streaming:
        record = replace(record, rows_in=event.read)
    state = state.having(task, record)
    if event.failed is not None:
        return _fail(state, task, event.failed, at)
    lost = ""
    if state.rules.counted and event.rows != record.rows_out:
        lost = f"wrote {event.rows} rows, {record.rows_out} arrived"
    elif event.unfinished:
        lost = f"was done before the rows it wrote to table {event.unfinished} had all arrived"
    if lost:
        return _fail(state, task, Failed(FailureKind.LOST, lost, at.time_ns), at)
    return _moved(state, task, TaskState.FINISHED), ()


def _task_failed(state: State, event: on.TaskFailed, at: Moment) -> Step:
    return _fail(state, event.task, event.failed, at)


def _pipe_ended(state: State, event: on.PipeEnded, at: Moment) -> Step:
    """Ask how the process ended. After the task's last message the end is in order, unless the task was meant to stay;
    before it is not."""
    was = state.tasks[event.task].state
    stays = was is TaskState.FINISHED and state.staying and event.task in state.rules.staying
    if was in (TaskState.FINISHED, TaskState.FAILED, TaskState.ENDED) and not stays:
        return state, ()
    return state, (AwaitExit(event.task),)


def _exited(state: State, event: on.Exited, at: Moment) -> Step:
    task, record = event.task, state.tasks[event.task]
    if record.state is TaskState.FINISHED and (event.well or not event.words):
        # it has ended by itself, and perhaps no other task needs it
        return state.having(task, replace(record, gone=event.well)), ()
    kind = FailureKind.START if record.state is TaskState.STARTING else FailureKind.DIED
    if not event.words:
        return _fail(state, task, Failed(kind, "closed its pipe to the host and ran on", at.time_ns), at)
    running = "in the script" if state.rules.program else "in main()"
    where = record.state.when or f"{running}, without saying that it was done"
    return _fail(state, task, Failed(kind, f"ended {where}: {event.words}", event.time_ns), at)


def _refused(state: State, event: on.Refused, at: Moment) -> Step:
    return replace(state, refused=(event.task, event.since)), ()


def _fail(state: State, task: TaskSpec, failed: Failed, at: Moment) -> Step:
    """Note a failure. The attempt fails a moment later. While tasks are being stopped, the work is done, and a failure is
    only a warning."""
    record = state.tasks[task]
    if state.phase is Phase.STOPPING:
        ended = TaskState.FINISHED if record.state is TaskState.FINISHED else TaskState.ENDED
        told = Warn(f"[{task.name}] {failed.what}, when it was told to end")
        return state.having(task, replace(record, state=ended)), (told,)
    failures = {**state.failures, task: state.failures.get(task, failed)}
    fail_at = state.fail_at if state.fail_at is not None else at.now + GATHER
    return replace(state, failures=failures, fail_at=fail_at).having(task, replace(record, state=TaskState.FAILED)), ()


# -- what the host sees


def _spawning(state: State, event: on.Spawning, at: Moment) -> Step:
    return replace(state, spawned=at.now), ()


def _fed(state: State, event: on.Fed, at: Moment) -> Step:
    return replace(state, fed=True), ()


def _cancelled(state: State, event: on.Cancelled, at: Moment) -> Step:
    return (state if state.failures else replace(state, verdict=Verdict(Ending.CANCELLED))), ()


def _host_fault(state: State, event: on.HostFault, at: Moment) -> Step:
    # once a task has failed, an error here is a consequence of that
    return (state if state.failures else replace(state, verdict=Verdict(Ending.FAULT, error=event.error))), ()


def _places_failed(state: State, event: on.PlacesFailed, at: Moment) -> Step:
    if state.failures:
        return state, ()
    return _fail(state, state.rules.cluster.tasks[0], Failed(FailureKind.DIED, event.why, at.time_ns), at)


def _tick(state: State, event: on.Tick, at: Moment) -> Step:
    state, actions = quiet.tick(state, event, at)
    if state.fail_at is not None:
        return (_failed(state) if at.now >= state.fail_at else state), actions
    for due in (_overdue, _late, _not_taking, quiet.look_for_servers):
        state, more = due(state, at)
        actions = (*actions, *more)
    return state, actions


def _failed(state: State) -> State:
    return replace(state, verdict=Verdict(Ending.FAILED, root_cause_first(state.failures)))


def _overdue(state: State, at: Moment) -> Step:
    """Ask for stacks if the whole job takes too long."""
    timeout = state.rules.wait.timeout
    over = timeout is not None and at.now - state.job_began > timeout
    return state, ((AskStacks(on.Purpose.TIMEOUT, state.rules.cluster.tasks),) if over else ())


def _late(state: State, at: Moment) -> Step:
    """Fail the tasks whose processes take too long to start."""
    seconds = state.rules.wait.start_timeout
    if at.now - state.spawned <= seconds:
        return state, ()
    failed = Failed(FailureKind.START, f"said nothing for {seconds:g} s after it was started (start_timeout=)", at.time_ns)
    actions: tuple[Action, ...] = ()
    for task in state.among(state.rules.cluster.tasks, TaskState.STARTING):
        state, more = _fail(state, task, failed, at)
        actions = (*actions, *more)
    return state, actions


def _not_taking(state: State, at: Moment) -> Step:
    """Fail a task that takes no more rows, and whose end would have been noticed by now."""
    if state.refused is None or at.now <= state.refused[1] + GONE_WAIT or state.refused[0] in state.failures:
        return state, ()
    failed = Failed(FailureKind.DIED, "no longer takes rows, and runs on", at.time_ns)
    return _fail(state, state.refused[0], failed, at)


# -- from phase to phase


def _advanced(state: State, at: Moment) -> Step:
    """Advance through the phases as far as possible now. After a failure there is no advance."""
    actions: tuple[Action, ...] = ()
    if not state.started and state.fed and all(record.ready for record in state.tasks.values()) and not state.failures:
        state, actions = replace(state, started=True), (Start(),)
    while state.verdict is None and state.fail_at is None:
        left = _LEAVE[state.phase](state, at)
        if left is None:
            break
        state, more = left
        actions = (*actions, *more)
    return state, actions


def _leave_working(state: State, at: Moment) -> Step | None:
    """Leave the phase when chief and workers have said that they are done, except for those that only serve."""
    awaited = state.rules.cluster.awaited
    if state.tasks[awaited[0]].state is not TaskState.FINISHED:
        return None
    if len(state.among(awaited, TaskState.FINISHED, TaskState.SERVING)) < len(awaited):
        return None
    go = tuple(Stop(task) for task in state.rules.staying if state.tasks[task].state is TaskState.FINISHED)
    ends = at.now + state.rules.wait.evaluator_timeout
    return replace(state, phase=Phase.EVALUATING, phase_ends=ends, staying=False), go


def _leave_evaluating(state: State, at: Moment) -> Step | None:
    evaluators = [task for task in state.rules.cluster.tasks if task.role == EVALUATOR]
    late: tuple[Action, ...] = ()
    if not _have_ended(state, evaluators):
        if not _over(state, at):
            return None
        seconds = state.rules.wait.evaluator_timeout
        late = (
            Warn(
                f"[evaluator:0] was still in main() {seconds:g} s after chief and workers were done, and was ended "
                "(evaluator_timeout=)"
            ),
        )
    return replace(state, phase=Phase.WRITING, phase_ends=at.now + ROWS_GRACE), late


def _leave_writing(state: State, at: Moment) -> Step | None:
    servers = _about_to_write(state)
    if not servers:
        return _stopping(state, at)
    if not _over(state, at):
        return None
    # the answer to this action ends the phase
    return replace(state, phase_ends=None), (AskStacks(on.Purpose.ROWS, servers),)


def _about_to_write(state: State) -> tuple[TaskSpec, ...]:
    writes = state.rules.schema_given or any(record.rows_out for record in state.tasks.values())
    servers = [task for task in state.rules.cluster.tasks if task.role == PS] if writes else []
    return state.among(servers, TaskState.RUNNING)


def _stopping(state: State, at: Moment) -> Step:
    others = tuple(task for task, record in state.tasks.items() if record.state is not TaskState.FINISHED)
    ends = at.now + state.rules.wait.exit_grace
    return replace(state, phase=Phase.STOPPING, phase_ends=ends), tuple(Stop(task) for task in others)


def _leave_stopping(state: State, at: Moment) -> Step | None:
    late = [task.name for task, record in state.tasks.items() if record.state not in _DONE]
    if late and not _over(state, at):
        return None
    grace = state.rules.wait.exit_grace
    told = (Warn(f"{', '.join(late)} did not end within {grace:g} s of being told to; killed"),) if late else ()
    return replace(state, verdict=Verdict(Ending.SUCCEEDED)), told


def _have_ended(state: State, tasks: Sequence[TaskSpec]) -> bool:
    return len(state.among(tasks, *_DONE)) == len(tasks)


def _over(state: State, at: Moment) -> bool:
    return state.phase_ends is not None and at.now > state.phase_ends


# -- answers


def _stacks(state: State, event: on.Stacks, at: Moment) -> Step:
    if event.purpose is on.Purpose.TIMEOUT:
        return replace(state, verdict=Verdict(Ending.TIMED_OUT, stacks=event.stacks)), ()
    if event.purpose is on.Purpose.ROWS:
        ended = quiet.ended_in_main(state, _about_to_write(state), event.stacks)
        state, stops = _stopping(state, at)
        return state, (*ended, *stops)
    if event.purpose is on.Purpose.JOIN:
        return quiet.found_serving(state, event.stacks), ()
    return quiet.waited_for(state, event.stacks, at)


_LEAVE: Mapping[Phase, Callable[[State, Moment], Step | None]] = {
    Phase.WORKING: _leave_working,
    Phase.EVALUATING: _leave_evaluating,
    Phase.WRITING: _leave_writing,
    Phase.STOPPING: _leave_stopping,
}

_ON: dict[type, Callable[[State, Any, Moment], Step]] = {
    on.Opened: _opened,
    on.Ready: _ready,
    on.Entered: _entered,
    on.Serving: _serving,
    on.Closed: _closed,
    on.TaskFailed: _task_failed,
    on.PipeEnded: _pipe_ended,
    on.Exited: _exited,
    on.Refused: _refused,
    on.Spawning: _spawning,
    on.Fed: _fed,
    on.Tick: _tick,
    on.Cancelled: _cancelled,
    on.HostFault: _host_fault,
    on.PlacesFailed: _places_failed,
    on.Stacks: _stacks,
    on.LookedClosely: quiet.looked_closely,
    on.StallTold: quiet.stall_told,
}
