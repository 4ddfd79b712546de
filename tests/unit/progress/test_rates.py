"""A rate is that of the last seconds."""

from __future__ import annotations

import pytest

from akrunner.progress.rates import LEAST_SECONDS, WINDOW_SECONDS, Window


def test_what_was_slow_at_first_is_forgotten() -> None:
    window = Window()
    for tick in range(600):
        # a minute of standing still, then 1000 a second
        window.add(tick / 10, max(0, tick - 500) * 100)
    assert window.rate == pytest.approx(1000)


def test_a_number_that_stands_still_has_no_rate_left_once_the_window_has_passed() -> None:
    window = Window()
    for tick in range(100):
        window.add(tick / 10, tick)
    assert window.rate == pytest.approx(10)
    for tick in range(100, 100 + int(WINDOW_SECONDS * 10) + 2):
        window.add(tick / 10, 99)
    assert window.rate == 0


def test_nothing_is_concluded_from_too_little() -> None:
    window = Window()
    assert window.rate is None
    window.add(1.0, 5)
    assert window.rate is None
    window.add(1.0 + LEAST_SECONDS / 2, 50)
    assert window.rate is None
    window.add(1.0 + LEAST_SECONDS, 105)
    assert window.rate == pytest.approx(100 / LEAST_SECONDS)


def test_a_number_that_falls_begins_anew() -> None:
    window = Window()
    for second in range(5):
        window.add(second, second * 100)
    window.add(5, 10)
    assert window.rate is None
    window.add(6, 17)
    assert window.rate == 7


def test_steps_that_are_far_apart_have_the_rate_of_the_last_two() -> None:
    window = Window(changes=True)
    for tick in range(0, 610):
        # an epoch of 100 steps each 30 s
        window.add(tick / 10, tick // 300 * 100)
    assert window.rate == pytest.approx(100 / 30)
    for tick in range(610, 1500):
        window.add(tick / 10, 200)
    assert window.rate is not None and window.rate < 100 / 60, "a training that has stopped is not as fast as it was"


def test_memory_does_not_grow_with_time() -> None:
    window = Window()
    for tick in range(10_000):
        window.add(tick / 10, tick)
    assert len(window._points) < WINDOW_SECONDS * 10 + 5
