"""One state of a MaxCompute table: ranges of its download sessions, asked for side by side, and again where that may help."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SourceError
from akrunner.tables import maxcompute_reading
from akrunner.tables.ddl import parse_create
from akrunner.tables.maxcompute_reading import MaxComputeReading, worth_another
from akrunner.tables.names import Partition, TableName

NAME = TableName.parse("odps://demo/tables/t")


class Session:
    """A download session. Attributes: asked: (first row, rows, columns) of each range; fails: what the next ones raise."""

    def __init__(self, columns: dict[str, Any], asked: list[Any], fails: list[Exception]) -> None:
        self._rows, self.asked, self.fails = pa.table(columns), asked, fails
        self.count = self._rows.num_rows
        self.short = 0

    def open_arrow_reader(self, first: int, count: int, columns: list[str]) -> Session:
        self.asked.append((first, count, tuple(columns)))
        if self.fails:
            raise self.fails.pop(0)
        self._range = self._rows.select(columns).slice(first, count - self.short)
        return self

    def __enter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self._range.to_batches(max_chunksize=3))

    def __exit__(self, *error: object) -> None:
        pass


class Store:
    """Sessions of partitions. Attributes: opened: partitions, in the order in which sessions were opened; changed: of a partition."""

    def __init__(self, **parts: dict[str, Any]) -> None:
        self._parts = parts
        self.asked: list[Any] = []
        self.fails: list[Exception] = []
        self.opened: list[Partition] = []
        self.version = 1
        self.sessions: list[Session] = []

    def modified(self, name: TableName, partition: Partition) -> int:
        return self.version

    def download(self, name: TableName, partition: Partition) -> Session:
        self.opened.append(partition)
        self.sessions.append(Session(self._parts["_".join(value for _, value in partition) or "all"], self.asked, self.fails))
        return self.sessions[-1]


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits between two tries."""
    real = maxcompute_reading._Pool

    class Pool(real):  # type: ignore[valid-type, misc]
        def __init__(self, threads: int) -> None:
            super().__init__(threads)
            self.over.wait = lambda seconds: self.over.is_set()

    monkeypatch.setattr(maxcompute_reading, "_Pool", Pool)


def opened(store: Any, columns: str, *partitions: str, threads: int = 1) -> MaxComputeReading:
    info = parse_create(f"create table t ({columns}) {'partitioned by (dt string)' if partitions else ''}").info
    assert info is not None
    return MaxComputeReading(store, NAME, info, [(("dt", one),) for one in partitions] or [()], threads)


def rows(reading: MaxComputeReading, columns: Sequence[str] | None = None, *args: Any) -> list[tuple[Any, ...]]:
    return [row for batch in reading.read(columns, *args) for row in zip(*batch.to_pydict().values())]


@pytest.mark.parametrize("threads", [1, 4])
def test_rows_come_in_the_tables_order(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maxcompute_reading, "_FIRST_RANGE", 2)
    monkeypatch.setattr(maxcompute_reading, "_SHORTEST_RANGE", 2)
    monkeypatch.setattr(maxcompute_reading, "_RANGE_BYTES", 32)
    store = Store(x={"a": list(range(10))}, y={"a": [10, 11]}, z={"a": pa.array([], pa.int64())})
    with opened(store, "a bigint", "x", "z", "y", threads=threads) as reading:
        assert reading.rows == 12
        assert rows(reading, ["a", "DT"]) == [(a, "x" if a < 10 else "y") for a in range(12)]
        for start, most in ((0, 0), (9, 2), (11, 5), (12, None), (3, None), (-2, 4)):
            stop = 12 if most is None else min(12, start + most)
            assert [row[0] for row in rows(reading, None, start, most)] == list(range(max(0, start), stop))


def test_only_what_is_asked_for_is_fetched() -> None:
    store = Store(all={"a": [1, 2, 3], "b": ["x", None, "z"], "c": [0.5] * 3})
    with opened(store, "a bigint, b string, c double") as reading:
        assert rows(reading, ["B"], 1, 1) == [(None,)]
        batch = next(reading.read(["c", "a", "c"]))
        assert batch.schema.names == ["c", "a", "c"]
    assert store.asked == [(1, 1, ("b",)), (0, 3, ("c", "a"))]
    with pytest.raises(SourceError, match="has no column 'nope'"):
        opened(store, "a bigint").read(["nope"])


def test_partition_columns_alone_ask_for_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maxcompute_reading, "_BATCH", 2)
    store = Store(x={"a": [1, 2, 3]}, y={"a": [4]})
    with opened(store, "a bigint", "x", "y") as reading:
        assert rows(reading, ["dt"], 1, 3) == [("x",), ("x",), ("y",)]
        assert [batch.num_rows for batch in reading.read(["dt"])] == [2, 1, 1]
    assert store.asked == []


def test_ranges_become_as_long_as_their_rows_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maxcompute_reading, "_FIRST_RANGE", 10)
    monkeypatch.setattr(maxcompute_reading, "_SHORTEST_RANGE", 5)
    monkeypatch.setattr(maxcompute_reading, "_RANGE_BYTES", 8 * 20)
    monkeypatch.setattr(maxcompute_reading, "_LONGEST_RANGE", 15)
    with opened(Store(all={"a": list(range(60))}), "a bigint") as reading:

        def ranges(row_bytes: float) -> list[tuple[int, int]]:
            reading._row_bytes = row_bytes
            return [(first, count) for _, first, count in reading._ranges(3, 45)]

        assert ranges(0) == [(3, 10), (13, 10), (23, 10), (33, 10), (43, 2)], "nothing is known yet"
        assert ranges(8) == [(3, 15), (18, 15), (33, 12)] and ranges(13) == [(3, 12), (15, 12), (27, 12), (39, 6)]
        assert ranges(10**9)[:2] == [(3, 5), (8, 5)]
        assert len(rows(reading)) == 60 and reading._row_bytes == 8


def test_values_come_in_the_tables_types() -> None:
    with opened(Store(all={"a": pa.array([1, None], pa.int64())}), "a tinyint") as reading:
        assert next(reading.read()).schema.types == [pa.int8()]
    with opened(Store(all={"a": [300]}), "a tinyint") as reading:
        with pytest.raises(SourceError, match="column 'a' is tinyint, and int64 came: "):
            rows(reading)


class ODPSError(Exception):
    """Attributes: status_code; code."""

    def __init__(self, status: int | None = None, code: str = "") -> None:
        super().__init__("answered so")
        self.code = code
        if status is not None:
            self.status_code = status


@pytest.mark.parametrize(
    "error, again",
    [
        (ODPSError(500), True),
        (ODPSError(429), True),
        (ODPSError(408), True),
        (ODPSError(403), False),
        (ODPSError(404), False),
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (EOFError(), True),
        (pa.ArrowInvalid("cut"), True),
        (maxcompute_reading._Short(), True),
        (type("HTTPError", (Exception,), {})(), True),
        (type("ChecksumError", (type("BaseODPSError", (Exception,), {}),), {})(), True),
        (type("NoPermission", (type("BaseODPSError", (OSError,), {}),), {})(), False),
        (ValueError("of ours"), False),
        (KeyError(), False),
    ],
    ids=repr,
)
def test_whether_a_request_may_succeed_when_it_is_made_again(error: Exception, again: bool) -> None:
    assert worth_another(error) is again


def test_a_range_that_fails_is_asked_for_again_whole() -> None:
    store = Store(all={"a": [1, 2, 3, 4]})
    with opened(store, "a bigint") as reading:
        store.fails += [ConnectionResetError(), ODPSError(503)]
        assert rows(reading) == [(1,), (2,), (3,), (4,)] and store.asked == [(0, 4, ("a",))] * 3
        store.fails += [ODPSError(403)]
        with pytest.raises(SourceError, match="source: odps://demo/tables/t: cannot read its rows from 2 on: "):
            rows(reading, None, 2)
        store.fails += [ConnectionResetError()] * 9
        store.asked.clear()
        with pytest.raises(SourceError, match="cannot read its rows from 0 on"):
            rows(reading)
        assert len(store.asked) == maxcompute_reading._TRIES


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 61.0])
    store = Store(all={"a": [1]})
    with opened(store, "a bigint") as reading:
        monkeypatch.setattr(maxcompute_reading.time, "monotonic", lambda: next(clock))
        store.fails += [ConnectionResetError()]
        with pytest.raises(SourceError):
            rows(reading)
    assert len(store.asked) == 1


def test_rows_that_are_missing_are_no_end_of_the_table() -> None:
    store = Store(all={"a": [1, 2, 3, 4]})
    with opened(store, "a bigint") as reading:
        store.sessions[0].short = 1
        with pytest.raises(SourceError, match="3 of 4 rows came, and the answer ended as if it were whole"):
            rows(reading)
    assert len(store.asked) == 4


@pytest.mark.parametrize(
    "error", [ODPSError(400, "NoSuchDownload"), ODPSError(404, "DownloadSessionExpired")], ids=["gone", "over"]
)
def test_a_session_that_is_over_is_opened_anew(error: Exception) -> None:
    store = Store(all={"a": [1, 2]})
    with opened(store, "a bigint") as reading:
        store.fails += [error]
        assert rows(reading) == [(1,), (2,)] and len(store.opened) == 2
        assert rows(reading) == [(1,), (2,)] and len(store.opened) == 2, "it is the part's from now on"
        store.fails += [error] * 2
        with pytest.raises(SourceError):
            rows(reading)
        assert len(store.opened) == 3


def test_a_table_that_has_changed_behind_a_session_that_is_over() -> None:
    store = Store(all={"a": [1, 2]})
    with opened(store, "a bigint") as reading:
        store.fails += [ODPSError(400, "NoSuchDownload")]
        store.version = 2
        with pytest.raises(SourceError, match=r"was changed while it was read \(it had 2 rows, and has 2\).*run the job again"):
            rows(reading)


def test_a_partition_that_cannot_be_opened_ends_the_threads() -> None:
    store = Store(x={"a": [1]})
    before = threading.active_count()
    with pytest.raises(SourceError, match="source: odps://demo/tables/t: cannot open it: "):
        opened(store, "a bigint", "x", "nope", threads=2)
    for thread in threading.enumerate():
        if thread.name == "akrunner-maxcompute":
            thread.join(10)
    assert threading.active_count() <= before


def test_what_is_closed_is_not_read() -> None:
    reading = opened(Store(all={"a": [1, 2]}), "a bigint")
    reading.close()
    reading.close()
    with pytest.raises(SourceError, match="source: the reading is closed"):
        rows(reading)


def test_ranges_that_nobody_draws_any_more_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maxcompute_reading, "_FIRST_RANGE", 1)
    monkeypatch.setattr(maxcompute_reading, "_SHORTEST_RANGE", 1)
    monkeypatch.setattr(maxcompute_reading, "_LONGEST_RANGE", 1)
    with opened(Store(all={"a": list(range(20))}), "a bigint", threads=2) as reading:
        for _ in range(5):
            batches = reading.read()
            next(batches)
            batches.close()  # type: ignore[attr-defined]
        assert [reading._ahead.acquire(blocking=False) for _ in range(3)] == [True, True, False]
