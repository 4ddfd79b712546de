"""Who waits for whom, by the stacks of tasks."""

from __future__ import annotations

import pytest

from akrunner.engines.supervision import deadlock
from akrunner.engines.supervision.states import TaskState
from akrunner.spec import TaskSpec

CHIEF, ONE, TWO = TaskSpec("chief", 0), TaskSpec("worker", 0), TaskSpec("worker", 1)
ABOVE = """Thread 0x00007ff3 (most recent call first):
  File "/bundle.zip/akrunner/wire/frames.py", line 214 in _fill

Current thread 0x00007ff3a0231b80 (most recent call first):
"""
#: as faulthandler prints it in TensorFlow 1.15
IN_SESSION = (
    ABOVE
    + """  File "/lib/python3.7/site-packages/tensorflow_core/python/client/session.py", line 1388 in _extend_graph
  File "/lib/python3.7/site-packages/tensorflow_core/python/client/session.py", line 1348 in _run_fn
  File "/lib/python3.7/site-packages/tensorflow_core/python/training/session_manager.py", line 527 in _ready
  File "/work/train.py", line 7 in main
"""
)
#: the variables are not there yet: it looks again after a while
IN_SLEEP = (
    ABOVE
    + """  File "/lib/python3.7/site-packages/tensorflow_core/python/training/session_manager.py", line 424 in wait_for_session
  File "/work/train.py", line 7 in main
"""
)


IN_JOIN = (
    ABOVE
    + """  File "/lib/python3.11/site-packages/tensorflow/python/training/server_lib.py", line 185 in join
  File "/work/train.py", line 8 in main
"""
)


def records(**states: str) -> dict[TaskSpec, TaskState]:
    return {task: TaskState(state) for task, state in zip((CHIEF, ONE, TWO), states.values(), strict=True)}


def test_sessions_with_who_is_gone() -> None:
    results = records(chief="finished", one="running", two="finished")
    told = deadlock.in_vain([CHIEF, ONE, TWO], results, {ONE: IN_SESSION})
    assert told.startswith("worker:0 waits for a TensorFlow session with chief:0, worker:1, done and gone")
    assert "device_filters=['/job:ps', '/job:worker/task:0']" in told
    results = records(chief="finished", one="running", two="running")
    closes = IN_SESSION.replace("_extend_graph", "close")
    assert deadlock.in_vain([CHIEF, ONE, TWO], results, {ONE: IN_SESSION, TWO: closes}).startswith("worker:0, worker:1 wait ")
    # those whose TensorFlow server is still there do answer
    told = deadlock.in_vain(
        [CHIEF, ONE, TWO], records(chief="finished", one="running", two="finished"), {ONE: IN_SESSION}, [CHIEF]
    )
    assert told.startswith("worker:0 waits for a TensorFlow session with worker:1, done and gone")
    assert deadlock.in_vain([CHIEF, ONE, TWO], results, {ONE: IN_SESSION, TWO: closes}, [CHIEF, ONE, TWO]) == ""


def test_workers_that_serve_a_chief_that_is_done() -> None:
    results = records(chief="finished", one="running", two="running")
    told = deadlock.in_vain([CHIEF, ONE, TWO], results, {ONE: IN_JOIN, TWO: IN_JOIN})
    assert told.startswith(
        "worker:0, worker:1 serve (server.join(), which never returns), and chief:0, whom they serve, is done"
    )
    assert "coordinator=True (--coordinator)" in told
    assert deadlock.in_vain([CHIEF, ONE, TWO], results, {ONE: IN_JOIN, TWO: IN_SESSION}) == ""
    results = records(chief="running", one="running", two="finished")
    assert deadlock.in_vain([CHIEF, ONE, TWO], results, {CHIEF: IN_JOIN, ONE: IN_JOIN}) == ""


@pytest.mark.parametrize(
    ("chief", "stacks"),
    [
        ("running", {CHIEF: IN_SESSION, ONE: IN_SESSION, TWO: IN_SESSION}),
        ("finished", {ONE: IN_SESSION, TWO: IN_SLEEP}),
        ("finished", {ONE: IN_SESSION, TWO: ""}),
        ("finished", {ONE: IN_SESSION}),
    ],
    ids=["nobody is gone", "one may go on", "one said nothing", "one was not asked"],
)
def test_those_who_may_go_on(chief: str, stacks: dict[TaskSpec, str]) -> None:
    assert deadlock.in_vain([CHIEF, ONE, TWO], records(chief=chief, one="running", two="running"), stacks) == ""
