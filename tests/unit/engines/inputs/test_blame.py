"""Paths of a trace and datasets of a pipeline: how nodes are named, which dataset is which node, and who is blamed for the waiting."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.inputs import blame
from tests.unit.engines.inputs.test_wording import CHAIN, MAPPED, node, record


@pytest.mark.parametrize(
    "path, kinds",
    [
        ("Root::Prefetch", [("Root", False), ("Prefetch", False)]), ("BatchV2", [("Batch", False)]), ("ParallelMapV2", [("Map", True)]), ("ParallelInterleaveV4[3]", [("Interleave", True)]),
        ("FlatMap[0]::TFRecord", [("FlatMap", False), ("TFRecord", False)]), ("FiniteTake", [("Take", False)]), ("ForeverRepeat", [("Repeat", False)]), ("MemoryCacheImpl", [("MemoryCache", False)]),
        ("odd-name", [("odd-name", False)]),
    ],
)  # fmt: skip
def test_the_kind_of_a_node_is_its_name_without_what_says_how_it_works(path: str, kinds: list[tuple[str, bool]]) -> None:
    assert blame.kinds(path) == kinds


def test_the_depth_of_a_node_is_that_of_the_functions_around_it() -> None:
    assert blame.depths("Root::FlatMap[0]::Batch::Interleave[2]::TFRecord") == [0, 0, 1, 1, 2]
    assert blame.depths("Root::FlatMap::TFRecord") == [0, 0, 0]


@pytest.mark.parametrize("at, shown", [("/home/me/train.py:31", "train.py:31"), ("train.py:1", "train.py:1")])
def test_a_place_is_shown_without_its_directory(at: str, shown: str) -> None:
    assert blame.place(at) == shown


def test_the_outermost_node_is_the_first_that_does_something() -> None:
    assert blame.outermost(["Root", "Model", "Options", "Prefetch", "Map"]) == "Prefetch"
    assert blame.outermost(["Root"]) == "" == blame.outermost([])


def test_of_several_pipelines_it_is_not_known_which_one_is_waited_for() -> None:
    told = record(MAPPED, CHAIN)
    assert blame.chain_of(told) == CHAIN
    told["pipelines"].append({"nodes": [], "passes": 1})
    assert blame.chain_of(told) == [] == blame.chain_of({"pipelines": []})


@pytest.mark.parametrize(
    "facts, passes, ended, planned, times",
    [
        ({}, 1, 0, 2, None), ({}, 1, 1, 2, None), ({"count": 3}, 1, 0, 3, None), ({"count": 3}, 1, 1, 3, 3), ({"count": -1}, 1, 1, 2, None), ({"count": 0}, 1, 1, 2, None),
        ({"count": 1}, 1, 0, 1, 1), ({"count": 3}, 2, 0, 6, 2), ({"count": 3}, 2, 2, 6, 6), ({"count": 3}, 2, 1, 6, 3), ({"count": 3}, 1, 9, 3, 3), ({"count": 1}, 4, 0, 4, 4),
    ],
)  # fmt: skip
def test_how_often_a_script_goes_through_the_rows(
    facts: dict[str, Any], passes: int, ended: int, planned: int, times: int | None
) -> None:
    told = record({}, [node("Repeat", 5, **facts), node("TFRecord", 1)], passes=passes, ended=ended)
    assert blame.times(told) == times and blame.passes(told) == (times != 1) and blame.planned(told) == planned


@pytest.mark.parametrize(
    "above, more, times",
    [
        # half a pass, a pass, two and a half
        ([], {"rows": 50}, 1), ([], {"rows": 100}, 1), ([], {"rows": 250}, 2.5), ([], {"rows": 250, "passes": 3}, 3), ([], {"rows": 400, "ended": 1}, 4),
        ([], {"rows": None}, None), ([], {"rows": 250, "place": 0}, None), ([node("FlatMap", 9)], {"rows": 250}, None), ([node("FlatMap", 9, ours=True)], {"rows": 250}, 2.5),
        ([node("Take", 9)], {"rows": 250, "ended": 1}, 2.5), ([node("Map", 9), node("Batch", 8, rows=10, ours=True)], {"rows": 250, "batches": 15}, 1.5),
    ],
)  # fmt: skip
def test_how_often_the_rows_of_a_task_came(above: list[dict[str, Any]], more: dict[str, Any], times: float | None) -> None:
    chain = [*above, node("Repeat", 5, count=4, ours=True), node("TFRecord", 1, ours=True)]
    assert blame.times(record({}, chain, **{"given": 100, **more})) == times


@pytest.mark.parametrize("passes, ended, times", [(1, 0, 1), (2, 0, None), (2, 1, 1), (2, 3, 3)])
def test_iterators_of_a_graph_are_no_passes(passes: int, ended: int, times: int | None) -> None:
    assert blame.times(record({}, CHAIN, passes=passes, ended=ended, by="session")) == times


def test_a_dataset_that_was_cut_did_not_come_to_the_end_of_its_passes() -> None:
    chain = [node("Take", 6), node("Repeat", 5, count=4), node("TFRecord", 1)]
    assert blame.times(record({}, chain, ended=1)) is None
    assert blame.times(record({}, [*chain[1:2], *chain[:1], chain[2]], ended=1)) == 4


def test_a_cache_serves_later_passes_only_where_there_are_some() -> None:
    cache, repeat = node("Cache", 3), node("Repeat", 4)
    for chain, more, place in (
        ([cache, node("Map", 1)], {}, None), ([repeat, cache], {}, 1), ([cache, repeat], {}, 0), ([cache, repeat], {"keeps": False}, None), ([repeat, cache], {"keeps": False}, 1),
        ([{**cache, "file": "/x"}, repeat], {"keeps": False}, 0), ([repeat, node("Map", 1)], {}, None),
    ):  # fmt: skip
        assert blame.cache_of(record({}, chain, **more)) == place
    assert blame.cache_of(record({}, [node("Map", 2), cache], passes=2)) == 1


@pytest.mark.parametrize(
    "one, python", [(node("Generator", 1), True), (node("Map", 1, python=True), True), (node("ParallelMapV2", 1, python=False), False), (node("Map", 1), False)]
)  # fmt: skip
def test_which_datasets_call_python(one: dict[str, Any], python: bool) -> None:
    assert blame.calls_python(one) == python


def test_whether_tensorflow_may_work_in_parallel_by_itself() -> None:
    told = record({}, CHAIN, tunes=True)
    assert blame.tuned(told, "maps") and blame.tuned(told, "ahead")
    told["pipelines"][0]["tunes"] = ["ahead"]
    assert not blame.tuned(told, "maps") and blame.tuned(told, "ahead")
    assert not blame.tuned(record({}, CHAIN, tunes=False), "maps")
    assert not blame.tuned(record({}, [node("Prefetch", 1, ours=True), *CHAIN], tunes=True), "maps")


def test_nodes_that_hand_on_and_those_that_wait_for_others_do_not_work_themselves() -> None:
    seen = [
        {"path": "Root::Prefetch", "own": 9.0, "calls": 1}, {"path": "Root::Prefetch::ParallelMapV2", "own": 4.0, "calls": 1},
        {"path": "Root::Prefetch::ParallelMapV2::TFRecord", "own": 3.0, "calls": 1},
    ]  # fmt: skip
    assert blame.active(seen) == {"Root::Prefetch::ParallelMapV2": 0.0, "Root::Prefetch::ParallelMapV2::TFRecord": 3.0}
    seen[2]["own"] = 1.0
    assert blame.active(seen)["Root::Prefetch::ParallelMapV2"] == 4.0
    # so does a map that is fused with its batch, as far as the other's time goes
    fused = [{"path": "Root::MapAndBatch", "own": 4.0, "calls": 9}, {"path": "Root::MapAndBatch::Map", "own": 5.0, "calls": 99}]
    assert blame.active(fused) == {"Root::MapAndBatch": 0.0, "Root::MapAndBatch::Map": 5.0}
    for below, own in ((1.0, 4.0), (3.0, 1.0)):
        assert blame.active([fused[0], {**fused[1], "own": below}])["Root::MapAndBatch"] == own


def test_the_files_of_a_flat_map_are_added_up() -> None:
    nodes = {"Root": (0.0, 10), "Root::FlatMap[0]::TFRecord": (1.0, 5), "Root::FlatMap[1]::TFRecord": (2.0, 5)}
    (one,) = blame.blamed(record(nodes, [node("FlatMap", 4), node("TFRecord", 3, depth=1)]))
    assert (one.kind, one.share, one.calls, one.at, one.source) == (
        "TFRecord",
        1.0,
        1.0,
        "/home/me/train.py:3",
        "/home/me/train.py:4",
    )
    assert one.call == pytest.approx(0.3) and one.where == "`TFRecord` at train.py:3"


def test_the_node_with_the_largest_share_comes_first_and_a_small_one_is_not_named() -> None:
    nodes = {
        "Root": (0.0, 10),
        "Root::BatchV2": (2.0, 10),
        "Root::BatchV2::Map": (7.0, 80),
        "Root::BatchV2::Map::TFRecord": (1.0, 80),
    }
    found = blame.blamed(record(nodes, [node("Batch", 3), node("Map", 2), node("TFRecord", 1)]))
    assert [(one.kind, round(one.share, 2), one.calls) for one in found] == [("Map", 0.7, 8.0), ("Batch", 0.2, 1.0)]
    assert found[0].above == ("Root", "Batch") and found[0].alone
    assert blame.blamed(record({}, CHAIN)) == []


@pytest.mark.parametrize(
    "name, facts, alone", [("Map", {}, True), ("ParallelMapV2", {}, False), ("ParallelMapV2", {"parallel": 1}, True)]
)
def test_a_node_works_alone_unless_it_was_told_otherwise(name: str, facts: dict[str, Any], alone: bool) -> None:
    (one,) = blame.blamed(record({"Root": (0.0, 1), f"Root::{name}": (1.0, 1)}, [node("Map", 2, **facts)]))
    assert one.alone == alone


@pytest.mark.parametrize(
    "path, at",
    [
        ("Root::Prefetch::Unbatch::Map", [12]),
        ("Root::Prefetch::Unbatch::Map::Map", [12, 14]),
    ],
    ids=["left out", "there"],
)
def test_the_map_that_unbatch_makes_may_be_left_out_of_what_runs(path: str, at: list[int]) -> None:
    chain = [
        node("Prefetch", 14), node("Unbatch", 14), node("Restructured", 14), node("Map", 14, light=True), node("Map", 12, python=True),
        node("Batch", 11),
    ]  # fmt: skip
    nodes = {path: (2.0, 20), f"{path}::Batch": (0.0, 20)}
    if len(at) > 1:
        nodes[path.rpartition("::")[0]] = (1.0, 20)
    found = blame.blamed(record(nodes, chain))
    assert [int(one.at.rpartition(":")[2]) for one in found] == at
