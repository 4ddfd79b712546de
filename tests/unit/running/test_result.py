"""What a job gives back: how a notebook shows it, and its table as a frame."""

from __future__ import annotations

import types
from typing import Any

import pyarrow as pa
import pytest

from akrunner.engines.base import Stats
from akrunner.errors import ConfigError
from akrunner.running import result as results
from akrunner.running.result import Result


def result(table: Any = None, rows_out: int = 0, warnings: Any = (), **fields: Any) -> Result:
    stats = Stats(
        1.26, 0.0, 0.0, 0.0, 0, 0, rows_out, 0, host_blocked_seconds=0.0, input_wait_seconds=0.0, output_blocked_seconds=0.0, bound="unknown",
        shares=(), warnings=list(warnings),
    )  # fmt: skip
    return Result(table, **{"output": None, "tasks": (), "stats": stats, "work_dir": None, **fields})


@pytest.mark.parametrize(
    "made, shown",
    [
        (result(), "<Result: 0 rows in 1.3 s>"), (result(rows_out=1), "<Result: 1 row in 1.3 s>"), (result(rows_out=1234567, output="o.csv"), "<Result: 1,234,567 rows in 1.3 s; output o.csv>"),
        (result(pa.table({"id": [1], "p": [0.5]}), 1), "<Result: 1 row of id, p in 1.3 s>"), (result(work_dir="/w", warnings=["a"]), "<Result: 0 rows in 1.3 s; work_dir /w; 1 warning (stats.warnings)>"),
        (result(warnings=["a", "b"], model=types.SimpleNamespace(path="/m")), "<Result: 0 rows in 1.3 s; model /m; 2 warnings (stats.warnings)>"),
        (result(output="ftp://me:secret@h/o.csv"), "<Result: 0 rows in 1.3 s; output ftp://me:***@h/o.csv>"),
    ],
)  # fmt: skip
def test_a_notebook_shows_it_in_one_line(made: Result, shown: str) -> None:
    assert repr(made) == shown


@pytest.mark.parametrize("count, end", [(8, "c6, c7 in"), (9, "c6, c7 and 1 more in"), (2008, "c6, c7 and 2,000 more in")])
def test_of_many_columns_the_first_are_named(count: int, end: str) -> None:
    assert end in repr(result(pa.table({f"c{i}": [1] for i in range(count)}), 1))


def test_whole_numbers_with_nulls_stay_whole_in_a_frame() -> None:
    pytest.importorskip("pandas")
    frame = result(pa.table({"big": [(1 << 60) + 1, None], "small": [1, 2], "s": ["x", None]})).to_pandas()
    assert frame["big"][0] == (1 << 60) + 1 and str(frame["big"].dtype) == "Int64" and str(frame["small"].dtype) == "int64"


def test_rows_that_are_not_in_memory_are_no_frame() -> None:
    with pytest.raises(ConfigError, match="^there is no table in memory: .*output_schema=.*output="):
        result(output="o.csv").to_pandas()


def test_a_frame_needs_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(table: Any) -> Any:
        raise ModuleNotFoundError("No module named 'pandas'")

    monkeypatch.setattr(results, "to_pandas", missing)
    with pytest.raises(ConfigError, match=r"^to_pandas\(\) needs pandas: pip install 'akrunner\[pandas\]'"):
        result(pa.table({"a": [1]})).to_pandas()
