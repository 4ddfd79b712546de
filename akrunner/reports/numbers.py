"""Values over time as they are drawn: fewer of them, and how fast counters grow."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


def thinned(values: Floats, most: int) -> Places:
    """Return the places of the values that are drawn: of each stretch the smallest and the largest, so that no peak is lost, and both ends.

    Args:
        values: [values], finite ones.
        most: about how many stay.
    Returns:
        [kept], in order.
    """
    if len(values) <= most:
        return np.arange(len(values))
    ends = np.linspace(0, len(values), max(1, most // 2) + 1).astype(np.intp)
    kept = {0, len(values) - 1}
    for begin, end in pairwise(ends):
        kept |= {int(begin + np.argmin(values[begin:end])), int(begin + np.argmax(values[begin:end]))}
    return np.array(sorted(kept))


def rates(seconds: Sequence[float], totals: Sequence[float]) -> list[tuple[float, float]]:
    """Return how fast a counter has grown, between each moment and the next.

    Args:
        seconds: [moments], in order.
        totals: [moments], what the counter said.
    Returns:
        pairs of the later moment, and how much came each second before it.
    """
    made = []
    for at in range(1, len(seconds)):
        took = seconds[at] - seconds[at - 1]
        if took > 0:
            made.append((seconds[at], max(0.0, (totals[at] - totals[at - 1]) / took)))
    return made
