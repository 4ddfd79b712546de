"""Batch sources and sinks: rows of memory, of CSV, Parquet, text and TFRecord files, and the files that are written."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner import pack
from akrunner.alink import (
    BatchOperator,
    CsvSinkBatchOp,
    CsvSourceBatchOp,
    MemSourceBatchOp,
    ParquetSinkBatchOp,
    ParquetSourceBatchOp,
    RandomTableSourceBatchOp,
    TextSourceBatchOp,
    TFRecordSinkBatchOp,
    TFRecordSourceBatchOp,
    sources,
)
from akrunner.alink.sources import FlinkSourceBatchOp, TableSourceBatchOp
from akrunner.errors import ConfigError, SourceError


def table() -> BatchOperator:
    return MemSourceBatchOp([(1, "a"), (2, None)], "id bigint, s string")


@pytest.mark.parametrize(
    ("rows", "schema", "types", "found"),
    [
        ([(1, "a"), (2, None)], "id bigint, s string", "id BIGINT, s VARCHAR", [(1, "a"), (2, None)]),
        ([[1, 2.5]], ["a", "b"], "a BIGINT, b DOUBLE", [(1, 2.5)]),
        ([(1,), (2,)], ("a",), "a BIGINT", [(1,), (2,)]),
        (["x", "y"], "word", "word VARCHAR", [("x",), ("y",)]),
        ([7], "n double", "n DOUBLE", [(7.0,)]),
        ([], "n double", "n DOUBLE", []),
    ],
)
def test_rows_of_memory(rows: Any, schema: Any, types: str, found: list[Any]) -> None:
    source = MemSourceBatchOp(rows, schema)
    assert source.getSchemaStr() == types and source.collect() == found == source.collect()


@pytest.mark.parametrize(
    ("rows", "schema", "words"),
    [
        ([(1, 2)], "a bigint", "row 0 does not fit the columns"),
        (3, "a bigint", "rows: they are no rows"),
        ([("x",)], "a bigint", "'x'"),
        ([(1, 2), (1,)], ["a", "b"], r"rows: row 1 does not fit the columns \(a, b\): it has 1 values"),
        ([(1, 2)], ["a"], r"rows: row 0 does not fit the columns \(a\): it has 2 values"),
        ([(1, 2)], "a", r"rows: row 0 does not fit the columns \(a\): it has 2 values"),
        ([(1, 2)], ["a", "a"], "schemaStr=.*: give names, each once"),
        ([], ["a"], "empty"),
    ],
)
def test_rows_that_are_none_are_errors(rows: Any, schema: Any, words: str) -> None:
    with pytest.raises((SourceError, ConfigError), match=words):
        MemSourceBatchOp(rows, schema)


def test_a_table_gets_the_names_and_types_that_are_asked_for() -> None:
    given = pa.table({"a": [1, 2], "b": ["3", "4"]})
    assert TableSourceBatchOp(given).collectToTable() == given
    named = TableSourceBatchOp(given, "x double, y bigint")
    assert named.getSchemaStr() == "x DOUBLE, y BIGINT" and named.collect() == [(1.0, 3), (2.0, 4)]
    with pytest.raises(ConfigError, match=r"schemaStr: 1 columns, and the table has 2 \(a, b\)"):
        TableSourceBatchOp(given, "x double").getColNames()
    with pytest.raises(SourceError):
        TableSourceBatchOp(object())


def test_a_source_is_read_once() -> None:
    opened: list[int] = []

    class Once(RandomTableSourceBatchOp):
        TAKES = RandomTableSourceBatchOp.TAKES

        def _open(self) -> Any:
            opened.append(1)
            return super()._open()

    source = Once(numRows=3, numCols=1)
    one, two = source.select("col0"), source.where("col0 >= 0")
    assert one.collect() == two.collect() == source.collect() and len(opened) == 1
    with pytest.raises(ConfigError, match="Once needs numRows"):
        Once(numCols=1).collect()


def test_csv_files_are_read_as_they_are_told_to_be(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("n|s\n1|'a|b'\n")
    (tmp_path / "2.csv").write_text("n|s\n2|\n")
    given: dict[str, Any] = {"schemaStr": "n bigint, s string", "fieldDelimiter": "|", "ignoreFirstLine": True}
    source = CsvSourceBatchOp(filePath=str(tmp_path / "*.csv"), quoteChar="'", **given)
    assert source.collect()[0] == (1, "a|b") and [row[0] for row in source.collect()] == [1, 2]
    (tmp_path / "1.csv").write_text('n|s\n3|"a"\n')
    assert CsvSourceBatchOp(filePath=str(tmp_path / "1.csv"), quoteChar="", **given).collect() == [(3, '"a"')]
    with pytest.raises(ConfigError, match="CsvSourceBatchOp needs schemaStr"):
        CsvSourceBatchOp(filePath=str(tmp_path / "1.csv")).getColNames()


@pytest.mark.parametrize("kind", [CsvSourceBatchOp, TextSourceBatchOp, ParquetSourceBatchOp, TFRecordSourceBatchOp])
def test_a_file_that_is_not_there_is_an_error_of_the_source(tmp_path: Path, kind: Any) -> None:
    given = {} if kind in (TextSourceBatchOp, ParquetSourceBatchOp) else {"schemaStr": "a bigint"}
    with pytest.raises(SourceError, match=f"source: there is no file {tmp_path}/none"):
        kind(filePath=str(tmp_path / "none.x"), **given).collect()


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_an_error_of_the_source_without_a_traceback(tmp_path: Path) -> None:
    table().link(TFRecordSinkBatchOp(filePath=str(tmp_path / "whole")))
    BatchOperator.execute()
    (tmp_path / "cut").write_bytes((tmp_path / "whole").read_bytes()[:-5])
    (tmp_path / "latin").write_bytes(b"caf\xe9,1\n")

    def fails() -> Iterator[dict[str, int]]:
        yield from ({"n": 1} for _ in range(100_000))
        raise ValueError("mine")

    latin = str(tmp_path / "latin")
    for source, words in (
        (TextSourceBatchOp(filePath=latin), f"source: cannot read {latin}: .*byte 0xe9"),
        (CsvSourceBatchOp(filePath=latin, schemaStr="s string, n bigint"), f"cannot read {latin} as csv: line 1: column 's'"),
        (TFRecordSourceBatchOp(filePath=str(tmp_path / "cut"), schemaStr="id bigint, s string"), "cut is cut short: record 1"),
        (ParquetSourceBatchOp(filePath=latin), f"filePath: cannot read {latin}: "),
        (TableSourceBatchOp(fails()), "cannot read the iterable: ValueError: mine"),
    ):
        with pytest.raises(SourceError, match=words) as raised:
            source.collect()
        assert "Traceback" not in str(raised.value)


def test_lines_of_text_files_plain_and_packed(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_bytes("caf\u00e9\r\n\nlast".encode())
    (tmp_path / "2.txt.gz").write_bytes(gzip.compress(b"packed\n"))
    assert TextSourceBatchOp(filePath=str(tmp_path / "1.txt")).collect() == [("caf\u00e9",), ("",), ("last",)]
    packed = TextSourceBatchOp(filePath=str(tmp_path / "2.txt.gz"), textCol="line")
    assert packed.getSchemaStr() == "line VARCHAR" and packed.collect() == [("packed",)]


def test_parquet_files_of_a_directory_and_of_what_pack_has_written(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    for i in range(2):
        pq.write_table(pa.table({"n": [i]}), tmp_path / "p" / f"{i}.parquet")
    source = ParquetSourceBatchOp(filePath=str(tmp_path / "p"))
    assert source.getSchemaStr() == "n BIGINT" and source.collect() == [(0,), (1,)]
    pack(pa.table({"n": [7, 8]}), tmp_path / "out", format="parquet")
    # another file that lies beside the packed ones does not count
    pq.write_table(pa.table({"n": [9]}), tmp_path / "out" / "all" / "mine.parquet")
    assert sorted(ParquetSourceBatchOp(filePath=str(tmp_path / "out" / "all")).collect()) == [(7,), (8,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sink", "source"),
    [
        (CsvSinkBatchOp, CsvSourceBatchOp),
        (ParquetSinkBatchOp, ParquetSourceBatchOp),
        (TFRecordSinkBatchOp, TFRecordSourceBatchOp),
    ],
)
def test_a_file_is_written_when_the_program_executes_and_replaced_where_that_is_asked_for(
    tmp_path: Path, sink: Any, source: Any
) -> None:
    path = str(tmp_path / "out")
    rows = MemSourceBatchOp([(1, "a"), (2, "b")], "id bigint, s string")
    rows.link(sink(filePath=path))
    assert not list(tmp_path.iterdir())
    BatchOperator.execute()
    assert [one.name for one in tmp_path.iterdir()] == ["out"]
    given = {} if source is ParquetSourceBatchOp else {"schemaStr": "id bigint, s string"}
    rows.firstN(1).link(sink(filePath=path))
    with pytest.raises(Exception, match="exists"):
        BatchOperator.execute()
    assert len(source(filePath=path, **given).collect()) == 2
    rows.firstN(1).link(sink(filePath=path, overwriteSink=True))
    BatchOperator.execute()
    assert source(filePath=path, **given).collect() == [(1, "a")]
    with pytest.raises(ConfigError, match=f"{sink.__name__} needs filePath"):
        rows.link(sink())


def test_nothing_is_left_of_a_file_whose_rows_fail(tmp_path: Path) -> None:
    for sink in (CsvSinkBatchOp, ParquetSinkBatchOp):
        table().select("CAST(s AS BIGINT) AS n").link(sink(filePath=str(tmp_path / "out")))
        with pytest.raises(Exception, match="Could not convert string 'a'"):
            BatchOperator.execute()
        assert not list(tmp_path.iterdir())


def test_a_csv_file_is_one_of_this_machine(tmp_path: Path) -> None:
    # the variable keeps the operator, and so the rows beneath it
    source = table()
    relation = source._relation()
    with pytest.raises(ConfigError, match="filePath: memory://a/b must be a local file"):
        sources.write_csv("memory://a/b", relation, ",", False)
    sources.write_csv(str(tmp_path / "a"), relation, ";", False)
    assert (tmp_path / "a").read_text() == "1;a\n2;\n"


def test_a_table_of_pyflink_needs_an_environment_with_flink() -> None:
    with pytest.raises(ConfigError, match=r"fromTable: for a PyFlink table, call useRemoteEnv"):
        FlinkSourceBatchOp(object())
