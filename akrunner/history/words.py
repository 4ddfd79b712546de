"""Numbers and values of a run in words, for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_HOUR, _MINUTE = 3600, 60
#: how many values of a list are shown
_MOST_VALUES = 20
#: metrics with these words in their names are shown first
_FIRST = ("loss", "acc", "auc")


def number(value: Any) -> str:
    """Return a number with as many digits as people compare; any other value as it is."""
    if isinstance(value, float):
        # a number that counts something is told to its last digit
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}"
    return str(value)


def took(seconds: float) -> str:
    """Return a length of time."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < _HOUR:
        return (
            f"{seconds // _MINUTE:.0f} min {seconds % _MINUTE:.0f} s"
            if seconds < 10 * _MINUTE
            else f"{seconds // _MINUTE:.0f} min"
        )
    return f"{seconds // _HOUR:.0f} h {seconds % _HOUR // _MINUTE:.0f} min"


def value(given: Any) -> str:
    """Return the value of an argument; of a long list its beginning."""
    if isinstance(given, Mapping):
        return ", ".join(f"{key}={value(inner)}" for key, inner in given.items())
    if isinstance(given, (list, tuple)):
        more = [f"and {len(given) - _MOST_VALUES:,} more"] if len(given) > _MOST_VALUES else []
        return ", ".join([*map(value, given[:_MOST_VALUES]), *more])
    return str(given)


def ranked(names: Iterable[str]) -> list[str]:
    """Return the names of metrics, the losses and accuracies first, the others in their order."""
    return sorted((name for name in names if name != "step"), key=lambda name: not any(part in name for part in _FIRST))
