"""What is known of files without reading their rows, and which Keras an interpreter has. Tables in memory are in `tests/unit/test_planning.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.io.paths import Files, expand
from akrunner.launch.interpreters import Interpreter
from akrunner.planning import known
from akrunner.planning.known import keras_of, known_nulls, known_rows
from akrunner.schema import Schema
from akrunner.spec import JobSpec, ScriptSpec


def files(folder: Path, *tables: dict[str, Any], **options: Any) -> Files:
    for number, columns in enumerate(tables):
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", **options)
    return expand(str(folder), None)


def test_rows_and_nulls_of_parquet_are_those_of_all_its_files(tmp_path: Path) -> None:
    there = files(tmp_path, {"a": [1, None], "b": ["x", None]}, {"a": pa.nulls(1, pa.int64()), "b": ["y"]})
    assert known_rows(str(tmp_path), there) == 3
    assert known_nulls(str(tmp_path), there) == {"a": 2, "b": 1}


def test_nulls_of_a_column_that_one_file_says_nothing_of_are_unknown(tmp_path: Path) -> None:
    files(tmp_path, {"a": [None], "b": [1]}, write_statistics=["b"])
    pq.write_table(pa.table({"a": [1, None], "b": [None, 2]}), tmp_path / "1.parquet")
    assert known_nulls(str(tmp_path), expand(str(tmp_path), None)) == {"b": 1}


def test_of_text_nobody_knows_how_many_rows_it_has(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    there = expand(str(tmp_path / "t.csv"), None)
    assert known_rows("t.csv", there) is None and known_nulls("t.csv", there) == {}


def test_files_elsewhere_and_very_many_files_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = files(tmp_path, {"a": [1]}, {"a": [2]})
    memory = Files(fsspec.filesystem("memory"), ["/t.parquet"], "parquet", None)
    assert known_rows("memory://t.parquet", memory) is None and known_nulls("memory://t.parquet", memory) == {}
    monkeypatch.setattr(known, "_COUNTED", 1)
    assert known_rows(str(tmp_path), there) is None and known_nulls(str(tmp_path), there) == {}


@pytest.mark.parametrize(
    "source, rows",
    [
        (pa.array([1, 2]), 2), (pa.chunked_array([[1], [2, 3]]), 3), (pa.record_batch({"a": [1]}), 1), ({}, 0), ([], 0), ((1, 2), 2),
        ((Path("a.csv"),), None), (b"abc", None), (3, None), ({1, 2}, None),
    ],
    ids=str,
)  # fmt: skip
def test_a_length_is_known_only_of_what_holds_rows(source: Any, rows: int | None) -> None:
    assert known_rows(source, None) == rows


def test_a_large_frame_is_not_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    pd = pytest.importorskip("pandas")
    monkeypatch.setattr(known, "_LOOKED_AT", 3)
    assert known_nulls(pd.DataFrame({"a": [None] * 3}), None) == {"a": 3}
    assert known_nulls(pd.DataFrame({"a": [None] * 4}), None) == {}
    # whatever its names are
    assert known_nulls(pd.DataFrame({7: [None]}), None) == {"7": 1}


@pytest.mark.parametrize(
    "tensorflow, keras, said",
    [
        ("1.15.5", None, "2 (tf.keras)"), ("2.3.0", None, "2 (tf.keras)"), ("2.15.1", "legacy", "2 (tf.keras)"), ("2.16.1", None, "3"),
        ("2.20.0", None, "3"), ("2.20.0", "legacy", "2 (tf-keras 2.19)"), ("10.0", None, "3"), ("", None, ""), ("unknown", None, ""),
    ],
)  # fmt: skip
def test_keras_follows_from_tensorflow(tensorflow: str, keras: str | None, said: str) -> None:
    job = JobSpec(ScriptSpec("s.py", "s.py"), Schema(()), "python", keras=keras)
    assert keras_of(Interpreter("python", (3, 11), tensorflow, "2.19"), job) == said
