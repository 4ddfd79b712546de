"""What is said of a task's input, from what its clocks and TensorFlow's profiler told: one record for each rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from akrunner.engines.inputs import blame, several, wording
from akrunner.engines.inputs.advice import advised
from akrunner.engines.inputs.measures import Advice
from akrunner.engines.inputs.unseen import UNSURE, bound, wait_share
from akrunner.wire import frames, messages

SCRIPT = "/home/me/train.py"


def node(kind: str, line: int, **facts: Any) -> dict[str, Any]:
    return {"node": kind, "at": f"{SCRIPT}:{line}", **facts}


def record(
    nodes: dict[str, Any],
    chain: list[dict[str, Any]],
    wait: float = 8.0,
    between: float = 2.0,
    passes: int = 1,
    ended: int = 0,
    **more: Any,
) -> dict[str, Any]:
    """Args: nodes: path -> (seconds of its own, calls)."""
    return {
        "by": "dataset", "asked": 20, "main": 11.0, "batches": 100, "rows": 3200, "wait": wait, "between": between, "outside": 0.0, "first": 0.1,
        "looked": 20, "look": 2.0, "known": True, "hidden": False, "elsewhere": False, "unlooked": 0.0, "nodes": [{"path": p, "own": own, "calls": calls} for p, (own, calls) in nodes.items()],
        "pipelines": [{"nodes": chain, "passes": passes, "ended": ended}], "windows": [[0.0, 100, wait, between]], "spent": {}, "lines": [], "looks": 50,
        "cores": 4, "idle": 3.0, "busy": None, **more,
    }  # fmt: skip


#: as TensorFlow 2.3 names them: each row is mapped on its own, one after another
MAPPED = {
    "Model": (0.001, 20),
    "Model::Prefetch": (1.5, 20),
    "Model::Prefetch::BatchV2": (0.001, 20),
    "Model::Prefetch::BatchV2::Map": (1.4, 160),
    "Model::Prefetch::BatchV2::Map::FlatMap[0]::TFRecord": (0.01, 160),
}
CHAIN = [node("Prefetch", 33), node("Batch", 32), node("Map", 31), node("TFRecord", 30)]


def first(told: dict[str, Any]) -> Advice:
    return advised(told)[0]


def test_batches_of_a_row_are_told_to_be_too_small() -> None:
    chain = [node("Batch", 32, rows=1), node("Map", 31), node("TensorSlice", 30)]
    tiny = {"Model::BatchV2": (0.0002, 20), "Model::BatchV2::Map": (0.0004, 20)}
    told = record(tiny, chain, wait=1.3, between=3.0, batches=6000)
    (found,) = advised(told)
    assert (
        found.words
        == "a batch has 1 row, and to draw it takes 0.22 ms, as it would with many: fewer and larger batches, like `.batch(32)`"
    )
    for more in ({"wait": 6.0}, {"batches": 900}, {"nodes": [{"path": "Model::BatchV2::Map", "own": 0.004, "calls": 20}]}):
        assert first({**told, **more}).rule != "small"
    for other in (node("Map", 31, python=True), node("Map", 31, decodes=True), node("Map", 31, reads=True)):
        assert all(
            one.rule != "small" for one in advised({**told, "pipelines": [{"nodes": [chain[0], other, chain[2]], "passes": 1}]})
        )
    assert all(
        one.rule != "small"
        for one in advised({**told, "pipelines": [{"nodes": [node("Batch", 32, rows=32), *chain[1:]], "passes": 1}]})
    )


def test_a_look_on_a_busy_machine_does_not_hide_that_batches_are_too_small() -> None:
    chain = [node("Batch", 32, rows=1), node("TensorSlice", 30)]
    told = record({}, chain, wait=7.0, between=3.0, batches=20_000, asked=0, idle=1.0)
    assert [one.rule for one in advised(told)] == ["small"]
    looked = {"Root::BatchV2": (0.003, 20), "Root::BatchV2::TensorSlice": (0.02, 20)}
    for more in ({}, {"wait": 30.0, "between": 20.0, "idle": 0.02}):
        (found,) = advised({**record(looked, chain, wait=7.0, between=3.0, batches=20_000), **more})
        assert found.rule == "small"
    # batches that take so long where cores are idle hold something large
    assert "small" not in [one.rule for one in advised({**told, "wait": 30.0})]


@pytest.mark.parametrize("rows, change", [(1, "like `.batch(32)`"), (64, "a dataset of whole ones")])
def test_arrays_in_memory_have_nothing_to_see(rows: int, change: str) -> None:
    chain = [node("Prefetch", 33), node("Batch", 32, rows=rows), node("TensorSlice", 30)]
    nodes = {
        "Root::Prefetch": (0.1, 20),
        "Root::Prefetch::BatchV2": (0.1, 20),
        "Root::Prefetch::BatchV2::TensorSlice": (1.5, 20 * rows),
    }
    (found, *_) = advised(record(nodes, chain))
    assert found.rule == "arrays" and change in found.change
    for kind in ("Tensor", "Range"):
        other = {path.replace("TensorSlice", kind): took for path, took in nodes.items()}
        said = str(wording.verdict({"inputs": {"a": record(other, [*chain[:2], node(kind, 30)])}}))
        assert "see what it does there" not in said


def test_what_was_certain_without_a_look_stays_with_one() -> None:
    chain = [node("Prefetch", 33), node("Batch", 32, rows=8), node("Map", 31, python=True), node("TFRecord", 30)]
    python = {"python": {"calls": 800, "wall": 6.0, "steps": 6.0, "computed": 6.0}}
    timed = first(record({}, chain, asked=0, **python))
    assert (timed.rule, timed.likely) == ("python", "")
    # the look has met the reading of one file
    looked = {"Root::Prefetch": (0.1, 20), "Root::Prefetch::BatchV2::Map::TFRecord": (1.5, 20)}
    assert first(record(looked, chain, **python)).rule == "python"


def test_a_map_that_runs_one_call_at_a_time() -> None:
    found = first(record(MAPPED, CHAIN))
    assert found.rule == "map" and 0.7 < found.share <= 0.8 and 0.2 < found.saves < found.share
    assert found.words.startswith("`Map` at train.py:31 runs one call at a time: num_parallel_calls=tf.data.AUTOTUNE")


@pytest.mark.parametrize(
    "version, name",
    [
        ("1.15.5", "tf.data.experimental.AUTOTUNE"),
        ("2.3.0", "tf.data.experimental.AUTOTUNE"),
        ("2.4.1", "tf.data.AUTOTUNE"),
        ("2.20.0", "tf.data.AUTOTUNE"),
    ],
)
def test_names_are_those_of_the_scripts_own_tensorflow(version: str, name: str) -> None:
    assert first(record(MAPPED, CHAIN, version=version)).change == f"num_parallel_calls={name}"


def test_cores_that_others_use_are_not_promised() -> None:
    found = first(record(MAPPED, CHAIN, idle=0.0))
    assert found.rule == "map" and found.saves == 0 and first(record(MAPPED, CHAIN, idle=None)).saves > 0.2


def test_it_is_said_with_the_task_and_the_share() -> None:
    told = wording.verdict({"inputs": {"worker:0": record(MAPPED, CHAIN)}})
    assert told[0].startswith(
        "[worker:0] 80% of the time of 100 steps is waiting for input; `Map` at train.py:31 runs one call"
    )
    assert bound({"worker:0": record(MAPPED, CHAIN)}, 0.0, 11.0) == "input"


def test_where_it_was_not_asked_for_one_thing_is_said_and_what_was_timed() -> None:
    twice = record(MAPPED, CHAIN, asked=0, wait=5.0, between=5.0)
    assert len(wording.verdict({"inputs": {"chief:0": twice}})) == 1
    assert len(wording.verdict({"inputs": {"chief:0": record(MAPPED, CHAIN, asked=5, wait=5.0, between=5.0, passes=6)}})) == 2
    saved = wording.verdict({"inputs": {"chief:0": {**twice, "spent": {"checkpoint": 1.7}}}})
    assert "50% of the time of 100 steps is waiting" in saved[0] and "17% of the steps' time is saving checkpoints" in saved[1]


def test_nobody_is_told_that_it_computes_and_that_it_waits() -> None:
    sides = {
        wait: bound({"chief:0": record(MAPPED, CHAIN, wait=wait, between=10.0 - wait)}, 0.0, 11.0)
        for wait in (0.5, 2.5, 4.5, 6.0)
    }
    assert sides == {0.5: "compute", 2.5: "unknown", 4.5: "unknown", 6.0: "input"}


def test_what_wins_most_is_said_first() -> None:
    saves = record({}, FILES, asked=0, idle=0.1, passes=8, wait=2.2, between=7.8, spent={"checkpoint": 4.5})
    told = wording.verdict({"inputs": {"chief:0": saves}})
    assert (
        "45% of the steps' time is saving checkpoints" in told[0]
        and "22% of the time of 100 steps is waiting" in told[1]
        and len(told) == 2
    )


@pytest.mark.parametrize(
    "facts, nodes, rule",
    [
        ({"python": True}, MAPPED, "python"),
        ({"reads": True}, MAPPED, "small_files"),
        ({}, {**MAPPED, "Model::Prefetch::BatchV2::Map": (1.4, 51200)}, "cheap_map"),
        ({}, {path.replace("::Map", "::ParallelMapV2"): took for path, took in MAPPED.items()}, "busy_map"),
    ],
)
def test_what_a_map_does_says_what_to_change(facts: dict[str, Any], nodes: dict[str, Any], rule: str) -> None:
    chain = [node("Prefetch", 33), node("Batch", 32), node("Map", 31, **facts), node("TFRecord", 30)]
    assert first(record(nodes, chain)).rule == rule


def test_a_map_that_is_fused_with_its_batch_is_found() -> None:
    nodes = {"Model": (0.0, 20), "Model::Prefetch": (1.5, 20), "Model::Prefetch::MapAndBatch": (1.4, 20)}
    assert first(record(nodes, CHAIN)).what == "`Map` at train.py:31 runs one call at a time"
    # newer ones of TensorFlow run it in parallel by themselves, and the name is the same
    tuned = first(record(nodes, CHAIN, tunes=True))
    assert tuned.rule == "busy_map" and tuned.saves == 0.0 and "num_parallel_calls" not in tuned.words
    stateful = [CHAIN[0], CHAIN[1], {**CHAIN[2], "stateful": True}, CHAIN[3]]
    assert first(record(nodes, stateful, tunes=True)).rule == "map"
    # but not where the dataset's own options have its tuner off
    off = record(nodes, CHAIN, tunes=True)
    for left, rule in (([], "map"), (["ahead"], "map"), (["maps"], "busy_map")):
        off["pipelines"][0]["tunes"] = left
        assert first(off).rule == rule
    # which of two it is, is told by what is fused, too
    told = record(nodes, CHAIN)
    told["pipelines"].append({"nodes": [node("Prefetch", 50)], "passes": 1})
    assert blame.chain_of(several.narrowed(told)) == CHAIN
    faster = [node("Prefetch", 33), node("Batch", 32), node("ParallelMap", 31), node("TFRecord", 30)]
    assert first(record(nodes, faster)).rule == "busy_map"


#: a script's own map behind a dataset of ours, which decodes in several passes
BEHIND_OURS = [
    node("Map", 7, python=True),
    node("Prefetch", 3, ours=True),
    node("Map", 3, ours=True),
    node("Batch", 3, ours=True, rows=8),
    node("ParallelMap", 3, ours=True, decodes=True),
    node("Repeat", 3, ours=True, count=6),
    node("TFRecord", 3, ours=True),
]


def test_what_tensorflow_adds_at_the_end_is_no_node_of_the_scripts() -> None:
    """Newer ones prefetch there: the next prefetch, and what stands behind it, is not taken for it."""
    nodes = {
        "Root": (0.0, 20),
        "Root::Prefetch": (2.12, 20),
        "Root::Prefetch::Map": (2.1, 19),
        "Root::Prefetch::Map::Prefetch": (0.05, 20),
        "Root::Prefetch::Map::Prefetch::ParallelMapV2": (0.01, 20),
    }
    (worst,) = blame.blamed(record(nodes, BEHIND_OURS))
    assert (worst.kind, worst.at, worst.ours) == ("Map", f"{SCRIPT}:7", False)
    told = wording.verdict({"inputs": {"chief:0": record(nodes, BEHIND_OURS)}})
    assert "train.py:7" in told[0] and not any("train.py:3" in one for one in told), told


def test_a_cache_does_not_save_what_python_was_timed_to_take() -> None:
    python = {"calls": 117, "wall": 6.9, "computed": 0.1, "steps": 6.8}
    told = advised(record({}, BEHIND_OURS, asked=0, wait=7.0, between=0.3, python=python))
    assert [one.rule for one in told] == ["python_waits"] and "train.py:7" in told[0].what, told


def test_a_generator() -> None:
    nodes = {"Root": (0.0, 20), "Root::Prefetch": (1.0, 20), "Root::Prefetch::BatchV2::FlatMap[0]::Generator": (1.8, 640)}
    lines = [{"main": False, "at": f"{SCRIPT}:12", "in": "", "share": 0.7}]
    found = first(record(nodes, [node("Prefetch", 9), node("Batch", 9), node("FlatMap", 8)], lines=lines))
    assert found.rule == "python" and "Python at train.py:12" in found.what


@pytest.mark.parametrize("pipe, rule", [(7.0, "pipe"), (0.1, "parse")])
def test_what_task_config_made_is_not_the_scripts_fault(pipe: float, rule: str) -> None:
    nodes = {"Root": (0.0, 20), "Root::Prefetch": (1.0, 20), "Root::Prefetch::BatchV2::FlatMap[0]::Generator": (1.8, 640)}
    chain = [node("Prefetch", 9, ours=True), node("Batch", 9, ours=True), node("FlatMap", 9, ours=True)]
    told = advised(record(nodes, chain, spent={"pipe": pipe}))
    assert [one.rule for one in told] == [rule] and "train.py:9" in told[0].what
    told = advised(record({}, [], by="batches", pipelines=[], spent={"pipe": pipe}))
    assert [one.rule for one in told] == (["pipe"] if pipe > 1 else [])


@pytest.mark.parametrize("parses", [True, False])
def test_columns_are_not_told_to_become_columns(parses: bool) -> None:
    nodes = {"Root": (0.0, 20), "Root::Prefetch": (1.0, 20), "Root::Prefetch::Map": (1.8, 640)}
    (told,) = advised(
        record(nodes, [node("Prefetch", 9, ours=True), node("Map", 9, ours=True, **({"parses": True} if parses else {}))])
    )
    assert told.rule == "parse" and ("data_format='columns'" in told.change) == parses and "columns= for those" in told.change


@pytest.mark.parametrize("source, rule", [("TFRecord", "spool"), ("Map", "parse")])
def test_the_rows_file_is_told_from_the_parsing_of_its_rows(source: str, rule: str) -> None:
    nodes = {"Root": (0.0, 20), "Root::Prefetch": (1.0, 20), "Root::Prefetch::" + source: (1.8, 640)}
    chain = [node("Prefetch", 9, ours=True), node(source, 9, ours=True)]
    assert [one.rule for one in advised(record(nodes, chain))] == [rule]


@pytest.mark.parametrize(
    "inputs_of",
    [None, 7, [1], {"a": None}, {"a": 5}, {"a": {}}, {"a": {**record(MAPPED, CHAIN), "nodes": 3}}, {"a": {"main": "x"}}],
)
def test_nothing_is_said_of_a_damaged_record(inputs_of: Any) -> None:
    assert wording.verdict({"inputs": inputs_of}) == []
    whole = {"worker:0": record(MAPPED, CHAIN), **(inputs_of if isinstance(inputs_of, dict) else {})}
    assert [wording.calls_for_change(words) for words in wording.verdict({"inputs": whole})][:1] == [True]


def test_an_input_that_is_fine_calls_for_no_change() -> None:
    told = wording.verdict({"inputs": {"a": record({}, [], wait=0.1, between=9.0, busy=0.9)}})
    short = wording.verdict({"inputs": {"a": record({}, [], main=0.1)}})
    assert told and short and not any(map(wording.calls_for_change, told + short))


def test_sources_one_after_another() -> None:
    nodes = {
        "Model": (0.0, 20),
        "Model::Prefetch": (1.9, 20),
        "Model::Prefetch::BatchV2::FlatMap": (0.0, 640),
        "Model::Prefetch::BatchV2::FlatMap[0]::TFRecord": (0.9, 320),
        "Model::Prefetch::BatchV2::FlatMap[1]::TFRecord": (0.9, 320),
    }
    told = advised(record(nodes, [node("Prefetch", 9), node("Batch", 9), node("FlatMap", 8), node("TensorSlice", 7)]))
    assert [one.rule for one in told] == ["one_source"] and "train.py:8" in told[0].what and "interleave(" in told[0].change


def test_no_prefetch_is_told_where_there_is_something_to_compute_meanwhile() -> None:
    nodes = {"Model": (0.0, 20), "Model::BatchV2": (0.0, 20), "Model::BatchV2::ParallelMap": (1.0, 160)}
    chain = [node("Batch", 3), node("ParallelMap", 2), node("Range", 1)]
    found = first(record(nodes, chain, wait=5.0, between=5.0))
    assert found.rule == "prefetch" and 0.2 < found.saves <= 0.25
    assert "prefetch" not in [one.rule for one in advised(record(nodes, chain, wait=9.9, between=0.1))]


def test_a_cache_for_what_is_done_in_every_pass() -> None:
    nodes = {path.replace("::Map", "::ParallelMapV2"): took for path, took in MAPPED.items()}
    assert first(record(nodes, CHAIN, passes=6)).rule == "cache"
    assert "cache" not in [one.rule for one in advised(record(nodes, CHAIN))]
    kept = [node("Prefetch", 33), node("Batch", 32), node("Cache", 31), node("Map", 31), node("TFRecord", 30)]
    assert "cache" not in [one.rule for one in advised(record(nodes, kept, passes=6))]


def test_who_waits_for_a_thread_of_its_own_is_not_told_to_make_one() -> None:
    line = {"main": True, "at": f"{SCRIPT}:24", "in": "queue", "share": 0.8}
    told = advised(record({}, [], by="call", outside=8.0, wait=0.0, between=10.0, lines=[line]))
    assert [one.rule for one in told] == ["thread"] and "waits at train.py:24 (queue) for another thread" in told[0].what
    assert told[0].saves == 0


def test_what_another_package_does_between_the_steps_is_named() -> None:
    line = {"main": True, "at": f"{SCRIPT}:9", "in": "numpy", "share": 0.7}
    saves = record({}, [], wait=0.1, between=9.9, lines=[line], asked=0)
    (said,) = wording.verdict({"inputs": {"chief:0": saves}})
    assert "70% of the time since the first step, Python is at train.py:9 (numpy), not in TensorFlow" in said
    assert bound({"chief:0": saves}, 0.0, 11.0) == "unknown"
    own = record({}, [], wait=0.1, between=9.9, lines=[{**line, "in": "tensorflow"}], asked=0)
    assert wording.verdict({"inputs": {"chief:0": own}}) == [] and bound({"chief:0": own}, 0.0, 11.0) == "compute"


def test_a_first_batch_that_was_waited_for_long_is_no_computing() -> None:
    assert bound({"chief:0": record({}, [], wait=0.1, between=6.0, first=3.7, main=10.0)}, 0.0, 11.0) == "unknown"
    assert bound({"chief:0": record({}, [], wait=0.1, between=6.0, first=0.3, main=1.0)}, 0.0, 11.0) == "compute"


def test_rows_of_text_that_are_split_one_by_one_are_cheap() -> None:
    chain = [node("Prefetch", 9), node("Batch", 9, rows=128), node("ParallelMap", 8, splits=True, ops=9), node("TextLine", 7)]
    looked = {"Root": (0.0, 20), "Root::Prefetch": (0.1, 20), "Root::Prefetch::BatchV2::ParallelMapV2": (0.08, 2560)}
    assert first(record(looked, chain, wait=1.0)).rule == "cheap_map"
    assert first(record({}, chain, wait=1.0, between=0.2, batches=100, asked=0)).rule == "cheap_map"


#: one map reads and decodes
LOOKED = {
    "Root": (0.0, 20),
    "Root::Prefetch": (0.1, 20),
    "Root::Prefetch::BatchV2": (0.0, 20),
    "Root::Prefetch::BatchV2::ParallelMapV2": (1.4, 640),
}
BOTH = [
    node("Prefetch", 9),
    node("Batch", 9, rows=32),
    node("ParallelMap", 8, reads=True, decodes=True, ops=9),
    node("TensorSlice", 7),
]


@pytest.mark.parametrize(
    "used, passes, rules",
    [(1.9, 8, ["cache", "busy_map"]), (1.9, 1, ["busy_map"]), (0.4, 1, ["small_files"]), (0.4, 8, ["cache", "small_files"])],
)
def test_reading_is_not_blamed_where_the_same_map_decodes_all_the_time(used: float, passes: int, rules: list[str]) -> None:
    told = advised(record(LOOKED, BOTH, used=used, cores=2, idle=0.1, passes=passes))
    assert [one.rule for one in told] == rules


def test_a_cache_wins_the_more_the_more_passes_there_are() -> None:
    def saves(passes: int) -> float:
        return first(record(LOOKED, BOTH, used=1.9, passes=passes)).saves

    assert saves(2) == pytest.approx(0.2) and saves(2) < saves(3) < saves(8) < 0.4
    repeated = [node("Repeat", 9, count=8), *BOTH]
    assert first(record(LOOKED, repeated, used=1.9, ended=1)).saves == pytest.approx(saves(8))
    once = [node("Repeat", 9, count=1), *BOTH]
    assert "cache" not in [one.rule for one in advised(record(LOOKED, once, used=1.9, ended=1))]


@pytest.mark.parametrize("count, ended", [(8, 0), (-1, 0), (0, 1)])
def test_a_dataset_that_repeats_and_may_be_left_in_its_first_pass_is_promised_nothing(count: int, ended: int) -> None:
    chain = [node("Repeat", 9, count=count), *BOTH]
    known, cache = advised(record(LOOKED, chain, used=1.9, ended=ended))
    assert (known.rule, cache.rule, cache.saves) == ("busy_map", "cache", 0.0)
    assert "`Map` at train.py:8 takes the time, and does the same again in every pass over the rows" in cache.what
    assert cache.change.startswith("if the script goes through them more than once, `.cache()` behind it, before shuffle and")
    said = wording.verdict({"inputs": {"chief:0": record(LOOKED, chain, used=1.9, ended=ended)}})
    assert not any("saves" in one for one in said)


@pytest.mark.parametrize("rows, saves", [(3200, None), (4800, 0.4 / 3), (32_000, 0.36)])
def test_of_the_rows_of_a_task_it_is_known_how_often_they_came(rows: int, saves: float | None) -> None:
    """Ten passes were asked for, and the script has left in the first, or the second, or was done."""
    chain = [node("Repeat", 9, count=10, ours=True), BOTH[0], BOTH[1], BOTH[2], node("TFRecord", 7, ours=True)]
    found = [
        one
        for one in advised(record(LOOKED, chain, used=1.9, given=3200, rows=rows, batches=rows // 32))
        if one.rule == "cache"
    ]
    assert [one.saves for one in found] == ([pytest.approx(saves)] if saves is not None else [])


def test_what_is_cached_too_early_is_cached_behind_what_is_slow() -> None:
    early = [*BOTH[:2], node("ParallelMap", 8, decodes=True, ops=9), node("Cache", 7), node("ParallelMap", 6, reads=True)]
    for looked in (LOOKED, {}):
        found = first(record(looked, early, used=1.9, idle=0.1, cores=2, passes=6))
        assert found.rule == "cache" and "`.cache()` behind it, instead of the one at train.py:7" in found.change


def test_with_the_behaviour_of_tensorflow_1_one_iterator_makes_all_passes() -> None:
    plain = first(record(LOOKED, BOTH, used=1.9, passes=6, keeps=False))
    assert plain.rule == "cache" and "then `.repeat(n)`, and one loop over all passes" in plain.change
    cached = [*BOTH[:2], node("Cache", 9), *BOTH[2:]]
    for looked in (LOOKED, {}):
        found = first(record(looked, cached, used=1.9, passes=6, keeps=False))
        assert found.rule == "cache" and found.what == "`cache` at train.py:9 keeps nothing from one pass to the next"
    for kept in ([node("Repeat", 9, count=6), *cached], [*BOTH[:2], node("Cache", 9, file=True), *BOTH[2:]]):
        assert "cache" not in [one.rule for one in advised(record(LOOKED, kept, used=1.9, passes=6, keeps=False))]


def test_the_pass_that_fills_a_cache_is_told_from_the_others() -> None:
    cached = [*BOTH[:2], node("Cache", 9), *BOTH[2:]]
    told = record(LOOKED, cached, used=1.9, passes=30, wait=2.0, between=8.0)
    told["pipelines"][0].update(waited=2.0, filled=1.9)
    words = wording.verdict({"inputs": {"chief:0": told}})[0]
    assert (
        "20% of the time of 100 steps is waiting for input, most of it in the first pass, which fills the cache at train.py:9"
        in words
    )
    assert "opens a file" not in words and "`.cache()`" not in words
    told["pipelines"][0].update(filled=0.0)
    words = wording.verdict({"inputs": {"chief:0": {**told, "windows": [[0, 50, 0.1, 4.0], [1, 50, 1.9, 4.0]]}}})[0]
    assert words.endswith(
        "20% of the time of 100 steps is waiting for input; for what, the steps that were looked at do not tell: a look at more steps (--profile-input 100) may"
    )


def test_no_cache_for_what_is_another_each_time_or_is_in_memory() -> None:
    nodes = {path.replace("::Map", "::ParallelMapV2"): took for path, took in MAPPED.items()}
    drawn = [{**one, "random": True} if one["node"] == "Map" else one for one in CHAIN]
    assert "cache" not in [one.rule for one in advised(record(nodes, drawn, passes=6))]
    counted = {"Model": (0.0, 20), "Model::Prefetch": (0.0, 20), "Model::Prefetch::Range": (1.0, 20)}
    assert "cache" not in [one.rule for one in advised(record(counted, [node("Prefetch", 2), node("Range", 1)], passes=6))]


FILES = [
    node("Prefetch", 9), node("Batch", 9, rows=32), node("ParallelMap", 8, decodes=True, ops=9), node("ParallelMap", 7, reads=True, ops=1), node("TensorSlice", 7)
]  # fmt: skip


@pytest.mark.parametrize(
    "facts, more, rules",
    [
        # cores have nothing left, so it is not the disk that is waited for
        ({}, {"idle": 0.1, "passes": 10}, ["cache", "busy_map"]),
        ({}, {"idle": None}, ["busy_map"]),
        ({}, {"idle": 3.5}, ["small_files"]),
        ({}, {"idle": 3.5, "passes": 10}, ["cache", "small_files"]),
        # nothing computes on so much as one core: it is the disk
        ({"node": "Map"}, {"used": 0.3, "passes": 10}, ["cache", "small_files"]),
        ({"node": "Map"}, {"used": 0.3}, ["small_files"]),
        ({}, {"used": 0.6}, ["small_files"]),
        ({}, {"used": 2.1, "idle": 0.1}, ["busy_map"]),
        ({"node": "Map"}, {"used": 0.9, "idle": 3.0, "passes": 10}, ["cache"]),
    ],
)
def test_files_that_are_read_and_decoded_without_a_look(facts: dict[str, Any], more: dict[str, Any], rules: list[str]) -> None:
    chain = [{**one, **facts} if one.get("reads") else one for one in FILES]
    told = advised(record({}, chain, asked=0, looked=0, **more))
    assert [one.rule for one in told] == rules
    assert all(one.likely for one in told) and "AUTOTUNE" not in "".join(one.change for one in told if not facts)


def test_what_lies_behind_a_cache_is_not_suspected_in_later_passes() -> None:
    chain = [FILES[0], FILES[1], node("Cache", 9), *FILES[2:]]
    assert advised(record({}, chain, asked=0, looked=0, passes=10)) == []
    told = wording.verdict({"inputs": {"chief:0": record({}, chain, asked=0, looked=0, passes=10)}})
    assert told == [
        "[chief:0] 80% of the time of 100 steps is waiting for input; for what, --profile-input (profile_input=20) tells"
    ]
    assert [one.rule for one in advised(record({}, chain, asked=0, looked=0, idle=3.5))] == ["small_files"]


def test_a_shuffle_that_fills() -> None:
    chain = [node("Prefetch", 9), node("Batch", 9), node("Shuffle", 8, buffer=2500), node("Range", 7)]
    found = first(record({}, chain, wait=0.1, between=9.0, first=5.0))
    assert found.rule == "shuffle" and "5.0 s" in found.what and "train.py:8" in found.what and "2,500" in found.what


def test_decoding_before_the_shuffle() -> None:
    chain = [
        node("Prefetch", 9),
        node("Batch", 9),
        node("Shuffle", 8, buffer=2500),
        node("Map", 7, decodes=True),
        node("TFRecord", 6),
    ]
    found = advised(record({}, chain, wait=0.1, between=9.0, first=5.0))
    assert [one.rule for one in found] == ["decode"] and "train.py:7" in found[0].what
    # what is kept is decoded once, and can only be shuffled behind that; and our own order is right
    for behind in ([node("Cache", 8), chain[3]], [node("Map", 7, decodes=True, ours=True)]):
        assert "decode" not in [
            one.rule for one in advised(record({}, [*chain[:3], *behind, chain[4]], wait=0.1, between=9.0, first=5.0))
        ]


@pytest.mark.parametrize("what", ["checkpoint", "report", "output"])
def test_time_that_goes_elsewhere(what: str) -> None:
    found = first(record({}, CHAIN, wait=0.2, between=9.8, spent={what: 4.0}))
    assert found.rule == what and found.what.startswith("40% of the steps' time")
    # nobody says of a script that saves so much of the time that it computes
    for seconds, side in ((2.0, "compute"), (4.4, "unknown")):
        assert bound({"chief:0": record({}, CHAIN, wait=0.2, between=9.8, spent={what: seconds})}, 0.0, 11.0) == side
    assert advised(record({}, CHAIN, wait=0.2, between=9.8, spent={what: 0.4})) == []


def test_pandas_in_the_loop() -> None:
    lines = [
        {"main": True, "at": f"{SCRIPT}:22", "in": "pandas", "share": 0.3},
        {"main": True, "at": f"{SCRIPT}:23", "in": "pandas", "share": 0.1},
    ]
    found = first(record({}, [], 0.0, 0.0, by="", lines=lines, pipelines=[]))
    assert found.rule == "pandas" and found.what == "40% of the time since the first step is pandas at train.py:22"


def test_a_feed_dict() -> None:
    lines = [{"main": True, "at": f"{SCRIPT}:50", "in": "", "share": 0.6}]
    told = record({}, [], wait=6.0, between=4.0, by="feed_dict", lines=lines, pipelines=[])
    assert first(told).rule == "feed_dict" and "train.py:50" in first(told).what
    assert len(wording.verdict({"inputs": {"chief:0": told}})) == 1


@pytest.mark.parametrize(
    "told",
    [
        record(MAPPED, CHAIN, wait=0.3, between=9.7),
        record(MAPPED, CHAIN, by="function", known=False, looked=0),
        record({}, [], wait=0.0, between=0.0, by="", pipelines=[]),
    ],
    ids=["fine", "nobody looked", "read in no way that is known"],
)
def test_what_is_fine_or_not_known_is_no_fault(told: dict[str, Any]) -> None:
    assert advised(told) == [] and bound({"chief:0": told}, 0.0, 11.0) != "input"
    assert wording.verdict({"inputs": {"chief:0": {**told, "asked": 0}}}) == []


def test_who_asked_is_told_that_the_input_is_fine_and_what_the_cards_did() -> None:
    told = wording.verdict({"inputs": {"chief:0": record(MAPPED, CHAIN, wait=0.3, between=9.7)}})
    assert told == ["[chief:0] the input is fine: 3% of the time of 100 steps is waiting for it"]
    told = wording.verdict({"inputs": {"chief:0": record(MAPPED, CHAIN, busy=0.31)}})
    assert "graphics cards were busy 31%" in told[-1]


def test_a_job_of_a_moment_has_nothing_to_say() -> None:
    short = record(MAPPED, CHAIN, wait=0.1, between=0.01, main=0.2, asked=0)
    assert wording.verdict({"inputs": {"chief:0": short}}) == []
    assert wording.verdict({"inputs": {"chief:0": {**short, "main": 2.0}}}) == []
    assert "too little to tell" in wording.verdict({"inputs": {"chief:0": {**short, "asked": 5}}})[0]
    assert wording.verdict({}) == []


def test_the_pipeline_that_was_looked_at_is_taken() -> None:
    other = [node("Batch", 90), node("Filter", 91), node("Generator", 92)]
    told = record(MAPPED, CHAIN)
    told["pipelines"].append({"nodes": other, "passes": 50})
    assert blame.chain_of(several.narrowed(told)) == CHAIN and wait_share(told) == 0.8


TRAINING = [node("Prefetch", 8, buffer=2), node("Batch", 8, rows=16), node("Map", 8, ops=3), node("Range", 8)]
VALIDATION = [node("Batch", 9, rows=16), node("Map", 9, ops=4, stateful=True, python=True), node("Range", 9)]
#: of a loop over both, what was looked at in its first steps: TensorFlow's names for the training's
OF_TRAINING = {
    "Root::Prefetch": (0.0047, 20),
    "Root::Prefetch::MapAndBatch": (0.0072, 19),
    "Root::Prefetch::MapAndBatch::Range": (0.0001, 314),
}


@pytest.mark.parametrize("tunes", [True, False])
def test_the_slow_validation_is_blamed_and_not_the_training_that_was_looked_at(tunes: bool) -> None:
    python = {"calls": 4000, "wall": 7.0, "steps": 7.0, "computed": 6.9}
    told = record(OF_TRAINING, TRAINING, python=python, tunes=tunes, used=1.0)
    told["pipelines"] = [
        {"nodes": TRAINING, "passes": 2, "waited": 0.2},
        {"nodes": VALIDATION, "passes": 2, "waited": 7.8},
    ]
    (said, *_) = wording.verdict({"inputs": {"chief:0": told}})
    assert "`Map` at train.py:9 runs Python for every element" in said and "train.py:8" not in " ".join(said)


def test_a_prefetch_of_the_validation_is_not_promised_the_trainings_time() -> None:
    nodes = {"Root": (0.0, 20), "Root::MapAndBatch": (1.9, 20)}
    alone = record(nodes, VALIDATION, wait=6.0, between=4.0)
    assert "prefetch" in [one.rule for one in advised(alone)]
    both = [{"nodes": TRAINING, "passes": 2, "waited": 0.1}, {"nodes": VALIDATION, "passes": 2, "waited": 5.9}]
    assert "prefetch" not in [one.rule for one in advised({**alone, "pipelines": both})]


def test_what_two_pipelines_may_be_is_neither_of_them() -> None:
    """In a session nobody knows which one it waits for."""
    nodes = {"Model": (0.0, 40), "Model::BatchV2": (0.01, 40), "Model::BatchV2::Map": (1.9, 640)}
    chain = [node("Batch", 9), node("Map", 9), node("Range", 9)]
    told = record(nodes, chain, by="session")
    assert first(told).rule == "map"
    told["pipelines"].append({"nodes": [node("Batch", 20), node("Map", 20), node("TensorSlice", 20)], "passes": 1})
    assert advised(told) == []
    assert wording.verdict({"inputs": {"a": told}}) == [
        "[a] 80% of the time of 100 steps is waiting for input; for what, the steps that were looked at do not tell: "
        "a look at more steps (--profile-input 100) may"
    ]
    # but the look was at steps that drew from it
    nodes["Model::BatchV2::Map::TensorSlice"] = (0.01, 640)
    told["nodes"] = [{"path": p, "own": own, "calls": calls, "of": 1} for p, (own, calls) in nodes.items()]
    assert first(told).what == "`Map` at train.py:20 runs one call at a time"


@pytest.mark.parametrize(
    "path, first_fits, second_fits",
    [
        ("Root", True, True),
        ("Root::Prefetch::MapAndBatch::Range", True, True),
        ("Root::MapAndBatch::Range", False, True),
        ("Root::Prefetch::BatchV2::ParallelMapV2::Range", True, True),
        ("Root::Prefetch::BatchV2::Range", False, False),
        ("Root::Prefetch::ParallelMapV2", False, False),
    ],
)
def test_a_node_fits_a_pipeline_that_leaves_none_out(path: str, first_fits: bool, second_fits: bool) -> None:
    told = {"tunes": True}
    assert several.fits(path, TRAINING, told) == first_fits and several.fits(path, VALIDATION, told) == second_fits
    # where TensorFlow adds no prefetch, it is the script's
    assert not several.fits("Root::Prefetch::MapAndBatch::Range", VALIDATION, {"tunes": False})


def test_what_lies_in_functions_and_beside_each_other_fits_too() -> None:
    told = {"tunes": True}
    zipped = [node("Batch", 9), node("Zip", 8), node("Map", 7), node("Range", 7), node("Filter", 6), node("Range", 6)]
    assert several.fits("Root::BatchV2::Zip[1]::Filter::Range", zipped, told)
    repeated = [node("Repeat", 9, count=1), *SOURCES]
    assert several.fits("Root::BatchV2::FlatMap[0]::TFRecord", repeated, told)
    assert several.fits("Root::BatchV2::FlatMap::TensorSlice", repeated, told)
    assert not several.fits("Root::BatchV2::TFRecord", repeated, told)
    # as TensorFlow names what reads files, and what `cache` keeps
    kept = [
        node("Prefetch", 9),
        node("Repeat", 9, count=10),
        node("Cache", 9),
        node("Batch", 9),
        node("TFRecord", 9),
        node("TensorSlice", 9),
    ]
    assert several.fits("Root::Prefetch::FiniteRepeat[0]::MemoryCacheImpl::BatchV2::FlatMap[0]::TFRecord", kept, told)


def test_of_two_iterators_of_a_session_the_one_that_calls_python_is_what_it_waits_for() -> None:
    other = {"nodes": [node("Batch", 50), node("Range", 50)], "passes": 9}
    told = within([node("Batch", 32), node("Map", 31, python=True), node("Range", 30)], 9.5)
    told["pipelines"].append(other)
    (one,) = advised(told)
    assert "train.py:31" in one.what and "takes 95% of the steps' time" in one.what
    # what both may call is not known to be either's
    told["pipelines"][1] = {"nodes": [node("Batch", 50), node("Generator", 50)], "passes": 9}
    assert advised(told) == []


CLOSED = {
    "ok": True, "rows": 0, "rows_read": 0, "main_ns": 1, "output_blocked_ns": 0, "rows_dropped": 0, "rows_padded": 0, "notes": [],
}  # fmt: skip


def closed(told: dict[str, Any] | None) -> frames.Frame:
    return frames.Frame(frames.CLOSED, 0, bytearray(json.dumps({**CLOSED, "input": told}).encode()))


def test_a_record_is_checked_when_it_comes() -> None:
    told = record(MAPPED, CHAIN)
    assert messages.read(closed(told))["input"] == told
    for name, wrong in (
        ("wait", -1),
        ("nodes", [{"path": 1}]),
        ("pipelines", [[]]),
        ("windows", [[1]]),
        ("by", None),
        ("lines", {}),
        ("lines", [{"main": True, "at": "a:1", "in": "", "share": 0.5, "computes": "much"}]),
        ("nodes", [{"path": "Root", "own": 0.1, "calls": 1, "of": -1}]),
        ("used", "little"),
        ("disk", 0.5),
        ("version", 2),
    ):
        with pytest.raises(frames.WireError):
            messages.read(closed({**told, name: wrong}))
    with pytest.raises(frames.WireError):
        messages.read(closed(None))


def test_a_script_of_pai_is_told_of_what_it_has() -> None:
    told = wording._as_asked("`Generator` at a.py:3 runs Python for every element, one after another: use TensorFlow's operations, or give and take "
        "whole batches; rows come fastest by task_config.dataset(); read them by task_config.batches(); task_config's dataset at a.py:1")  # fmt: skip
    assert "task_config" not in told and "runs Python" not in told and "TableRecordDataset" in told
    assert "(saves 90% of the steps' time or more)" in wording._saving(Advice("map", 1.0, 1.6, "a", "b"))


LINES = [
    {"main": True, "at": f"{SCRIPT}:24", "in": "numpy", "share": 0.4},
    {"main": True, "at": f"{SCRIPT}:24", "in": "", "share": 0.2},
    {"main": True, "at": f"{SCRIPT}:25", "in": "tensorflow_core", "share": 0.4},
]


def other(by: str, **more: Any) -> dict[str, Any]:
    """Of a script that does not read by tf.data."""
    told = {"by": by, "pipelines": [], "lines": LINES, "asked": 0, "known": by != "call", "wait": 0.0, "between": 10.0, **more}
    return {**record({}, []), **told}


@pytest.mark.parametrize(
    "told, side, words",
    [
        # no input that anybody has seen: it may only sleep, or write
        (other("", between=0.0), "unknown", ""),
        (other("", between=0.0, lines=[{**LINES[0], "in": "pandas"}], tensorflow=False), "unknown", ""),
        (other("", between=0.0, asked=5), "unknown", "it was not seen to read any"),
        (other("", between=0.0, spent={"table": 0.2}), "unknown", "in a way of its own: 60% of the time since the first step, Python is at train.py:24 "
        "(numpy), 40% in TensorFlow"),
        (other("batches"), "unknown", "between its batches Python is at train.py:24 (numpy) for 60% of the time"),
        (other("batches", lines=LINES[2:], between=9.0), "unknown", ""),
        (other("batches", lines=[{**LINES[2], "share": 0.9}]), "compute", ""),
        (other("call", outside=6.0), "unknown", "60% of the steps' time is between the calls of TensorFlow's functions; Python is most often at"),
        (other("call", outside=0.5), "compute", ""),
        # a quarter of the time elsewhere is no computing, however it is known
        (other("call", outside=3.0, looks=3), "unknown", "30% of the steps' time is between the calls of TensorFlow's functions: --profile-input "
        "(profile_input=20) tells"),
        (other("call", outside=3.0, between=9.0, looks=9), "unknown", "functions, Python mostly at train.py:24 (numpy) in the few looks there were: "
        "--profile-input"),
        (other("call", outside=0.5, between=0.9, looks=3), "unknown", ""),
        (other("function", outside=3.0, looks=3), "unknown", ""),
        (other("batches", lines=[{**LINES[2], "share": 0.7}]), "unknown", ""),
        (other("call", outside=6.0, looks=3), "unknown", "60% of the steps' time is between"),
        (other("dataset", within={"calls": 100, "inside": 4.0}, looks=3), "unknown", "60% of the steps' time is between the steps, in none of TensorFlow's "
        "functions: --prof"),
        (other("function", outside=8.0), "unknown", "80% of the steps' time is between the calls of TensorFlow's functions"),
        (other("function", known=False, between=4.0), "unknown", ""),
        (other("function", known=False), "unknown", "as its steps draw their batches within TensorFlow (Keras fit, tf.function, session.run): --profile-input"),
        (other("dataset", lines=LINES[2:]), "compute", ""),
        (other("dataset", wait=0.1, between=0.1), "unknown", ""),
        (other("function", unlooked=6.0), "unknown", ""),
        (other("function", unlooked=4.0), "unknown", ""),
        (other("function", unlooked=1.5), "compute", ""),
        (other("call", hidden=True), "unknown", "a tf.function goes through a dataset by itself"),
        (other("dataset", wait=9.0, between=1.0, elsewhere=True), "unknown", "another thread than the main one reads it"),
    ],
)  # fmt: skip
def test_of_input_that_is_no_dataset_what_is_known_is_said_and_no_more(told: dict[str, Any], side: str, words: str) -> None:
    assert bound({"chief:0": told}, 0.0, 11.0) == side and bound({"chief:0": told}, 12.0, 11.0) == "input"
    said = wording.verdict({"inputs": {"chief:0": told}})
    assert len(said) == bool(words) and all(words in one for one in said)
    changes = told["outside"] > 5.0 and not told["hidden"] and told["looks"] > 3
    assert [wording.calls_for_change(one) for one in said] == [changes] * len(said)


def test_of_a_line_that_makes_tensors_and_calls_the_step_the_steps_time_is_known() -> None:
    made = {"main": True, "at": f"{SCRIPT}:10", "in": "tensorflow", "share": 0.5, "does": "tensors", "computes": 1.0}
    parsed = {**made, "at": f"{SCRIPT}:9", "in": "", "share": 0.4, "does": "texts"}
    told = other("dataset", lines=[made, parsed], within={"calls": 100, "inside": 3.0})
    assert "train.py:9, which takes texts" in first(told).what and first(told).saves == pytest.approx(0.2)
    assert "train.py:10, which makes tensors" in first({**told, "within": {"calls": 100, "inside": 0.1}}).what
    # of rows of task_config.batches(), the functions' calls are told apart
    handed = {
        **told,
        "by": "batches",
        "within": {"calls": 0, "inside": 0.0},
        "calls": {"calls": 100, "inside": 3.0, "outside": 7.0},
    }
    assert "train.py:9, which takes texts" in first(handed).what


def test_numpy_between_the_steps_is_not_sent_into_a_map_as_it_is() -> None:
    """In a map with numpy_function it computed as long, and the doctor then objected to that."""
    found = between(line(9, 0.6, package="numpy"), line(7, 0.3, package="tensorflow"))[0]
    assert found.saves == 0 and "as TensorFlow's operations (tf.signal, tf.image, ...)" in found.change
    assert "saves" not in wording._saving(found) and "every hundredth step only" in found.change


@pytest.mark.parametrize("by", ["call", "dataset"])
def test_of_a_line_that_is_pandas_one_thing_is_said(by: str) -> None:
    frame = {"main": True, "at": f"{SCRIPT}:10", "in": "pandas", "share": 0.3}
    told = other(by, asked=20, outside=7.0, within={"calls": 100, "inside": 3.0})
    some = [frame, {**frame, "in": "numpy", "share": 0.35}]
    assert [one.rule for one in advised({**told, "lines": some})] == ["pandas"]
    # of another line there is something else to say
    apart = [frame, {**frame, "at": f"{SCRIPT}:1", "in": "numpy", "share": 0.35}]
    assert len(advised({**told, "lines": apart})) == 2


def test_one_cache_is_not_asked_for_twice() -> None:
    """Short passes over task_config's rows: both what a pass begins and what it does again are spared by one `cache=True`."""
    chain = [node("Prefetch", 5, ours=True), node("ParallelMap", 5, ours=True, parses=True), node("TFRecord", 5, ours=True)]
    nodes = {"Root": (0.0, 20), "Root::Prefetch": (0.4, 20), "Root::Prefetch::ParallelMapV2": (0.4, 20)}
    # and of two nodes that are told alike one is
    nodes["Root::Prefetch::ParallelMapV2::Batch"] = (0.15, 20)
    chain.insert(2, node("Batch", 5, ours=True, rows=32))
    (found,) = advised(record(nodes, chain, wait=5.0, between=5.0, passes=40, by="function"))
    assert found.rule == "parse" and found.saves > 0 and found.change.startswith("cache=True in it, and repeat=N")


@pytest.mark.parametrize(
    "share, asked, batches, words",
    [
        (0.12, 20, 100, "there is little to win: 12% of the time of 100 steps is waiting for it"),
        (0.3, 20, 5000, "the steps that were looked at do not tell: a look at more steps (--profile-input 200) may"),
        (0.3, 5000, 50_000, "a look at more steps (--profile-input 10000) may"),
        (0.3, 20, 25, "a look at a longer run may"),
    ],
)
def test_where_a_look_does_not_tell_what_is_waited_for_the_next_one_is_named(
    share: float, asked: int, batches: int, words: str
) -> None:
    told = record({}, [], wait=10 * share, between=10 * (1 - share), asked=asked, batches=batches, by="function")
    (said,) = wording.verdict({"inputs": {"a": told}})
    assert words in said and wording.calls_for_change(said) == (share > 0.2)


@pytest.mark.parametrize("main", [0.1, 11.0])
def test_who_asked_of_an_empty_table_is_told_that_it_is_empty(main: float) -> None:
    told = other("", given=0, batches=0, between=0.0, asked=20, main=main)
    assert wording.verdict({"inputs": {"a": told}}) == [
        "[a] it was given no rows: the table is empty, or none of its rows was selected"
    ]
    assert "no rows" not in str(wording.verdict({"inputs": {"a": {**told, "given": None}}}))
    assert wording.verdict({"inputs": {"a": {**told, "asked": 0}}}) == []


def test_a_callback_that_sleeps_reads_nothing() -> None:
    sleeps = {"main": True, "at": f"{SCRIPT}:6", "in": "", "share": 0.8, "does": "sleeps", "computes": 0.0}
    found = first(other("function", lines=[sleeps], outside=8.0))
    assert found.what.endswith("Python is most often at train.py:6") and found.change.startswith(
        "metrics, prints and the like: every hundredth step only"
    )
    assert "from_generator" in first(other("call", lines=[sleeps], outside=8.0)).change


def test_what_waits_for_records_does_not_take_them_apart() -> None:
    """The text of a line has both: `next(iter(rows.map(lambda row: tf.io.parse_single_example(...))))`."""
    line = {"main": True, "at": f"{SCRIPT}:10", "in": "tensorflow", "share": 0.9, "does": "records", "computes": 0.9}
    assert "which takes records apart" in first(other("dataset", lines=[line])).what
    assert advised(other("dataset", lines=[{**line, "computes": 0.05}])) == []


def test_a_loop_that_stands_at_a_network_does_not_compute() -> None:
    """Of operations one by one no clock tells how long they take."""
    stands = [
        {"main": True, "at": f"{SCRIPT}:11", "in": "", "share": 0.9, "does": "", "computes": 0.03},
        {"main": True, "at": f"{SCRIPT}:23", "in": "tensorflow", "share": 0.1, "does": "", "computes": 1.0},
    ]
    told = other("dataset", lines=stands, used=0.2)
    (said,) = wording.verdict({"inputs": {"a": told}})
    assert (
        said.startswith("[a] 90% of the time since the first step, Python waits at train.py:11, and hardly computes")
        and "saves" not in said
    )
    assert bound({"a": told}, 0.0, 11.0) == "unknown"
    # also a sleep after functions of TensorFlow's, which are timed
    asleep = other("dataset", lines=[{**stands[0], "does": "sleeps"}], within={"calls": 100, "inside": 0.2})
    assert "waits at train.py:11" in wording.verdict({"inputs": {"a": asleep}})[0]
    assert bound({"a": {**told, "lines": [{**stands[1], "share": 1.0}], "used": 1.0}}, 0.0, 11.0) == "compute"


def test_what_computes_in_threads_of_a_librarys_does_not_wait() -> None:
    """numpy multiplies in several threads: the one that was looked at computed in 42% of the looks, and the process used half of a core, of a machine that had none left."""
    there = {"main": True, "at": f"{SCRIPT}:27", "in": "", "share": 0.96, "does": "", "computes": 0.42}
    told = other("batches", lines=[there], used=0.52, idle=0.003, cores=2)
    (said,) = wording.verdict({"inputs": {"a": told}})
    assert said.startswith(f"[a] {UNSURE}") and "at train.py:27 for 96% of the time" in said and "waits (" not in said
    # also where there are cores left, it used more than it could have beside what stands there
    assert "waits at" not in wording.verdict({"inputs": {"a": {**told, "idle": 3.0}}})[0]
    assert bound({"a": told}, 0.0, 11.0) == "unknown"
    # it computed in one thread, and had a fifth of a core: it may wait for a network, too
    shared = other("dataset", lines=[there], used=0.22, idle=0.0, cores=2)
    (said,) = wording.verdict({"inputs": {"a": shared}})
    assert "where it waits (a network, a lock), or computes: other processes use the processor, too" in said
    assert "Python waits at train.py:27, and hardly computes" in wording.verdict({"inputs": {"a": {**shared, "idle": 1.5}}})[0]
    # what sleeps by its text does so on any machine
    asleep = {**shared, "lines": [{**there, "does": "sleeps", "computes": 0.0}]}
    assert "Python waits at train.py:27, and hardly computes" in wording.verdict({"inputs": {"a": asleep}})[0]


@pytest.mark.parametrize(
    "cards, busy, side", [(False, None, "unknown"), (True, None, "compute"), (True, 0.9, "compute"), (True, 0.0, "unknown")]
)
def test_where_neither_the_processor_nor_a_card_is_busy_nothing_computes(cards: bool, busy: float | None, side: str) -> None:
    waits = [{"main": True, "at": f"{SCRIPT}:11", "in": "tensorflow", "share": 0.95, "does": "", "computes": 0.03}]
    assert bound({"a": other("dataset", lines=waits, used=0.1, cards=cards, busy=busy)}, 0.0, 11.0) == side


WAITED = {"calls": 300, "wall": 7.5, "computed": 0.2}


@pytest.mark.parametrize(
    "kind, python, rule, words",
    [
        ("Generator", WAITED, "python_waits", "interleave("),
        ("Map", WAITED, "python_waits", "num_parallel_calls=8"),
        ("ParallelMap", WAITED, "python_waits", "num_parallel_calls=16"),
        ("ParallelInterleaveV4[2]::Generator", WAITED, "python_waits", "num_parallel_calls=16"),
        ("Generator", {**WAITED, "computed": 6.0}, "python", "whole batches"),
        # eight threads that take turns with Python's lock
        ("ParallelMap", {"calls": 300, "wall": 60.0, "computed": 7.0}, "python", "whole batches"),
    ],
)
def test_python_that_waits_is_to_be_done_at_the_same_time_and_not_by_operations(
    kind: str, python: dict[str, Any], rule: str, words: str
) -> None:
    nodes = {"Root": (0.0, 20), "Root::Prefetch": (1.0, 20), f"Root::Prefetch::BatchV2::{kind}": (1.8, 640)}
    chain = [node("Prefetch", 9), node("Batch", 9), node(kind, 8, python=True)]
    found = first(record(nodes, chain, python=python))
    assert found.rule == rule and words in found.change


def test_a_map_within_an_interleave_is_not_taken_for_one_before_it() -> None:
    within, before = node("Map", 12, python=True, depth=1), node("Map", 10)
    chain = [node("Prefetch", 9), node("Interleave", 8), within, node("TFRecord", 11, depth=1), before, node("TFRecord", 7)]
    nodes = {"Root": (0.0, 20), "Root::Prefetch": (1.9, 20)}
    told = advised(record({**nodes, "Root::Prefetch::ParallelInterleaveV4[3]::Map": (1.8, 640)}, chain))
    assert told[0].rule == "python" and told[0].what.startswith("`Map` at train.py:12")
    told = advised(record({**nodes, "Root::Prefetch::ParallelInterleaveV4::Map": (1.8, 64)}, chain))
    assert told[0].rule == "map" and told[0].what.startswith("`Map` at train.py:10")


@pytest.mark.parametrize(
    "batches, words", [(0, "no batch has come in 9.0 s, 82%"), (1, "the first batch came after 9.0 s, 82%")]
)
def test_an_input_of_which_little_came_is_not_fine(batches: int, words: str) -> None:
    told = {"chief:0": record({}, [], wait=0.0, between=0.0, first=9.0, batches=batches)}
    assert words in wording.verdict({"inputs": told})[0] and bound(told, 0.0, 11.0) == "input"


def test_who_asked_is_told_that_nobody_could_look() -> None:
    told = wording.verdict({"inputs": {"chief:0": record({}, [], by="function", known=False, looked=0)}})
    assert len(told) == 1 and "no steps could be looked at" in told[0] and not wording.calls_for_change(told[0])


@pytest.mark.parametrize(
    "hindered, words",
    [
        ("", "could be looked at"),
        ("profiler", "as another profiler ran, the script's own"),
        ("large", "as the trace of a single one is too long to be read: smaller batches for the time of a look"),
        ("few", "as its functions were called three times or less, and the first three calls are not looked at: a longer run"),
        (
            "long",
            "as a call of TensorFlow's took longer than a look may: fewer steps in a call (Keras: a smaller steps_per_execution=)",
        ),
        ("fails", "as this TensorFlow's profiler did not start"),
    ],
)
def test_why_nobody_could_look_is_said_as_it_is(hindered: str, words: str) -> None:
    """One reason, where it is known, and no list of what it may have been."""
    told = wording.verdict({"inputs": {"chief:0": record({}, [], by="function", known=False, looked=0, hindered=hindered)}})
    assert len(told) == 1 and words in told[0] and told[0].count(" ran") == (hindered == "profiler")


def test_options_behind_a_prefetch_do_not_hide_it() -> None:
    nodes = {"Model": (0.0, 20), "Model::PrivateThreadPool": (0.0, 20), "Model::PrivateThreadPool::Prefetch": (1.5, 20)}
    chain = [node("Options", 34), *CHAIN]
    told = record(nodes, chain, wait=5.0, between=5.0)
    assert "prefetch" not in [one.rule for one in advised(told)]
    nodes = {path.replace("::Prefetch", "::BatchV2"): took for path, took in nodes.items()}
    assert "prefetch" in [one.rule for one in advised(record(nodes, [chain[0], *CHAIN[1:]], wait=5.0, between=5.0))]


def test_between_fine_and_worth_saying_there_is_little_to_win() -> None:
    """At the next look it may be a little more."""
    told = wording.verdict({"inputs": {"chief:0": record({}, [], wait=0.8, between=9.2)}})
    assert "there is little to win: 8% of the time" in told[0] and not wording.calls_for_change(told[0])


def test_what_nobody_has_looked_at_is_not_fine() -> None:
    told = record({}, [], wait=0.1, between=9.9, by="function", unlooked=4.0)
    words = wording.verdict({"inputs": {"chief:0": told}})
    assert len(words) == 1 and "which take 40% of the steps' time" in words[0] and not wording.calls_for_change(words[0])


def unlooked(chain: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A record of a job in which nobody asked for a look."""
    return record({}, chain, **{"asked": 0, "looked": 0, "look": 0.0, "tunes": False, **more})


SOURCES = [node("Batch", 32), node("FlatMap", 31), node("TFRecord", 30, depth=1), node("TensorSlice", 29)]


@pytest.mark.parametrize(
    "chain, more, rule, words",
    [
        (CHAIN, {}, "map", "most likely because `Map` at train.py:31 runs one call at a time: num_parallel_calls"),
        (CHAIN, {"tunes": True}, "", "100 steps is waiting for input; for what, --profile-input (profile_input=20) tells"),
        ([*CHAIN[:2], node("Map", 31, stateful=True), CHAIN[3]], {"tunes": True}, "map", "most likely because `Map` at train.py:31"),
        ([*CHAIN[:2], node("Map", 31, reads=True), CHAIN[3]], {"tunes": True}, "small_files", "most likely because `Map` at train.py:31 opens a file"),
        ([CHAIN[0], node("Batch", 32, rows=512), *CHAIN[2:]], {"tunes": True}, "cheap_map", "is called 512 times for one batch"),
        ([CHAIN[0], *SOURCES], {}, "one_source", "most likely because the sources at train.py:31 are read one after another"),
        ([node("Prefetch", 9), node("ParallelMap", 8, decodes=True), node("TFRecord", 7)], {"passes": 6}, "cache", "most likely because `Map` at train.py:8"),
        ([node("ParallelMap", 8), node("TFRecord", 7)], {"wait": 5.0, "between": 5.0}, "prefetch", "no batch is made while the script computes: "
        "`.prefetch(2)` as the last of the dataset (saves 25%"),
        ([node("Prefetch", 9, ours=True), node("Map", 9, ours=True), node("TFRecord", 9, ours=True)], {"spent": {"pipe": 7.0}}, "pipe", "task_config's dataset at train.py:9 waits for rows to come"),
        ([node("Prefetch", 9), node("Map", 9), node("Map", 8, ours=True), node("FlatMap", 8, ours=True)], {"spent": {"pipe": 7.0}}, "pipe", "task_config's dataset at train.py:8 waits for rows to come"),
        ([node("Prefetch", 9, ours=True), node("Map", 9, ours=True), node("TFRecord", 9, ours=True)], {}, "parse", "most likely because task_config's dataset "
        "at train.py:9 parses"),
    ],
)  # fmt: skip
def test_without_a_look_what_is_most_likely_is_said_and_what_is_timed(
    chain: list[dict[str, Any]], more: dict[str, Any], rule: str, words: str
) -> None:
    told = unlooked(chain, **more)
    assert [one.rule for one in advised(told)][:1] == ([rule] if rule else [])
    (said,) = wording.verdict({"inputs": {"a": told}})
    assert words in said and ("most likely" not in said or "saves" not in said) and wording.calls_for_change(said)


@pytest.mark.parametrize(
    "wall, calls, rule, line, likely",
    [(7.0, 300, "python_waits", 31, False), (0.1, 300, "map", 30, True), (1.0, 100_000, "python", 31, True)],
    ids=["it takes the time", "it takes none", "its calls take it"],
)
def test_python_is_to_blame_for_what_it_took(wall: float, calls: int, rule: str, line: int, likely: bool) -> None:
    chain = [node("Prefetch", 33), node("Batch", 32), node("Map", 31, python=True), node("Map", 30)]
    found = first(
        unlooked(chain, python={"calls": calls, "wall": wall, "steps": wall, "computed": 0.05 * wall if calls == 300 else wall})
    )
    assert found.rule == rule and bool(found.likely) == likely and f"train.py:{line}" in found.what


def test_of_several_datasets_the_one_that_is_waited_for_is_taken() -> None:
    told = unlooked(CHAIN)
    told["pipelines"][0]["waited"] = 1.0
    told["pipelines"].append({"nodes": [node("Batch", 60), node("Map", 61)], "passes": 1, "waited": 7.0})
    assert "train.py:61" in first(told).what


def within(chain: list[dict[str, Any]], wall: float = 0.0, **more: Any) -> dict[str, Any]:
    """Of a script that calls Keras' fit, and did not ask."""
    clocks = {"known": False, "wait": 0.0, "between": 10.0, "unlooked": 10.0}
    return unlooked(
        chain, by="function", python={"calls": 300, "wall": wall + 5.0, "steps": wall, "computed": 0.1}, **clocks, **more
    )


def test_of_steps_that_draw_themselves_it_is_said_that_nobody_knows() -> None:
    told = {"a": within(CHAIN)}
    (said,) = wording.verdict({"inputs": told})
    assert said.endswith("(profile_input=20) tells; first to suspect: `Map` at train.py:31 runs one call at a time")
    assert not wording.calls_for_change(said) and bound(told, 0.0, 11.0) == "unknown"
    # what Keras makes of arrays is on no line of the script's, and nobody can change it
    (said,) = wording.verdict({"inputs": {"a": within([dict(one, at="") for one in CHAIN])}})
    assert said.endswith("(profile_input=20) tells")


@pytest.mark.parametrize("wall, ahead, rules", [(9.6, True, 1), (6.0, True, 0), (6.0, False, 1), (4.0, False, 0)])
def test_python_that_a_fit_calls_all_the_time_is_what_it_waits_for(wall: float, ahead: bool, rules: int) -> None:
    chain = [node("Prefetch", 33)] * ahead + [node("Batch", 32), node("Map", 31, python=True), node("Range", 30)]
    found = advised(within(chain, wall))
    assert [one.rule for one in found] == ["python_waits"] * rules
    assert all(f"and that takes {wall / 10:.0%} of the steps' time" in one.what for one in found)


def test_who_asked_in_a_cluster_is_told_why_nobody_looked() -> None:
    (said,) = wording.verdict({"inputs": {"a": {**within(CHAIN), "asked": 20, "served": True}}})
    assert "TensorFlow's profiler can end a process in which its server runs" in said and "a job of one task" in said
    (said,) = wording.verdict({"inputs": {"a": unlooked(CHAIN, asked=20, served=True)}})
    assert said.endswith("--profile-input in a job of one task tells for sure")


OURS = [
    node("Prefetch", 33, ours=True),
    node("Map", 31, ours=True, parses=True),
    node("Batch", 31, ours=True),
    node("TFRecord", 31, ours=True),
]
PARSED = {"Root::Prefetch::ParallelMapV2": (1.9, 20), "Root::Prefetch::ParallelMapV2::BatchV2::TFRecord": (0.01, 20)}


def test_many_short_passes_are_not_answered_with_another_format() -> None:
    """Columns come several times faster, but beginning a pass takes longer: what was advised made such a script five times slower."""
    long = " ".join(one.words for one in advised(record(PARSED, OURS, passes=4)))
    assert "data_format='columns'" in long and "cache=True in it, if the rows fit into memory" in long
    short = record(PARSED, OURS, passes=60)
    told = " ".join(one.words for one in advised(short))
    assert "begins a pass over the rows again and again" in told and "cache=True in it, and repeat=N in place of a loop" in told
    assert "data_format" not in told and ".cache()" not in told
    kept = record(PARSED, [OURS[0], node("Cache", 31, ours=True), *OURS[1:]], passes=60)
    assert "cache=True" not in " ".join(one.words for one in advised(kept))


@pytest.mark.parametrize("passes", [4, 60, 100])
def test_epochs_of_a_stream_are_no_passes(passes: int) -> None:
    """Each has other rows: a cache would keep what never comes again, and there is nothing to repeat."""
    images = [OURS[0], node("Map", 31, ours=True, decodes=True, images=True), *OURS[2:]]
    for chain in (OURS, images, [OURS[0], node("Map", 40), *OURS[1:]]):
        for nodes in (PARSED, {}):
            words = " ".join(one.words for one in advised(record(nodes, chain, passes=passes, given=None)))
            assert not any(word in words for word in ("cache", "repeat", "pass over", "iter(dataset)")), words
    own = record({}, [node("Batch", 32), node("Map", 31), node("TFRecord", 30)], passes=4, given=None)
    assert blame.passes(own), "the script reads files by itself, and they stay"


def test_who_has_one_loop_over_all_passes_is_not_told_to_make_one() -> None:
    followed = [OURS[0], node("Repeat", 31, ours=True, count=10), node("Cache", 31, ours=True), *OURS[1:]]
    looked = record(PARSED, followed, wait=0.45, between=0.25)
    assert "again and again" not in " ".join(one.words for one in advised(looked))
    # without a look: what lies behind the cache is at work in the first pass only
    told = unlooked(followed, wait=0.45, between=0.25, windows=[[4.0, 100, 0.45, 0.25]])
    assert advised(told) == []
    uncached = unlooked([OURS[0], followed[1], *OURS[1:]], wait=0.45, between=0.25)
    assert "parses the rows more slowly" in " ".join(one.what for one in advised(uncached))


def test_a_faster_disk_is_for_who_waits_for_a_disk() -> None:
    seen = {"Root::Prefetch": (0.1, 20), "Root::Prefetch::ParallelMapV2::BatchV2::TFRecord": (1.9, 160)}
    assert all("a faster disk" in first(record(seen, OURS, disk=disk)).change for disk in (None, 100_000_000))
    assert first(record(seen, OURS, disk=4096)).change.startswith("columns= for those")


def test_a_stream_that_waited_for_rows_waits_for_its_source() -> None:
    told = first(record(PARSED, OURS, spent={"pipe": 3.0}))
    assert told.rule == "pipe" and "waits for rows to come" in told.what
    assert first(record(PARSED, OURS, spent={"pipe": 0.5})).rule == "parse"


def test_what_computes_on_a_busy_machine_is_not_said_to_wait() -> None:
    """Whoever waits for a core does not compute, and waits for nothing else."""
    chain = [node("Prefetch", 33), node("Generator", 31)]
    seen = {"Root::Prefetch": (7.0, 20), "Root::Prefetch::Generator": (7.0, 160)}
    taken = {"calls": 160, "wall": 8.0, "steps": 8.0, "computed": 1.6}
    assert first(record(seen, chain, python=taken)).rule == "python_waits"
    assert first(record(seen, chain, python=taken, idle=0.1)).rule == "python"
    asleep = first(record(seen, chain, python={**taken, "computed": 0.1}, idle=0.1))
    assert asleep.rule == "python_waits" and ".prefetch(2)" not in asleep.change
    assert ".prefetch(2)" in first(record({"Root::Generator": (7.0, 160)}, chain[1:], python=taken)).change


def test_files_that_are_read_one_after_another_without_an_interleave() -> None:
    chain = [node("Prefetch", 33), node("Batch", 32), node("TFRecord", 30)]
    seen = {"Root::Prefetch": (7.0, 20), "Root::Prefetch::BatchV2": (0.1, 20), "Root::Prefetch::BatchV2::TFRecord": (6.9, 3200)}
    told = first(record(seen, chain))
    assert (
        told.rule == "one_source"
        and "train.py:30 reads its files one after another" in told.what
        and "num_parallel_reads=8" in told.change
    )


def test_pandas_in_the_loop_is_no_computing() -> None:
    busy = record(
        {}, CHAIN, wait=0.1, between=9.9, asked=0, lines=[{"main": True, "at": f"{SCRIPT}:9", "in": "pandas", "share": 0.4}]
    )
    assert bound({"chief:0": busy}, 0.0, 11.0) == "unknown"
    assert bound({"chief:0": {**busy, "lines": []}}, 0.0, 11.0) == "compute"


def test_what_decodes_in_threads_of_its_own_is_kept_though_a_look_met_the_batches() -> None:
    """Of 12 passes over images a look saw `Batch` only, and once a map behind it that does nothing."""
    chain = [node("Prefetch", 33), node("Map", 32, ops=1), node("Batch", 31), node("ParallelMap", 30, decodes=True, reads=True)]
    for seen in (
        {"Root::Prefetch": (7.0, 20), "Root::Prefetch::ParallelMapV2::BatchV2": (6.9, 20)},
        {"Root::Prefetch": (7.0, 20), "Root::Prefetch::ParallelMapV2": (6.9, 20)},
    ):
        told = [one for one in advised(record(seen, chain, passes=12)) if one.rule == "cache"]
        assert told and "train.py:30 does the same again in every pass" in told[0].what and told[0].saves > 0.1


def saves(what: str, seconds: float, times: int) -> str:
    """The first sentence on a loop of 100 steps and ten seconds."""
    told = record({}, [], asked=0, wait=0.0, between=10.0, spent={what: seconds}, times={what: times})
    return wording.verdict({"inputs": {"chief:0": told}})[0]


def test_summaries_are_named() -> None:
    assert saves("summary", 4.0, 100) == (
        "[chief:0] 40% of the steps' time is writing summaries (tf.summary, TensorBoard): write them every 100 steps (saves 20% of the steps' time or more)"
    )


def test_what_is_timed_is_not_named_twice() -> None:
    told = record({}, [], asked=0, wait=0.0, between=10.0, spent={"summary": 8.0}, lines=[line(9, 0.8, package="tensorboard")])
    assert [one.rule for one in advised(told)] == ["summary"]
    assert [one.rule for one in advised({**told, "spent": {}})] == ["beside"]


def test_what_is_done_seldom_already_is_to_be_done_so_much_more_seldom() -> None:
    """Ten checkpoints in a hundred steps take half of the time: one for 500 steps takes a fiftieth of it."""
    assert "one takes 0.5 s, and there is one for 10 steps: one for 500 steps takes 2% of the steps' time" in saves(
        "checkpoint", 5.0, 10
    )
    # what is done at each step is told the number that suffices, too
    assert "save every 100 steps or more" in saves("checkpoint", 5.0, 100)
    assert "write them every 500 steps" in saves("summary", 9.0, 200) and "report every 100 steps" in saves("report", 2.0, 100)
    assert "save every some hundred steps" in saves("checkpoint", 5.0, 0)
    assert "(output_writer.write_batch); if there is one for a batch already, one for 20 batches" in saves("output", 2.5, 100)


def test_what_was_done_a_few_times_in_a_short_job_is_not_too_often() -> None:
    """The first of them takes far longer than those that follow."""
    told = record({}, [], asked=0, wait=0.0, between=2.0, spent={"summary": 0.3}, times={"summary": 3})
    assert wording.verdict({"inputs": {"a": told}}) == []
    assert "summaries" in wording.verdict({"inputs": {"a": {**told, "between": 5.0, "spent": {"summary": 0.8}}}})[0]


def line(
    number: int, share: float, does: str = "", package: str = "", computes: float = 1.0, main: bool = True
) -> dict[str, Any]:
    return {"main": main, "at": f"{SCRIPT}:{number}", "in": package, "share": share, "does": does, "computes": computes}


def between(*some: dict[str, Any], inside: float = 3.0, calls: int = 100, **more: Any) -> list[Advice]:
    """What is said of a loop of ten seconds, whose functions took some of them."""
    told = record(
        {},
        [],
        asked=0,
        wait=0.2,
        between=9.8,
        lines=list(some),
        within={"calls": calls, "inside": inside},
        tensorflow=True,
        **more,
    )
    return advised(told)


@pytest.mark.parametrize(
    "does, words, change",
    [
        ("prints", "at train.py:9, which prints", "print every hundredth step"),
        ("records", "at train.py:9, which takes records apart", "tf.io.parse_example"),
        ("texts", "at train.py:9, which takes texts or bytes apart", "tf.io.decode_csv"),
        ("tensors", "at train.py:9, which makes tensors", "one numpy array for the whole batch"),
        ("writes", "at train.py:9, which writes", "in a thread of its own"),
        ("loops", "in the loop at train.py:9", "every hundredth step"),
        ("", "at train.py:9", "every hundredth step"),
    ],
)
def test_python_between_the_steps_is_named_by_its_line(does: str, words: str, change: str) -> None:
    """Functions took three of ten seconds: what the others are is known."""
    found = between(line(9, 0.6, does), line(7, 0.3, package="tensorflow"))[0]
    assert found.rule == "beside" and abs(found.share - 0.68) < 0.01
    # of what only computes there, nobody knows what it wins to have it computed elsewhere
    assert found.saves == pytest.approx(0.0 if does in ("", "loops") else 0.3, abs=0.01)
    assert found.what.startswith("68% of the steps' time is between the steps, in none of TensorFlow's functions; ")
    assert words in found.what and change in found.change


def test_a_job_whose_time_is_between_its_steps_is_not_called_compute_bound() -> None:
    told = record({}, [], asked=0, wait=0.2, between=9.8, within={"calls": 100, "inside": 3.0})
    assert bound({"chief:0": told}, 0.0, 11.0) == "unknown"
    assert bound({"chief:0": {**told, "within": {"calls": 100, "inside": 9.0}}}, 0.0, 11.0) == "compute"


def test_what_may_be_training_is_not_named() -> None:
    prints = line(9, 0.6, "prints")
    # a card computes, and the script waits for its loss
    assert between(line(9, 0.3), line(8, 0.6, package="tensorflow", computes=0.0)) == []
    # the functions have nearly all of the time; a sleep stands for a card; operations one by one are no functions
    assert between(prints, inside=9.0) == [] == between(line(9, 0.6, "sleeps")) == between(line(9, 0.6), calls=0)
    # batches are let go of where a loop begins anew, and pandas has a rule of its own
    loop, frame = line(8, 0.3, "loops", computes=0.0), line(9, 0.2, package="pandas")
    assert [one.rule for one in between(loop, frame)] == ["pandas"] and between(loop) == []
    # a line that says what it does is named even so, and nothing is promised
    (found,) = between(prints, calls=0)
    assert found.saves == 0 and found.what == "60% of the time since the first step, Python is at train.py:9, which prints"


def test_a_print_of_a_tensors_value_waits_for_no_card_where_there_is_none() -> None:
    """`print(loss.numpy())` is in TensorFlow as the step is: what the step's own line has is the step's."""
    prints = line(27, 0.33, "prints", package="tensorflow")
    step, loop = line(24, 0.4, package="tensorflow", computes=0.1), line(23, 0.2, "loops", computes=0.0)
    (found,) = between(prints, step, loop, cards=False)
    assert "train.py:27, which prints: print every hundredth step" in found.words and found.saves > 0.1
    assert between(prints, step, loop, cards=True) == [] == between(prints, step, loop)
    # the same line calls the step, which takes three seconds of ten; of the looks, half were when the steps were over
    assert between({**prints, "share": 0.35}, loop, cards=False) == []
    assert between({**prints, "share": 0.35}, loop, cards=False, watched=20.0)[0].rule == "beside"
    # what is saved is timed, and what TensorFlow writes otherwise is not known
    assert between({**prints, "does": "writes"}, step, cards=False) == []


def test_a_loop_that_makes_records_at_one_line_and_writes_them_at_another_is_named_before_a_cache() -> None:
    """Nothing is called by which it would be timed, and a cache would save the twelfth part of twelve at most."""
    chain = [node("Map", 26, ours=True, parses=True), node("Repeat", 26, ours=True, count=12), node("TFRecord", 26, ours=True)]
    some = [
        line(25, 0.2, "records"),
        line(32, 0.1, "writes"),
        line(26, 0.3, "loops", package="tensorflow", computes=0.9),
        line(27, 0.3, package="tensorflow"),
    ]
    told = record({}, chain, wait=1.3, between=8.7, ended=1, asked=0, lines=some, spent={"output": 0.1})
    said = wording.verdict({"inputs": {"a": told}})
    assert said[0].startswith(
        "[a] 30% of the time since the first step, Python is at lines that take rows one by one, most often at train.py:25, which takes records apart, or makes"
    )
    assert "output_writer.write_batch" in said[0] and "13% of the time of 100 steps is waiting" in said[1] and len(said) == 2
    # what takes less than the cache may win is no first thing to say
    few = wording.verdict({"inputs": {"a": {**told, "wait": 5.0, "between": 5.0}}})
    assert len(few) == 1 and "does the same again in every pass" in few[0]


def test_an_iterator_for_each_step_is_no_pass_over_the_rows() -> None:
    chain = [
        node("Map", 23, ours=True, parses=True),
        node("Shuffle", 23, ours=True, buffer=5000),
        node("TFRecord", 23, ours=True),
    ]
    told = record({}, chain, wait=4.8, between=5.2, asked=0, passes=60)
    told["batches"] = 60
    (said,) = wording.verdict({"inputs": {"a": told}})
    assert (
        "of the dataset at train.py:23 an iterator is made for nearly every batch (60 for 60)" in said
        and "buffer of `shuffle`" in said
    )
    assert "rows = iter(dataset)" in said and "cache" not in said
    assert "cache=True in it, and repeat=N" in wording.verdict({"inputs": {"a": {**told, "batches": 600}}})[0]


def test_a_file_for_each_element_is_named_and_a_cache_beside_it() -> None:
    chain = [
        node("Prefetch", 29),
        node("Batch", 29, rows=64),
        node("Repeat", 29, count=4),
        node("Map", 29, reads=True, splits=True),
    ]
    told = record({}, chain, ended=1, asked=0, tunes=True)
    (said,) = wording.verdict({"inputs": {"a": told}})
    assert "`Map` at train.py:29 opens a file for every element: pack them" in said and "or `.cache()` behind it" in said
    (said,) = wording.verdict({"inputs": {"a": record({}, chain, asked=0, tunes=True)}})
    assert "; or, for several passes, `.cache()` behind it" in said, "it may have left its first pass"
    once = record({}, [*chain[:2], chain[3], node("TensorSlice", 28)], asked=0, tunes=True)
    assert "cache" not in wording.verdict({"inputs": {"a": once}})[0]
    # behind it a cache would keep every row of four passes, and be read in none
    below = record({}, [*chain[:2], chain[3], chain[2], node("TensorSlice", 28)], asked=0, tunes=True)
    (said,) = wording.verdict({"inputs": {"a": below}})
    assert "opens a file for every element: pack them" in said and "cache" not in said


@pytest.mark.parametrize(
    "repeat, change, wins",
    [
        ({}, "move `repeat` at train.py:30 behind it, and `.cache()` between them, if", True),
        ({"ours": True}, "leave repeat= out of task_config.dataset(), and `.cache().repeat(n)` behind the map, if", True),
        ({"depth": 1}, "move `repeat` at train.py:30 behind it", False),
    ],
)
def test_no_cache_alone_is_promised_to_who_draws_from_a_repeat(repeat: dict[str, Any], change: str, wins: bool) -> None:
    chain = [*CHAIN[:2], node("Map", 31, decodes=True), node("Repeat", 30, count=6, **repeat), node("TFRecord", 30)]
    found = next(one for one in advised(record(MAPPED, chain, ended=1)) if one.rule == "cache")
    assert found.change.startswith(change) and (found.saves > 0) == wins
    left = next(one for one in advised(record(MAPPED, chain)) if one.rule == "cache")
    assert left.saves == 0 and left.change.startswith(f"if the script goes through them more than once, {change}")


def test_every_wait_ends_in_a_cause_or_in_what_tells_it() -> None:
    """Rows of task_config.batches() have no pipeline that a look would show."""
    told = other("batches", wait=1.3, between=8.7, asked=0, lines=[])
    (said,) = wording.verdict({"inputs": {"a": told}})
    assert (
        "13% of the time of 100 steps is waiting for input: task_config.batches() reads the rows" in said
        and "larger batches" in said
    )
    (said,) = wording.verdict({"inputs": {"a": {**told, "batches": 20000}}})
    assert said.endswith("0.065 ms each, which is about what next() itself takes: fewer and larger batches")
    nobody = record({}, [], asked=0, wait=1.3, between=8.7)
    (said,) = wording.verdict({"inputs": {"a": nobody}})
    assert said.endswith("is waiting for input (for the rest it computes); for what, --profile-input (profile_input=20) tells")
    assert bound({"a": nobody}, 0.0, 11.0) == "compute"


def test_who_does_as_advised_is_told_something_else() -> None:
    """A generator in an interleave is in a flat_map of its own; what sleeps in eight calls at once computes a hundredth of their time, and none waits for its turn."""
    chain = [
        node("Prefetch", 42), node("Batch", 42, rows=2), node("ParallelInterleave", 40, parallel=8, cycle=8),
        {**node("FlatMap", 40), "depth": 1}, {"node": "Generator", "at": "", "depth": 2}, node("Range", 40),
    ]  # fmt: skip
    python = {"calls": 200, "wall": 60.0, "steps": 60.0, "computed": 1.2}
    told = record({}, chain, wait=3.0, between=7.0, asked=0, tunes=True, python=python, idle=0.0)
    (said,) = wording.verdict({"inputs": {"a": told}})
    assert (
        "most likely because `Generator` waits (a network, a lock, a sleep), several calls at once" in said
        and "saves" not in said
    )
    assert (
        "cycle_length=16, num_parallel_calls=16 of the interleave, and options.threading.private_threadpool_size = 16" in said
    )
    mapped = [node("Prefetch", 30), node("Batch", 30, rows=16), node("ParallelMap", 29, parallel=8, python=True)]
    (said,) = wording.verdict({"inputs": {"a": {**told, "pipelines": [{"nodes": mapped, "passes": 1}]}}})
    assert (
        "waits (a network, a lock, a sleep), several calls at once" in said
        and "more of them at once: num_parallel_calls=16, and" in said
    )
    # those that take turns at computing have an eighth of the time each
    turns = {**told, "python": {**python, "computed": 6.0}}
    (said,) = wording.verdict({"inputs": {"a": {**turns, "pipelines": [{"nodes": mapped, "passes": 1}]}}})
    assert "several calls at once, of which one computes at a time" in said
    # a map that does not say that it runs several at once, and took more time than there was
    plain = [node("Prefetch", 30), node("Batch", 30, rows=16), node("Map", 29, python=True)]
    (said,) = wording.verdict({"inputs": {"a": {**told, "pipelines": [{"nodes": plain, "passes": 1}]}}})
    assert "saves" not in said


def test_a_promise_is_of_the_same_time_as_the_share_beside_it() -> None:
    saved = saves("summary", 4.0, 100)
    assert "40% of the steps' time is writing" in saved and "(saves 20% of the steps' time or more)" in saved
    late = record(
        {}, [node("Shuffle", 27, buffer=40000), node("Range", 26)], wait=0.1, between=5.0, asked=0, first=3.0, main=10.0
    )
    assert "(saves 15% of main's time or more)" in wording.verdict({"inputs": {"a": late}})[0]
    frames = {**late, "first": 0.1, "lines": [line(22, 0.4, package="pandas")]}
    said = wording.verdict({"inputs": {"a": frames}})[0]
    assert (
        "40% of the time since the first step is pandas" in said
        and "(saves 20% of the time since the first step or more)" in said
    )


def test_that_task_config_reads_the_rows_is_nothing_to_suspect_unseen() -> None:
    ours = [node("ParallelMap", 25, ours=True, parses=True), node("TFRecord", 25, ours=True)]
    told = other(
        "function", known=False, asked=0, between=10.0, unlooked=10.0, outside=0.0, pipelines=[{"nodes": ours, "passes": 2}]
    )
    (said,) = wording.verdict({"inputs": {"a": told}})
    assert said.endswith("--profile-input (profile_input=20) tells")
    mapped = [node("Map", 39, reads=True), *ours]
    (said,) = wording.verdict({"inputs": {"a": {**told, "pipelines": [{"nodes": mapped, "passes": 2}]}}})
    assert "first to suspect: `Map` at train.py:39" in said


def test_who_takes_some_of_what_is_made_ahead_needs_no_other_prefetch() -> None:
    chain = [node("Take", 31, count=1000), node("Prefetch", 31, ours=True), node("Map", 31, ours=True, parses=True)]
    told = record({}, chain, wait=4.0, between=6.0, asked=0, tunes=False)
    assert "prefetch" not in [one.rule for one in advised(told)]
    assert "prefetch" in [one.rule for one in advised({**told, "pipelines": [{"nodes": chain[2:], "passes": 1}]})]


CALLS_PYTHON = [
    node("Prefetch", 33, ours=True),
    node("ParallelMap", 33, python=True, parses=True, stateful=True),
    node("Batch", 33, ours=True, rows=32),
]


def test_python_that_computes_while_short_steps_do_keeps_them_waiting() -> None:
    """Batches are there in time, and each step waits for its turn in Python: half of the time is that of a map."""
    python = {"calls": 625, "wall": 6.0, "steps": 6.0, "computed": 5.0}
    more = {"asked": 0, "batches": 625, "tunes": True}
    told = record({}, CALLS_PYTHON, wait=0.6, between=9.4, python=python, **more)
    (said,) = wording.verdict({"inputs": {"a": told}})
    assert (
        said.startswith("[a] Python that `Map` at train.py:33 calls computes for 50% of the steps' time")
        and "saves" not in said
    )
    assert "numpy's on the whole batch" in said and bound({"a": told}, 0.0, 11.0) == "unknown"
    # a look says no more that there is little to win
    assert "computes for 49%" in wording.verdict({"inputs": {"a": {**told, "asked": 20, "wait": 0.8}}})[0]
    # steps of a card's take long, and it only waits, or has little to do
    for fine in ({"batches": 20}, {"python": {**python, "computed": 0.1}}, {"python": {**python, "steps": 1.0}}):
        assert (
            wording.verdict({"inputs": {"a": {**told, **fine}}}) == []
            and bound({"a": {**told, **fine}}, 0.0, 11.0) == "compute"
        )
    # with a core now and then, it keeps the lock while it waits for one
    busy = {"python": {**python, "computed": 2.4}}
    assert wording.verdict({"inputs": {"a": {**told, **busy}}}) == []
    assert "computes for 24%" in wording.verdict({"inputs": {"a": {**told, **busy, "idle": 0.0}}})[0]


def test_a_thread_of_the_scripts_that_computes_is_named_and_no_cache_is() -> None:
    spins = line(27, 1.0, "loops", main=False)
    chain = [node("Map", 31, ours=True, parses=True), node("Repeat", 31, ours=True, count=3), node("TFRecord", 31, ours=True)]
    told = record({}, chain, wait=1.7, between=8.3, ended=1, asked=0, lines=[spins])
    (said,) = wording.verdict({"inputs": {"a": told}})
    assert (
        "17% of the time of 100 steps is waiting for input; a thread that the script has started computes at train.py:27"
        in said
    )
    assert bound({"a": {**told, "wait": 0.1}}, 0.0, 11.0) == "unknown"
    # nor is it a prefetch that is missing
    twice = record({}, chain, wait=4.0, between=6.0, asked=0, tunes=False, lines=[spins])
    assert "prefetch" not in str(wording.verdict({"inputs": {"a": twice}}))
    # it waits, or nobody knows what it does
    waits = {**told, "lines": [{**spins, "computes": 0.0}]}
    assert "does the same again in every pass" in wording.verdict({"inputs": {"a": waits}})[0]
    assert bound({"a": {**waits, "wait": 0.1}}, 0.0, 11.0) == "compute"


def test_records_that_are_taken_apart_between_calls_are_named() -> None:
    told = record(
        {},
        [],
        asked=0,
        by="call",
        known=False,
        wait=0.0,
        between=10.0,
        outside=7.0,
        lines=[line(9, 0.8, "records", "tensorflow")],
        looks=50,
    )
    (found,) = advised(told)
    assert "at train.py:9, which takes records apart" in found.what and "tf.io.parse_example" in found.change
    fit = {**told, "by": "function", "lines": [line(9, 0.8)]}
    assert "generator" not in advised(fit)[0].change and "hundredth" in advised(fit)[0].change


def test_waits_that_are_hardly_more_than_the_call_want_larger_batches() -> None:
    told = record({}, CHAIN, asked=0, wait=0.5, between=2.0, batches=6000, tunes=True)
    assert (
        "0.083 ms each, which is about what next() itself takes: fewer and larger batches"
        in wording.verdict({"inputs": {"a": told}})[0]
    )
    few = {**told, "batches": 100}
    assert "for what, --profile-input" in wording.verdict({"inputs": {"a": few}})[0]


def test_advice_that_was_followed_is_not_repeated() -> None:
    """Each says the next thing."""
    mapped = {path.replace("::Map", "::ParallelMapV2"): took for path, took in MAPPED.items()}
    told = {
        count: first(record(mapped, [*CHAIN[:2], node("ParallelMap", 31, parallel=count), CHAIN[3]])).what
        for count in (1, 2, 8, -1)
    }
    assert told[1] == "`Map` at train.py:31 runs one call at a time"
    assert told[2] == "`Map` at train.py:31 runs 2 calls at a time, on 4 cores"
    assert "on 4 cores at once, and they do not keep up" in told[8] and told[8] == told[-1]


@pytest.mark.parametrize(
    "reader, words, change",
    [
        ({"cycle": 1, "parallel": 1}, "are read one after another", "interleave(..., cycle_length=8"),
        ({"cycle": 2, "parallel": -1}, "are read 2 at a time, and do not keep up", "interleave(..., cycle_length=8"),
        (
            {"cycle": 8, "parallel": 8},
            "are read several at a time",
            "deterministic=False if the order does not matter, a larger",
        ),
        ({"cycle": 8, "parallel": 8, "unordered": True}, "are read several at a time", "a larger cycle_length="),
    ],
)
def test_sources_that_are_read_at_once_are_not_to_be_read_at_once(reader: dict[str, int], words: str, change: str) -> None:
    path = "Root::Prefetch::BatchV2::ParallelInterleaveV4"
    nodes = {"Root": (0.0, 20), f"{path}[0]::TFRecord": (1.4, 160)}
    chain = [node("Prefetch", 33), node("Batch", 32), node("ParallelInterleave", 31, **reader), node("TFRecord", 30, depth=1)]
    found = first(record(nodes, chain))
    assert words in found.what and found.change.startswith(change)


def test_python_that_has_whole_batches_is_not_told_to_take_them() -> None:
    rows = [node("Prefetch", 33), node("Batch", 32), node("ParallelMap", 31, python=True, parallel=-1), node("TensorSlice", 30)]
    batches = [node("Prefetch", 33), node("Map", 31, python=True), node("Batch", 32), node("TensorSlice", 30)]
    of_rows = first(record({"Root": (0.0, 20), "Root::Prefetch::BatchV2::ParallelMapV2": (1.4, 600)}, rows))
    of_batches = first(record({"Root": (0.0, 20), "Root::Prefetch::Map": (1.4, 20)}, batches))
    assert "for every element, several calls at once, of which one computes at a time" in of_rows.what
    assert "whole batches" in of_rows.change
    assert "for every batch, one after another" in of_batches.what and "or numpy's on the whole batch" in of_batches.change
    fused = record({"Root": (0.0, 20), "Root::Prefetch::ParallelMapAndBatch": (1.4, 20)}, rows)
    assert "for every element" in first(fused).what


def test_a_task_without_rows_is_told_so() -> None:
    idle = record({}, [], asked=0, batches=0, wait=0.0, between=0.0, main=9.0, first=8.0, given=0)
    works = record({}, [], asked=0, wait=0.0, between=10.0, given=7)
    told = wording.verdict({"inputs": {"chief:0": works, "worker:0": idle}})
    assert told == [
        "[worker:0] it was given no rows: the job has 7 in all, for 2 tasks: fewer workers, or more rows, give each something to do"
    ]
    assert wording.calls_for_change(told[0])
    assert not any(
        "given" in words for words in wording.verdict({"inputs": {"chief:0": works, "ps:0": idle, "evaluator:0": idle}})
    )
    # nobody was given any: the scripts read something else
    assert not any("given" in words for words in wording.verdict({"inputs": {"worker:0": idle}}))


def test_behind_a_dataset_of_ours_tensorflow_makes_nothing_ahead_by_itself() -> None:
    own = [node("Map", 40, decodes=False), *OURS]
    told = record({}, own, asked=0, wait=4.0, between=6.0, tunes=True)
    assert "no batch is made while the script computes: `.prefetch(2)` as the last" in str(
        wording.verdict({"inputs": {"a": told}})
    )
    ahead = record({}, [node("Prefetch", 41), *own], asked=0, wait=4.0, between=6.0, tunes=True)
    assert "no batch is made" not in str(wording.verdict({"inputs": {"a": ahead}}))


def test_of_images_of_ours_the_decoding_is_named_and_not_the_parsing() -> None:
    images = [OURS[0], node("ParallelMap", 31, ours=True, parses=True, decodes=True), *OURS[2:]]
    looked = {"Root::Prefetch::ParallelMapV2": (1.9, 20), "Root::Prefetch::ParallelMapV2::BatchV2::TFRecord": (0.01, 20)}
    (said, *_) = wording.verdict({"inputs": {"a": record(looked, images)}})
    assert (
        "decodes and resizes images (image=) more slowly" in said and "smaller size in image=" in said and "columns" not in said
    )


#: `task_config.dataset(image=)` without a cache, and with one
IMAGES = [
    node("Prefetch", 7, ours=True), node("Map", 7, ours=True), node("Batch", 7, ours=True, rows=64),
    node("ParallelMap", 7, ours=True, images=True, floats=True, decodes=True, parses=True), node("Repeat", 7, ours=True, count=20), node("TFRecord", 7, ours=True),
]  # fmt: skip
CACHED = [
    *IMAGES[:3], node("ParallelMap", 7, ours=True, images=True, floats=True), IMAGES[4], node("Cache", 7, ours=True),
    IMAGES[3], IMAGES[5],
]  # fmt: skip
#: a look at later passes, and one at the first
LATER = {
    "Root::Prefetch": (0.1, 20),
    "Root::Prefetch::Map::BatchV2": (0.1, 20),
    "Root::Prefetch::Map::BatchV2::ParallelMapV2": (1.8, 1280),
}
FILLING = {**LATER, "Root::Prefetch::Map::BatchV2::ParallelMapV2::Repeat::MemoryCacheImpl::ParallelMapV2": (4.0, 1280)}


def of_images(chain: list[dict[str, Any]], nodes: dict[str, Any], first: float = 0.05, **facts: Any) -> str:
    """What is said of them. Args: first: of the waiting, that in the first pass, of 2 batches; facts: True: of the nodes that do so."""
    does = [{**one, **facts} if one.get("images") else one for one in chain]
    told = record(nodes, does, rows=6400, given=128, asked=20 if nodes else 0, tunes=True)
    told["windows"] = [[0.0, 2, 8.0 * first, 0.1], [1.0, 98, 8.0 * (1 - first), 1.9]]
    return "\n".join(wording.verdict({"inputs": {"a": told}}))


@pytest.mark.parametrize("nodes", [{}, LATER, FILLING])
def test_of_kept_images_the_first_pass_is_told_from_the_others(nodes: dict[str, Any]) -> None:
    augmented = of_images(CACHED, nodes, resizes=True, augments=True)
    assert "augments images (image=) anew in every pass, which its cache does not spare" in augmented
    assert "--resize" not in augmented and "decodes" not in augmented and "first pass" not in augmented
    plain = of_images(CACHED, nodes, resizes=True)
    assert "makes batches of the images in its cache" in plain and "a smaller size" in plain and "--resize" not in plain
    assert "uint8" in augmented + plain and "uint8" not in of_images(CACHED, nodes, resizes=True, augments=True, floats=False)
    assert "augment" not in plain and "size" not in of_images(CACHED, nodes).replace("resizes", "")
    filling = of_images(CACHED, nodes, first=0.9, resizes=True, augments=True)
    assert "most of it in the first pass, which fills the cache" in filling and "augment" not in filling
    if nodes is not LATER:
        assert "decodes and resizes images (image=) in the first pass" in filling and "--resize" in filling


def test_of_images_that_nobody_keeps_what_is_asked_for_is_named() -> None:
    both = of_images(IMAGES, LATER, resizes=True, augments=True)
    assert "decodes, resizes and augments images (image=)" in both and "cache=True" in both and "--resize" in both
    assert "those that are larger than that have less to decode" in both and "`augment`" in both
    only = of_images(IMAGES, LATER)
    assert "decodes images (image=) more slowly" in only and "size" not in only and "augment" not in only


#: a map that computes in Python, and nothing that makes batches ahead: it took a third of what is waited for, by its clock, and more for its turns
COMPUTES = [node("Map", 23, python=True), *OURS]
TURNS = {"batches": 500, "tunes": False, "python": {"calls": 500, "wall": 0.26, "steps": 0.26, "computed": 0.24}}


def test_python_that_computes_beside_short_steps_is_named_before_a_prefetch_or_a_cache() -> None:
    """Python has one lock: what computes in the pipeline's keeps the steps from their turn, made ahead or not."""
    told = record({}, COMPUTES, wait=0.65, between=0.84, asked=0, passes=2, **TURNS)
    found = first(told)
    assert (found.rule, found.likely) == ("python", "") and found.saves == pytest.approx(0.26 / 1.49 / 2)
    assert "prefetch" not in [one.rule for one in advised(told)]
    (said,) = wording.verdict({"inputs": {"a": told}})
    assert "`Map` at train.py:23 runs Python" in said and "(saves 9% of the steps' time or more)" in said
    # made ahead, and most of the waiting is Python's: nothing is left that a cache would win
    ahead = record({}, [node("Prefetch", 24), *COMPUTES], wait=0.4, between=0.9, asked=0, passes=2, **TURNS)
    assert [one.rule for one in advised(ahead)] == ["python"]
    # a look promises no more for a prefetch
    seen = {"Root::Map": (0.3, 20), "Root::Map::Prefetch::ParallelMapV2": (0.1, 20)}
    looked = [one.rule for one in advised(record(seen, COMPUTES, wait=0.65, between=0.84, **TURNS))]
    assert looked[0] == "python" and "prefetch" not in looked
    # Keras needs the lock between its steps, too
    in_fit = record(seen, COMPUTES, wait=0.65, between=0.84, by="function", **TURNS)
    assert "prefetch" not in [one.rule for one in advised(in_fit)]


@pytest.mark.parametrize(
    "more, rules",
    [
        # steps of a card's, which need no lock; steps that are Python themselves; Python that waits; and next to none of it
        ({"batches": 8}, {"prefetch": 0.22, "python": 0.09}),
        ({"batches": 8, "within": {"calls": 8, "inside": 0.1}}, {"prefetch": 0.14, "python": 0.09}),
        ({"python": {"calls": 500, "wall": 0.6, "steps": 0.6, "computed": 0.01}}, {"prefetch": 0.20, "python_waits": 0.18}),
        ({"python": {"calls": 50, "wall": 0.02, "steps": 0.02, "computed": 0.02}}, {"prefetch": 0.20}),
    ],
    ids=["long steps", "long steps of Python", "it waits", "it is little"],
)  # fmt: skip
def test_a_prefetch_is_promised_what_does_not_take_turns_in_python(more: dict[str, Any], rules: dict[str, float]) -> None:
    found = {
        one.rule: one.saves for one in advised(record({}, COMPUTES, wait=0.65, between=0.84, asked=0, **{**TURNS, **more}))
    }
    assert {rule: pytest.approx(saves, abs=0.01) for rule, saves in rules.items()} == {
        rule: saves for rule, saves in found.items() if rule in ("prefetch", "python", "python_waits")
    }


def test_a_prefetch_is_promised_no_more_than_the_cores_have_left() -> None:
    """What the script computes meanwhile takes as much longer: on two cores that were busy, it won nothing."""
    chain = [node("Batch", 32), node("Map", 31), node("Range", 30)]
    told = {**record({"Root::BatchV2": (0.1, 20)}, chain, wait=4.0, between=6.0), "used": 1.5}
    for idle, saves in ((3.0, 0.2), (0.5, 0.125), (0.0, 0.0)):
        (found,) = [one for one in advised({**told, "idle": idle}) if one.rule == "prefetch"]
        assert found.saves == pytest.approx(saves)


def test_pythons_clock_tells_nothing_where_others_work_at_the_same_time() -> None:
    """What draws from a prefetch may be slower than what it makes ahead; and of several pipelines nobody knows whose Python it was."""
    python = {"calls": 100, "wall": 3.0, "steps": 3.0, "computed": 3.0}
    serial = [node("Prefetch", 33), node("Map", 32, ops=9), node("Map", 31, python=True)]
    meanwhile = [*serial[:2], node("Prefetch", 31), serial[2]]
    told = unlooked(serial, python=python, tunes=True)
    assert [one.rule for one in advised(told)] == ["python"]
    assert advised(unlooked(meanwhile, python=python, tunes=True)) == []
    told["pipelines"] = [{"nodes": serial, "passes": 1, "waited": 6.0}, {"nodes": COMPUTES, "passes": 1, "waited": 2.0}]
    assert advised(told) == []
    # with the rest of the waiting, something else is to be suspected that takes longer
    rest = [node("Prefetch", 33), node("Map", 32, decodes=True), node("Map", 31, python=True)]
    assert [(one.rule, bool(one.likely)) for one in advised(unlooked(rest, python={**python, "steps": 1.5}, batches=10))] == [
        ("map", True), ("python", False),
    ]  # fmt: skip


def test_a_generator_that_waits_wins_more_by_eight_of_it_than_by_a_cache() -> None:
    """Measured over three passes: a cache won 60%, eight generators 85%."""
    chain = [node("FlatMap", 8), node("Generator", 8, depth=1), node("Tensor", 8)]
    python = {"calls": 384, "wall": 7.9, "steps": 7.8, "computed": 0.3}
    looked = {"Root::Prefetch": (0.1, 20), "Root::Prefetch::FlatMap[0]::Generator": (0.5, 20)}
    told = record(looked, chain, wait=8.3, between=1.7, passes=3, by="function", python=python)
    waits, cache = advised(told)
    assert (waits.rule, cache.rule) == ("python_waits", "cache")
    assert waits.saves == pytest.approx(0.83 * 7 / 8 / 2) and cache.saves == pytest.approx(0.83 * 2 / 3 / 2)
    # what it computes takes turns: no more than the rest is won
    some = first({**told, "python": {**python, "computed": 2.0}})
    assert some.rule == "python_waits" and some.saves == pytest.approx(0.83 * (1 - 2.0 / 7.9) / 2)


#: rows of task_config's under Keras fit, and a map of the script's that puts columns together
FIT = [
    node("Prefetch", 5, ours=True, buffer=2), node("ParallelMap", 5, ours=True, parallel=-1, ops=40, parses=True, light=True),
    node("Batch", 5, ours=True, rows=128), node("Shuffle", 5, ours=True, buffer=1280), node("TFRecord", 5, ours=True), node("TensorSlice", 5, ours=True),
]  # fmt: skip
#: Keras's own over arrays
ARRAYS = [node("Prefetch", 5), node("ParallelMap", 5, ops=9), node("FlatMap", 5, ops=9, stateful=True), node("TensorSlice", 5)]


def fit(chain: list[dict[str, Any]], **more: Any) -> list[str]:
    told = {
        **within(chain),
        "batches": 200,
        "disk": 0,
        "python": {},
        "pipelines": [{"nodes": chain, "passes": 6}] if chain else [],
        **more,
    }
    return wording.verdict({"inputs": {"a": told}})


def within_fit(place: int, **facts: Any) -> list[dict[str, Any]]:
    return [dict(one, **facts) if index == place else one for index, one in enumerate(FIT)]


def test_of_a_fit_whose_input_has_little_to_do_nothing_is_said() -> None:
    assert fit(FIT) == []
    assert fit([dict(one, at="") for one in ARRAYS]) == []
    columns = [*FIT[:2], node("Unbatch", 5, ours=True), node("FlatMap", 5, ours=True), node("Generator", 5, ours=True, depth=1)]
    assert fit(columns) == []


@pytest.mark.parametrize(
    "chain, more",
    [
        # a loop, a product, an image in the map; Python; files of the script's own, and a dataset that nobody knows
        (within_fit(1, light=False), {}),
        ([node("Map", 7, python=True, ops=3), *FIT], {}),
        ([node("Batch", 5, rows=32), node("TFRecord", 5)], {}),
        ([*FIT[:3], node("Filter", 5, ops=3, light=True), *FIT[3:]], {}),
        ([*FIT[:3], node("Shard", 5), *FIT[3:]], {}),
        # a map for each of many rows; rows without end; nothing ahead, and steps as short as what makes a batch
        ([FIT[0], node("Batch", 5, rows=1024), node("Map", 6, ops=9, light=True), *FIT[3:]], {}),
        ([node("Batch", 5), node("TensorSlice", 5)], {}),
        (FIT, {"batches": 4000}),
        (FIT[1:], {"batches": 500}),
        # rows that have not come, a disk that is read, columns whose Python takes long; nothing computes; what a disk has had nobody knows
        (FIT, {"spent": {"pipe": 1.0}}),
        (FIT, {"disk": 20_000_000}),
        (FIT, {"disk": None}),
        ([*FIT[:2], node("Generator", 5, ours=True)], {"python": {"calls": 30, "wall": 4.0, "steps": 4.0, "computed": 3.0}}),
        (FIT, {"used": 0.1, "cards": False}),
        ([], {}),
    ],
)  # fmt: skip
def test_of_a_fit_whose_input_may_have_much_to_do_it_is_said_that_nobody_knows(
    chain: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    (said,) = fit(chain, **more)
    assert said.startswith(f"[a] {UNSURE}, as its steps draw their batches within TensorFlow")


@pytest.mark.parametrize("asked", [0, 20])
@pytest.mark.parametrize("by", ["dataset", "feed_dict"])
def test_a_late_first_batch_does_not_make_shares_of_milliseconds_worth_a_sentence(asked: int, by: str) -> None:
    ours = [node("Prefetch", 33), node("Map", 32, ours=True, decodes=True, images=True), node("TFRecord", 30, ours=True)]
    short = record({}, ours, wait=0.03, between=0.007, batches=3, by=by, first=1.6, main=4.0, asked=asked, windows=[])
    found = wording.verdict({"inputs": {"worker:0": short}})
    assert not any("most likely" in one or "waiting" in one for one in found), found
    assert not any(map(wording.calls_for_change, found))
    (late,) = wording.verdict({"inputs": {"worker:0": {**short, "by": "dataset", "main": 2.0}}})
    assert late == "[worker:0] the first batch came after 1.6 s, 80% of main's time"
