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
