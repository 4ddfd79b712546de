"""Says which task waits for what when nothing moves any more (`akrunner.engines.supervision.stall`). It reads the tasks'
stacks.

::

    the feeder waits for the source               the tasks are not at fault: the job is reported, but never ended for it
    some are done, all others wait for a session  waiting is in vain: they wait for tasks that are gone
    the chief is done, all others serve           waiting is in vain: the chief is gone, and server.join() never returns
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from akrunner.engines.supervision.states import TaskRecord, TaskState
from akrunner.spec import TaskSpec

if TYPE_CHECKING:
    from akrunner.launch.session import TaskSession

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>\S+)', re.MULTILINE)

_STACK = re.compile(r'(Thread|Current thread) 0x|  File "|$')

#: part of a file's name, or a function's name, in a stack -> what a task with such a stack waits for
_WAITS = [
    (
        "_extend_graph",
        "for a session, which all tasks that its device filters name have to answer for; without filters, all there are",
    ),
    ("server_lib.py", "in server.join(), until the job is over"),
    ("session_manager.py", "for the chief to initialise the variables, or for a parameter server to answer"),
    ("collective_ops.py", "in a collective, for the other workers"),
    ("cross_device_ops.py", "in a collective, for the other workers"),
    ("collective_all_reduce_strategy.py", "for the other workers to join the cluster"),
    ("cluster_coordinator.py", "for workers to do what the coordinator asked of them"),
    ("quick_execute", "in a TensorFlow operation"),
]


def in_vain(
    sessions: Iterable[TaskSpec],
    states: Mapping[TaskSpec, TaskState],
    stacks: Mapping[TaskSpec, str],
    there: Collection[TaskSpec] = (),
) -> str:
    """Say that tasks wait in vain: for a TensorFlow session with tasks that are done and gone, or as servers of a chief
    that is done.

    Args:
        sessions: tasks that may have a session: chief and workers.
        stacks: the stacks of the tasks that run.
        there: tasks whose process, with TensorFlow's server in it, still exists even if they are done.
    Returns:
        The finding in words; "" if no task waits in vain, or if that is not certain.
    """
    done = [task.name for task in sessions if states[task] is TaskState.FINISHED]
    left = [task for task in sessions if states[task] not in (TaskState.FINISHED, TaskState.SERVING)]
    if not (done and left):
        return ""
    if "chief:0" in done and all(in_join(stacks.get(task, "")) for task in left):
        return _serve_on(left)
    gone = [task.name for task in sessions if task.name in done and task not in there]
    if not (gone and all(_in_session(stacks.get(task, "")) for task in left)):
        return ""
    who, first = ", ".join(task.name for task in left), left[0]
    return (
        f"{who} {'wait' if len(left) > 1 else 'waits'} for a TensorFlow session with {', '.join(gone)}, done and gone "
        '("CreateSession still waiting"), and would for ever: one is there, or closed, when all have answered whom its device '
        "filters name, "
        "without filters all tasks. Let them name the parameter servers and the task itself: tf.compat.v1.ConfigProto("
        f"device_filters=['/job:ps', '/job:{first.role}/task:{first.index}']), in RunConfig(session_config=...) or the "
        "session's config=; of a map_func(context), context.get_index() is the task's number"
    )


def _serve_on(left: Sequence[TaskSpec]) -> str:
    several = len(left) > 1
    return (
        f"{', '.join(task.name for task in left)} {'serve' if several else 'serves'} (server.join(), which never returns), "
        f"and chief:0, whom {'they serve' if several else 'it serves'}, is done: a worker is waited for until its main() has "
        "returned. With coordinator=True (--coordinator) workers that serve end with the chief; it has no rows then and comes "
        "on top of num_workers= (--num-workers)"
    )


def is_stack(line: str) -> bool:
    """Whether a line of a task's log looks like one of its stacks."""
    return _STACK.match(line) is not None


def _in_session(stack: str) -> bool:
    """Whether the main thread makes or closes a session. TensorFlow makes it when the first graph is sent; in both cases
    all tasks have to answer."""
    calls = _main_thread(stack)
    return bool(calls) and calls[0]["function"] in ("_extend_graph", "close") and calls[0]["file"].endswith("client/session.py")


def in_join(stack: str) -> bool:
    """Whether the main thread is in `server.join()`, which TensorFlow gives no way to end."""
    calls = _main_thread(stack)
    return bool(calls) and calls[0]["function"] == "join" and calls[0]["file"].endswith("training/server_lib.py")


def waits(stack: str) -> bool:
    """Whether the main thread waits in `server.join()`, or for an event, both of which have no time limit."""
    calls = _main_thread(stack)
    return in_join(stack) or (bool(calls) and calls[0]["function"] == "wait" and calls[0]["file"].endswith("threading.py"))


def _main_thread(stack: str) -> list[dict[str, str]]:
    """Return the main thread's calls, the innermost first, each with file, line and function."""
    # faulthandler prints the oldest thread last
    main = stack.split("(most recent call first):")[-1]
    return [match.groupdict() for match in _FRAME.finditer(main)]


def describe(
    seconds: float,
    sessions: Mapping[TaskSpec, TaskSession],
    results: Mapping[TaskSpec, TaskRecord],
    stacks: Mapping[TaskSpec, str],
    *,
    waiting_frames: int,
    in_source: bool,
    vain: str = "",
) -> str:
    """Return the report: for each task what it does and waits for, how much the queues hold, and the stacks.

    Args:
        stacks: what `faulthandler` printed, of the tasks that run.
        waiting_frames: the number of frames from the tasks that the host has not taken yet.
        in_source: whether the host waits for the source to give rows.
        vain: what `in_vain` returned.
    """
    done = [task.name for task, result in results.items() if result.state is TaskState.FINISHED]
    lines = [vain] if vain else []
    lines.append(f"nothing has moved for {seconds:g} s: no rows, no report(), no processor time")
    for task, result in results.items():
        lines.append(f"  [{task.name}] {_line(sessions[task], result, stacks.get(task, ''), done, results)}")
    feeding = "waits for the source to give rows" if in_source else "does not wait for the source"
    lines.append(f"  the host has {waiting_frames} frames waiting to be taken, and {feeding}")
    for task, stack in stacks.items():
        lines.append(f"stacks of [{task.name}]:\n{stack.rstrip()}")
    return "\n".join(lines)


def _line(session: TaskSession, result: TaskRecord, stack: str, done: list[str], results: Mapping[TaskSpec, TaskRecord]) -> str:
    parts = [result.state.doing]
    if result.state is TaskState.READY:
        late = [task.name for task, other in results.items() if not other.ready]
        parts.append("waits for " + ", ".join(late) if late else "waits for the word to start")
    elif result.state is TaskState.RUNNING:
        parts.append(_waits(stack, done))
    elif result.state is TaskState.SERVING:
        parts.append("waits for the chief to be done")
    parts.append(
        f"{session.rows_sent} rows sent, {session.process.unread()} bytes of them in the pipe, {result.rows_out} rows back"
    )
    rss, cpu = session.process.sampled_rss, session.process.sampled_cpu
    parts.append(f"{rss / 1e6:.0f} MB, {cpu:.1f} s of processor time")
    return "; ".join(part for part in parts if part)


def _waits(stack: str, done: Iterable[str]) -> str:
    """Return what the main thread waits for, by its stack."""
    calls = _main_thread(stack)
    if not calls:
        return ""
    own = next((c for c in calls if "site-packages" not in c["file"] and "/lib/python" not in c["file"]), calls[0])
    where = f"at {own['file']}:{own['line']} in {own['function']}"
    for word, meaning in _WAITS:
        if any(word in call["file"] or word == call["function"] for call in calls):
            finished = ", ".join(done)
            if "collective" in meaning or "TensorFlow operation" in meaning:
                hint = (
                    f"; {finished} is done: a worker that has run out of rows is waited for in vain (uneven=)"
                    if finished
                    else ""
                )
                return f"waits {meaning}{hint} ({where})"
            return f"waits {meaning} ({where})"
    return where
