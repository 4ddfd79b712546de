"""How far `main` is: who is believed, how often it is told, and what counts as an epoch."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.worker import data, reached
from akrunner.worker.common import counted
from akrunner.worker.reached import CHECKPOINT, FIT, ROWS, SCRIPT, Course, Fits, Rows
from akrunner.worker.reading import sized
from akrunner.worker.waits import fits
from akrunner.worker.waits.meter import Meter
from akrunner.worker.waits.pipeline import size_of


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int | None, int, int | None]]]:
    """All that is told, as if a second passed before each time."""
    told: list[tuple[int, int | None, int, int | None]] = []
    monkeypatch.setattr(reached, "_EVERY", 0.0)
    reached.begin(lambda how_far: told.append(tuple(how_far.values())))  # type: ignore[arg-type]
    yield told
    reached.end()


def test_it_is_told_once_a_second_and_by_who_knows_best() -> None:
    told: list[Any] = []
    times = iter([0.0, 0.5, 1.0, 1.2, 1.3, 1.4, 2.4])
    course = Course(lambda how_far: told.append((how_far["done"], how_far["epoch"])), lambda: next(times))
    for done, who in ((1, ROWS), (2, ROWS), (3, ROWS), (4, FIT), (5, CHECKPOINT), (6, SCRIPT), (8, SCRIPT)):
        course.tell(who, done, 10, who)
    # a better one is heard at once, and a worse one no more
    course.tell(ROWS, 9, 10)
    assert told == [(1, ROWS), (3, ROWS), (4, FIT), (5, CHECKPOINT), (6, SCRIPT), (8, SCRIPT)]


def test_each_percent_of_the_whole_is_told_at_once() -> None:
    told: list[Any] = []
    course = Course(lambda how_far: told.append((how_far["done"], how_far["epoch"])), lambda: 0.0)
    for step in range(2001):
        course.tell(SCRIPT, step, 2000)
    assert told == [(step, 0) for step in range(0, 2001, 20)], "a share that is a second old contradicts the step beside it"


def test_quick_epochs_are_told_at_once_if_it_is_known_how_many_there_are() -> None:
    told: list[Any] = []
    for epochs in (10, None):
        course = Course(lambda how_far: told.append(how_far["epoch"]), lambda: 0.0)
        for epoch in range(1, 11):
            course.tell(FIT, 0, None, epoch, epochs)
    assert told == [*range(1, 11), 1], "of epochs without an end there may be very many"


def test_a_process_that_the_script_has_forked_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    course = Course(told.append)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    course.tell(ROWS, 1, 2)
    assert told == []


def test_an_epoch_of_batches_counts_once_it_was_read_to_its_end(said: list[Any]) -> None:
    source = data.Examples([], "rows", evener=data.Evener(6, None, lambda **_: None))
    batches = [{"x": [1] * 4}, {"x": [1] * 2}]
    next(counted(source, iter(batches), "keep"))
    for _ in range(2):
        list(counted(source, iter(batches), "keep"))
    first, second = [(4, 6, 1, None), (6, 6, 1, None), (6, 6, 1, None)], [(4, 6, 2, None), (6, 6, 2, None), (6, 6, 2, None)]
    assert said == [*first, *second]


def test_a_split_has_epochs_of_its_own_and_a_stream_none(said: list[Any]) -> None:
    rows = Rows(None)
    rows.read(3)
    assert said == []
    for number in (0, 1, 0):
        split = rows.of(number)
        split.total = 5
        split.read(5)
        split.ended()
    assert [epoch for _, _, epoch, _ in said] == [1, 1, 1, 1, 2, 2]


def test_keras_fit_knows_its_epochs_and_from_the_first_one_on_the_batches_of_each(said: list[Any]) -> None:
    fit = Fits()
    for epoch in range(2):
        fit.epoch_begins(1, epoch, 2, None)
        for batch in range(3):
            fit.batch_ended(batch)
    assert said[:4] == [(0, None, 1, 2), (1, None, 1, 2), (2, None, 1, 2), (3, None, 1, 2)]
    assert said[4:] == [(0, 3, 2, 2), (1, 3, 2, 2), (2, 3, 2, 2), (3, 3, 2, 2)]


def test_the_datasets_own_number_of_batches_helps_in_the_first_epoch(said: list[Any]) -> None:
    fit = Fits()
    fit.epoch_begins(1, 0, 5, None)
    fit.batch_ended(0, 4)
    assert said[-1] == (1, 4, 1, 5)


def test_what_is_over_leaves_room_for_others() -> None:
    told: list[Any] = []
    course = Course(told.append, lambda: 1.0)
    course.tell(FIT, 1, 10, 1, 2)
    course.over(ROWS)
    course.tell(ROWS, 1, 10)
    course.over(FIT)
    course.tell(ROWS, 2, 10, 1)
    # a loop goes on in the next epoch, of which nothing was told yet
    course.ended(ROWS, 10, 2)
    course.ended(ROWS, 10, 1)
    assert [(one["done"], one["total"]) for one in told] == [(1, 10), (0, None), (2, 10), (10, 10)]


def test_a_loop_over_fit_has_epochs_without_an_end(said: list[Any]) -> None:
    fit = Fits()
    for call in range(3):
        fit.epoch_begins(call, 0, 1, 3)
    assert said == [(0, 3, 1, 1), (0, 3, 2, None), (0, 3, 3, None)]


def test_a_list_of_callbacks_tells_and_does_what_it_did(said: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    did: list[Any] = []

    class CallbackList:
        params = {"epochs": 2, "steps": 4}

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            did.append((epoch, logs))

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            did.append((batch, logs))

        def on_train_end(self, logs: Any = None) -> None:
            did.append("end")

    monkeypatch.setitem(sys.modules, "keras.callbacks", SimpleNamespace(CallbackList=CallbackList))
    monkeypatch.setattr(fits, "_fits", Fits())
    monkeypatch.setattr(fits, "_watched", set())
    fits.watch()
    fits.watch()
    callbacks = CallbackList()
    callbacks.on_epoch_begin(0, logs={})
    callbacks.on_train_batch_end(0, {"loss": 1})
    callbacks.on_train_end()
    assert did == [(0, {}), (0, {"loss": 1}), "end"] and said == [(0, 4, 1, 2), (1, 4, 1, 2), (0, None, 0, None)]


class MapDataset:
    def __init__(self, *below: Any) -> None:
        self._below = list(below)

    def _inputs(self) -> list[Any]:
        return self._below


class TakeDataset(MapDataset):
    """Has fewer rows."""


def test_a_dataset_has_the_rows_of_what_it_is_made_of_as_long_as_nothing_takes_some_away() -> None:
    ours = sized(MapDataset(), 10, 4, 3, False)
    assert size_of(ours) == size_of(MapDataset(MapDataset(ours))) == (10, 3, 8)
    assert size_of(sized(MapDataset(), 10, 4, -1, True)) == (10, None, None)
    assert size_of(TakeDataset(ours)) is size_of(MapDataset(ours, ours)) is size_of(MapDataset()) is size_of(object()) is None


@pytest.mark.parametrize(
    ("epochs", "rows", "told"),
    [(1, 4, (4, 10, 1, None)), (3, 14, (4, 10, 2, 3)), (3, 30, (10, 10, 3, 3)), (None, 25, (5, 10, 3, None))],
)
def test_a_loop_over_a_dataset_is_as_far_as_its_rows(said: list[Any], epochs: int | None, rows: int, told: Any) -> None:
    made = Meter()
    made.tell()
    made.draws_from(1, 0, (10, epochs, None))
    way = made.way("dataset")
    assert way is not None
    made._draw(way, 1, 0)
    way.rows = rows
    made.tell()
    assert said == [told]
    # another one, of which nobody knows how much there is
    made.draws_from(2, 1, None)
    made._draw(way, 2, 1)
    made.tell()
    assert said == [told]
