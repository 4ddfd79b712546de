"""A script that copies its table, in both formats: what comes back is what went in, value by value, text and bytes and nulls at their extremes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import akrunner
from tests.conftest import Script

TABLE = pa.table(
    {
        "b": [True, None, False, True],
        "i8": pa.array([-128, None, 0, 127], pa.int8()),
        "i64": [-(2**63), None, -1, 2**63 - 1],
        "f": pa.array([-0.0, None, 1e-45, float("-inf")], pa.float32()),
        "s": ["", None, "end\0", "é\U0001f600"],
        "z": [b"", None, b"\xff\0", bytes(range(256))],
        "t": pa.array([-(2**63), None, -1, 2**63 - 1], pa.int64()).cast(pa.timestamp("us")),
        "d": pa.array([-(2**31), None, -1, 2**31 - 1], pa.int32()).cast(pa.date32()),
        "v": [[], None, [2**53 + 1], [-1, 0, 1]],
        "w": [[], None, [""], ["a\0", "é"]],
        "A": pa.array([1, None, 2, 3], pa.int16()),
        "a": pa.array([4, None, 5, 6], pa.int16()),
        "class of '25": ["x", None, "", "y"],
    }
)
SCHEMA = (
    "b boolean, i8 tinyint, i64 bigint, f float, s string, z varbinary, t timestamp, d date, v array<bigint>, w array<string>, A smallint, "
    """a smallint, "class of '25" string"""
)
COLUMNS = """
    import numpy as np

    def main(task_config):
        defaults = {c["name"]: b"" if c["dtype"] == "bytes" else 0 for c in task_config.schema if c["dtype"] != "float32" and c["shape"] == []}
        for batch in task_config.batches(3, defaults=defaults):
            gone = [i for i, value in enumerate(batch["f"]) if np.isnan(value)]
            rows = {}
            for name, values in batch.items():
                text = name in ("s", "class of '25")
                values = [None if i in gone else v.decode() if text else v for i, v in enumerate(values)]
                rows[name] = [[x.decode() for x in v] if name == "w" and v is not None else v for v in values]
            task_config.output_writer.write_batch(rows)
"""
RAW = """
    import struct

    def main(task_config):
        data, at = open(task_config.dataset_file, "rb").read(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            task_config.output_writer.write(data[at + 12 : at + 12 + size])
            at += size + 16
"""


def bits(table: pa.Table) -> list[dict[str, Any]]:
    """Rows, dates and moments as the numbers they are, floats by their bits."""
    columns = []
    for column in table.combine_chunks().columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        elif pa.types.is_date(column.type):
            column = column.cast(pa.int32())
        elif pa.types.is_floating(column.type):
            column = pa.array(
                column.to_numpy(zero_copy_only=False).astype(np.float32).view(np.uint32), mask=column.is_null().to_numpy()
            )
        columns.append(column)
    rows: list[dict[str, Any]] = pa.table(columns, table.column_names).to_pylist()
    return rows


def test_columns(script: Script, leaves_nothing: Path) -> None:
    result = akrunner.run(script(COLUMNS), TABLE, output_schema=SCHEMA, data_format="columns")
    assert bits(result.table) == bits(TABLE)


def test_examples(script: Script, leaves_nothing: Path) -> None:
    result = akrunner.run(script(RAW), TABLE, output_schema=SCHEMA)
    assert bits(result.table) == bits(TABLE)


def test_views_go_to_several_workers(script: Script, leaves_nothing: Path) -> None:
    """As polars exports its strings: Arrow cannot deal them out to workers as they are."""
    table = pa.table(
        {
            "s": pa.array(["a", None, "c" * 40, ""] * 3, pa.string_view()),
            "w": pa.array([["p"], [], None, [""]] * 3, pa.list_(pa.string_view())),
        }
    )
    result = akrunner.run(script(RAW), table, output_schema="s string, w array<string>", num_workers=2)
    assert sorted(map(str, result.table.to_pylist())) == sorted(map(str, table.to_pylist()))
