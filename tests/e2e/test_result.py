"""What a job gives back."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
class NoPandas:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)
sys.meta_path.insert(0, NoPandas)
import pyarrow as pa
from akrunner.api import Result
try:
    Result(pa.table({"a": [1]}), None, (), None, None).to_pandas()
except Exception as e:
    print(type(e).__name__, e)
"""


def test_without_pandas() -> None:
    """pyarrow remembers whether there is one, so a process of its own."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ConfigError to_pandas() needs pandas: pip install 'akrunner[pandas]'")
