"""Excel's sheets: which one is read, what becomes of its cells, and what is written."""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.errors import SinkError, SourceError, WriteError
from akrunner.io import paths
from akrunner.io.formats import excel
from akrunner.io.formats.excel import FORMAT
from akrunner.io.sinks import FileSink
from akrunner.io.sources import open_source
from akrunner.schema import Schema
from akrunner.spec import TaskSpec

CHIEF = TaskSpec("chief", 0)
DAY = datetime.datetime(2026, 1, 2)
MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000)


def saved(path: Path, *rows: Any, **sheets: Any) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, content in {"A": rows, **sheets}.items() if rows else sheets.items():
        sheet = book.create_sheet(title)
        for row in content:
            sheet.append(row)
    book.save(path)
    return path


def table(source: Any, **given: Any) -> pa.Table:
    found = open_source(source, read_examples=codec.read_examples, **given)
    return pa.Table.from_batches(list(found.batches()), found.schema)


def written(*batches: pa.RecordBatch) -> bytes:
    FORMAT.check(batches[0].schema)
    stream = io.BytesIO()
    with contextlib.closing(FORMAT.writer(stream, batches[0].schema)) as writer:
        for batch in batches:
            writer.write(batch)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("cells", "kind", "want"),
    [
        ([1, None, -2], pa.int64(), [1, None, -2]),
        ([1, 2.5], pa.float64(), [1.0, 2.5]),
        ([True, None, False], pa.bool_(), [True, None, False]),
        (["é𝄞", None, "01"], pa.string(), ["é𝄞", None, "01"]),
        (["a_x000D_b", "_x005F_x0041_"], pa.string(), ["a\rb", "_x0041_"]),
        ([DAY, None], pa.date32(), [DAY.date(), None]),
        ([DAY, MOMENT], pa.timestamp("ms"), [DAY, MOMENT]),
        ([datetime.time(1, 2, 3)], pa.time32("ms"), [datetime.time(1, 2, 3)]),
        ([datetime.timedelta(days=2, seconds=5)], pa.duration("ms"), [datetime.timedelta(days=2, seconds=5)]),
        ([None, None], pa.null(), [None, None]),
    ],
)
def test_each_kind_of_cell(cells: Any, kind: pa.DataType, want: Any, tmp_path: Path) -> None:
    saved(tmp_path / "a.xlsx", ["n", "a"], *([number, cell] for number, cell in enumerate(cells)))
    found = table(tmp_path / "a.xlsx")
    assert found.schema == pa.schema([("n", pa.int64()), ("a", kind)]) and found["a"].to_pylist() == want


def test_empty_rows_and_short_rows(tmp_path: Path) -> None:
    saved(tmp_path / "a.xlsx", [], [None, None], ["a", 2024, None], [1], [], [None, "x"], [None], [])
    found = table(tmp_path / "a.xlsx")
    assert found.to_pylist() == [{"a": 1, "2024": None}, {"a": None, "2024": None}, {"a": None, "2024": "x"}]
    saved(tmp_path / "a.xlsx", ["a", "b"])
    assert table(tmp_path / "a.xlsx").to_pylist() == []
    saved(tmp_path / "a.xlsx", [])
    with pytest.raises(SourceError, match="a.xlsx has no columns"):
        table(tmp_path / "a.xlsx")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([["a", "b"], [1, "x"], ["y", "z"]], r"column 'a' of sheet 'A' of .* has a number in A2 \(1\), and text in A3 \('y'\); .*input_schema='a string'"),
        ([["a"], [True], [DAY]], r"has a boolean in A2 \(True\), and a date in A3"),
        ([["a", None, "c"], [1, 2, 3]], "cell B1 of sheet 'A' of .* is empty, and would name a column .of merged cells"),
        ([["a"], [1], [1, None, 5]], "cell C3 of sheet 'A' of .* is in a column without a name"),
        ([["a", "b"], [1, "#DIV/0!"], [1, 2]], r"column 'b' of sheet 'A' of .* has the error #DIV/0! in B2, and a number in B3 \(2\); correct"),
        ([["a"], ["#N/A"]], "cell A2 of sheet 'A' of .* has the error #N/A"),
        ([["a", "b"], [1, 2], [3, "=A1+1"]], "cell B3 of sheet 'A' of .* has a formula without its result"),
        ([["a", "a"], [1, 2]], "two columns of .* are called 'a'"),
    ],
)  # fmt: skip
def test_a_cell_that_is_wrong_is_named(rows: Any, words: str, tmp_path: Path) -> None:
    saved(tmp_path / "a.xlsx", *rows)
    with pytest.raises(SourceError, match=f"source: .*{words}"):
        table(tmp_path / "a.xlsx")


def test_nothing_is_said_of_cells_of_columns_that_are_left_out(tmp_path: Path) -> None:
    rows = [["a", "b", "c", "d"], [1, "=A1+1", "#REF!", 5], [2, "x", 3, "y"]]
    saved(tmp_path / "a.xlsx", *rows)
    for given in ({"columns": ["a"]}, {"input_schema": Schema.parse("a bigint")}):
        assert table(tmp_path / "a.xlsx", **given).to_pydict() == {"a": [1, 2]}
    assert table(tmp_path / "a.xlsx", input_schema=Schema.parse("d string, a bigint")).to_pydict() == {
        "d": ["5", "y"],
        "a": [1, 2],
    }
    for name, words in (
        ("b", "cell B2 .*formula without its result"),
        ("c", "has the error #REF! in C2"),
        ("d", "has a number in D2"),
    ):
        with pytest.raises(SourceError, match=words):
            table(tmp_path / "a.xlsx", columns=["a", name])
    with pytest.raises(SourceError, match="cell B2 .*formula without its result"):
        table(tmp_path / "a.xlsx")
    with pytest.raises(SourceError, match="has no column 'e'"):
        table(tmp_path / "a.xlsx", columns=["a", "e"])
    with pytest.raises(
        SourceError, match=r"leave the column out: name those to take in input_schema= .*, without select=, in columns="
    ):
        table(tmp_path / "a.xlsx", select="SELECT a FROM input")
    assert table(tmp_path / "a.xlsx", select="a + 1 AS b", input_schema=Schema.parse("a bigint")).to_pydict() == {"b": [2, 3]}
    # a name that has not been calculated may be that of the column that is wanted
    saved(tmp_path / "a.xlsx", ["a", '="b"', "c"], [1, 2, 3])
    with pytest.raises(SourceError, match="cell B1 .*formula without its result"):
        table(tmp_path / "a.xlsx", columns=["a"])


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", None, None], ["a", None, "b"], [None, "a", None, "b"]])
def test_columns_without_a_name_matter_only_if_all_are_drawn(names: list[Any], tmp_path: Path) -> None:
    cells = [{"a": 1, "b": 0.5}.get(name, "a note") for name in [*names, None]]
    saved(tmp_path / "a.xlsx", [], names, [{"a": 2, "b": 1.5}.get(name) for name in names], cells)
    want = {"b": [1.5, 0.5], "a": [2, 1]}
    for given in ({"columns": ["b", "a"]}, {"input_schema": Schema.parse("b double, a bigint")}):
        assert table(tmp_path / "a.xlsx", **given).to_pydict() == want
    with pytest.raises(SourceError, match=r"cell .* (without a name|would name a column).*columns= \(--columns"):
        table(tmp_path / "a.xlsx")
    with pytest.raises(SourceError, match=r"has no column 'None' \(it has a, b\)"):
        table(tmp_path / "a.xlsx", columns=["None"])


def test_rows_of_a_sheet_whose_columns_are_all_names_of_directories(tmp_path: Path) -> None:
    (tmp_path / "day=3").mkdir()
    saved(tmp_path / "day=3" / "a.xlsx", ["a"], [1, "a note"], [2])
    assert table(str(tmp_path), columns=["day"]).to_pydict() == {"day": [3, 3]}


@pytest.mark.parametrize(("later", "shown"), [(0.5, "0.5"), ("x", "'x'"), (True, "True"), (DAY, "datetime")])
def test_a_cell_that_comes_later_is_named_too(later: Any, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excel, "_ROWS", 2)
    saved(tmp_path / "a.xlsx", ["n", "a"], *([1, 2] for _ in range(4)), [1, 3.0], [1, later])
    source = open_source(tmp_path / "a.xlsx", read_examples=codec.read_examples)
    batches = source.batches()
    assert [next(batches).num_rows for _ in range(2)] == [2, 2]
    with pytest.raises(SourceError, match=f"cell B7 of sheet 'A' of .* has {shown}.*, and the column 'a' is int64"):
        next(batches)


def test_columns_are_given_as_they_are_asked_for(tmp_path: Path) -> None:
    saved(tmp_path / "a.xlsx", ["a", "b", "c", "d"], [1, 2, DAY, "x"], ["01", 3.0, MOMENT, "y"], [2.5, None, None, "#N/A"])
    found = table(tmp_path / "a.xlsx", input_schema=Schema.parse("c timestamp, a string, b double, d string"))
    assert found.to_pydict() == {
        "c": [DAY, MOMENT, None],
        "a": ["1", "01", "2.5"],
        "b": [2.0, 3.0, None],
        "d": ["x", "y", "#N/A"],
    }
    with pytest.raises(SourceError, match="cell A3 of .* has '01', and the column 'a' is int64"):
        table(tmp_path / "a.xlsx", input_schema=Schema.parse("a bigint, d string"))


def test_the_result_of_a_formula_is_read(tmp_path: Path) -> None:
    batch = pa.record_batch({"a": [1, 2], "b": ["x", "y"]})
    (tmp_path / "a.xlsx").write_bytes(written(batch))
    with zipfile.ZipFile(tmp_path / "a.xlsx") as old, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as new:
        for part in old.namelist():
            text = old.read(part).replace(b"<c><v>2</v></c>", b'<c r="A3"><f>1+1</f><v>2</v></c>')
            new.writestr(
                part,
                text.replace(
                    b'<c t="inlineStr"><is><t xml:space="preserve">y</t></is></c>', b'<c t="str"><f>""</f><v></v></c>'
                ),
            )
    assert table(tmp_path / "b.xlsx").to_pydict() == {"a": [1, 2], "b": ["x", None]}


def test_a_sheet_is_named_behind_the_path(tmp_path: Path) -> None:
    one = saved(tmp_path / "a.xlsx", **{"Q1": [["a"], [1]], "Q 2": [["a"], [2]]})
    two = saved(tmp_path / "b.xlsx", **{"Q1": [["a"], [3]]})
    assert table(f"{one}?sheet=Q1").to_pydict() == {"a": [1]}
    assert table(f"{one}?sheet=Q 2").to_pydict() == table(f"{one}?sheet=Q%202").to_pydict() == {"a": [2]}
    assert (
        table([f"{one}?sheet=Q1", f"{two}?sheet=Q1"]).to_pydict()
        == table(f"{tmp_path}/*.xlsx?sheet=Q1").to_pydict()
        == {"a": [1, 3]}
    )
    assert table(two).to_pydict() == {"a": [3]}
    with pytest.raises(
        SourceError, match=r"a.xlsx has 2 sheets that are shown; name one .*a.xlsx\?sheet=NAME \(it has Q1, Q 2\)"
    ):
        table(one)
    with pytest.raises(SourceError, match=r"a.xlsx has no sheet 'q1' \(it has Q1, Q 2\).*Q1"):
        table(f"{one}?sheet=q1")
    with pytest.raises(SourceError, match=r"sheets of one name, and several are given \(Q1, none\)"):
        table([f"{one}?sheet=Q1", str(two)])
    book = openpyxl.load_workbook(one)
    book["Q1"].sheet_state = "hidden"
    book.save(one)
    assert table(one).to_pydict() == {"a": [2]} and table(f"{one}?sheet=Q1").to_pydict() == {"a": [1]}
    (tmp_path / "a.csv?sheet=1").write_text("a\n1\n")
    assert paths.expand(tmp_path / "a.csv?sheet=1", "csv").sheet is None


def test_what_openpyxl_would_warn_about_is_no_warning(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(written(pa.record_batch({"a": [1, 2]})))
    with zipfile.ZipFile(tmp_path / "a.xlsx") as old, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as new:
        for part in old.namelist():
            extension = b'</sheetData><extLst><ext uri="{CCE6A557-97BC-4b89-ADB6-D9C93CAAB3DF}"/></extLst>'
            new.writestr(part, old.read(part).replace(b"</sheetData>", extension))
    assert table(tmp_path / "b.xlsx").to_pydict() == {"a": [1, 2]}
    with zipfile.ZipFile(tmp_path / "a.xlsx") as old, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as new:
        for part in old.namelist():
            new.writestr(part, old.read(part).replace(b"<c><v>1</v>", b'<c s="1"><v>9999999</v>'))
    with pytest.raises(SourceError, match="has the error #VALUE! in A2"):
        table(tmp_path / "b.xlsx")


def test_what_is_no_workbook_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(SourceError, match="source: cannot read .*a.xlsx: it is no .xlsx file, or is cut short"):
        table(tmp_path / "a.xlsx")
    (tmp_path / "a.xlsx").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504))
    with pytest.raises(SourceError, match="a.xlsx: it is an .xls file of old, or an .xlsx file with a password"):
        table(tmp_path / "a.xlsx")
    saved(tmp_path / "a.xlsx", ["a"], [1])
    monkeypatch.setattr(excel, "_TEXT_BYTES", 1000)
    with pytest.raises(SourceError, match="a.xlsx has .* bytes of texts and styles, and at most 1,000 are read"):
        table(tmp_path / "a.xlsx")


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path / "a.xlsx", ["a"], [1])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(SourceError, match=r"read by openpyxl, which is missing .*: pip install 'akrunner\[excel\]'"):
        table(tmp_path / "a.xlsx")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, -(2**53)]),
        pa.array([255, None], pa.uint8()),
        pa.array([0.1, None, 1e-300, 2.5]),
        pa.array([True, None, False]),
        pa.array(["é𝄞 <&> \r\n\t", " x ", None, "_x0041_ _x000D_x000D_ a_xyz", "01", "=A1"]),
        pa.array(["tax_x", "_x0041_x0042_x0043_x0044_", "_x0041\r_x00e9\r", "__x0041__x005F_", "_x005F_x0041_x"]),
        pa.array(["x", None, "x"]).dictionary_encode(),
        pa.array([DAY.date(), None, datetime.date(1900, 3, 1), datetime.date(9999, 12, 31)]),
        pa.array([MOMENT, None, DAY], pa.timestamp("us")),
        pa.array([None, None], pa.null()),
        pa.array([], pa.int64()),
    ],
)
def test_what_is_written_is_read_again(column: Any, tmp_path: Path) -> None:
    batch = pa.record_batch([pa.array(range(len(column)), pa.int32()), column], ["n", "a<&>"])
    (tmp_path / "a.xlsx").write_bytes(written(batch, batch[1:]))
    found = table(tmp_path / "a.xlsx")["a<&>"].to_pylist()
    assert found == column.to_pylist() + column[1:].to_pylist()


def test_other_readers_find_names_and_texts_as_they_are(tmp_path: Path) -> None:
    texts = ["tax_x", "_x", "_x12_", "_xyz1_", "_x0041", "a_x_b"]
    (tmp_path / "a.xlsx").write_bytes(written(pa.record_batch({"tax_x": texts})))
    assert pd.read_excel(tmp_path / "a.xlsx").to_dict("list") == {"tax_x": texts}
    cells = openpyxl.load_workbook(tmp_path / "a.xlsx").active.iter_rows(values_only=True)
    assert [value for (value,) in cells] == ["tax_x", *texts]
    # openpyxl decodes no spelling of a character; Excel takes each `_x005F_` for an underscore
    (tmp_path / "b.xlsx").write_bytes(written(pa.record_batch({"a": ["_x0041_x0042_ _x004"]})))
    assert pd.read_excel(tmp_path / "b.xlsx")["a"].tolist() == ["_x005F_x0041_x005F_x0042_ _x004"]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([float("nan")]), "a NaN or an infinite number"),
        (pa.array([2**53 + 1]), r"a number beyond 2\*\*53"),
        (pa.array(["x" * 32_768]), "a text of more than 32,767 characters"),
        (pa.array(["\x01"]), "a text with a control character"),
        (pa.array([1], pa.timestamp("us")), r"a time with a fraction of a millisecond.*timestamp\(3\)"),
        (pa.array([-40_000], pa.date32()), "a date before March 1900"),
        (pa.array([3_000_000], pa.date32()), ".* or after 9999"),
    ],
    ids=range(7),
)
def test_values_that_no_cell_holds(column: Any, words: str) -> None:
    with pytest.raises(WriteError, match=f"output: column 'a' has {words}"):
        written(pa.record_batch([column], ["a"]))


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.list_(pa.int8()), pa.decimal128(9, 2), pa.timestamp("us", "UTC"), pa.time64("us")]
)
def test_types_that_no_cell_holds(kind: pa.DataType) -> None:
    with pytest.raises(SinkError, match="an Excel sheet cannot hold column 'a'"):
        FORMAT.check(pa.schema([("a", kind)]))


def test_limits_of_a_sheet(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SinkError, match="at most 16,384 columns, not 16,385"):
        FORMAT.check(pa.schema([(str(number), pa.int8()) for number in range(16_385)]))
    batch = pa.record_batch({"a": [1, 2]})
    monkeypatch.setattr(excel, "_MOST_ROWS", 5)
    assert written(batch, batch)
    with pytest.raises(WriteError, match="at most 5 rows, one of them with the names"):
        written(batch, batch, batch[:1])
    monkeypatch.setattr(excel, "_SHEET_BYTES", 200)
    with pytest.raises(WriteError, match="more than 2 GiB"):
        written(batch, batch)


def test_the_output_is_there_when_it_is_committed(tmp_path: Path) -> None:
    batch = pa.record_batch({"a": [1, 2]})
    sink = FileSink(str(tmp_path / "a.xlsx"), batch.schema, codec.write_examples)
    sink.write(CHIEF, batch)
    with pytest.raises(WriteError, match="2\\*\\*53"):
        sink.write(CHIEF, pa.record_batch({"a": [2**60]}))
    sink.abort()
    assert os.listdir(tmp_path) == []
    sink.write(CHIEF, batch)
    sink.commit()
    assert os.listdir(tmp_path) == ["a.xlsx"] and table(tmp_path / "a.xlsx").to_pydict() == {"a": [1, 2]}
    again = FileSink(str(tmp_path / "a.xlsx"), batch.schema, codec.write_examples, overwrite=True)
    again.write(CHIEF, batch[:1])
    again.abort()
    assert os.listdir(tmp_path) == ["a.xlsx"] and table(tmp_path / "a.xlsx").to_pydict() == {"a": [1, 2]}
