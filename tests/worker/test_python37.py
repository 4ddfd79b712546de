"""The worker half on a bare Python 3.7: no numpy, no TensorFlow, nothing installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import akrunner
from akrunner.engines.local import LocalEngine
from akrunner.io.sinks import MemorySink
from akrunner.io.sources import open_source
from akrunner.launch.bundle import bundle_bytes
from akrunner.launch.files import collect
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec
from tests.conftest import Script

pytestmark = pytest.mark.slow

ROOT = Path(akrunner.__file__).parent


def test_every_module_compiles(python37: str, leaves_nothing: Path) -> None:
    files = [str(path) for half in ("wire", "worker") for path in (ROOT / half).rglob("*.py")]
    code = "import sys\nfor f in sys.argv[1:]: compile(open(f, encoding='utf-8').read(), f, 'exec')"
    subprocess.run([python37, "-c", code, *files], check=True)


def test_a_job(python37: str, leaves_nothing: Path, script: Script) -> None:
    body = """
    import sys

    def main(task_config):
        assert sys.version_info[:2] == (3, 7)
        assert "numpy" not in sys.modules and "tensorflow" not in sys.modules
        rows = task_config.dataset_length
        print(task_config.user_params["word"])
        for _ in range(rows):
            name = b"n"
            value = b"\\x1a\\x03\\x0a\\x01" + bytes([rows])
            entry = b"\\x0a\\x01n\\x12" + bytes([len(value)]) + value
            inner = b"\\x0a" + bytes([len(entry)]) + entry
            task_config.output_writer.write(b"\\x0a" + bytes([len(inner)]) + inner)
    """
    schema = Schema.parse("n bigint")
    sink = MemorySink(schema.arrow)
    source = open_source({"a": [1, 2, 3]}, read_examples=lambda *_: iter(()))
    job = JobSpec(
        collect(script(body), []),
        Schema.from_arrow(source.schema),
        python37,
        ClusterSpec(2),
        schema,
        user_params={"word": "hello"},
    )
    outcome = LocalEngine().run(job, source, sink, None)
    assert sink.table()["n"].to_pylist() == [2, 2, 1]
    assert [task.python[:3] for task in outcome.tasks] == ["3.7", "3.7"]
    assert "hello" in outcome.tasks[0].log_tail


def test_its_traceback(python37: str, leaves_nothing: Path, script: Script) -> None:
    source = open_source({"a": [1]}, read_examples=lambda *_: iter(()))
    path = script("def main(task_config):\n    return 1 / 0\n")
    job = JobSpec(collect(path, []), Schema.from_arrow(source.schema), python37)
    with pytest.raises(akrunner.ScriptFailedError, match="ZeroDivisionError: division by zero") as caught:
        LocalEngine().run(job, source, None, None)
    assert f'File "{path}", line 2, in main' in str(caught.value)
    assert "return 1 / 0" in str(caught.value)


def test_the_bundle_says_how_to_use_it(python37: str, leaves_nothing: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.zip"
    bundle.write_bytes(bundle_bytes())
    done = subprocess.run([python37, str(bundle)], capture_output=True, text=True)
    assert done.returncode == 2 and "usage: python BUNDLE replay TASK_DIR" in done.stderr
