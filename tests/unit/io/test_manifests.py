"""The manifest of a directory: what it says, and what becomes of it when files are added."""

from __future__ import annotations

import json

import pyarrow as pa

from akrunner.io.manifests import Written, sealing

SCHEMA = pa.schema([pa.field("id", pa.int64(), False), ("day", pa.date32())])
FILES = [Written("day=2026-11-26/part-chief-0.parquet", 3, 100)]


def test_it_says_which_files_rows_and_columns_there_are() -> None:
    text = sealing(FILES, "parquet", SCHEMA, ["day"], True)(None, [])
    assert text is not None and json.loads(text) == {
        "version": 1,
        "written_by": "akrunner",
        "format": "parquet",
        "partition_by": ["day"],
        "schema": [
            {"name": "id", "type": "int64", "nullable": False},
            {"name": "day", "type": "date32[day]", "nullable": True},
        ],
        "rows": 3,
        "bytes": 100,
        "files": [{"path": "day=2026-11-26/part-chief-0.parquet", "rows": 3, "bytes": 100}],
    }


def test_files_that_are_added_come_behind_those_that_are_there() -> None:
    old = sealing([Written("a", 1, 10)], "parquet", SCHEMA, [], True)(None, [])
    # one that is there is brought up to date, also if none was asked for
    text = sealing([Written("b", 2, 20)], "parquet", SCHEMA, [], False)(old, ["a"])
    found = json.loads(text or b"")
    assert (found["rows"], found["bytes"], [one["path"] for one in found["files"]]) == (3, 30, ["a", "b"])


def test_files_that_nobody_counted_make_no_wrong_sum() -> None:
    for there in (None, b"", b"{}", b"[1]", b'{"written_by": "akrunner", "files": 3}'):
        assert sealing([], "parquet", SCHEMA, [], False)(there, ["a"]) is None
        found = json.loads(sealing(FILES, "parquet", SCHEMA, [], True)(there, ["a"]) or b"")
        assert found["rows"] is None and found["files"][0] == {"path": "a", "rows": None, "bytes": None}
