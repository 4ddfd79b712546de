"""The advice of all rules together: its order, what is left out, and names of the script's own TensorFlow. Single rules are in `test_wording`."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.inputs import advice
from akrunner.engines.inputs.advice import advised, if_it_waits
from akrunner.engines.inputs.measures import Advice
from tests.unit.engines.inputs.test_wording import CHAIN, MAPPED, node, record


def given(rule: str, saves: float = 0.1, share: float = 0.5, **more: Any) -> Advice:
    return Advice(rule, share, saves, more.pop("what", f"{rule} is slow"), more.pop("change", "less of it"), **more)


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> list[Advice]:
    """What the rules find together, in place of what they would; a test adds to it."""
    found: list[Advice] = []
    names = (
        "of_busy_python",
        "of_prefetch",
        "of_iterators",
        "of_cache",
        "of_shuffle",
        "of_decoding",
        "of_saving",
        "of_python",
        "of_python_beside",
        "of_lock",
        "of_standing",
        "of_small",
    )
    for name in names:
        monkeypatch.setattr(advice, name, lambda record: [])
    monkeypatch.setattr(advice, "of_nodes", lambda record: found if record["nodes"] else [])
    return found


def told(**more: Any) -> dict[str, Any]:
    return record(MAPPED, CHAIN, **more)


def test_what_wins_most_comes_first_and_then_what_is_lost_most(rules: list[Advice]) -> None:
    rules += [given("a", 0.1, 0.2), given("b", 0.3), given("c", 0.1, 0.4)]
    assert [one.rule for one in advised(told())] == ["b", "c", "a"]


def test_the_same_words_are_said_once(rules: list[Advice]) -> None:
    rules += [given("a", 0.1), given("a", 0.3)]
    assert [one.saves for one in advised(told())] == [0.3]


def test_a_thread_that_has_the_lock_explains_what_is_only_likely(rules: list[Advice], monkeypatch: pytest.MonkeyPatch) -> None:
    rules += [given("map", likely="a look"), given("cache"), given("prefetch"), given("python")]
    monkeypatch.setattr(advice, "of_lock", lambda record: [given("lock")])
    assert sorted(one.rule for one in advised(told())) == ["lock", "python"]


@pytest.mark.parametrize(
    "rule, change", [("parse", "cache=True in it, and columns="), ("decode_ours", "cache=True, where they fit into memory")]
)
def test_the_same_cache_is_advised_once_with_the_larger_gain(rules: list[Advice], rule: str, change: str) -> None:
    rules += [
        given(rule, 0.0, change=change),
        given("cache", 0.4, change="cache=True in it, if they fit", likely="a look"),
    ]
    (one,) = advised(told())
    assert (one.rule, one.saves, one.likely) == (rule, 0.4, "a look")


def test_where_another_thread_reads_only_saving_is_known(rules: list[Advice], monkeypatch: pytest.MonkeyPatch) -> None:
    rules.append(given("map"))
    monkeypatch.setattr(advice, "of_saving", lambda record: [given("checkpoint")])
    monkeypatch.setattr(advice, "of_standing", lambda record: [given("beside")])
    assert [one.rule for one in advised(told(elsewhere=True))] == ["checkpoint"]
    monkeypatch.setattr(advice, "of_saving", lambda record: [])
    assert advised(told(elsewhere=True)) == []


def test_a_line_where_the_script_stands_is_said_only_if_nothing_else_is(
    rules: list[Advice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice, "of_standing", lambda record: [given("beside")])
    assert [one.rule for one in advised(told())] == ["beside"]
    rules.append(given("map"))
    assert [one.rule for one in advised(told())] == ["map"]


def test_batches_that_are_too_small_need_no_other_advice_but_on_saving(
    rules: list[Advice], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules.append(given("map"))
    monkeypatch.setattr(advice, "of_small", lambda record: [given("small")])
    monkeypatch.setattr(advice, "of_saving", lambda record: [given("report", 0.5)])
    monkeypatch.setattr(advice, "of_iterators", lambda record: [given("iterators", 0.3)])
    assert [one.rule for one in advised(told())] == ["report", "iterators", "small"], "what wins most comes first"
    assert [one.rule for one in advised(told(elsewhere=True))] == ["report"]


@pytest.mark.parametrize(
    "version, change",
    [
        ("1.15.5", "tf.data.experimental.AUTOTUNE, options.experimental_threading.x"), ("2.3.0", "tf.data.experimental.AUTOTUNE, options.experimental_threading.x"), ("2.4.0", "tf.data.AUTOTUNE, options.threading.x"),
        ("2.20.0", "tf.data.AUTOTUNE, options.threading.x"), ("10.0", "tf.data.AUTOTUNE, options.threading.x"), ("", "tf.data.AUTOTUNE, options.threading.x"), (None, "tf.data.AUTOTUNE, options.threading.x"),
    ],
)  # fmt: skip
def test_names_are_those_of_the_scripts_tensorflow(rules: list[Advice], version: str | None, change: str) -> None:
    rules.append(given("map", change="tf.data.AUTOTUNE, options.threading.x"))
    assert [one.change for one in advised(told(version=version))] == [change]


def test_what_it_would_wait_for_is_said_of_one_suspect_only() -> None:
    reads = [node("Batch", 32, rows=8), node("Map", 31, reads=True), node("TensorSlice", 30)]
    alone = record({}, reads, asked=0)
    assert if_it_waits(alone) == "`Map` at train.py:31 opens a file for every element"
    alone["pipelines"].append({"nodes": [node("Map", 41, reads=True)], "passes": 1})
    assert if_it_waits(alone) == ""
    assert if_it_waits(record({}, [dict(one, ours=True) for one in reads], asked=0)) == "", "every job has such rows"


#: two maps call Python: one runs a call at a time, one eight
TWO = [
    node("ParallelMap", 12, parallel=8, python=True, stateful=True), node("Batch", 12, rows=1),
    node("Map", 11, python=True, stateful=True), node("Range", 10),
]  # fmt: skip
SLEPT = {"calls": 800, "wall": 16.0, "steps": 16.0, "computed": 0.1}


def test_if_two_maps_call_python_no_line_is_blamed_without_a_look() -> None:
    assert advised(record({}, TWO, asked=0, python=SLEPT, idle=0.0)) == []
    serial = [TWO[1], node("Map", 12, python=True), *TWO[2:]]
    inside = {"by": "function", "known": False, "wait": 0.0, "between": 10.0, "python": {**SLEPT, "steps": 9.9, "wall": 9.9}}
    assert advised(record({}, serial, asked=0, **inside)) == []
    computed = {"calls": 800, "wall": 5.0, "steps": 5.0, "computed": 5.0}
    (beside,) = advised(record({}, serial, asked=0, batches=1000, wait=0.1, between=9.9, python=computed))
    assert beside.rule == "lock" and beside.what.startswith("Python that the pipeline calls computes for 50%")


def test_if_two_maps_call_python_the_line_of_neither_is_put_beside_the_one_that_a_look_has_found() -> None:
    lines = [{"main": False, "at": "/home/me/train.py:8", "in": "", "share": 1.0}]
    nodes = {"Root::ParallelMapV2": (2.0, 20), "Root::ParallelMapV2::BatchV2::Map": (1.9, 20)}
    one = advised(record(nodes, TWO, python=SLEPT, lines=lines))[0]
    assert one.rule == "python_waits" and "`Map` at train.py:11 waits" in one.what and "train.py:8" not in one.what


def test_a_cache_of_task_configs_rows_is_not_blamed_for_python_that_runs_several_calls() -> None:
    ours = [
        node("ParallelMap", 11, ours=True, parallel=-1, decodes=True, images=True),
        node("Repeat", 11, ours=True, count=6), node("TFRecord", 11, ours=True),
    ]  # fmt: skip
    chain = [node("Prefetch", 14), node("Batch", 14, rows=16), node("ParallelMap", 14, parallel=8, python=True), *ours]
    told = record({}, chain, asked=0, python={**SLEPT, "steps": 48.0, "wall": 48.0}, idle=0.0)
    assert [one.rule for one in advised(told)] == ["python_waits"]
    twice = [*chain[:3], node("Map", 12, python=True), *ours]
    assert advised({**told, "pipelines": [{"nodes": twice, "passes": 1}]}) == []


@pytest.mark.parametrize("idle", [0.0, 0.1])
@pytest.mark.parametrize("asked, nodes", [(0, {}), (20, {"Root::Batch": (0.0, 20), "Root::Batch::Map": (1.8, 640)})])
def test_a_map_that_takes_more_than_a_prefetch_can_win_comes_first_on_a_busy_machine(
    asked: int, nodes: dict[str, Any], idle: float
) -> None:
    chain = [node("Batch", 12, rows=32), node("Map", 12, decodes=True, stateful=True), node("TFRecord", 5)]
    found = advised(record(nodes, chain, wait=8.8, between=1.2, asked=asked, idle=idle, used=1.0, tunes=False))
    assert [one.rule for one in found][:2] == ["map", "prefetch"]
    assert found[1].share == pytest.approx(0.12)
