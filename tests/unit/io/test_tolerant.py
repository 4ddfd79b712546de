"""Which rows of a text are bad, and that all others are read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.codec import read_examples
from akrunner.errors import SourceError
from akrunner.io import formats
from akrunner.io.bad_rows import BadRows, Limit
from akrunner.io.csv_options import COMMA, CsvOptions
from akrunner.io.follow import open_text
from akrunner.io.sources import open_source
from akrunner.io.text import Pieces
from akrunner.io.tolerant import tolerant
from akrunner.schema import Schema


def read(path: Path, schema: str | None = None, limit: Any = 100, **options: Any) -> tuple[list[Any], list[str], BadRows]:
    """Returns (rows, what is said of bad rows, the bad rows)."""
    bad = BadRows.of("skip", limit)
    assert bad is not None
    asked = Schema.parse(schema) if schema is not None else None
    table = open_source(path, read_examples=read_examples, input_schema=asked, bad=bad, **options)
    rows = [tuple(row.values()) for batch in table.batches() for row in batch.to_pylist()]
    return rows, [one.removeprefix(f"source: {path} ") for one in bad.news()], bad


def test_rows_of_csv_that_do_not_fit_are_left_out_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,s\n1,a\nfoo,b\n\n2,\n3,c,d\n4\n5,\xff\n,e\n6,f")
    rows, told, bad = read(path, "id bigint not null, s string")
    assert rows == [(1, "a"), (2, ""), (6, "f")] and bad.count == 5
    assert [one.split(":")[0] for one in told] == ["line 3", "line 6", "line 7", "line 8", "line 9"]
    assert told[0] == "line 3: column 'id': CSV conversion error to int64: invalid value 'foo': 'foo,b'"
    assert told[1] == "line 6: CSV parse error: Expected 2 columns, got 3: '3,c,d'"
    assert "UTF8" in told[3] and told[4] == "line 9: column 'id': a null, and the schema says NOT NULL: ',e'"


def test_a_first_line_of_json_lines_that_is_an_array_is_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for first in ("[]", '[{"a":7}]'):
        path.write_text(first + '\n{"a":1}\n[]\n{"a":2}\n')
        rows, told, bad = read(path)
        assert rows == [(1,), (2,)] and bad.count == 2
        assert [one.split(":")[0] for one in told] == ["line 1", "line 3"]
        # and alone it is an array
        path.write_text(first + "\n")
        with pytest.raises(SourceError, match="is a JSON array, which is not read on behind a mistake"):
            read(path)


def test_rows_of_json_lines_that_do_not_fit_are_left_out_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"a":1,"b":"x"}\n{"a":"y"}\n{"a":2\n{"a":3,"b":"\xff"}\nnull\n[1]\n{"a":4,"b":null}\n{"a":5,"b":"z"}\n')
    rows, told, bad = read(path, "a bigint, b string not null")
    assert rows == [(1, "x"), (5, "z")] and bad.count == 6
    assert [one.split(":")[0] for one in told] == [f"line {line}" for line in (2, 3, 4, 5, 6)]


def test_a_row_with_a_quote_that_is_not_closed_ends_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"id","s"\n1,"abc\n2,"de"\n3,"x\ny"\n4,"end\n5,z\n')
    rows, told, _ = read(path, "id bigint, s string")
    assert rows == [(2, "de"), (3, "x\ny"), (5, "z")]
    assert [one.split(":")[0] for one in told] == ["line 2", "line 6"] and "a quote is not closed" in told[0]


def test_types_are_guessed_from_all_good_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,s\n1,2\n2,3,4\n3,x\n")
    rows, told, _ = read(path)
    assert rows == [(1, "2"), (3, "x")] and len(told) == 1
    path = tmp_path / "t.jsonl"
    path.write_text('{"a":1}\n{"a":2.5}\n{"a":"x"}\n{"a":3\n{"a":4}\n')
    rows, told, _ = read(path)
    assert rows == [(1.0,), (2.5,), (4.0,)]
    assert [one.split(":")[0] for one in told] == ["line 3", "line 4"]


@pytest.mark.slow
def test_lines_are_counted_over_pieces_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("akrunner.io.text.PIECE_BYTES", 1 << 18)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id,x\n" + "1,0.5\n" * 90_000 + "no,1\n" + "2,0.5\n" * 10)
    bad = BadRows.of("skip", 100)
    schema = Schema.parse("id bigint, x double")
    table = open_source(tmp_path, read_examples=read_examples, input_schema=schema, bad=bad)
    assert sum(batch.num_rows for batch in table.batches()) == 2 * 90_010
    assert bad is not None and bad.count == 2
    assert [one.split(":")[1].strip() for one in bad.news()] == [f"{tmp_path}/{name} line 90002" for name in ("a.csv", "b.csv")]
    # no other machine may read the files, which would count for itself
    assert table.files is None and table.each is None
    # read again, they are counted again, and not twice
    assert sum(batch.num_rows for batch in table.batches()) == 2 * 90_010 and bad.count == 2


def test_too_many_fail_with_their_reasons(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id\n" + "x\n" * 50_000)
    with pytest.raises(SourceError, match="more than 3 rows cannot be read.*line 2: column 'id'"):
        read(path, "id bigint", 3)


def test_a_first_line_that_cannot_be_read_fails(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,id\n1,2\n")
    with pytest.raises(SourceError, match="two columns"):
        read(path)
    path.write_text("id,x\n1,2\n")
    with pytest.raises(SourceError, match="no column 'y'"):
        read(path, "y bigint")


def test_lines_that_end_with_a_carriage_return(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,x\r1,2\rno\r3,4\r")
    rows, told, _ = read(path, "id bigint, x bigint")
    assert rows == [(1, 2), (3, 4)] and told[0].startswith("line 3: ")


def test_a_growing_text(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b'{"a":1}\n{"a":\n{"a":3}\n')
    os.close(writing)
    bad = BadRows.of("skip", 100)
    form = formats.lines_named("jsonl")
    assert form is not None and bad is not None
    table = open_text(reading, form, Schema.parse("a bigint not null"), False, "stdin", bad)
    assert [row["a"] for batch in table.batches() for row in batch.to_pylist()] == [1, 3]
    os.close(reading)
    assert table.bad is bad and bad.news()[0].startswith("source: stdin line 2: JSON parse error")


def test_a_quote_that_is_never_closed_costs_its_line_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("akrunner.io.text.ROW_BYTES", 100)
    monkeypatch.setattr("akrunner.io.text.PIECE_BYTES", 50)
    data = b'id,s\n1,a\n2,"b\n' + b"3,c\n" * 200
    parts = [data[at : at + 50] for at in range(0, len(data), 50)]
    bad = BadRows.of("skip", 100)
    assert bad is not None
    pieces = Pieces(lambda size: parts.pop(0) if parts else b"", True, "t.csv", bad=bad)
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    form = formats.csv.FORMAT.written_as(COMMA)
    parser = tolerant(form.parser(pieces, schema), pieces, bad, schema)
    rows = 0
    while (piece := pieces.next()) is not None:
        rows += parser.parse(piece).num_rows
    assert rows == 201 and bad.count == 1 and bad.news()[0].startswith("source: t.csv line 3: a quote is not closed")


def test_tables_that_are_no_text_are_refused() -> None:
    with pytest.raises(SourceError, match="bad_rows= .--bad-rows. is for CSV and JSON lines"):
        open_source({"a": [1]}, read_examples=read_examples, bad=BadRows.of("skip", 1))


def test_objects_without_a_column_fail(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("{}\n{}\n")
    with pytest.raises(SourceError, match="objects without a column"):
        read(path)


def test_a_column_that_no_object_has_fails(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a":1}\n{"a":\n')
    with pytest.raises(SourceError, match="no object in .* has a 'b'"):
        read(path, "a bigint, b bigint")


def test_a_query_sees_the_good_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id\n1\nx\n3\n")
    rows, told, _ = read(path, "id bigint", select="id + 1 AS more")
    assert rows == [(2,), (4,)] and len(told) == 1
    with pytest.raises(SourceError, match="more than 0 rows cannot be read"):
        read(path, "id bigint", 0, select="id + 1 AS more")


@pytest.mark.parametrize(
    ("written", "raw"),
    [
        ({"delimiter": ";"}, b'id;s\n1;"a;b"\nfoo;b\n2;c;d\n3\n4;"x\n5;z,"y"\n'),
        ({"delimiter": "|", "quote": "'"}, b"id|s\n1|'a;b'\nfoo|b\n2|c|d\n3\n4|'x\n5|z,\"y\"\n"),
        ({"delimiter": ";", "skip": 0, "encoding": "latin-1"}, b'id;s\n1;"a;b"\nfoo;b\n2;c;d\n3\n4;"x\n5;z,"y"\n'),
        ({"delimiter": ";", "encoding": "utf-16"}, 'id;s\n1;"a;b"\nfoo;b\n2;c;d\n3\n4;"x\n5;z,"y"\n'.encode("utf-16")),
    ],
)
def test_bad_rows_of_a_csv_that_is_written_otherwise(written: dict[str, Any], raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(raw)
    rows, told, bad = read(path, "id bigint not null, s string", input_csv=CsvOptions.of(written, "input_csv"))
    assert rows == [(1, "a;b"), (5, 'z,"y"')] and bad.count == 4
    assert [one.split(":")[0] for one in told] == ["line 3", "line 4", "line 5", "line 6"]
    mark, quote = written["delimiter"], written.get("quote", '"')
    shown = [f"foo{mark}b", f"2{mark}c{mark}d", "3", f"4{mark}{quote}x"]
    assert all(one.endswith(repr(row)) for one, row in zip(told, shown, strict=True)), "as they stand in the file"


def test_lines_that_are_left_out_are_counted_and_letters_decoded(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("Bericht\n\nid;x\n1;1,5\n2;drei\n3;é;1\n4;2,5\n".encode("latin-1"))
    written = CsvOptions.of("skip=2,delimiter=;,decimal=comma,encoding=latin-1", "input_csv")
    rows, told, _ = read(path, "id bigint, x double", input_csv=written)
    assert rows == [(1, 1.5), (4, 2.5)]
    assert [one.split(":")[0] for one in told] == ["line 5", "line 6"] and told[1].endswith("'3;é;1'")


def test_what_stands_between_cells_is_found_with_bad_values_and_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id;s\n1;a\nfoo;b\n2;c\n")
    bad = BadRows.of("skip", 100)
    schema = Schema.parse("id bigint, s string")
    table = open_source(path, read_examples=read_examples, input_schema=schema, bad=bad, defaults={"s": "x"})
    assert [row["id"] for batch in table.batches() for row in batch.to_pylist()] == [1, 2]
    assert table.bad is bad and bad is not None and bad.count == 1
    assert len(table.notes) == 1 and "read as ';'-separated" in table.notes[0]


def test_with_rows_of_several_lengths_the_user_says_what_stands_between_cells(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id;s\n1;a\n2;b;c\n3;d\n")
    with pytest.raises(SourceError, match=r"input_csv= \(--input-csv\) delimiter=semicolon"):
        read(path, "id bigint, s string")


def test_the_first_row_may_be_bad_where_no_line_names_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("1;a;b\n2;c\n3;d\n")
    rows, told, _ = read(path, "id bigint, s string", input_csv=CsvOptions.of("delimiter=;,header=no", "input_csv"))
    assert rows == [(2, "c"), (3, "d")]
    assert told == ["line 1: CSV parse error: Expected 2 columns, got 3: '1;a;b'"]


def test_comments_and_bad_rows_are_refused_together_if_cells_are_quoted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,s\n1,a\n# all\nfoo,b\n2,c\n")
    with pytest.raises(SourceError, match="bad_rows= .* comments"):
        read(path, "id bigint, s string", input_csv=CsvOptions.of("delimiter=comma,comment=hash", "input_csv"))
    written = CsvOptions.of("delimiter=comma,comment=hash,quote=none", "input_csv")
    rows, told, _ = read(path, "id bigint, s string", input_csv=written)
    assert rows == [(1, "a"), (2, "c")] and [one.split(":")[0] for one in told] == ["line 4"]


def test_a_reason_has_the_whole_of_a_value_with_lines(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('id,x\n"2\nx",3\n1,2\n')
    bad = BadRows(None, Limit(1))
    found = open_source(
        str(tmp_path / "t.csv"), read_examples=read_examples, input_schema=Schema.parse("id bigint, x bigint"), bad=bad
    )
    assert [batch.to_pylist() for batch in found.batches()] == [[{"id": 1, "x": 2}]]
    assert r"line 2: column 'id': CSV conversion error to int64: invalid value '2\nx': " in bad.news()[0]
