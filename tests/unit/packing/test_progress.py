"""How far a run of `pack` is: rows, rate, the seconds that are left, and how often it is told."""

from __future__ import annotations

import pytest

from akrunner.packing import progress
from akrunner.packing.progress import Meter, PackProgress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def test_rate_and_seconds_left_are_those_of_the_rows_so_far(clock: Clock) -> None:
    told: list[PackProgress] = []
    meter = Meter(told.append)
    meter.starts("packing", 100)
    clock.now += 2
    meter.add(20, 5000)
    assert told == [
        PackProgress("packing", 0, 100, 0, 0.0, 0.0, None),
        PackProgress("packing", 20, 100, 5000, 2.0, 10.0, 8.0),
    ]


def test_it_is_told_no_more_often_than_every_fifth_of_a_second(clock: Clock) -> None:
    told: list[PackProgress] = []
    meter = Meter(told.append)
    meter.starts("reading")
    for _ in range(8):
        clock.now += 0.125
        meter.add(1)
    assert [one.rows for one in told] == [0, 2, 4, 6, 8]
    # another activity is told at once
    meter.starts("writing", 8)
    assert (told[-1].doing, told[-1].rows, told[-1].total) == ("writing", 0, 8)


def test_without_a_total_no_seconds_are_left_to_tell(clock: Clock) -> None:
    told: list[PackProgress] = []
    meter = Meter(told.append)
    meter.starts("reading")
    clock.now += 1
    meter.add(7)
    assert (told[-1].total, told[-1].rate, told[-1].seconds_left) == (None, 7.0, None)


def test_rows_that_an_earlier_run_did_count_as_done_and_not_as_speed(clock: Clock) -> None:
    told: list[PackProgress] = []
    meter = Meter(told.append)
    meter.starts("packing", 1000)
    meter.goes_on(900)
    clock.now += 1
    meter.add(10)
    assert (told[-1].rows, told[-1].rate, told[-1].seconds_left) == (910, 10.0, 9.0)


def test_the_rate_is_that_of_the_last_seconds(clock: Clock) -> None:
    told: list[PackProgress] = []
    meter = Meter(told.append)
    meter.starts("packing", 10_000)
    for _ in range(10):
        clock.now += 1
        meter.add(100)
    for _ in range(20):
        clock.now += 1
        meter.add(1)
    assert told[-1].rate == 1.0 and told[-1].rows == 1020


def test_bytes_go_on_through_every_activity(clock: Clock) -> None:
    told: list[PackProgress] = []
    meter = Meter(told.append)
    meter.starts("listing")
    meter.add(1, 10)
    meter.starts("packing", 5)
    assert (told[-1].rows, told[-1].bytes) == (0, 10)


def test_whoever_asks_for_nothing_is_told_nothing_and_rows_are_counted_all_the_same() -> None:
    meter = Meter()
    meter.starts("packing", 3)
    meter.add(2, 9)
    assert (meter.rows, meter.bytes, meter.total, meter.doing) == (2, 9, 3, "packing")
