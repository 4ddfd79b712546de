"""The writers behind the formats: what they refuse, what they join, and a stream that can be shut."""

from __future__ import annotations

import datetime
import io
import json
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import WriteError
from akrunner.io.writers import Dated, Examples, Finite, Gate, Gathered, JsonLines


class Writer:
    """In place of one of Arrow's. Attributes: got: what was written."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.closed = False

    def write(self, batch: pa.RecordBatch) -> None:
        self.got.append(batch)

    def write_table(self, table: pa.Table) -> None:
        self.got.append(table)

    def close(self) -> None:
        self.closed = True


def times(values: list[int | None], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


@pytest.mark.parametrize(
    ("kind", "first", "last"),
    [
        (pa.date32(), -719162, 2932896),
        (pa.date64(), -719162 * 86400000, 2932896 * 86400000 + 86399999),
        (pa.timestamp("s"), -62135596800, 253402300799),
        (pa.timestamp("ms", "UTC"), -62135596800000, 253402300799999),
        (pa.timestamp("us"), -62135596800000000, 253402300799999999),
    ],
    ids=str,
)
def test_times_of_the_years_1_to_9999_are_written_and_no_others(kind: pa.DataType, first: int, last: int) -> None:
    written = Writer()
    dated = Dated(written, "csv")
    good = pa.record_batch([times([first, None, last], kind)], ["t"])
    dated.write(good)
    step = 86400000 if kind == pa.date64() else 1
    for beyond in (first - step, last // step * step + step):
        for column in (times([0, beyond], kind), pa.ListArray.from_arrays([0, 0, 2], times([0, beyond], kind))):
            with pytest.raises(
                WriteError, match=rf"output: column 't' has {beyond}, which is no .* and csv cannot .*output_schema="
            ):
                dated.write(pa.record_batch([column], ["t"]))
    assert written.got == [good]
    dated.close()
    assert written.closed


def test_a_time_before_the_year_1_is_told_also_where_another_is_after_9999() -> None:
    column = times([3000000, -800000], pa.date32())
    with pytest.raises(WriteError, match="has -800000, which is no date32"):
        Dated(Writer(), "jsonl").write(pa.record_batch([column], ["t"]))


def test_columns_that_are_no_times_are_not_looked_at() -> None:
    written = Writer()
    batch = pa.record_batch(
        {"i": [2**62], "s": ["x"], "d": pa.nulls(1, pa.date32()), "l": [[2**62]], "w": pa.array([9], pa.time64("ns"))}
    )
    Dated(written, "csv").write(batch)
    Dated(written, "csv").write(batch[:0])
    assert written.got == [batch, batch[:0]]


def test_a_gate_passes_bytes_until_it_is_shut() -> None:
    stream = io.BytesIO()
    gate = Gate(stream)
    assert gate.writable() and gate.write(b"ab") == 2 and gate.write(memoryview(b"cdef")[::1].cast("H")) == 4
    gate.flush()
    assert gate.tell() == 6 and stream.getvalue() == b"abcdef"
    gate.shut()
    assert gate.write(b"lost") == 4 and gate.tell() == 10
    gate.close()
    assert stream.getvalue() == b"abcdef" and not stream.closed


def test_small_batches_are_joined_and_the_last_ones_written_at_the_end() -> None:
    written = Writer()
    gathered = Gathered(written, 5)
    for start in range(0, 12, 2):
        gathered.write(pa.record_batch({"x": [start, start + 1]}))
    assert [table.num_rows for table in written.got] == [6, 6]
    gathered.write(pa.record_batch({"x": [12]}))
    assert len(written.got) == 2
    gathered.close()
    assert written.closed and [number for table in written.got for number in table["x"].to_pylist()] == list(range(13))
    assert all(table["x"].num_chunks == 1 for table in written.got)


def test_batches_are_written_early_if_they_are_large() -> None:
    out = io.BytesIO()
    writer = Gathered(JsonLines(out), 1000, 100)
    batch = pa.record_batch({"n": range(8)})
    writer.write(batch)
    assert not out.getvalue()
    writer.write(batch)
    assert out.getvalue().count(b"\n") == 16
    writer.write(batch)
    writer.close()
    assert out.getvalue().count(b"\n") == 24


def test_no_batches_are_no_rows() -> None:
    written = Writer()
    Gathered(written).close()
    assert written.closed and written.got == []


def test_rows_become_an_object_a_line() -> None:
    stream = io.BytesIO()
    writer = JsonLines(stream)
    writer.write(
        pa.record_batch({"i": [1, None], "s": ['é\n"x', ""], "l": [[0.5], None], "t": [datetime.date(2026, 1, 2), None]})
    )
    writer.write(pa.record_batch({"i": pa.array([], pa.int64())}))
    writer.write(pa.record_batch({"i": [2**63 - 1]}))
    writer.close()
    text = stream.getvalue().decode()
    assert text.endswith("}\n") and [json.loads(line) for line in text.split("\n")[:-1]] == [
        {"i": 1, "s": 'é\n"x', "l": [0.5], "t": "2026-01-02"},
        {"i": None, "s": "", "l": None, "t": None},
        {"i": 2**63 - 1},
    ]


def test_lines_stay_in_the_order_of_the_rows() -> None:
    stream = io.BytesIO()
    writer = JsonLines(stream)
    writer.write(pa.record_batch({"x": list(range(5000))}))
    writer.close()
    assert [json.loads(line)["x"] for line in stream.getvalue().splitlines()] == list(range(5000))


def test_examples_go_to_the_stream_by_the_function_that_was_given() -> None:
    stream, batch = io.BytesIO(), pa.record_batch({"x": [1]})
    writer = Examples(stream, lambda to, rows: to.write(f"{rows.num_rows} row".encode()) and None)
    writer.write(batch)
    writer.close()
    assert stream.getvalue() == b"1 row" and not stream.closed


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")], ids=str)
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64(), pa.list_(pa.float64())], ids=str)
def test_a_number_that_json_does_not_have_names_its_column(kind: pa.DataType, value: float) -> None:
    got = Writer()
    nested = pa.types.is_list(kind)
    writer = Finite(got)
    for values, good in (([0.5, None], True), ([0.5, value], False)):
        batch = pa.record_batch({"p": pa.array([[one] for one in values] if nested else values, kind), "s": ["NaN", "x"]})
        if good:
            writer.write(batch)
            continue
        with pytest.raises(WriteError, match=rf"column 'p' has -?{str(value).strip('-')}, and JSON has no such number"):
            writer.write(batch)
    writer.close()
    assert len(got.got) == 1 and got.closed


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (pa.struct([("a", pa.float64())]), {"a": 0.5}, {"a": float("nan")}),
        (pa.list_(pa.struct([("q", pa.float32())])), [{"q": 1.0}, None], [{"q": 1.0}, {"q": float("inf")}]),
        (pa.map_(pa.string(), pa.float64()), [("a", 0.5)], [("a", 0.5), ("b", float("nan"))]),
        (pa.dictionary(pa.int8(), pa.float64()), 0.5, float("nan")),
    ],
    ids=str,
)
def test_a_number_within_a_value_is_one_too(kind: pa.DataType, good: Any, bad: Any) -> None:
    writer = Finite(Writer())
    writer.write(pa.record_batch({"p": pa.array([good, None], kind)}))
    # of a part of a batch, only that part
    writer.write(pa.record_batch({"p": pa.array([good, bad], kind)}).slice(0, 1))
    with pytest.raises(WriteError, match="column 'p' has (nan|inf), and JSON has no such number"):
        writer.write(pa.record_batch({"p": pa.array([None, bad], kind)}))


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_json_array(rows: int) -> None:
    stream = io.BytesIO()
    writer = JsonLines(stream, array=True)
    for number in range(rows):
        writer.write(pa.record_batch({"a": [number, number]}))
    writer.close()
    assert json.loads(stream.getvalue()) == [{"a": number} for number in range(rows) for _ in range(2)]
    assert stream.getvalue().endswith(b"]\n")


def test_names_of_columns_are_written_as_they_are() -> None:
    names = ["batch", "akrunner_rows", "c0", "a", "A", "", "it's", 'a"b\\']
    stream = io.BytesIO()
    writer = JsonLines(stream)
    writer.write(pa.record_batch([[number] for number in range(len(names))], names=names))
    writer.close()
    assert json.loads(stream.getvalue()) == {name: number for number, name in enumerate(names)}
