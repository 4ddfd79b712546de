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
    (one,) = of_cache(told(chain, asked=0, ended=1))
    assert (
        one.saves == pytest.approx(0.4 * 3 / 4 / 2)
        and "move `repeat` at train.py:30 behind it, and `.cache()` between them" in one.change
    )


SHUFFLED = [node("Batch", 33, rows=8), node("Shuffle", 32, buffer=10_000), node("TFRecord", 30)]


@pytest.mark.parametrize(
    "more, share",
    [({"first": 5.5}, 0.5), ({"first": 1.1}, 0.1), ({"first": 1.0}, None), ({"first": 0.9, "main": 1.0}, None), ({"first": 5.5, "by": "function"}, None), ({"first": 5.5, "place": 1}, None), ({"first": 5.5, "place": 0}, 0.5)],
)  # fmt: skip
def test_a_shuffle_that_makes_the_first_batch_late(more: dict[str, Any], share: float | None) -> None:
    found = of_shuffle(told(SHUFFLED, **more))
    assert [one.share for one in found] == ([pytest.approx(share)] if share is not None else [])
    assert all("`shuffle` at train.py:32 fills its buffer of 10,000 elements" in one.what for one in found)


@pytest.mark.parametrize(
    "buffer, rows, more, saves",
    [
        # steps of a second; a buffer that is full as soon as a batch or two are
        (16, 512, {}, None), (1024, 512, {}, None),
        # three batches fill in three seconds at most, and the first batch took 30: it is the source that began late
        (1536, 512, {}, None), (1536, 512, {"first": 5.0}, 3 / 40 / 2), (5120, 512, {}, 10 / 40 / 2), (10_240, 512, {}, 20 / 40 / 2),
        # nobody knows how long it took: most rows came out of the full buffer, or out of a cache
        (1536, 512, {"batches": 5, "wait": 2.0, "between": 2.0}, 3 / 40 / 2), (1536, 512, {"cached": True}, 3 / 40 / 2), (10_240, 512, {"batches": 1, "wait": 0.0, "between": 0.0}, 0.0),
    ],
)  # fmt: skip
def test_a_shuffle_is_promised_no_more_than_its_buffer_takes(
    buffer: int, rows: int, more: dict[str, Any], saves: float | None
) -> None:
    cache = [node("Cache", 31)] * more.pop("cached", False)
    chain = [node("Batch", 33, rows=rows), node("Shuffle", 32, buffer=buffer), *cache, node("TFRecord", 30)]
    found = of_shuffle(told(chain, **{"first": 30.0, "main": 40.0, "batches": 11, "wait": 8.0, "between": 2.0, **more}))
    assert [one.saves for one in found] == ([pytest.approx(saves)] if saves is not None else [])


def test_of_several_shuffles_the_one_that_holds_most_batches_is_named() -> None:
    chain = [node("Shuffle", 34, buffer=4), node("Batch", 33, rows=8), node("Shuffle", 32, buffer=10_000), node("TFRecord", 30)]
    (one,) = of_shuffle(told(chain, first=5.5))
    assert "at train.py:32 fills its buffer of 10,000" in one.what
    (one,) = of_shuffle(told([{**chain[0], "buffer": 2000}, *chain[1:]], first=5.5))
    assert "at train.py:34 fills its buffer of 2,000" in one.what


def test_images_are_shuffled_before_they_are_decoded() -> None:
    late = [node("Shuffle", 33, buffer=100), node("Map", 32, decodes=True), node("TFRecord", 30)]
    (one,) = of_decoding(told(late, first=2.2))
    assert (
        one.share == pytest.approx(0.2)
        and one.saves == pytest.approx(0.1)
        and "`map` at train.py:32 decodes before `shuffle`" in one.what
    )
    assert of_shuffle(told(late, first=5.5)) == [], "it has a rule of its own"
    (little,) = of_decoding(told([{**late[0], "buffer": 2}, *late[1:]], first=2.2))
    assert little.saves == pytest.approx(2 * (10 / 99) / 11 / 2), "two images are decoded in no time"
    for chain in (
        [late[1], late[0], late[2]],
        [late[0], node("Cache", 33), *late[1:]],
        [late[0], {**late[1], "ours": True}, late[2]],
    ):
        assert of_decoding(told(chain, first=2.2)) == []
