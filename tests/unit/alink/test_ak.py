"""Operators that read and write Alink's .ak files, as tables and as streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from akrunner.alink import (
    AkSinkBatchOp,
    AkSinkStreamOp,
    AkSourceBatchOp,
    AkSourceStreamOp,
    BatchOperator,
    CsvSinkStreamOp,
    MemSourceBatchOp,
    MemSourceStreamOp,
    StreamOperator,
)
from akrunner.alink.ak import write_ak
from akrunner.errors import ConfigError, SinkError, SourceError

ROWS = [(1, "x"), (2, "y"), (3, "x"), (4, None), (5, "x")]


def table(rows: Any = ROWS) -> BatchOperator:
    return MemSourceBatchOp(rows, "n bigint, s string")


def test_a_table_is_written_when_the_program_executes_and_read_again(tmp_path: Path) -> None:
    path = str(tmp_path / "t.ak")
    table().link(AkSinkBatchOp(filePath=path))
    assert not list(tmp_path.iterdir())
    BatchOperator.execute()
    source = AkSourceBatchOp(filePath=path)
    assert source.getSchemaStr() == "n BIGINT, s VARCHAR" and source.collect() == ROWS
    assert [one.name for one in tmp_path.iterdir()] == ["t.ak"]


def test_several_files_are_one_table(tmp_path: Path) -> None:
    table().link(AkSinkBatchOp(filePath=str(tmp_path / "t"), numFiles=2))
    BatchOperator.execute()
    assert sorted(one.name for one in (tmp_path / "t").iterdir()) == ["1", "2"]
    assert sorted(AkSourceBatchOp(filePath=str(tmp_path / "t")).collect()) == ROWS


@pytest.mark.slow
def test_columns_may_name_directories_of_which_some_are_read(tmp_path: Path) -> None:
    table(ROWS[:3]).link(AkSinkBatchOp(filePath=str(tmp_path / "t"), partitionCols=["s"]))
    BatchOperator.execute()
    assert sorted(one.name for one in (tmp_path / "t").iterdir()) == ["s=x", "s=y"]
    for partitions, rows in ((None, [1, 2, 3]), ("s = 'x'", [1, 3]), ("s=y", [2])):
        source = AkSourceBatchOp(filePath=str(tmp_path / "t"), partitions=partitions)
        assert sorted(row[0] for row in source.collect()) == rows and source.getColNames()[0] == "n"
    stream = AkSourceStreamOp(filePath=str(tmp_path / "t"), partitions="s=y")
    stream.select("n").link(CsvSinkStreamOp(filePath=str(tmp_path / "y.csv")))
    StreamOperator.execute()
    assert (tmp_path / "y.csv").read_text() == "2\n"


@pytest.mark.parametrize("kind", [AkSourceBatchOp, AkSourceStreamOp])
def test_what_is_no_ak_file_is_an_error_of_its_path(tmp_path: Path, kind: Any) -> None:
    (tmp_path / "a.csv").write_text("1\n")
    with pytest.raises(SourceError, match=f"filePath: {tmp_path}/a.csv is no .ak file"):
        kind(filePath=str(tmp_path / "a.csv")).getColNames()
    with pytest.raises(ConfigError, match=f"{kind.__name__} needs filePath"):
        kind().getColNames()


@pytest.mark.parametrize("files", [0, -1])
def test_the_number_of_files_is_1_or_more(tmp_path: Path, files: int) -> None:
    with pytest.raises(ConfigError, match="numFiles"):
        table().link(AkSinkBatchOp(filePath=str(tmp_path / "t"), numFiles=files))
    MemSourceStreamOp(ROWS, "n bigint, s string").link(AkSinkStreamOp(filePath=str(tmp_path / "t"), numFiles=files))
    with pytest.raises(ConfigError, match="numFiles"):
        StreamOperator.execute()
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_replaced_only_where_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.ak"
    path.write_text("mine")
    # the variable keeps the operator, and so the rows beneath it
    source = table()
    relation = source._relation()
    with pytest.raises(ConfigError, match=rf"filePath: {path} exists; setOverwriteSink\(True\) replaces it"):
        write_ak(str(path), relation, False)
    assert path.read_text() == "mine"
    write_ak(str(path), relation, True)
    assert AkSourceBatchOp(filePath=str(path)).collect() == ROWS


def test_a_column_that_names_directories_has_to_be_there(tmp_path: Path) -> None:
    source = table()
    with pytest.raises((ConfigError, SinkError), match="'z'"):
        write_ak(str(tmp_path / "t"), source._relation(), False, 1, ["z"])


def test_a_stream_is_there_when_it_has_ended(tmp_path: Path) -> None:
    stream = MemSourceStreamOp(ROWS, "n bigint, s string")
    stream.link(AkSinkStreamOp(filePath=str(tmp_path / "t"), numFiles=2))
    StreamOperator.execute()
    assert sorted(AkSourceBatchOp(filePath=str(tmp_path / "t")).collect()) == ROWS


@pytest.mark.slow
def test_nothing_is_left_of_a_stream_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "t.ak"
    path.write_text("mine")
    stream = MemSourceStreamOp(ROWS, "n bigint, s string").select("n, CAST(s AS BIGINT) AS m")
    stream.link(AkSinkStreamOp(filePath=str(path), overwriteSink=True))
    with pytest.raises(Exception, match="Could not convert string 'x'"):
        StreamOperator.execute()
    assert [one.name for one in tmp_path.iterdir()] == ["t.ak"] and path.read_text() == "mine"
