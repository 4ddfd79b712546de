"""Numbers and values of a run in words, for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
#: seconds that are told with tenths are below, as 9.95 is told as 10
_TENTHS = 9.95
#: a number of four figures or more, if it is rounded to four, has no fraction that people compare
FOUR_FIGURES = 999.95
#: characters of a metric's name that are shown
_MOST_NAME = 60
#: more digits than a float has
_LONG = 1e15
#: how many values of a list are shown
_MOST_VALUES = 20
#: metrics with these words in their names are shown first
_FIRST = ("loss", "acc", "auc")


def number(value: Any) -> str:
    """Return a number with as many digits as people compare ("0.1235", "12346"); any other value as it is."""
    if isinstance(value, float):
        # a number that counts something is told to its last digit
        whole = abs(value) < _LONG and (value.is_integer() or abs(value) >= FOUR_FIGURES)
        return f"{value:.0f}" if whole else f"{value:.4g}"
    return str(value)


def took(seconds: float) -> str:
    """Return a length of time: "4.2 s", "40 s", "3 min 20 s", "2 h 5 min", "3 d 4 h"."""
    if seconds < _TENTHS:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def value(given: Any) -> str:
    """Return the value of an argument; of a long list its beginning."""
    if isinstance(given, Mapping):
        return ", ".join(f"{key}={value(inner)}" for key, inner in given.items())
    if isinstance(given, (list, tuple)):
        more = [f"and {len(given) - _MOST_VALUES:,} more"] if len(given) > _MOST_VALUES else []
        return ", ".join([*map(value, given[:_MOST_VALUES]), *more])
    return str(given)


def metric(name: str) -> str:
    """Return the name of a metric as a screen shows it: a script may give one that would fill the screen."""
    return name if len(name) <= _MOST_NAME else f"{name[: _MOST_NAME - 1]}…"


def ranked(names: Iterable[str]) -> list[str]:
    """Return the names of metrics, the losses and accuracies first, the others in their order."""
    return sorted((name for name in names if name != "step"), key=lambda name: not any(part in name for part in _FIRST))
