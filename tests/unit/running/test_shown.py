"""A result in a notebook: its first rows, where things are, and what was printed."""

from __future__ import annotations

import dataclasses
import datetime
from decimal import Decimal

import pyarrow as pa

from akrunner.running.result import Result
from akrunner.running.shown import rows
from tests.unit.engines.test_base import result, stats
from tests.unit.test_markup import HOSTILE, read


def test_the_first_rows_and_where_the_rest_is() -> None:
    table = pa.table({"id": range(12), "p": [0.123456789] * 12})
    made = Result(table, None, (dataclasses.replace(result(False), log_tail="hello"),), stats(), None, run="r7")
    text = read(made._repr_html_())
    assert text.startswith("Result 0 rows in 0.0 sid int64p double00.12345710.123457")
    assert "2 more rows: result.table, result.to_pandas()" in text and "akrunner.runs.get('r7')" in text
    assert "chief:0 printedhello" in text


def test_an_output_without_its_password() -> None:
    told = stats()
    told.warnings.append("slow")
    text = read(Result(None, "s3://me:pw@b/o.csv", (), told, "/jobs/1")._repr_html_())
    assert "slowoutputs3://me:***@b/o.csvwork dir/jobs/1" in text


def test_a_value_is_short_whatever_it_is() -> None:
    table = pa.table(
        {
            "list": pa.array([list(range(1_000_000))], pa.list_(pa.int64())),
            "tensor": pa.ExtensionArray.from_storage(
                pa.fixed_shape_tensor(pa.float32(), [2]), pa.array([[0.5, 1.5]], pa.list_(pa.float32(), 2))
            ),
            "bytes": pa.array([b"\xff" * 5000]),
            "text": pa.array(["x" * 500], pa.large_string()),
            "no": pa.nulls(1, pa.int32()),
            "time": pa.array([2**62], pa.int64()).cast(pa.timestamp("s")),
            "day": pa.array([datetime.date(2026, 1, 31)]),
            "price": pa.array([Decimal("1.50")]),
            HOSTILE: pa.array([HOSTILE]),
        }
    )
    text = read(rows(table, "how"))
    assert "[0, 1, 2, 3, 4, 5, ...][0.5, 1.5]5,000 bytes" in text and "x" * 77 + "..." + "null?2026-01-311.50<script>" in text


def test_of_many_columns_the_first_are_shown() -> None:
    text = read(rows(pa.table({f"c{at}": [at] for at in range(500)}), "result.table"))
    assert "c19 int64" in text and "c20" not in text and text.endswith("480 more columns: result.table")
