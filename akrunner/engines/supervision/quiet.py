"""Decides what to do about tasks that send nothing: they may compute, serve, wait for tasks that are gone, or wait for
one another.

::

    nothing moves  -> a close look -> some task computes: all is well
                                   -> some are done, all others wait for a session with them, or serve them: reported at once
                                   -> else reported after `stall_timeout`, and fatal unless the source is waited for
    the chief is done, and a worker only serves it, as its stacks show -> the host does not wait for that worker
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from akrunner.engines.supervision import deadlock
from akrunner.engines.supervision.actions import Action, AskStacks, LookClosely, TellStall, Warn
from akrunner.engines.supervision.events import LookedClosely, Purpose, StallTold, Tick
from akrunner.engines.supervision.stall import computes
from akrunner.engines.supervision.states import Ending, Moment, Phase, State, TaskState, Verdict
from akrunner.spec import TaskSpec

#: the most seconds between two looks at workers that may serve a chief that is done; each look comes after twice as long as
#: the one before
LAST_LOOK = 10.0

Step = tuple[State, tuple[Action, ...]]


def tick(state: State, event: Tick, at: Moment) -> Step:
    """Check whether anything still moves."""
    silent = state.rules.streaming and event.facts.in_source
    if silent or state.phase is Phase.STOPPING or state.fail_at is not None:
        # a stream may be silent as long as it likes
        return replace(state, stall=replace(state.stall, facts=event.facts).moved(at.now)), ()
    stall, closely = state.stall.seen(event.facts, at.now, _some_done(state))
    return replace(state, stall=stall), ((LookClosely(),) if closely else ())


def looked_closely(state: State, event: LookedClosely, at: Moment) -> Step:
    """Decide by a close look whether any task computes, although nothing moves that the host sees."""
    if computes(event.cpu, event.seconds) or event.waiting:
        return replace(state, stall=state.stall.moved(at.now)), ()
    if _some_done(state):
        return state, (AskStacks(Purpose.VAIN, state.rules.cluster.awaited, quietly=True),)
    return state, (_told(state, at, ""),)


def waited_for(state: State, stacks: Mapping[TaskSpec, str], at: Moment) -> Step:
    """Decide by the stacks of tasks, when some are done, whether the others wait in vain for those."""
    there = [task for task in state.rules.staying if not state.tasks[task].gone]
    states = {task: record.state for task, record in state.tasks.items()}
    vain = deadlock.in_vain(state.rules.cluster.awaited, states, stacks, there)
    if not vain:
        state = replace(state, stall=state.stall.later())
        if at.now - state.stall.since < state.stall.seconds:
            return state, ()
    return state, (_told(state, at, vain),)


def stall_told(state: State, event: StallTold, at: Moment) -> Step:
    """Go on, or end, after a stall was reported. The next early look comes after twice as long."""
    if event.fatal:
        return replace(state, verdict=Verdict(Ending.STALLED, told=event.told)), ()
    return replace(state, stall=state.stall.later().moved(at.now)), (Warn(event.told),)


def look_for_servers(state: State, at: Moment) -> Step:
    """Ask for the stacks of workers that only serve a chief that is done. They may be in `server.join()`, and cannot say so."""
    awaited = state.rules.cluster.awaited
    if not state.rules.cluster.coordinator or state.phase is Phase.STOPPING:
        return state, ()
    if state.tasks[awaited[0]].state is not TaskState.FINISHED:
        return state, ()
    done = at.now if state.chief_done is None else state.chief_done
    state = replace(state, chief_done=done)
    left = state.among(awaited, TaskState.RUNNING)
    if not left or at.now - done < state.next_look:
        return state, ()
    state = replace(state, next_look=state.next_look + min(2 * state.next_look, LAST_LOOK))
    return state, (AskStacks(Purpose.JOIN, left),)


def found_serving(state: State, stacks: Mapping[TaskSpec, str]) -> State:
    """Note as serving those workers that are in `server.join()`."""
    for task in state.among(state.rules.cluster.awaited, TaskState.RUNNING):
        if deadlock.in_join(stacks.get(task, "")):
            state = state.having(task, replace(state.tasks[task], state=TaskState.SERVING))
    return state


def ended_in_main(state: State, servers: tuple[TaskSpec, ...], stacks: Mapping[TaskSpec, str]) -> tuple[Action, ...]:
    """Return warnings about parameter servers that are ended although they may have been about to write rows."""
    return tuple(
        Warn(
            f"[{task.name}] was ended in main(), as chief and workers were done: what it may yet have written is not there. A "
            "parameter server says that it serves: return task_config.serve()"
        )
        for task in servers
        if not deadlock.waits(stacks.get(task, ""))
    )


def _some_done(state: State) -> bool:
    """Whether some of chief and workers are done, and all others are in `main`."""
    states = {state.tasks[task].state for task in state.rules.cluster.awaited}
    return states == {TaskState.FINISHED, TaskState.RUNNING}


def _told(state: State, at: Moment, vain: str) -> TellStall:
    seconds = round(at.now - state.stall.since) if vain else state.stall.seconds
    # a slow source is not the tasks' fault
    fatal = state.rules.wait.stall_action == "fail" and not state.stall.facts.in_source
    return TellStall(seconds, vain, fatal)
