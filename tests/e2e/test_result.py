"""What a job gives back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from akrunner.engines.base import Stats
from akrunner.model import Model
from akrunner.running.result import Result

CODE = """
import sys
class NoPandas:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)
sys.meta_path.insert(0, NoPandas)
import pyarrow as pa
from akrunner.running.result import Result
try:
    Result(pa.table({"a": [1]}), None, (), None, None).to_pandas()
except Exception as e:
    print(type(e).__name__, e)
"""


@pytest.mark.slow
def test_without_pandas() -> None:
    """pyarrow remembers whether there is one, so a process of its own."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ConfigError to_pandas() needs pandas: pip install 'akrunner[pandas]'")


def test_it_is_short_in_a_notebook(tmp_path: Path) -> None:
    stats = Stats(1.25, 0, 0, 0, 0, 0, 1234, 0, 0, 0, 0, "input", {}, warnings=["w"])
    table = pa.table({f"c{i}": [i] for i in range(10)})
    assert repr(Result(table, None, (), stats, None)) == (
        "<Result: 1,234 rows of c0, c1, c2, c3, c4, c5, c6, c7 and 2 more in 1.2 s; 1 warning (stats.warnings)>"
    )
    (tmp_path / "saved_model.pb").write_bytes(b"")
    stats = Stats(1.0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, "input", {})
    made = Result(None, "s3://me:pw@b/o.csv", (), stats, "/jobs/1", Model(str(tmp_path)))
    assert repr(made) == f"<Result: 1 row in 1.0 s; output s3://me:***@b/o.csv; work_dir /jobs/1; model {tmp_path}>"
