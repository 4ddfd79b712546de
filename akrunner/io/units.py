"""Converts whole columns of text to UTF-16 code units, as Java counts them, and back. Nothing is done row by row.

::

    column of text --units_of--> units [all], units of each row        units, lengths --texts_of--> column of text
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def units_of(texts: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return (the UTF-16 units of all texts, end to end; the number of units of each text) of a column of strings without
    nulls."""
    texts = texts.cast(pa.large_string())
    buffer = texts.buffers()[2]
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(buffer, np.uint8)[offsets[0] : offsets[-1]] if buffer is not None else np.zeros(0, np.uint8)
    # how many units each byte of UTF-8 begins: one; two for a character beyond the first plane; none for a continuation byte
    begun = np.where(data >= 0xF0, 2, np.where((data & 0xC0) == 0x80, 0, 1))
    ends = np.concatenate([[0], np.cumsum(begun)])
    units = np.frombuffer(data.tobytes().decode("utf-8").encode("utf-16-le"), np.uint16)
    return units, np.diff(ends[offsets - offsets[0]])


def texts_of(units: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> pa.Array:
    """Return units as a column of strings, each of as many units as `lengths` says.

    Raises:
        UnicodeDecodeError: half of a surrogate pair stands alone.
    """
    raw = units.astype("<u2").tobytes().decode("utf-16-le").encode("utf-8")
    pair = (units & 0xF800) == 0xD800
    size = np.where(units < 0x80, 1, np.where(units < 0x800, 2, np.where(pair, 2, 3)))
    ends = np.concatenate([[0], np.cumsum(size)])
    offsets = ends[np.concatenate([[0], np.cumsum(lengths)])].astype(np.int64)
    found = pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(raw))
    return found.cast(pa.string())


def cut(bodies: pa.Array, sizes: np.ndarray[Any, Any], counts: np.ndarray[Any, Any]) -> pa.Array:
    """Cut the texts out of bodies that hold several, each followed by a space.

    Args:
        bodies: one text for each row.
        sizes: the number of units of each text; -1: the text is null.
        counts: how many texts each row has.
    """
    units, lengths = units_of(bodies)
    # a null has no units, but has its space
    taken = np.maximum(sizes, 0)
    owner = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    spent = np.cumsum(taken + 1) - (taken + 1)
    begin = (np.cumsum(lengths) - lengths)[owner] + spent - spent[first][owner] if len(sizes) else np.zeros(0, np.int64)
    at = within(begin, taken)
    found = texts_of(units[at], taken)
    return found if (sizes >= 0).all() else found.take(pa.array(np.arange(len(sizes)), mask=sizes < 0))


def within(begin: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the indices of all the elements of several stretches, one stretch after another.

    Args:
        begin: the index at which each stretch begins.
        lengths: the length of each stretch.
    """
    total = int(lengths.sum())
    ends = np.cumsum(lengths)
    places: np.ndarray[Any, Any] = np.arange(total) + np.repeat(begin - (ends - lengths), lengths)
    return places
