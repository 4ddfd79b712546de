"""Fewer points that draw as all of them would, and rates of counters."""

from __future__ import annotations

import numpy as np

from akrunner.reports.numbers import rates, thinned


def test_few_stay_as_they_are() -> None:
    assert thinned(np.array([3.0, 1.0]), 10).tolist() == [0, 1] and thinned(np.array([]), 10).tolist() == []


def test_of_many_both_ends_and_every_peak_stay() -> None:
    values = np.sin(np.arange(10_000) / 100)
    values[4321], values[4322] = 50.0, -50.0
    kept = thinned(values, 100).tolist()
    assert kept == sorted(set(kept)) and len(kept) <= 102 and {0, 4321, 4322, 9999} <= set(kept)


def test_a_counter_becomes_what_comes_each_second() -> None:
    assert rates([0, 2, 2, 3], [0, 10, 20, 15]) == [(2, 5.0), (3, 0.0)]
    assert rates([1], [5]) == []
