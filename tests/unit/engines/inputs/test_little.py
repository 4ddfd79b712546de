"""Whether an input has so little to do that nobody need look at it."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.inputs.little import does_little
from tests.unit.engines.inputs.test_wording import node, record

#: rows in memory, parsed in whole batches and made ahead
CHAIN = [
    node("Prefetch", 5),
    node("Map", 5, light=True, ops=10, parses=True),
    node("Batch", 5, rows=100),
    node("TensorSlice", 5),
]


def told(chain: list[dict[str, Any]] = CHAIN, **more: Any) -> dict[str, Any]:
    return record({}, chain, **{"wait": 0.0, "between": 10.0, "batches": 1000, "disk": 0, "python": {}, **more})


def test_rows_in_memory_are_little_to_do() -> None:
    assert does_little(told())


@pytest.mark.parametrize(
    "more, little",
    [
        ({"disk": None}, False), ({"disk": 10_000_000}, True), ({"disk": 10_000_001}, False), ({"hidden": True}, False), ({"elsewhere": True}, False), ({"between": 0.0}, False), ({"batches": 0}, False),
        ({"pipelines": []}, False), ({"spent": {"pipe": 0.2}}, True), ({"spent": {"pipe": 0.21}}, False), ({"used": 0.1, "cards": False}, False), ({"python": {"steps": 1.3, "calls": 0}}, True),
        ({"python": {"steps": 1.5, "calls": 0}}, False), ({"python": {"steps": 0.0, "calls": 100_000}}, False),
    ],
    ids=str,
)  # fmt: skip
def test_whatever_may_take_long_is_not_little(more: dict[str, Any], little: bool) -> None:
    assert does_little(told(**more)) == little


@pytest.mark.parametrize(
    "chain, little",
    [
        (CHAIN[1:], False), ([CHAIN[1], node("Batch", 5, rows=1000), CHAIN[3]], False), ([CHAIN[0], node("Map", 5, ops=1), *CHAIN[2:]], False), ([CHAIN[0], node("Map", 5, light=True, ops=1000), *CHAIN[2:]], False),
        ([*CHAIN[:3], node("TFRecord", 4)], False), ([*CHAIN[:3], node("TFRecord", 4, ours=True)], True), ([*CHAIN[:2], node("Batch", 5), CHAIN[3]], False), ([CHAIN[0], node("Filter", 5), *CHAIN[2:]], False),
        ([*CHAIN[:3], node("Map", 5, light=True, ops=1), CHAIN[3]], False), ([node("Options", 5), *CHAIN], True),
    ],
    ids=range(10),
)  # fmt: skip
def test_each_node_takes_its_time_for_each_call(chain: list[dict[str, Any]], little: bool) -> None:
    assert does_little(told(chain)) == little


def test_short_steps_leave_less_time_for_a_batch() -> None:
    assert does_little(told(between=5.0)) and not does_little(told(between=4.0))
    # batches that are not made ahead may take less of it
    assert does_little(told(CHAIN[1:], between=12.0)) and not does_little(told(CHAIN[1:], between=10.0))


def test_beginning_a_pass_and_filling_a_shuffle_cost_time_too() -> None:
    assert does_little(told(pipelines=[{"nodes": CHAIN, "passes": 28}])) and not does_little(
        told(pipelines=[{"nodes": CHAIN, "passes": 30}])
    )
    shuffled = [*CHAIN[:3], node("Shuffle", 5, buffer=400_000), CHAIN[3]]
    assert not does_little(told(shuffled))
    assert does_little(told([*CHAIN[:3], node("Shuffle", 5, buffer=1000), CHAIN[3]]))


def test_arrays_that_keras_slices_itself_are_little_unless_they_call_python() -> None:
    keras = [dict(node("ParallelMap", 1), at=""), dict(node("TensorSlice", 1), at="")]
    assert does_little(told(keras))
    assert not does_little(told([dict(keras[0], python=True), keras[1]]))


def test_every_pipeline_must_have_little_to_do() -> None:
    files = [node("Map", 5, reads=True)]
    assert not does_little(told(pipelines=[{"nodes": CHAIN, "passes": 1}, {"nodes": files, "passes": 1}]))
