"""Which rows of a table in a database are read where."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import akrunner
from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.host import databases
from akrunner.engines.flink.host.databases import SharedTable
from akrunner.engines.flink.taskmanager import sight
from akrunner.engines.flink.taskmanager.feed import TableFeed, feed_of
from akrunner.io.pg_ranges import Range, Ranges
from akrunner.io.shared import Unshared
from akrunner.io.table import TableSource

SCHEMA = pa.schema([("i", pa.int64())])
RANGES = Ranges({"shown": "postgresql://h/d?table=t"}, {"password": "p"})


class Held:
    """In place of a state of a table. Args: rows: the number of rows of each page; None: they cannot be counted."""

    ranges = RANGES

    def __init__(self, rows: list[int] | None, size: int = 0) -> None:
        self._rows = rows
        self.pages, self.bytes = len(rows or [0] * 99), size
        self.closed = False

    def counted(self, least: int) -> list[tuple[int, int, int]]:
        if self._rows is None:
            raise OSError("the connection was lost")
        return [(page, page + 1, rows) for page, rows in enumerate(self._rows) if rows]

    def close(self) -> None:
        self.closed = True


def shared(held: Any, tasks: int = 2, must: bool = False) -> SharedTable | None:
    def hold(readers: int, trusted: bool) -> Any:
        assert (readers, trusted) == (tasks, True)
        if isinstance(held, Exception):
            raise held
        return held

    return SharedTable.of(TableSource(SCHEMA, lambda: iter(()), held=hold), tasks, True, must)


def test_what_the_shares_read_is_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [7, 0, 3, 1, 9, 4, 4, 4, 5, 2, 8]

    def rows(ranges: Ranges, schema: pa.Schema, wanted: Any) -> Any:
        assert schema == SCHEMA and ranges == RANGES
        for one in wanted:
            assert isinstance(one, Range) and one.rows == counts[one.first] and one.end == one.first + 1
            yield pa.record_batch({"i": [1000 * one.first + row for row in range(one.start, one.stop)]})

    monkeypatch.setattr(Ranges, "rows", rows)
    held = Held(counts)
    table = shared(held)
    assert table is not None and not table.begun and table.asked == (("postgresql://h/d?table=t", 0),)
    place = sight.place_from(pb.Store.FromString(sight.word_of(table.place).SerializeToString()))
    assert place == RANGES
    seen = []
    for share in range(2):
        order = pb.Order(files=table.order(share), chunk_rows=4, chunk_bytes=1 << 20)
        feed = feed_of(place)
        assert isinstance(feed, TableFeed)
        found = [
            value for batch in feed._chunks(pb.Order.FromString(order.SerializeToString())) for value in batch["i"].to_pylist()
        ]
        assert len(found) in (sum(counts) // 2, sum(counts) // 2 + 1)
        seen += found
    assert sorted(seen) == [1000 * page + row for page, count in enumerate(counts) for row in range(count)]
    assert table.begun and not held.closed and not table.closed
    table.close()
    assert held.closed and table.closed


def test_a_task_that_is_over_reads_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ranges, "rows", lambda ranges, schema, wanted: (pa.record_batch({"i": [one.first]}) for one in wanted))
    table = shared(Held([1] * 8), 1)
    assert table is not None
    feed = feed_of(RANGES)
    feed.close()
    assert not list(feed._chunks(pb.Order(files=table.order(0), chunk_rows=4, chunk_bytes=1 << 20)))


@pytest.mark.parametrize(
    ("held", "words"),
    [
        (Unshared("it is a view"), "it is a view"),
        (OSError("the server does not answer"), "the server does not answer"),
        (Held([5] * 7), "it has 7 pages, and must have 8 for 2 tasks"),
    ],
)
def test_tables_that_the_submitter_reads(held: Any, words: str) -> None:
    assert shared(held) is None
    with pytest.raises(
        akrunner.ConfigError, match=rf"^files_there=True \(--flink-files-there\): the .* themselves: {words}; leave it out"
    ):
        shared(held, must=True)
    assert getattr(held, "closed", True)


def test_tables_whose_rows_cannot_be_divided() -> None:
    few, broken = shared(Held([5] * 7 + [0] * 9)), shared(Held(None))
    assert few is not None and few.shares is None and not few.broken
    assert few.undivided == "the number of its ranges of pages with rows is 7, and must be 8 for 2 tasks"
    assert broken is not None and broken.shares is None
    assert broken.undivided == broken.broken == "its rows cannot be counted: the connection was lost"


def test_large_tables_are_worth_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "WORTH", 100)
    for size, is_worth_it in ((200, True), (199, False)):
        table = shared(Held([1] * 8, size))
        assert table is not None and table.is_worth_it is is_worth_it


def test_a_machine_is_asked_for_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ranges, "unseen", lambda ranges: "it has no driver")
    failed = SimpleNamespace()
    assert sight.unseen(RANGES, [], failed) == "it has no driver"
