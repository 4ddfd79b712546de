"""The advice for one node that the script waits for, by what the node is. Whole records are in `test_wording`."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.inputs.blame import Blamed
from akrunner.engines.inputs.nodes import of_node, of_nodes
from tests.unit.engines.inputs.test_wording import CHAIN, MAPPED, node, record


def blamed(kind: str = "Map", call: float = 0.01, calls: float = 1.0, parallel: bool = False, **more: Any) -> Blamed:
    return Blamed(kind, more.pop("path", kind), "/a/t.py:5", 1.0, call, calls, parallel, more.pop("facts", {}), **more)


def rule(one: Blamed, **more: Any) -> str:
    found = of_node(one, 0.5, record({}, CHAIN, **more))
    return found.rule if found is not None else ""


@pytest.mark.parametrize(
    "one, name",
    [
        (blamed(), "map"), (blamed(parallel=True), "busy_map"), (blamed(parallel=True, facts={"parallel": 1}), "map"), (blamed(parallel=True, facts={"parallel": 2}), "map"), (blamed(parallel=True, facts={"parallel": 4}), "busy_map"),
        (blamed(call=299e-6, calls=8), "cheap_map"), (blamed(call=300e-6, calls=8), "map"), (blamed(call=299e-6, calls=7), "map"), (blamed(call=1e-6, calls=99, facts={"decodes": True}), "map"), (blamed(facts={"reads": True}), "small_files"),
        (blamed("TFRecord"), "one_source"), (blamed("TFRecord", path="ParallelInterleaveV4[0]::TFRecord"), "node"), (blamed("Batch"), "node"), (blamed("Filter"), "node"), (blamed("Range"), ""), (blamed("TensorSlice"), ""),
    ],
    ids=range(16),
)  # fmt: skip
def test_each_kind_of_node_has_its_rule(one: Blamed, name: str) -> None:
    assert rule(one) == name


def test_a_map_that_is_a_part_of_another_call_cannot_be_made_parallel() -> None:
    found = of_node(blamed(facts={"made_by": "unbatch"}), 0.5, record({}, CHAIN))
    assert found is not None and (found.rule, found.saves) == ("node", 0.0)
    assert found.what == "`Map` at t.py:5, which is a part of `unbatch`, is slow" and "num_parallel" not in found.change


@pytest.mark.parametrize(
    "cores, idle, saves", [(4, 3.0, 0.1875), (4, None, 0.1875), (2, 3.0, 0.125), (8, 0.0, 0.0), (1, 3.0, 0.0)]
)
def test_what_several_calls_win_depends_on_the_cores_that_are_left(cores: int, idle: float | None, saves: float) -> None:
    found = of_node(blamed(), 0.5, record({}, CHAIN, cores=cores, idle=idle))
    assert found is not None and found.saves == pytest.approx(saves)


@pytest.mark.parametrize(
    "facts, rule_of, words",
    [({}, "one_source", "are read one after another"), ({"cycle": 4}, "one_source", "are read 4 at a time"), ({"cycle": 16}, "sources", "several at a time"), ({"cycle": 16, "parallel": 2}, "one_source", "2 at a time"), ({"cycle": 1}, "one_source", "one after another")],
    ids=range(5),
)  # fmt: skip
def test_sources_are_read_one_after_another_or_too_few_at_once(facts: dict[str, Any], rule_of: str, words: str) -> None:
    reader = node("FlatMap" if not facts else "ParallelInterleave", 8, **facts)
    found = of_node(blamed("TFRecord", source=reader["at"]), 0.5, record({}, [reader]))
    assert found is not None and found.rule == rule_of and words in found.what and "train.py:8" in found.what


def test_arrays_in_memory_are_told_to_be_taken_in_larger_pieces() -> None:
    for rows, change in ((1, ".batch(32)"), (64, "a dataset of whole ones")):
        found = of_node(blamed("TensorSlice"), 0.5, record({}, [node("Batch", 9, rows=rows)]))
        assert found is not None and found.rule == "arrays" and change in found.change


@pytest.mark.parametrize("more", [{"wait": 0.9, "between": 9.1}, {"by": "feed_dict"}, {"known": False}])
def test_nothing_is_advised_where_the_script_hardly_waits(more: dict[str, Any]) -> None:
    assert of_nodes(record(MAPPED, CHAIN, **more)) == []
    assert [one.rule for one in of_nodes(record(MAPPED, CHAIN))] == ["map"]


def test_without_a_look_the_advice_is_only_likely() -> None:
    (one,) = of_nodes(record({}, CHAIN, asked=0, tunes=False))
    assert one.rule == "map" and one.likely.startswith("--profile-input")
    assert of_nodes(record(MAPPED, CHAIN))[0].likely == ""


def test_advice_on_python_says_only_what_fits_the_script() -> None:
    python, generator = blamed(facts={"python": True}), blamed("Generator")
    ours = [*CHAIN[:-1], node("TFRecord", 30, ours=True)]

    def change(one: Blamed, chain: list[dict[str, Any]] = CHAIN, by: str = "dataset") -> str:
        found = of_node(one, 0.5, record({}, chain, by=by))
        assert found is not None and found.rule == "python"
        return found.change

    assert "task_config.dataset()" in change(python) and "task_config.dataset()" not in change(python, ours)
    assert "Keras Sequence" not in change(python, by="function") + change(generator)
    assert "if it is a Keras Sequence (PyDataset), workers=4" in change(generator, by="function")
    assert "several readers" in change(generator) and "several readers" not in change(python)
    assert "several readers" not in change(blamed("Generator", parallel=True))
