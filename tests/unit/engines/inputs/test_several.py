"""Of several pipelines the one that is waited for; which nodes of a trace may be whose is in `test_wording`."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.inputs import several
from tests.unit.engines.inputs.test_wording import CHAIN, MAPPED, node, record

OTHER = [node("Prefetch", 50), node("Batch", 49), node("Shuffle", 48), node("Range", 47)]


def two(*waited: float, nodes: dict[str, Any] = MAPPED, **more: Any) -> dict[str, Any]:
    told = record(nodes, CHAIN, **more)
    told["pipelines"] = [{"nodes": CHAIN, "passes": 1}, {"nodes": OTHER, "passes": 1}]
    for one, seconds in zip(told["pipelines"], waited):
        one["waited"] = seconds
    return told


def test_one_pipeline_is_the_one_that_is_waited_for() -> None:
    told = record(MAPPED, CHAIN)
    assert several.narrowed(told) == told and "part" not in several.narrowed(told)


@pytest.mark.parametrize("waited, place, part", [((6.0, 2.0), 0, 0.75), ((2.0, 6.0), 1, 0.75), ((0.0, 8.0), 1, 1.0)])
def test_of_several_it_is_the_one_with_the_longest_waiting(waited: tuple[float, float], place: int, part: float) -> None:
    found = several.narrowed(two(*waited))
    assert (found["place"], found["part"]) == (place, pytest.approx(part))
    assert [one["nodes"] for one in found["pipelines"]] == [[CHAIN, OTHER][place]]


def test_without_clocks_it_is_the_one_whose_nodes_worked() -> None:
    found = several.narrowed(two())
    assert found["place"] == 0 and found["part"] == pytest.approx(1.0, abs=0.01)
    # what both have may be either's
    assert {one["path"] for one in found["nodes"]} == {path for path in MAPPED if "Map" in path}


def test_nodes_of_another_pipeline_are_left_out() -> None:
    nodes = {**MAPPED, "Model::Prefetch::BatchV2::Shuffle": (5.0, 20), "Model::Prefetch::BatchV2::Shuffle::Range": (0.5, 20)}
    found = several.narrowed(two(6.0, 2.0, nodes=nodes))
    assert not any("Shuffle" in one["path"] for one in found["nodes"])
    # what both have is nobody's
    other = several.narrowed(two(2.0, 6.0, nodes=nodes))
    assert any("Shuffle" in one["path"] for one in other["nodes"]) and not any("Map" in one["path"] for one in other["nodes"])


def test_where_nobody_knows_there_is_no_pipeline() -> None:
    found = several.narrowed(two(nodes={}))
    assert (found["pipelines"], found["nodes"], found["place"]) == ([], [], -1)


def test_python_that_takes_most_of_the_time_names_its_pipeline() -> None:
    told = two(nodes={}, python={"steps": 6.0})
    told["pipelines"][1]["nodes"] = [node("Generator", 50)]
    assert several.narrowed(told)["place"] == 1
    told["python"]["steps"] = 4.0
    assert several.narrowed(told)["place"] == -1
    told["python"]["steps"] = 6.0
    told["pipelines"][0]["nodes"] = [node("Map", 31, python=True)]
    assert several.narrowed(told)["place"] == -1, "whose Python it was nobody knows"


def test_lines_of_python_are_nobodys_where_two_call_it() -> None:
    lines = [{"main": True, "at": "a:1"}, {"main": False, "at": "b:2"}]
    told = two(6.0, 2.0, lines=lines)
    assert several.narrowed(told)["lines"] == lines and not several.narrowed(told)["mixed"]
    for one in told["pipelines"]:
        one["nodes"] = [*one["nodes"], node("Generator", 1)]
    found = several.narrowed(told)
    assert found["mixed"] and found["lines"] == lines[:1]


def test_a_record_that_was_narrowed_stays_as_it_is() -> None:
    found = several.narrowed(two(6.0, 2.0))
    assert several.narrowed(found) == found
    gone = several.narrowed(two(nodes={}))
    assert several.narrowed(gone) == gone


def test_each_pipeline_by_itself_has_no_look() -> None:
    found = several.each(two(6.0, 2.0))
    assert [one["pipelines"][0]["nodes"] for one in found] == [CHAIN, OTHER]
    assert all(one["nodes"] == [] and one["part"] == 1.0 for one in found)
    assert several.each(record({}, CHAIN, pipelines=[])) == []
