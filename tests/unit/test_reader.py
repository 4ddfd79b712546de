"""One thread reads items, and another one takes them: all of them, in order, with the error at their end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from akrunner.reader import Late, Reader
from tests.conftest import ENDS


class _Items:
    """Items that say what was done with them.

    Attributes: read: those that were read; closed: set once `close` was called; closers: names of the threads that called it.
    """

    def __init__(self, items: list[int], error: BaseException | None = None) -> None:
        self._items = iter(items)
        self._error = error
        self.read: list[int] = []
        self.closed = threading.Event()
        self.closers: list[str] = []

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        for item in self._items:
            self.read.append(item)
            return item
        raise self._error if self._error is not None else StopIteration

    def close(self) -> None:
        self.closers.append(threading.current_thread().name)
        self.closed.set()


def test_all_items_come_in_their_order_and_none_after_the_last() -> None:
    reader = Reader(iter(range(100)), "numbers")
    assert [reader.next() for _ in range(100)] == list(range(100)), "0 is an item, too"
    assert reader.next() is None and reader.next() is None, "however often it is asked"
    reader.stop(ENDS)


def test_without_items_the_first_is_none() -> None:
    reader: Reader[int] = Reader(iter(()), "nothing")
    assert reader.next() is None
    reader.stop(ENDS)


def test_an_error_comes_after_the_items_that_came_before_it_and_again() -> None:
    items = _Items([1, 2], ValueError("the file is cut"))
    reader = Reader(items, "broken")
    assert [reader.next(), reader.next()] == [1, 2]
    for _ in range(2):
        with pytest.raises(ValueError, match="the file is cut"):
            reader.next()
    assert items.closed.wait(ENDS) and len(items.closers) == 1


def test_even_an_exit_in_the_thread_reaches_who_waits() -> None:
    reader = Reader(_Items([], SystemExit(3)), "exit")
    with pytest.raises(SystemExit):
        reader.next()


def test_an_error_of_closing_is_an_error_of_reading() -> None:
    class Unclosable(_Items):
        def close(self) -> None:
            raise OSError("the disk is gone")

    reader = Reader(Unclosable([1]), "unclosable")
    assert reader.next() == 1
    with pytest.raises(OSError, match="the disk is gone"):
        reader.next()


def test_items_are_closed_once_by_the_thread_that_read_them() -> None:
    items = _Items([1])
    reader = Reader(items, "closing")
    assert reader.next() == 1 and reader.next() is None
    assert items.closers == ["closing"], "before the end is told"
    reader.stop(ENDS)
    assert items.closers == ["closing"]


def test_an_item_that_does_not_come_in_time_is_late_and_comes_later() -> None:
    may = threading.Event()

    def slow() -> Iterator[int]:
        assert may.wait(ENDS)
        yield 1

    reader = Reader(slow(), "slow")
    with pytest.raises(Late):
        reader.next(0)
    may.set()
    assert reader.next(ENDS) == 1 and reader.next(ENDS) is None


def test_one_item_waits_and_one_more_is_read_ahead() -> None:
    asked = 0
    ahead: list[int] = []

    def items() -> Iterator[int]:
        for number in range(300):
            ahead.append(number - asked)
            yield number

    reader = Reader(items(), "ahead")
    for number in range(300):
        asked += 1
        assert reader.next() == number
    assert max(ahead) == 1
    reader.stop(ENDS)


def test_who_stops_it_waits_until_the_items_are_closed() -> None:
    items = _Items(list(range(1000)))
    reader = Reader(items, "stopped")
    assert reader.next() == 0
    reader.stop(ENDS)
    assert items.closed.is_set() and len(items.read) < 1000
    reader.stop(ENDS)
    assert len(items.closers) == 1


def test_who_stops_a_thread_that_is_stuck_does_not_wait_for_ever() -> None:
    may, closed = threading.Event(), threading.Event()

    def stuck() -> Iterator[int]:
        try:
            assert may.wait(ENDS)
            yield 1
        finally:
            closed.set()

    reader = Reader(stuck(), "stuck")
    reader.stop(0)
    assert not closed.is_set()
    may.set()
    assert closed.wait(ENDS), "it ends when the library returns"


def test_the_thread_has_its_name_and_holds_no_program_up() -> None:
    reader = Reader(iter([1, 2, 3]), "rows of a.csv")
    (thread,) = [one for one in threading.enumerate() if one.name == "rows of a.csv"]
    assert thread.daemon
    reader.stop(ENDS)
    assert not thread.is_alive()
