from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from akrunner.io.arrivals import by_size_or_age


def collect(rows: Iterator[int], size: int, seconds: float) -> list[list[int]]:
    return list(by_size_or_age(rows, list, size, seconds))  # type: ignore[arg-type]


def test_by_size() -> None:
    chunks = collect(iter(range(1000)), 64, 10.0)
    assert [row for chunk in chunks for row in chunk] == list(range(1000))
    assert max(map(len, chunks)) <= 64


def test_no_rows() -> None:
    assert collect(iter([]), 10, 0.01) == []


def test_a_lone_row_is_not_held_back() -> None:
    came = threading.Event()

    def rows() -> Iterator[int]:
        yield 1
        assert came.wait(60), "the first row was held back"
        yield 2

    got = []
    for chunk in by_size_or_age(rows(), list, 1000, 0.02):  # type: ignore[arg-type]
        got += chunk
        came.set()
    assert got == [1, 2]


def test_what_came_before_an_error_is_given_out() -> None:
    def rows() -> Iterator[int]:
        yield from range(5)
        raise OSError("gone")

    got: list[int] = []
    with pytest.raises(OSError, match="gone"):
        for chunk in by_size_or_age(rows(), list, 2, 0.01):  # type: ignore[arg-type]
            got += chunk
    assert got == list(range(5))


def test_the_source_is_held_back_and_let_go() -> None:
    drawn = 0

    def rows() -> Iterator[int]:
        nonlocal drawn
        while True:
            drawn += 1
            yield drawn

    chunks = by_size_or_age(rows(), list, 10, 0.01)  # type: ignore[arg-type]
    next(chunks)
    time.sleep(0.2)
    assert drawn <= 60
    chunks.close()  # type: ignore[attr-defined]
    time.sleep(0.1)
    assert not [t for t in threading.enumerate() if t.name == "akrunner-source"]
