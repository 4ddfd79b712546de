"""What importing costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from akrunner.io.systems import apart
from tests.conftest import Script

pytestmark = pytest.mark.slow


def test_importing_the_package_is_light() -> None:
    code = "import akrunner, sys; print(' '.join(sys.modules))"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    heavy = {"tensorflow", "duckdb", "grpc", "pandas", "pyarrow", "numpy", "fsspec", "rich", "typer", "psutil"}
    assert not loaded & heavy


def test_importing_the_api_takes_no_heavy_optional_library() -> None:
    code = "import akrunner; akrunner.run; import sys; print(' '.join(sys.modules))"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    assert not loaded & {"tensorflow", "duckdb", "grpc", "pandas"}


def test_commands_start_without_pydantic() -> None:
    """Its import is a seventh of the time in which one starts."""
    code = "import sys; from akrunner.cli.main import main; code = main(sys.argv[1:]); print(code, 'pydantic' in sys.modules)"
    line = ["run", "none.py", "-i", "none.csv", "--num-workers", "2", "--timeout", "7.5", "-p", "a=1"]
    done = subprocess.run([sys.executable, "-c", code, *line], capture_output=True, text=True)
    assert done.stdout == "2 False\n", done.stdout + done.stderr


def test_rows_cross_without_pandas() -> None:
    code = """
import sys
import pyarrow.csv, io
from akrunner import codec
from akrunner.schema import Schema
batch = pyarrow.csv.read_csv(io.BytesIO(b"i,x,b,t\\n1,0.5,true,a\\n,,,\\n-3,2,false,bc\\n")).combine_chunks().to_batches()[0]
codec.encode_records(batch)
payload = b"".join(bytes(part) for part in codec.encode_columns(batch))
back = codec.decode_columns(Schema.from_arrow(batch.schema), payload)
print(back.equals(batch), "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "True False\n", done.stdout + done.stderr


def test_files_are_read_and_written_without_pandas(leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    body = """
    def main(task_config):
        for rows in task_config.batches(2, defaults={"x": 0.0}):
            task_config.output_writer.write_batch({name: rows[name] for name in rows})
    """
    (tmp_path / "in.csv").write_text("id,x,s,b\n1,0.5,a,true\n2,,b,false\n3,1e30,9007199254740993,true\n")
    code = """
import importlib.metadata
import sys
import akrunner
script, rows, folder = sys.argv[1:]
wanted = dict(output_schema="id bigint, x double, s string, b boolean", data_format="columns")
# SQL and JSON lines are DuckDB's, which before 2.0 imports pyarrow.dataset by itself, and so pandas where that is
by_itself = importlib.metadata.version("duckdb").startswith("1.")
select = None if by_itself else "SELECT * FROM input WHERE id > 1"
for ending in ("parquet", "arrow", "csv", "tfrecord") + (() if by_itself else ("jsonl",)):
    out = f"{folder}/out.{ending}"
    akrunner.run(script, rows, output=out, num_workers=2, **wanted)
    given = wanted["output_schema"] if ending == "tfrecord" else None
    akrunner.run(script, out, input_schema=given, select=select, **wanted)
print(*{"pandas", "polars", "tensorflow"} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, script(body), str(tmp_path / "in.csv"), str(tmp_path)], capture_output=True, text=True
    )
    assert done.stdout == "\n", done.stdout + done.stderr


def test_the_process_that_has_a_sqlite_open_is_light() -> None:
    """A job in a notebook, which has imported sqlite3, starts up to four of it. The driver would import pandas and polars."""
    there, serve = apart._SERVER.splitlines()[-2:]
    assert "import" in there and "serve(" in serve
    code = apart._SERVER.replace(serve, "import akrunner.io.systems.sqlite, adbc_driver_sqlite.dbapi\nprint(*sys.modules)")
    told = json.dumps(sys.path).encode() + b"\n"
    done = subprocess.run([sys.executable, "-I", "-c", code], input=told, capture_output=True, check=True)
    loaded = set(done.stdout.decode().split())
    assert "adbc_driver_sqlite.dbapi" in loaded and not loaded & {
        "pandas",
        "polars",
        "fsspec",
        "asyncio",
        "akrunner.io.formats",
    }
