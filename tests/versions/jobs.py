"""Jobs of each kind, in an environment that has akrunner and what it needs, but no pandas, polars or TensorFlow.

Run by that environment's own interpreter, away from the checkout: `python jobs.py PYTHON [MODEL]`. PYTHON has TensorFlow and runs the
tasks; MODEL is a SavedModel that doubles x. Prints one line a job, and ends with a traceback at the first that is wrong.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import akrunner
from akrunner.codec import crc32c

#: what a host need not have
ABSENT = ("pandas", "polars", "tensorflow")
#: Examples as they came, one by one
ECHO = """
import struct

def main(task_config):
    with open(task_config.dataset_file, "rb") as f:
        while True:
            head = f.read(12)
            if not head:
                break
            size, = struct.unpack("<Q", head[:8])
            task_config.output_writer.write(f.read(size))
            f.read(4)
"""
#: columns as they came, and one more
DOUBLE = """
def main(task_config):
    for rows in task_config.batches(2, defaults={"x": -1.0, "i": 0, "s": "", "b": False}):
        task_config.output_writer.write_batch({**{name: rows[name] for name in rows}, "y": rows["x"] * 2})
"""
FAILS = """
def main(task_config):
    raise ValueError("as it should")
"""
SCHEMA = "i bigint, x double, s string, b boolean"
ROWS = 100


def table(rows: int = ROWS) -> pa.Table:
    """Every kind a CSV can hold, with nulls; text that is null is empty text in a CSV."""
    columns = {
        "i": pa.array([None if i % 7 == 3 else i - 5 for i in range(rows)], pa.int64()),
        "x": pa.array([None if i % 11 == 4 else i / 4 for i in range(rows)], pa.float64()),
        "s": pa.array([f"é{i}" for i in range(rows)], pa.string()),
        "b": pa.array([None if i % 3 == 1 else i % 2 == 0 for i in range(rows)], pa.bool_()),
    }
    return pa.table(columns)


def check_host() -> None:
    """It has what it should, and nothing else."""
    there = [name for name in ABSENT if importlib.util.find_spec(name)]
    assert not there, f"{there} should not be here"
    assert "site-packages" in akrunner.__file__, f"akrunner is {akrunner.__file__}, not what was installed"
    assert crc32c.IN_C, "google-crc32c has no C library here"


def check_files(folder: Path, script: Path, tasks: dict[str, Any]) -> None:
    """From each format to the next: every one is written and read."""
    source: Any = table()
    for step, format in enumerate(("csv", "parquet", "arrow", "jsonl", "tfrecord")):
        out = str(folder / f"{format}.{format}")
        akrunner.run(
            script,
            source,
            input_schema=SCHEMA if step else None,
            output=out,
            output_schema=SCHEMA,
            num_workers=1 + step % 2,
            **tasks,
        )
        source = out
    back = akrunner.run(script, source, input_schema=SCHEMA, output_schema=SCHEMA, **tasks).table
    assert back is not None and same(back, table()), back.to_pylist()[:20]


def check_lists(script: Path, tasks: dict[str, Any]) -> None:
    """Lists, tensors, bytes, times, small numbers."""
    given = {
        "v": pa.array([[1.0, 2.0], None, [], [3.5]], pa.list_(pa.float32())),
        "n": pa.array([[1], [2, 3], None, []], pa.list_(pa.int64())),
        "t": pa.array([["a", "bc"], [], ["d"], None], pa.list_(pa.string())),
        "z": pa.array([b"\x00\xff", None, b"", b"a"], pa.binary()),
        "w": pa.array([1, None, 2**53, 4], pa.timestamp("us")),
        "k": pa.array([1, -128, None, 127], pa.int8()),
    }
    schema = "v array<float>, n array<bigint>, t array<string>, z varbinary, w timestamp, k tinyint"
    back = akrunner.run(script, given, output_schema=schema, **tasks).table
    assert back is not None and back.num_rows == 4, back
    for name in ("n", "t", "z", "k"):
        assert back[name].to_pylist() == pa.chunked_array([given[name]]).to_pylist(), (name, back[name].to_pylist())


def check_sources(script: Path, tasks: dict[str, Any]) -> None:
    """What is a table already: arrays of numpy, rows of Python, relations and SQL of DuckDB."""
    arrays = {"i": np.arange(10), "x": np.arange(10) / 4, "s": np.array(["a"] * 10), "b": np.arange(10) % 2 == 0}
    names = list(arrays)
    listed = [dict(zip(names, row)) for row in zip(*(column.tolist() for column in arrays.values()))]
    relation = duckdb.sql("SELECT range AS i, range / 4.0::DOUBLE AS x, 'a' AS s, range % 2 = 0 AS b FROM range(10)")
    for source in (arrays, listed, relation):
        back = akrunner.run(script, source, select="SELECT * FROM input WHERE i < 5", output_schema=SCHEMA, **tasks).table
        assert back is not None and sorted(back["i"].to_pylist()) == [0, 1, 2, 3, 4], type(source)


def check_columns(folder: Path, double: Path, tasks: dict[str, Any]) -> None:
    """Rows as columns, batch and stream."""
    wanted = SCHEMA + ", y double"
    back = akrunner.run(double, table(), data_format="columns", output_schema=wanted, num_workers=2, **tasks).table
    assert back is not None and back.num_rows == ROWS
    columns = back.to_pydict()
    assert all(y == x * 2 for x, y in zip(columns["x"], columns["y"]))
    with akrunner.stream(
        double, iter(table().to_pylist()), input_schema=SCHEMA, data_format="columns", output_schema=wanted, **tasks
    ) as job:
        streamed = sum(batch.num_rows for batch in job)
    assert streamed == ROWS, streamed


def check_errors(folder: Path, tasks: dict[str, Any]) -> None:
    """A failed job raises, a wrong argument too."""
    try:
        akrunner.run(written(folder, "fails.py", FAILS), {"a": [1]}, **tasks)
    except akrunner.ScriptFailedError as e:
        assert "ValueError: as it should" in str(e), e
    else:
        raise AssertionError("a script that raises has not failed")
    try:
        akrunner.run(written(folder, "echo.py", ECHO), {"a": [1]}, output_schema="a nonsense", **tasks)
    except akrunner.ConfigError:
        pass
    else:
        raise AssertionError("a wrong schema is none")


def check_command(folder: Path, script: Path, python: str) -> None:
    """The command runs what it is told to, in its own words and as JSON."""
    akrunner_command = [str(Path(sys.executable).with_name("akrunner"))]
    told = said([*akrunner_command, "--version"], 0)
    assert told.strip() == f"akrunner {akrunner.__version__}", told
    out = folder / "command.csv"
    job = ["run", str(script), "--input", str(folder / "csv.csv"), "--output-schema", SCHEMA, "--python-env", python]
    told = said([*akrunner_command, *job, "--output", str(out), "--num-workers", "2"], 0)
    assert out.exists() and len(out.read_text().splitlines()) == ROWS + 1, told
    # no flag is set that nobody gave: it does not overwrite, and says so in words
    assert not said([*akrunner_command, *job, "--output", str(out)], 2).startswith("{")
    answer = json.loads(said([*akrunner_command, *job, "--output", str(out), "--overwrite", "--json"], 0))
    assert answer, answer
    said([*akrunner_command, "run", str(folder / "fails.py"), "-i", str(folder / "csv.csv"), "--python-env", python], 1)
    said([*akrunner_command, "run", str(script), "-i", str(folder / "nothing.csv"), "--python-env", python], 2)
    said([*akrunner_command, "run", str(script), "--no-such-option"], 2)
    for command in ("run", "predict", "env create"):
        assert "Usage" in said([*akrunner_command, *command.split(), "--help"], 0), command
    lines = "".join(json.dumps({"i": i, "x": i / 4, "s": "a", "b": True}) + "\n" for i in range(5))
    double = str(folder / "double.py")
    stream = ["stream", double, "-i", "-", "--input-schema", SCHEMA, "--output-schema", SCHEMA + ", y double"]
    told = said([*akrunner_command, *stream, "--data-format", "columns", "--python-env", python], 0, lines)
    assert [json.loads(line)["y"] for line in told.splitlines()] == [i / 2 for i in range(5)], told


def check_model(folder: Path, model: str, python: str) -> None:
    """A model of TensorFlow, by a host that has none."""
    given = {"id": [1, 2, 3], "x": [0.5, 1.0, -2.0]}
    back = akrunner.predict(model, given, output_schema="y float", python_env=python).table
    assert back is not None and back["y"].to_pylist() == [1.0, 2.0, -4.0], back
    with akrunner.LocalPredictor(model, python_env=python) as predictor:
        assert predictor.predict({"x": 4.0}), "no answer"


def same(one: pa.Table, other: pa.Table) -> bool:
    """The same rows in any order; Examples narrow doubles, all of ours fit."""

    def key(row: dict[str, Any]) -> list[str]:
        return [repr(value) for value in row.values()]

    return sorted(map(key, one.to_pylist())) == sorted(map(key, other.to_pylist()))


def written(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(body)
    return path


def said(command: Sequence[str], code: int, stdin: str = "") -> str:
    """What a command prints. Raises: AssertionError: it ends otherwise than it should."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def main(python: str, model: str = "") -> None:
    tasks: dict[str, Any] = {"python_env": python}
    with tempfile.TemporaryDirectory() as temp:
        folder = Path(temp)
        os.chdir(folder)
        echo, double = written(folder, "echo.py", ECHO), written(folder, "double.py", DOUBLE)
        check_host()
        for name, check in (
            ("files", lambda: check_files(folder, echo, tasks)),
            ("lists", lambda: check_lists(echo, tasks)),
            ("sources", lambda: check_sources(echo, tasks)),
            ("columns", lambda: check_columns(folder, double, tasks)),
            ("errors", lambda: check_errors(folder, tasks)),
            ("command", lambda: check_command(folder, echo, python)),
            ("model", lambda: check_model(folder, model, python) if model else None),
        ):
            check()
            print(name, flush=True)
    loaded = sorted({name.split(".")[0] for name in sys.modules} & set(ABSENT))
    assert not loaded, f"{loaded} imported"


if __name__ == "__main__":
    main(*sys.argv[1:])
