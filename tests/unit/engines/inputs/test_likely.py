"""What a script most likely waits for where nobody has looked: by clocks, and by the kinds of its nodes."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.inputs import likely
from tests.unit.engines.inputs.test_wording import CHAIN, node, record


def told(chain: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return record({}, chain, **{"asked": 0, "batches": 100, "idle": 3.0, **more})


def chain(*, rows: int = 8, **facts: Any) -> list[dict[str, Any]]:
    return [
        node("Prefetch", 33),
        node("Batch", 32, rows=rows),
        node(facts.pop("kind", "Map"), 31, **facts),
        node("TFRecord", 30),
    ]


def found(one: likely.Suspect | None) -> tuple[str, bool] | None:
    return (f"{one.node.kind} {one.node.at.rpartition(':')[2]}", one.timed) if one is not None else None


@pytest.mark.parametrize(
    "python, suspect",
    [
        # 8 s of waiting: half of it or more is Python's
        ({"calls": 800, "wall": 6.0, "steps": 6.0, "computed": 6.0}, ("Map 31", True)), ({"calls": 800, "wall": 0.2, "steps": 0.2, "computed": 0.2}, None),
        # calls that no clock sees take 50 us each
        ({"calls": 90_000, "wall": 0.1, "steps": 0.1, "computed": 0.1}, ("Map 31", False)), ({}, None),
    ],
    ids=["much", "little", "many calls", "none"],
)  # fmt: skip
def test_python_is_suspected_by_its_clock(python: dict[str, Any], suspect: tuple[str, bool] | None) -> None:
    assert found(likely.suspect(told(chain(python=True, ops=3), python=python))) == suspect


def test_python_costs_its_time_its_calls_and_its_turns() -> None:
    python = {"calls": 20_000, "wall": 4.0, "steps": 4.0, "computed": 2.0}
    assert likely.python_costs(told(chain(python=True), python=python)) == pytest.approx((4.0 + 1.0) / 8.0)
    assert likely.python_costs(told(chain(python=True), python=python, batches=1000)) == pytest.approx((4.0 + 2.0 + 1.0) / 8.0)
    assert likely.python_costs(told(chain(), wait=0.0, between=5.0)) == 0.0


@pytest.mark.parametrize(
    "facts, more, suspect",
    [
        ({"reads": True}, {}, ("Map 31", False)), ({"ops": 9}, {}, ("Map 31", False)), ({"ops": 9}, {"tunes": True}, None), ({"ops": 9, "stateful": True}, {"tunes": True}, ("Map 31", False)),
        ({"ops": 9, "parallel": 1, "kind": "ParallelMap"}, {"tunes": True}, ("Map 31", False)), ({"kind": "ParallelMap", "decodes": True}, {"idle": 0.0}, ("Map 31", False)), ({"kind": "ParallelMap", "decodes": True}, {"idle": 3.0}, None),
        ({"kind": "ParallelMap", "ops": 3, "rows": 8}, {"batches": 10_000}, ("Map 31", False)),
        # `unbatch` makes a map of its own
        ({"ops": 9, "made_by": "unbatch"}, {}, None), ({"ops": 3, "rows": 8, "made_by": "unbatch"}, {"batches": 10_000}, None),
    ],
    ids=range(10),
)  # fmt: skip
def test_a_map_is_suspected_by_what_it_does(facts: dict[str, Any], more: dict[str, Any], suspect: Any) -> None:
    rows = facts.pop("rows", 8)
    assert found(likely.suspect(told(chain(rows=rows, **facts), **{"tunes": False, **more}))) == suspect


def test_what_task_config_made_is_suspected_if_nothing_else_works() -> None:
    ours = [node("Prefetch", 9, ours=True), node("ParallelMap", 9, ours=True, parses=True), node("TFRecord", 9, ours=True)]
    (one,) = likely.suspects(told(ours))
    assert one.node.ours and not one.timed
    assert found(likely.suspect(told([node("Map", 40, python=True), *ours], spent={"pipe": 5.0}))) == ("Map 9", False)


def test_a_node_behind_a_cache_is_no_suspect_of_later_passes() -> None:
    made = [node("Batch", 32, rows=8), node("Cache", 32), node("Map", 31, reads=True), node("TFRecord", 30)]
    assert found(likely.suspect(told(made, passes=1))) == ("Map 31", False)
    assert likely.suspect(told(made, passes=3)) is None


def test_files_that_one_reader_takes_one_after_another_are_suspected() -> None:
    files = [node("Batch", 9, rows=8), node("FlatMap", 8), node("TFRecord", 8, depth=1), node("TensorSlice", 7)]
    one = likely.suspect(told(files))
    assert found(one) == ("TFRecord 8", False) and one is not None and one.node.source.endswith(":8")
    several = [files[0], node("ParallelInterleave", 8), *files[2:]]
    assert likely.suspect(told(several)) is None


@pytest.mark.parametrize(
    "facts, again",
    [
        ({"decodes": True}, True),
        ({"parses": True}, True),
        ({"splits": True}, True),
        ({"reads": True}, True),
        ({"ops": 5}, False),
        ({"decodes": False}, False),
    ],
)
def test_work_that_is_worth_keeping(facts: dict[str, Any], again: bool) -> None:
    assert likely.repeats(facts) == again
    assert (likely.repeated(told(chain(**facts))) is not None) == again


def test_a_parse_that_does_little_is_not_worth_keeping_if_a_map_draws_from_it() -> None:
    """`task_config.dataset(repeat=20).map(slow)`: cache=True in the dataset won nothing."""
    parse = [node("Map", 9, ours=True, parses=True, light=True), node("Repeat", 9, ours=True), node("TFRecord", 9, ours=True)]
    assert likely.repeated(told(parse)) is not None
    assert likely.repeated(told([node("Map", 9, ops=12_667), *parse])) is None
    assert likely.repeated(told([node("Map", 9, light=True), *parse])) is not None
    decoding = likely.repeated(told([node("Map", 9, decodes=True), *parse]))
    assert decoding is not None and decoding.facts.get("decodes")


@pytest.mark.parametrize(
    "ahead, seconds, at_work", [(True, 9.0, True), (True, 8.9, False), (False, 5.0, True), (False, 4.9, False)]
)
def test_python_that_is_at_work_all_the_time_is_waited_for(ahead: bool, seconds: float, at_work: bool) -> None:
    made = chain(python=True)[0 if ahead else 1 :]
    assert (likely.python_at_work(told(made, python={"steps": seconds}, tunes=False)) is not None) == at_work
    assert likely.python_at_work(told(CHAIN, python={"steps": 10.0})) is None


def test_the_readers_of_a_node_are_told_from_the_inside() -> None:
    made = [node("ParallelInterleave", 9), node("FlatMap", 8, depth=1), node("Generator", 8, depth=2), node("TensorSlice", 7)]
    assert [one["node"] for one in likely.readers(made[2], made)] == ["FlatMap", "ParallelInterleave"]
    assert likely.readers(made[3], made) == []


def test_a_node_below_a_batch_is_called_for_each_row() -> None:
    made = chain(rows=8, ops=1)
    below, above = likely.as_blamed(made[2], told(made)), likely.as_blamed(made[0], told(made))
    assert (below.calls, above.calls) == (8, 1) and below.call == pytest.approx(10.0 / 100 / 8)
