"""Rows and columns of tables, as scripts give and get them: slices, columns, shapes of what is written, types; spools and their credits."""

from __future__ import annotations

import datetime
import decimal
import functools
import gc
import itertools
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from akrunner import codec
from akrunner import errors as hosts_errors
from akrunner.wire import frames, messages
from akrunner.wire import tables as wire
from akrunner.wire.frames import WireError
from akrunner.worker.tables import asking, errors, rows, sharing, work
from akrunner.worker.tables.broker import Broker
from akrunner.worker.tables.queues import _cells
from akrunner.worker.tables.reader import Records, TableReader, TextTableReader
from akrunner.worker.tables.rows import Table, chosen, names_of, sliced, text_of
from akrunner.worker.tables.values import as_column, columns_of
from akrunner.worker.tables.writer import TableWriter

BIGINT = {"name": "x", "type": "bigint", "dtype": "int64", "partition": False, "nullable": True}
INT = {**BIGINT, "name": "i", "type": "int", "dtype": "int32"}
DOUBLE = {**BIGINT, "name": "y", "type": "double", "dtype": "float64"}
TEXT = {**BIGINT, "name": "s", "type": "string", "dtype": "bytes"}
TRUTH = {**BIGINT, "name": "b", "type": "boolean", "dtype": "bool"}
DATETIME = {**TEXT, "name": "d", "type": "datetime"}
DATE = {**TEXT, "name": "e", "type": "date"}
REAL = {**BIGINT, "name": "r", "type": "float", "dtype": "float32"}
MONEY = {**TEXT, "name": "m", "type": "decimal(10,2)"}
LIST = {**TEXT, "name": "l", "type": "map<string,double>"}
NUMBERS = {**TEXT, "name": "n", "type": "ARRAY<DOUBLE>"}
WHOLE = {**TEXT, "name": "w", "type": "ARRAY<ARRAY<BIGINT>>"}
PT = {**TEXT, "name": "pt", "partition": True}
COLUMNS = [BIGINT, DOUBLE, TEXT]


@pytest.mark.parametrize("rows, count", [(10, 3), (0, 2), (2, 5), (7, 7), (1000, 1), (11, 4)])
def test_slices_are_contiguous_and_the_first_have_a_row_more(rows: int, count: int) -> None:
    found = [sliced(rows, i, count) for i in range(count)]
    assert found[0][0] == 0 and found[-1][1] == rows
    assert all(a[1] == b[0] for a, b in itertools.pairwise(found))
    sizes = [stop - start for start, stop in found]
    assert sizes == sorted(sizes, reverse=True) and max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("given", [0.5, float("nan"), float("inf"), None, "x", [1, 2], np.float32(1.5)])
def test_what_is_no_whole_number(given: Any) -> None:
    for slice_id, count, name in ((given, 2, "slice_id"), (0, given, "slice_count")):
        with pytest.raises(ValueError, match=f"{name}=.* must be a whole number"):
            sliced(10, slice_id, count)
    assert sliced(10, "1", np.int64(2)) == sliced(10, 1.0, 2) == (5, 10)


@pytest.mark.parametrize("slice_id, count", [(2, 2), (-1, 2), (0, 0), (5, 1)])
def test_no_such_slice(slice_id: int, count: int) -> None:
    with pytest.raises(ValueError, match="slice_count"):
        sliced(10, slice_id, count)


@pytest.mark.parametrize("name, meant", [("slice_ids", "slice_id"), ("sliceid", "slice_id"), ("selcted_cols", "selected_cols"), ("selected_columns", "selected_cols")])  # fmt: skip
def test_a_misspelt_argument_is_an_error(name: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"TableReader has no argument {name}; did you mean {meant}"):
        TableReader("odps://p/tables/t", **{name: 1})


def test_an_argument_of_another_version_is_passed_over() -> None:
    rows.check_arguments("TableReader", {"cache": 1, "shared_name": ""}, rows.READ_BY)


def test_which_columns_are_read() -> None:
    columns = [*COLUMNS, PT]
    assert chosen("t", columns, "", None) == COLUMNS, "not those it is partitioned by"
    assert chosen("t", columns, " s , X", "") == [TEXT, BIGINT], "in the order they are named"
    assert chosen("t", columns, ["pt", "x"], []) == [PT, BIGINT]
    assert chosen("t", columns, None, "Y") == [BIGINT, TEXT]
    for selected, excluded, words in (
        ("x", "y", "not both"),
        ("z", "", "no column 'z'; it has x, y, s, pt"),
        ("", "x,y,s", "leaves no"),
    ):
        with pytest.raises(ValueError, match=words) as told:
            chosen("t", columns, selected, excluded)
        assert not isinstance(told.value, errors.NoSuchTable)
    assert names_of(b"a,`b`,") == ["a", "b"] and names_of(None) == []
    assert text_of(b" t ") == text_of(np.array("t")) == text_of(["t"]) == text_of(np.str_("t")) == "t"
    with pytest.raises(TypeError, match="must be text, not int"):
        text_of(3)
    with pytest.raises(ValueError, match="no text that UTF-8 can say"):
        text_of("\ud800")


ROW = [(1, 2.5, "a")]
ROWS = [(1, 2.5, "a"), (2, 3.5, "b")]
STRUCTURED = np.array(ROWS, dtype=[("p", "i8"), ("q", "f8"), ("r", "U5")])
OBJECTS = np.empty(2, object)
OBJECTS[:] = ROWS
SHAPES = {
    "tuple": (ROW[0], ROW), "list": (list(ROW[0]), ROW), "numpy scalars": ((np.int64(1), np.float32(2.5), np.str_("a")), ROW),
    "arrays of no dimension": ((np.array(1), np.array(2.5), np.array("a")), ROW), "rows": (ROWS, ROWS), "tuple of rows": (tuple(ROWS), ROWS),
    "lists": ([list(row) for row in ROWS], ROWS), "zip": (zip([1, 2], [2.5, 3.5], ["a", "b"]), ROWS), "generator": (iter(ROWS), ROWS),
    "structured": (STRUCTURED, ROWS), "one of them": (STRUCTURED[0], ROW), "objects": (OBJECTS, ROWS), "one row of many": ([ROWS[0]], ROW),
    "recarray": (STRUCTURED.view(np.recarray), ROWS), "mapped": (map(tuple, ROWS), ROWS),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_in_any_shape(shape: str) -> None:
    given, rows = SHAPES[shape]
    columns = columns_of(given, 3)
    assert columns is not None
    got = [list(as_column("t", column, one)[0]) for column, one in zip(COLUMNS, columns)]
    assert got == [[row[0] for row in rows], [row[1] for row in rows], [row[2].encode() for row in rows]]


def test_rows_of_one_type_and_of_one_column() -> None:
    assert [list(one) for one in columns_of(np.arange(6).reshape(3, 2), 2) or []] == [[0, 2, 4], [1, 3, 5]]
    assert [list(one) for one in columns_of(np.arange(3), 3) or []] == [[0], [1], [2]]
    assert columns_of([5], 1) == [(5,)] == columns_of(5, 1) and columns_of("text", 1) == [("text",)]
    assert columns_of([], 2) is None is columns_of(iter(()), 2) is columns_of(np.zeros((0, 2)), 2)
    for given in ((1, 2), [(1, 2), (1,)], [(1,), 5], np.zeros((2, 3)), STRUCTURED, np.arange(4)):
        with pytest.raises(ValueError, match="a row of 1 columns was expected"):
            columns_of(given, 1, "t")


@pytest.mark.parametrize(
    "column, values, wanted",
    [
        (BIGINT, [1, None, np.int32(3)], [1, None, 3]),
        (BIGINT, np.array([1, 2], np.uint8), [1, 2]),
        (DOUBLE, [1, 2.5, None], [1.0, 2.5, None]),
        (DOUBLE, np.array([1, 2]), [1.0, 2.0]),
        (TEXT, ["é", b"\xff", None], ["é".encode(), b"\xff", None]),
        (TRUTH, [True, None, np.bool_(False)], [True, None, False]),
        (DATETIME, ["2024-01-02 03:04:05", None], [b"2024-01-02 03:04:05", None]),
        (BIGINT, [None, None], [None, None]),
        (DATETIME, np.array(["2024-01-02T03:04:05", "NaT"], "M8[s]"), [b"2024-01-02T03:04:05", None]),
        (
            DATETIME,
            [np.datetime64("NaT"), np.datetime64("2024-01-02T03:04:05.123456", "us")],
            [None, b"2024-01-02T03:04:05.123456"],
        ),
        (DATE, np.array(["2020-01-01", "NaT"], "M8[s]"), [b"2020-01-01T00:00:00", None]),
        (REAL, [1e300 * 1e300, 100_000_000, 0.1], [float("inf"), 1e8, np.float32(0.1)]),
        (LIST, [[np.float32(1.5), b"a"], np.array([1]), {1: None}], [b'[1.5, "a"]', b"[1]", b'{"1": null}']),
        (LIST, [[decimal.Decimal("1.50"), datetime.date(2024, 1, 2)]], [b'["1.50", "2024-01-02"]']),
        (NUMBERS, [np.float32([1.5, 2]), (1, None), "[1]", []], [b"[1.5, 2.0]", b"[1, null]", b"[1]", b"[]"]),
        (WHOLE, [[[1], None, np.array([2])]], [b"[[1], null, [2]]"]),
        (MONEY, [1.5, decimal.Decimal("2.50"), "3"], [b"1.5", b"2.50", b"3"]),
    ],
)
def test_values_of_a_column(column: dict[str, Any], values: Any, wanted: list[Any]) -> None:
    got, valid = as_column("t", column, values)
    assert [value if there else None for value, there in zip(got, [True] * len(got) if valid is None else valid)] == wanted


@pytest.mark.parametrize(
    "column, values, row",
    [
        (BIGINT, [1, 2.5], 11), (BIGINT, ["1"], 10), (BIGINT, [2**70], 10), (BIGINT, [True], 10), (BIGINT, [1, [2]], 11), (INT, [1, 2**31], 11),
        (DOUBLE, ["x"], 10), (DOUBLE, [2**53 + 1], 10), (TEXT, ["a", 5], 11), (TEXT, [1.5], 10), (TRUTH, [1], 10), (BIGINT, [{}], 10),
        (TEXT, ["a", "\ud800"], 11), (REAL, [1e300], 10), (REAL, [2**24 + 1], 10), (LIST, [["a", {1}]], 10), (LIST, ["[1]", {1: "a", "1": "b"}], 11), (DATETIME, [5], 10),
        (DATETIME, ["2024-01-02", 1.5], 11), (DATETIME, ["2024-01-02", datetime.datetime.now(datetime.UTC)], 11), (MONEY, [float("nan")], 10), (MONEY, [True], 10), (MONEY, np.array([np.inf]), 10),
        (BIGINT, np.array([0.5]), 10), (BIGINT, [float("nan")], 10), (DOUBLE, [None, 2**53 + 1], 11), (DOUBLE, [1.0, 2**53 + 1], 11),
        (NUMBERS, [[1], [1, "x"]], 11), (NUMBERS, [{}], 10), (NUMBERS, [[True]], 10), (WHOLE, [[[1.0]]], 10), (WHOLE, [[[1]], [1]], 11),
        (DOUBLE, [None, True], 11), (BIGINT, [2, None, True], 12), (BIGINT, [-1, 2**63], 11), (REAL, [0.5, 2**24 + 1], 11), (TRUTH, [True, 1], 11),
    ],
)  # fmt: skip
def test_values_a_column_refuses(column: dict[str, Any], values: Any, row: int) -> None:
    words = f"table t: column '{column['name']}' is {column['type']}, and row {row} has"
    with pytest.raises(TypeError, match=re.escape(words)):
        as_column("t", column, values, 10)


def test_a_row_that_begins_with_a_list() -> None:
    for value in ([1.0], (1.0,)):
        with pytest.raises(ValueError, match="a single row whose first value is a list or tuple is given in a list"):
            columns_of((value, 2), 2, "t")
        assert columns_of([(value, 2)], 2, "t") == [(value,), (2,)]


def test_values_that_are_cast_if_that_is_asked_for() -> None:
    def cast(column: dict[str, Any], values: Any) -> list[Any]:
        return list(as_column("t", column, values, 0, True)[0])

    assert cast(BIGINT, ["12", b"-3", 4.0, True]) == [12, -3, 4, 1] and cast(DOUBLE, ["1.5", True]) == [1.5, 1.0]
    assert cast(TEXT, [1, 2.5, True, None]) == [b"1", b"2.5", b"true", b""] and cast(TRUTH, [0, 1]) == [False, True]
    whole = [2.0**31 - 1, -(2.0**31)]
    assert (
        cast(INT, whole) == whole
        and cast(BIGINT, [-(2.0**63)]) == [-(2**63)]
        and cast(DOUBLE, [True, None, 2.5]) == [1, 0, 2.5]
    )
    beyond: list[Any] = [
        (INT, [3e9]),
        (INT, [1, -3e9]),
        (INT, np.array([3e9], np.float32)),
        (BIGINT, [2.0**63]),
        (INT, ["3000000000"]),
    ]
    for column, values in [(BIGINT, ["1.5"]), (BIGINT, [1.5]), (DOUBLE, ["x"]), (TRUTH, [2]), *beyond]:
        with pytest.raises(errors.TableWriteError):
            cast(column, values)


@pytest.mark.parametrize(
    "make", [lambda: np.zeros((2, 2), np.int64), lambda: np.zeros(2, [("a", "i8"), ("b", "i8")]), lambda: np.zeros(2, np.int64)]
)
def test_what_a_writer_holds_is_its_own(make: Any) -> None:
    """A script may fill the same array again."""
    values = make()
    columns = columns_of(values, 2) or []
    held = [as_column("t", BIGINT, one)[0] for one in columns]
    values.fill(7) if values.dtype.names is None else values.fill((7, 7))
    assert all(list(one) == [0] * len(one) for one in held) and len(held) == 2


def test_what_is_masked_is_null() -> None:
    got, valid = as_column("t", DOUBLE, np.ma.masked_array([1.5, 2.5], [False, True]))
    assert valid is not None and valid.tolist() == [True, False] and got[0] == 1.5
    assert as_column("t", DOUBLE, np.ma.masked_array([1.5], [False]))[1] is None


_MASKED = np.ma.masked_array([1.5, 2.5], [0, 1])
_RECORDS = np.ma.masked_array([(1.5, 2.5)] * 2, [(0, 1)] * 2, dtype=[("a", "f8"), ("b", "f8")])


@pytest.mark.parametrize(
    "given",
    [
        _MASKED,
        np.ma.masked_array([[1.5, 2.5]] * 2, [[0, 1]] * 2),
        [_MASKED, _MASKED],
        list(zip([1.5, 1.5], np.ma.masked_all(2))),
        (1.5, np.ma.masked),
        [(np.array(1.5), np.ma.masked_array(2.5, True))] * 2,
        np.array([1.5, np.ma.masked], object),
        _RECORDS,
        list(_RECORDS),
        _RECORDS[0],
    ],
)
@pytest.mark.parametrize("column, null", [(DOUBLE, 0.0), (TEXT, b"")])
def test_what_is_masked_is_null_in_rows_of_any_shape(given: Any, column: dict[str, Any], null: Any) -> None:
    rows = columns_of(given, 2) or []
    first, valid = as_column("t", DOUBLE, rows[0])
    assert set(first) == {1.5} and (valid is None or valid.all())
    second, valid = as_column("t", column, rows[1])
    assert len(second) == len(first) and set(second) == {null} and valid is not None and not valid.any()


@pytest.mark.parametrize(
    "given",
    [
        [(1, pd.NA), (2, "b")],
        [[1, pd.NaT], [2, "b"]],
        pd.DataFrame({"a": pd.array([1, 2], "Int64"), "b": pd.array([None, "b"], "string")}),
        np.array([[1, pd.NA], [2, "b"]], object),
    ],
)
def test_what_pandas_has_for_missing_is_null(given: Any) -> None:
    rows = columns_of(given, 2, "t") or []
    assert list(as_column("t", BIGINT, rows[0])[0]) == [1, 2]
    texts, valid = as_column("t", TEXT, rows[1])
    assert list(texts) == [b"", b"b"] and valid is not None and valid.tolist() == [False, True]
    for column in (BIGINT, DOUBLE, TRUTH):
        assert as_column("t", column, [pd.NA, pd.NA])[1].tolist() == [False, False]
    assert list(as_column("t", LIST, [[1.5, pd.NA]])[0]) == [b"[1.5, null]"]


@pytest.mark.parametrize(
    "column, values, said",
    [
        (DATE, [datetime.datetime(2020, 1, 1, 10)], r"\(datetime\) for it, with a time of day.*value.date\(\)"),
        (DATE, [pd.Timestamp("2020-01-01 10:00")], r"\(Timestamp\) for it, with a time of day.*value.date\(\)"),
        (DATE, np.array(["2020-01-01T10:00"], "M8[s]"), r"\(datetime64\[s\]\) for it, with a time of day.*astype"),
        (DATE, [np.datetime64("2020-01")], r"'2020-01' \(datetime64\[M\]\) for it, which names no day: values.astype"),
        (DATETIME, np.array(["2020"], "M8[Y]"), r"'2020' \(datetime64\[Y\]\) for it, which names no day"),
        (TEXT, np.array(["2020-01-01"], "M8[D]"), r"\(datetime64\[D\]\) for it"),
    ],
)
def test_a_time_that_does_not_fit_is_named_as_it_is(column: dict[str, Any], values: Any, said: str) -> None:
    with pytest.raises(errors.TableWriteError, match=said):
        as_column("t", column, values)


def test_records_are_a_list_and_an_array() -> None:
    records = Records([(1, 2.0, b"a"), (None, 3.0, b"b")], COLUMNS)
    assert records == [(1, 2.0, b"a"), (None, 3.0, b"b")] and records.tolist() == list(records) and records.shape == (2,)
    assert records["y"].tolist() == [2.0, 3.0] and records["x"].tolist() == [1, None] and isinstance(records[:1], Records)
    assert records.dtype.names == ("x", "y", "s") and records.size == 2
    assert Records([], [TEXT, TEXT]).dtype.names == ("s", "s_1")


def test_cells_of_a_line() -> None:
    assert _cells(np.array([1.5, 2.0]), np.array([True, False])) == [b"1.5", b""]
    assert _cells(np.array([b"a"], object), None) == [b"a"] and _cells(np.array([True, False]), None) == [b"true", b"false"]
    assert _cells(np.array([3], np.int32), None) == [b"3"]


class Host:
    """The other end of a broker's pipes: answers as a host does. Attributes: asked: every question; rows: of its table."""

    def __init__(self, folder: Path, rows: int = 100, chunk: int = 10) -> None:
        read, write = os.pipe()
        back_read, back_write = os.pipe()
        self.asked: list[Any] = []
        self.written: list[pa.RecordBatch] = []
        self.rows, self.chunk = rows, chunk
        #: request of the last writer of a slice
        self.slices: dict[Any, int] = {}
        #: requests that are not confirmed when the task closes them
        self.slow: set[int] = set()
        self.broken: BaseException | None = None
        self._sent: dict[int, list[int]] = {}
        self._columns: dict[int, list[str]] = {}
        self._rows_of: dict[int, int] = {}
        self._questions = frames.FrameReader(read, frames.FROM_WORKER)
        self._answers, self._asking = frames.FrameWriter(back_write), frames.FrameWriter(write)
        self.broker = Broker(self._asking, str(folder / "spools"))
        self._back = frames.FrameReader(back_read, frames.TO_WORKER)
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._answer, self._listen)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Answer what has been asked, and close the pipes."""
        for thread, end in zip(self._threads, (self._asking, self._answers), strict=True):
            end.close()
            thread.join(10)
            assert not thread.is_alive()
        self._questions.close()
        self._back.close()

    def _listen(self) -> None:
        try:
            while True:
                header = self._back.read_header()
                if header is None:
                    return
                self.broker.take(self._back, *header)
        except (OSError, WireError) as e:
            self.broken = e

    def _answer(self) -> None:
        while True:
            frame = self._questions.read()
            if frame is None:
                return
            if frame.kind == frames.ADD_ROWS:
                request, payload = wire.request_of(frame.payload)
                schema = akrunner_schema()
                self.written.append(codec.decode_some_columns(schema, payload, 0, frame.count))
                self.say(frames.WRITE_MORE, request=request, chunks=1)
                continue
            body = messages.read(frame)
            self.asked.append((frame.kind, body))
            number = body["request"]
            if frame.kind == frames.LOOK_TABLE and body["table"] == "no":
                self.say(frames.TABLE_FAILED, request=number, type="SourceError", message="there is no table")
            elif frame.kind in (frames.LOOK_TABLE, frames.WRITE_TABLE):
                replaces = [self.slices[body["slice"]]] if body.get("slice") in self.slices else []
                if frame.kind == frames.WRITE_TABLE:
                    self.slices[body["slice"]] = number
                self.say(
                    frames.TABLE_OPENED, request=number, columns=COLUMNS, start=0, rows=self.rows, credits=2, replaces=replaces
                )
            elif frame.kind == frames.READ_TABLE:
                self._sent[number] = [body["start"], body["stop"], body["credits"]]
                self._columns[number], self._rows_of[number] = body["columns"], body["stop"] - body["start"]
            elif frame.kind == frames.READ_MORE:
                self._sent[number][2] += body["chunks"]
            elif frame.kind == frames.CLOSE_TABLE and number not in self._sent and number not in self.slow:
                self.say(frames.TABLE_DONE, request=number, rows=body["rows"])
            if number in self._sent and frame.kind != frames.CLOSE_TABLE:
                self._send(number)

    def _send(self, number: int) -> None:
        at, stop, credits = self._sent[number]
        start = at
        while at < stop and credits:
            batch = batch_of(at, min(at + self.chunk, stop)).select(self._columns[number])
            self._answers.write(frames.TABLE_ROWS, wire.with_request(number, codec.encode_columns(batch)), batch.num_rows)
            at, credits = at + batch.num_rows, credits - 1
        self._sent[number] = [at, stop, credits]
        if at >= stop and start < stop:
            self.say(frames.TABLE_DONE, request=number, rows=self._rows_of[number])

    def say(self, kind: int, **body: Any) -> None:
        self._answers.write_json(kind, body)

    def raw(self, kind: int, payload: bytes, count: int = 0) -> None:
        self._answers.write(kind, payload, count)


def akrunner_schema() -> Any:
    from akrunner.schema import Schema

    return Schema.parse("x bigint, y double, s string")


def batch_of(start: int, stop: int) -> pa.RecordBatch:
    x = np.arange(start, stop)
    return pa.record_batch({"x": x, "y": pa.array(x / 2, mask=x % 5 == 1), "s": [f"é{i}" for i in x]})


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    made = Host(tmp_path)
    monkeypatch.setattr(asking, "_known", {})
    asking.serve(made.broker)
    yield made
    made.end()


def kinds(host: Host) -> list[int]:
    return [kind for kind, _ in host.asked]


def wait_for(host: Host, kind: int, count: int = 1) -> None:
    """Until the host has been told so often; nobody waits for its answer."""
    for _ in range(1000):
        if kinds(host).count(kind) >= count:
            return
        threading.Event().wait(0.01)
    raise AssertionError(kinds(host))


def test_a_reader_reads_seeks_and_ends(host: Host) -> None:
    reader = TableReader("t")
    assert reader.get_row_count() == 100 and (reader.start_pos, reader.end_pos, reader.offset_pos) == (0, 100, 0)
    assert reader.get_schema().tolist() == [("x", "bigint", int), ("y", "double", float), ("s", "string", bytes)]
    assert reader.read(3) == [(0, 0.0, "é0".encode()), (1, None, "é1".encode()), (2, 1.0, "é2".encode())]
    reader.seek(98)
    assert [row[0] for row in reader.read(50, allow_smaller_final_batch=True)] == [98, 99] and reader.offset_pos == 100
    with pytest.raises(errors.OutOfRangeException, match="End of table reached!"):
        reader.read()
    reader.seek(0)
    assert [row[0] for row in reader] == list(range(100))
    for offset in (-1, 101):
        with pytest.raises(errors.OutOfRangeException):
            reader.seek(offset)
    with pytest.raises(ValueError, match="num_records=0"):
        reader.read(0)
    reader.close()
    reader.close()
    with pytest.raises(ValueError, match="its reader is closed"):
        reader.read()
    with TextTableReader("t", selected_cols="s", slice_id=1, slice_count=2) as text:
        assert text.read(1) == [("é50",)] and text.get_schema()["pythontype"].tolist() == [str]
    assert issubclass(errors.NoSuchTable, ValueError)
    kinds = {"SinkError": errors.NoSuchTable, "SourceError": errors.NoSuchTable, "ConfigError": errors.TableUseError}
    assert {kind: type(errors.failed(kind, "words")) for kind in kinds} == kinds
    assert type(errors.failed("TableUseError", "as another process hears it")) is errors.TableUseError
    with pytest.raises(errors.NoSuchTable, match="there is no table"):
        TableReader("no")


def test_rows_come_once_and_not_far_ahead(host: Host) -> None:
    host.chunk = 1
    readers = [TableReader("t", selected_cols="x") for _ in range(3)]
    for reader in readers:
        assert reader.read(2) == [(0,), (1,)]
    assert kinds(host).count(frames.READ_TABLE) == 1 and kinds(host).count(frames.LOOK_TABLE) == 1
    (spool,) = host.broker._spools.values()
    assert spool.granted <= 2 + 2 * wire.CREDITS, "as far ahead of who reads as there are credits"
    for _ in range(2):
        assert len(readers[0].read(200)) in (98, 100)
        readers[0].seek(0)
    assert [row[0] for row in readers[1].read(100)] == list(range(2, 100))
    wait_for(host, frames.CLOSE_TABLE)
    assert kinds(host).count(frames.READ_TABLE) == 1 and kinds(host)[-1] == frames.CLOSE_TABLE
    assert host.asked[-1][1]["rows"] == 100, "as many as have arrived are told"


def test_children_ask_by_the_socket(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    path = str(folder / "ask")
    sharing.listen(host.broker, path)
    monkeypatch.setenv(asking.VARIABLE, path)
    begun = TableReader("t", selected_cols="x")
    begun.read(5)
    # as in a child: the broker is another process's
    asking._known["pid"] = -1
    assert asking.broker() is None
    assert begun.read(1) == [(5,)] and [row[0] for row in TableReader("t", selected_cols="x").read(100)] == list(range(100))
    assert kinds(host).count(frames.READ_TABLE) == 1, "the spool is everybody's"
    with TableWriter("out") as writer:
        writer.write([(1, 0.5, "a"), (2, None, None)])
    assert host.written[0].to_pylist() == [{"x": 1, "y": 0.5, "s": "a"}, {"x": 2, "y": None, "s": None}]
    with pytest.raises(errors.NoSuchTable, match="there is no table"):
        Table("no")
    monkeypatch.setenv(asking.VARIABLE, path + "none")
    asking._known.clear()
    with pytest.raises(errors.TableError, match="does not answer"):
        Table("t")
    monkeypatch.delenv(asking.VARIABLE)
    with pytest.raises(errors.TableError, match="there are no tables here"):
        asking.asker()


def test_children_send_at_once_and_never_what_waited_at_the_fork(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from akrunner.worker.tables import writer as writers

    sharing.listen(host.broker, str(tmp_path / "ask"))
    monkeypatch.setenv(asking.VARIABLE, str(tmp_path / "ask"))
    parents, held = TableWriter("out"), threading.Event()
    parents.write((1, 0.5, "waits"))
    waiting = parents._held
    # as after a fork: what a thread of the parent holds here nobody lets go
    threading.Thread(target=lambda: (parents._lock.acquire(), held.set())).start()
    held.wait()
    asking._known["pid"], parents._opener = -1, -1
    writers._forked()
    for i in range(2):
        parents.write((i, None, "child"))
    own = TableWriter("out", 1)
    own.write((5, None, "own"))
    assert not own._held and not parents._held, "each write has sent its rows"
    parents.close()
    assert frames.CLOSE_TABLE not in kinds(host), "others may write on"
    with pytest.raises(ValueError, match="its writer is closed"):
        parents.write((1, 1.0, "late"))
    own.close()
    assert host.asked[-1] == (frames.CLOSE_TABLE, {"request": 2, "rows": 1, "whole": True}) and len(waiting) == 1
    sent = [row["s"] for batch in host.written for row in batch.to_pylist()]
    assert sent == ["child", "child", "own"], "without what waits in the parent"


@pytest.mark.slow
def test_a_writer_sends_what_comes_together(host: Host) -> None:
    writer = TableWriter("out", 3)
    for i in range(10_000):
        writer.write((i, "a"), indices=[0, 2])
    writer.write([(1.5,)], (1,))
    with pytest.raises(ValueError, match="there is none 3 in indices"):
        writer.write((1,), [3])
    for indices in (0.5, [0.5], [float("nan")], [None]):
        with pytest.raises(ValueError, match="indices=.* must be a whole number"):
            writer.write((1,), indices)
    for odd, words in (
        (None, "slice_id=None must be a whole number"),
        (-1, "slice_id=-1 must be 0"),
        (1 << 63, "slice_id=92233"),
    ):
        with pytest.raises(ValueError, match=words):
            TableWriter("out", odd)
    with pytest.raises(ValueError, match="names a column twice"):
        writer.write((1, 2), [0, 0])
    with pytest.raises(TypeError, match="row 10001 has 'no'"):
        writer.write(("no",), [0])
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="its writer is closed"):
        writer.write((1,), [0])
    asked = {"request": 1, "table": "out", "slice": 3, "process": asking.process()}
    assert host.asked[0] == (frames.WRITE_TABLE, asked) and asking.process().startswith(f"{os.getpid()}:")
    assert [batch.num_rows for batch in host.written] == [4096, 4096, 1808, 1]
    assert host.written[0].schema.names == ["x", "s"] and host.written[3].to_pylist() == [{"y": 1.5}]
    assert host.asked[-1] == (frames.CLOSE_TABLE, {"request": 1, "rows": 10_001, "whole": True})


@pytest.mark.slow
def test_the_end_closes_what_the_script_has_left_open(host: Host) -> None:
    from akrunner.worker.tables import writer as writers

    host.broker.close_writers = writers.close_all

    def main() -> None:
        # nobody but this function knows it
        TableWriter("out").write((1, 2.0, "x"))

    main()
    gc.collect()
    host.chunk = 1
    reader = TableReader("t")
    reader.read(1)
    host.broker.finish()
    assert sum(batch.num_rows for batch in host.written) == 1
    wait_for(host, frames.CLOSE_TABLE, 2)
    closed = {body["request"]: body for kind, body in host.asked if kind == frames.CLOSE_TABLE}
    assert closed[3]["whole"] is False and closed[3]["rows"] < 100, "of a reader, before all its rows had come"
    for late in (lambda: TableReader("other"), lambda: TableWriter("out")):
        with pytest.raises(errors.TableError, match="the task is over"):
            late()


@pytest.mark.parametrize("by", ["thread", "process", "child", "opens", "nobody"])
def test_rows_that_come_when_the_script_has_ended(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    """They are not lost without a word."""
    from akrunner.worker.tables import broker as brokers
    from akrunner.worker.tables import writer as writers

    host.broker.close_writers = writers.close_all
    closed, tried = threading.Event(), threading.Event()
    # what waits for those who still write, waits until they have
    monkeypatch.setattr(brokers.time, "sleep", lambda seconds: (closed.set(), tried.wait(60)))
    if by == "process":
        made = host.broker.write("out", 3, f"{os.getpid()}:another")["writing"]
        late: Any = functools.partial(host.broker.put, made, 7, [b""])
    elif by in ("child", "opens"):
        # a child keeps its connection; what it writes, it writes by its parent's writer, or by one it opens now
        sharing.listen(host.broker, str(tmp_path / "ask"))
        remote = sharing.Remote(str(tmp_path / "ask"))
        remote.look("t")
        late = functools.partial(remote.put, TableWriter("out", 3)._writing, 7, [b""])
        if by == "opens":
            late = functools.partial(remote.write, "out", 4, "999999999:gone")
    else:
        own = TableWriter("out", 3)
        own.write((1, 2.0, "x"))
        late = functools.partial(own.write, (1, 2.0, "x"))

    def go_on() -> None:
        closed.wait(60)
        if by != "nobody":
            with pytest.raises(
                (errors.TableError, ValueError), match="its writer is closed|no table is opened to write any more"
            ):
                late()
        tried.set()

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    if by == "nobody":
        host.broker.finish()
    else:
        with pytest.raises(
            errors.TableError, match="table out: a thread or process .* tried to write (1 row more|7 rows more|rows)"
        ):
            host.broker.finish()
    thread.join(60)
    assert not host.broker.notes


def test_a_process_that_has_not_closed_its_writer_is_told_of(host: Host) -> None:
    host.broker.write("out", 3, "999999999:gone")
    host.broker.finish()
    assert len(host.broker.notes) == 1
    assert "process 999999999 ended without closing its TableWriter('out', slice_id=3), of which 0 rows" in host.broker.notes[0]


def test_a_process_that_still_writes_when_the_script_has_ended_fails_it(host: Host) -> None:
    host.broker.write("out", 3, f"{os.getpid()}:another")
    with pytest.raises(errors.TableError, match=r"table out: process \d+ still ran .* had not closed .*wait for the process"):
        host.broker.finish()
    assert not host.broker.notes


def test_a_slice_that_is_opened_again(host: Host) -> None:
    """What the earlier writer has written goes, also what it still holds, and it takes no more."""
    first = TableWriter("out", 4)
    first.write((1, 1.0, "dropped"))
    second = TableWriter("out", 4)
    with pytest.raises(errors.TableUseError, match="table out: its slice was opened again"):
        first.write((2, 2.0, "late"))
    with pytest.raises(errors.TableUseError, match="its slice was opened again"):
        host.broker.put(1, 1, [b""])  # as a child does that has the earlier one
    first.close()
    TableWriter("out", 5).close()
    second.write((3, 3.0, "kept"))
    second.close()
    host.broker.finish()
    assert [row["s"] for batch in host.written for row in batch.to_pylist()] == ["kept"]
    assert [body["request"] for kind, body in host.asked if kind == frames.CLOSE_TABLE] == [1, 3, 2]


def test_the_end_waits_until_the_host_has_confirmed_a_writer_that_was_replaced(host: Host) -> None:
    """A task may only say that it is done when the host has taken all its rows, also those that are dropped."""
    host.slow.add(1)
    TableWriter("out", 4).write((1, 1.0, "dropped"))
    TableWriter("out", 4).close()
    ended = threading.Thread(target=host.broker.finish)
    ended.start()
    ended.join(0.2)
    assert ended.is_alive()
    host.say(frames.TABLE_DONE, request=1, rows=0)
    ended.join(10)
    assert not ended.is_alive() and host.broken is None


@pytest.mark.parametrize("call", ["close", "finish"])
def test_nobody_waits_for_the_host_when_its_answers_have_broken_off(host: Host, call: str) -> None:
    host.slow.add(1)
    writer = TableWriter("out", 4)
    told: list[BaseException] = []
    if call == "finish":
        # its slice is opened again: it is closed, and the host has not confirmed that
        TableWriter("out", 4).close()
    waits: Any = {"close": writer.close, "finish": host.broker.finish}[call]

    def waiting() -> None:
        try:
            waits()
        except errors.TableError as e:
            told.append(e)

    thread = threading.Thread(target=waiting, daemon=True)
    thread.start()
    wait_for(host, frames.CLOSE_TABLE)
    host.broker.end("the rows from the host broke off: OSError: the disk is full")
    thread.join(10)
    assert not thread.is_alive() and [str(one) for one in told] == [
        "the rows from the host broke off: OSError: the disk is full"
    ]


class _Interrupted(BaseException):
    """As a signal's handler raises it."""


def test_who_is_interrupted_is_not_given_an_old_answer(host: Host, tmp_path: Path) -> None:
    sharing.listen(host.broker, str(tmp_path / "ask"))
    remote = sharing.Remote(str(tmp_path / "ask"))
    assert remote.look("t")["rows"] == 100

    def interrupted(view: Any) -> None:
        raise _Interrupted

    # it has asked, and does not take the answer
    remote._local.connection.recv_into = interrupted
    with pytest.raises(_Interrupted):
        remote.look("t")
    assert remote.read("t", ["x"], 0, 5).keys() == {"spool", "path"}


def test_a_disk_that_is_full(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("akrunner.worker.tables.broker._write", full)
    with pytest.raises(OSError, match="cannot spool a table's rows: No space left on device"):
        TableReader("t").read(1)
    monkeypatch.undo()
    asking.serve(host.broker)
    assert TableReader("t").read(1), "there is room again"


@pytest.mark.parametrize(
    "kind, payload, words",
    [
        (frames.TABLE_ROWS, b"x", "names no request"),
        (frames.TABLE_ROWS, (77).to_bytes(8, "little"), "which has not asked for them"),
        (frames.TABLE_DONE, b'{"request": 77, "rows": 1}', "which is none"),
        (frames.TABLE_OPENED, b'{"request": 1}', "has no 'columns'"),
        (frames.WORK, json.dumps({"request": 2, "work": None}).encode(), "which is none"),
    ],
)
def test_answers_nobody_has_asked_for(host: Host, kind: int, payload: bytes, words: str) -> None:
    Table("t")
    host.raw(kind, payload, 1)
    for _ in range(500):
        if host.broken is not None:
            break
        threading.Event().wait(0.01)
    assert host.broken is not None and words in str(host.broken)


def test_queues_of_one_script_have_names_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "_queues", {})
    made = [
        work.WorkQueue(works, name=name)
        for works, name in ((["a"], "q"), (["b"], "q"), (["a"], "q"), (["b"], "q"), ("c", "other"))
    ]
    # one that deals the same is another queue, too: the first may be used up
    assert [queue._name for queue in made] == ["q", "q_1", "q/1", "q_1/1", "other"] and made[4].works == ["c"]


@pytest.mark.parametrize(
    "given",
    [
        {"works": []}, {"num_epochs": -1}, {"num_epochs": 0}, {"num_epochs": 1.5}, {"num_slices": -1}, {"num_slices": 0}, {"seed": 1 << 63},
        {"works": ["\ud800"]}, {"name": "\ud800"}, {"num_slices": "x"},
    ],
)  # fmt: skip
def test_works_that_cannot_be_asked_for(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="works is empty|num_|seed|UTF-8"):
        work.WorkQueue(**{"works": ["a"], **given})


def test_a_tensor_of_a_graph_is_no_value() -> None:
    made = type("Tensor", (), {"__module__": "tensorflow.python.framework.ops", "name": "add:0"})()
    for given in (made, [made, 1], [(1, made)]):
        with pytest.raises(TypeError, match=r"takes values, and was given 'add:0', a tensor of a graph .* session.run"):
            columns_of(given, 2, "t")


def test_each_error_of_the_host_is_one_by_the_name_that_the_worker_knows() -> None:
    """It crosses as its name: one that is called otherwise in the host would be a plain TableError in the script."""
    hosts = [name for name, kind in errors._KINDS.items() if name != kind.__name__]
    assert hosts and all(issubclass(getattr(hosts_errors, name), hosts_errors.AkrunnerError) for name in hosts)
