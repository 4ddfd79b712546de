"""Rows as text with other marks than Arrow's own writer has."""

from __future__ import annotations

import io
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SinkError, WriteError
from akrunner.io import formats
from akrunner.io.csv_options import CsvOptions
from akrunner.io.csv_writer import CsvRows
from akrunner.io.layouts import Layout
from akrunner.io.sinks import FileSink, PartsSink
from akrunner.io.sources import open_source
from akrunner.spec import TaskSpec

TABLE = pa.table({"a": [1.5, None], "b;c": ["x;'y'\n", ""], "d": [date(2026, 1, 2), None], "e": [None, "é"]})


def no_examples(*_: Any) -> Any:
    raise AssertionError


def written(table: pa.Table, csv: str) -> bytes:
    stream = io.BytesIO()
    options = CsvOptions.of(csv, "output_csv")
    assert options is not None
    writer = CsvRows(stream, table.schema, options)
    for batch in table.to_batches():
        writer.write(batch)
    writer.close()
    return stream.getvalue()


def test_what_is_written() -> None:
    found = written(TABLE, "delimiter=;,quote=',null=NA,decimal=comma,encoding=latin-1")
    assert found.decode("latin-1") == "a;'b;c';d;e\n1,5;'x;''y''\n';2026-01-02;NA\nNA;'';NA;é\n"
    assert written(TABLE.select(["a"]), "delimiter=tab,header=no") == b"1.5\n\n"
    assert written(TABLE.select(["a"]), "delimiter=tab,encoding=utf-16") == "a\n1.5\n\n".encode("utf-16")


@pytest.mark.parametrize(
    ("csv", "words"),
    [
        ("delimiter=;,null=é", "column 'e' has the value 'é', which would be read as a null"),
        ("delimiter=tab,encoding=ascii", "'é' is no character of ascii"),
        ("delimiter=tab,quote=none", "column 'b;c' has .*without quotes"),
    ],
)
def test_what_cannot_be_written(csv: str, words: str) -> None:
    with pytest.raises(WriteError, match=words):
        written(TABLE, csv)


@pytest.mark.parametrize("csv", [None, "null=NA", "decimal=comma,quote=single"])
def test_a_tsv_is_read_as_it_was_written(tmp_path: Path, csv: str | None) -> None:
    path = tmp_path / "x.tsv"
    table = pa.table({"a": [1.5, 2.5], "b": ["x\ty", "z"]})
    sink = FileSink(str(path), table.schema, no_examples, layout=Layout(csv=CsvOptions.of(csv, "output_csv")))
    sink.write_rows(table.to_batches()[0])
    sink.commit()
    assert path.read_bytes().startswith(b"a\tb\n")
    again = open_source(path, read_examples=no_examples, input_csv=CsvOptions.of(csv, "input_csv"))
    assert pa.Table.from_batches(again.batches()).to_pydict() == table.to_pydict()


def test_a_directory_of_tsv(tmp_path: Path) -> None:
    options = CsvOptions.of("delimiter=tab", "output_csv")
    sink = PartsSink(f"{tmp_path}/out/", TABLE.schema, no_examples, "csv", layout=Layout(csv=options))
    sink.write(TaskSpec("chief", 0), TABLE.to_batches()[0])
    sink.commit()
    assert (tmp_path / "out" / "part-chief-0.tsv").exists()


def test_what_is_told_before_anything_starts(tmp_path: Path) -> None:
    options = CsvOptions.of("decimal=comma", "output_csv")
    for name, words in (("x.csv", "',' stands between cells"), ("x.parquet", "output_csv= .* is for CSV")):
        with pytest.raises(SinkError, match=words):
            FileSink(str(tmp_path / name), TABLE.schema, no_examples, layout=Layout(csv=options))
    assert formats.named("parquet").written_as(options) is formats.named("parquet")
