"""What `tests/spread.py` leaves as it is with pytest-xdist alone, and what it does not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.spread import Places, pytest_xdist_make_scheduler, told

scheduler = pytest.importorskip("xdist.scheduler")
remote = pytest.importorskip("xdist.remote")

TESTS = [f"{file}.py::test[{n}]@{file}" for file, tests in (("a", 5), ("b", 1), ("c", 3), ("d", 40)) for n in range(tests)]
TESTS += [f"e.py::test[x@{n}]" for n in range(9)]


class Node:
    def __init__(self) -> None:
        self.gateway, self.shutting_down, self.orders = SimpleNamespace(id="gw"), False, []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.orders.append(indices)

    def shutdown(self) -> None:
        self.shutting_down = True


def config(dist: str = "loadgroup") -> Any:
    option = SimpleNamespace(loadscopereorder=False)
    return SimpleNamespace(option=option, getvalue={"dist": dist, "tx": ["popen", "popen"]}.get)


def orders(made: Any, lost: bool) -> list[Any]:
    """What each of two processes is told to run, when the first runs two tests while the second runs one. Args: lost: the second one crashes."""
    nodes = [Node(), Node()]
    for node in nodes:
        made.add_node(node)
    for node in nodes:
        made.add_node_collection(node, TESTS)
    made.schedule()
    done = [0, 0]
    crashed = None
    for turn in range(2 * len(TESTS)):
        for number in (0, 1, 0):
            ordered = [index for order in nodes[number].orders for index in order]
            if nodes[number] in made.nodes and done[number] < len(ordered):
                made.mark_test_complete(nodes[number], ordered[done[number]])
                done[number] += 1
        if lost and turn == 1:
            crashed = made.remove_node(nodes[1])
    assert not made.has_pending and made.tests_finished
    # pytest-xdist orders nothing, once more, of a group that had been run
    return [*([order for order in node.orders if order] for node in nodes), crashed, [node.shutting_down for node in nodes]]


@pytest.mark.parametrize("lost", [False, True])
def test_tests_are_dealt_as_by_pytest_xdist(lost: bool) -> None:
    log = remote.Producer("test", enabled=False)
    ours = pytest_xdist_make_scheduler(config(), log)
    assert orders(ours, lost) == orders(scheduler.LoadGroupScheduling(config(), log), lost)
    assert not any(ours.assigned_work.values())


def test_other_ways_to_deal_are_left_to_pytest_xdist() -> None:
    assert pytest_xdist_make_scheduler(config("load"), remote.Producer("test", enabled=False)) is None


def test_places() -> None:
    assert [Places(["a", "b", "a"]).index(member) for member in "ab"] == [0, 1]
    assert Places(["a"]) == ["a"]
    with pytest.raises(KeyError):
        Places(["a"]).index("b")


def test_what_is_told_of_tests() -> None:
    heard: list[Any] = []
    send = told(lambda name, **of: heard.append((name, of)))
    failed = [{"when": when, "outcome": "failed", "keywords": {"slow": 1}} for when in ("setup", "call", "teardown")]
    skipped = {"when": "setup", "outcome": "skipped", "keywords": {"skip": 1}}
    for report in [*failed, skipped]:
        send("testreport", data=report)
    others = [("workerready", {"workerinfo": {}}), ("runtest_protocol_complete", {"item_index": 1, "duration": 0.5})]
    for name, of in others:
        send(name, **of)
    assert heard == [*(("testreport", {"data": report}) for report in [*failed, skipped]), *others]
    heard.clear()
    send("logstart", nodeid="a")
    for when in ("setup", "call", "teardown"):
        send("testreport", data={"when": when, "outcome": "passed", "keywords": {"slow": 1}})
    send("logfinish", nodeid="a")
    assert heard == [("testreport", {"data": {"when": "call", "outcome": "passed", "keywords": {}}})]
