"""What importing costs."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_package_is_light() -> None:
    code = "import akrunner, sys; print(' '.join(sys.modules))"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    heavy = {"tensorflow", "duckdb", "grpc", "pandas", "pyarrow", "numpy", "fsspec", "rich", "typer", "psutil"}
    assert not loaded & heavy


def test_importing_the_api_takes_no_heavy_optional_library() -> None:
    code = "import akrunner; akrunner.run; import sys; print(' '.join(sys.modules))"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    assert not loaded & {"tensorflow", "duckdb", "grpc", "pandas"}


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
