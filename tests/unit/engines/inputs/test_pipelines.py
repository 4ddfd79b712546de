"""Advice on the order of a pipeline, each rule by itself: where it is given, where not, and what it promises."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.inputs.pipelines import begins_anew, of_cache, of_decoding, of_iterators, of_prefetch, of_shuffle
from tests.unit.engines.inputs.test_wording import CHAIN, node, record

SERIAL = [node("Batch", 32, rows=8), node("Map", 31, ops=9), node("TFRecord", 30)]


def told(chain: list[dict[str, Any]] = SERIAL, **more: Any) -> dict[str, Any]:
    return record({}, chain, **{"wait": 4.0, "between": 6.0, "tunes": False, **more})


@pytest.mark.parametrize(
    "chain, more, saves",
    [
        (SERIAL, {}, 0.2), (SERIAL, {"wait": 6.0, "between": 4.0}, 0.2), (CHAIN, {}, None), (SERIAL, {"wait": 0.9, "between": 9.1}, None), (SERIAL, {"tunes": True}, None), (SERIAL, {"by": "function"}, None),
        (SERIAL, {"place": 0}, None), ([], {}, None), (SERIAL, {"used": 1.0, "idle": 1.0}, 0.2), (SERIAL, {"used": 3.0, "idle": 1.0}, 0.125),
    ],
    ids=range(10),
)  # fmt: skip
def test_a_prefetch_is_worth_what_can_be_done_meanwhile(chain: Any, more: dict[str, Any], saves: float | None) -> None:
    found = of_prefetch(told(chain, **more))
    assert [one.saves for one in found] == ([pytest.approx(saves)] if saves is not None else [])


@pytest.mark.parametrize("passes, batches, anew", [(50, 100, True), (49, 100, False), (8, 1, True), (7, 1, False)])
def test_an_iterator_for_nearly_every_batch_begins_anew(passes: int, batches: int, anew: bool) -> None:
    made = told(passes=passes, batches=batches)
    assert begins_anew(made) == anew and bool(of_iterators(made)) == anew
    assert not begins_anew({**made, "by": "function"})


def test_a_dataset_that_begins_anew_is_told_with_its_line_and_no_cache_is_advised() -> None:
    made = told([node("Shuffle", 33, buffer=9), *SERIAL], passes=100)
    (one,) = of_iterators(made)
    assert "dataset at train.py:33 an iterator is made for nearly every batch (100 for 100)" in one.what
    assert "fills the buffer of `shuffle`" in one.what and of_cache(made) == []


def test_work_that_is_done_again_in_every_pass_is_worth_a_cache() -> None:
    decodes = [node("Batch", 32, rows=8), node("Map", 31, decodes=True), node("TFRecord", 30)]
    (one,) = of_cache(told(decodes, passes=4, asked=0))
    assert (
        one.rule == "cache"
        and one.saves == pytest.approx(0.4 * 3 / 4 / 2)
        and "`.cache()` behind it" in one.change
        and one.likely
    )
    for more in ({"passes": 1}, {"passes": 4, "wait": 0.5, "between": 9.5}, {"passes": 4, "by": "batches"}):
        assert of_cache(told(decodes, asked=0, **more)) == []
    random = [decodes[0], node("Map", 31, decodes=True, random=True), decodes[2]]
    assert of_cache(told(random, passes=4, asked=0)) == [], "what is random is to be made anew"
    cached = [decodes[0], node("Cache", 32), *decodes[1:]]
    assert of_cache(told(cached, passes=4, asked=0)) == []


def test_a_cache_behind_a_repeat_would_never_be_read() -> None:
    chain = [node("Batch", 32, rows=8), node("Map", 31, decodes=True), node("Repeat", 30, count=4), node("TFRecord", 29)]
    (one,) = of_cache(told(chain, asked=0))
    assert "move `repeat` at train.py:30 behind it, and `.cache()` between them" in one.change


SHUFFLED = [node("Batch", 33, rows=8), node("Shuffle", 32, buffer=10_000), node("TFRecord", 30)]


@pytest.mark.parametrize(
    "more, share",
    [({"first": 5.5}, 0.5), ({"first": 1.1}, 0.1), ({"first": 1.0}, None), ({"first": 0.9, "main": 1.0}, None), ({"first": 5.5, "by": "function"}, None), ({"first": 5.5, "place": 1}, None), ({"first": 5.5, "place": 0}, 0.5)],
)  # fmt: skip
def test_a_shuffle_that_makes_the_first_batch_late(more: dict[str, Any], share: float | None) -> None:
    found = of_shuffle(told(SHUFFLED, **more))
    assert [one.share for one in found] == ([pytest.approx(share)] if share is not None else [])
    assert all("`shuffle` at train.py:32 fills its buffer of 10,000 elements" in one.what for one in found)


def test_images_are_shuffled_before_they_are_decoded() -> None:
    late = [node("Shuffle", 33, buffer=100), node("Map", 32, decodes=True), node("TFRecord", 30)]
    (one,) = of_decoding(told(late, first=2.2))
    assert one.share == pytest.approx(0.2) and "`map` at train.py:32 decodes before `shuffle`" in one.what
    assert of_shuffle(told(late, first=5.5)) == [], "it has a rule of its own"
    for chain in (
        [late[1], late[0], late[2]],
        [late[0], node("Cache", 33), *late[1:]],
        [late[0], {**late[1], "ours": True}, late[2]],
    ):
        assert of_decoding(told(chain, first=2.2)) == []
