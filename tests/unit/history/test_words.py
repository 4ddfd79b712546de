"""Numbers and values as people read them."""

from __future__ import annotations

import pytest

from akrunner.history import words


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.4, "59 s"), (59.96, "1 min 0 s"), (61, "1 min 1 s"), (599.9, "10 min 0 s"),
     (3599, "59 min 59 s"), (3599.7, "1 h 0 min"), (7260, "2 h 1 min"), (86_399.8, "1 d 0 h")],
)  # fmt: skip
def test_a_length_of_time(seconds: float, told: str) -> None:
    assert words.took(seconds) == told


def test_values() -> None:
    assert words.number(20000.0) == "20000" and words.number(1e20) == "1e+20" and words.number(float("nan")) == "nan"
    assert words.number(0.123456) == "0.1235" and words.number(7) == "7" and words.number("nan") == "nan"
    assert words.number(12345.678) == "12346" and words.number(99999.9) == "100000" and words.number(-999.96) == "-1000"
    assert words.number(999.94) == "999.9" and words.number(1e15 + 0.5) == "1e+15" and words.number(1.5e-7) == "1.5e-07"
    assert words.value({"lr": 0.1, "sizes": [1, 2]}) == "lr=0.1, sizes=1, 2"
    assert words.value(list(range(25))).endswith("19, and 5 more")


def test_losses_and_accuracies_come_first() -> None:
    assert words.ranked({"step": 1, "lr": 2, "val_loss": 3, "accuracy": 4}) == ["val_loss", "accuracy", "lr"]


def test_a_name_that_would_fill_the_screen_is_cut() -> None:
    assert words.metric("a" * 60) == "a" * 60 and words.metric("a" * 5000) == "a" * 59 + "…"
