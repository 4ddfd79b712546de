"""The examples for schedulers: cron and systemd as far as a machine without them can tell, Airflow and Dagster with their own libraries."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from akrunner.cli.main import main
from tests.conftest import ENDS, ENVS, NOT_RUN

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples" / "schedulers"
SCORE = """
def main(task_config):
    for batch in task_config.batches(64):
        task_config.output_writer.write_batch({"id": batch["id"]})
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "score.py").write_text(SCORE)
    (tmp_path / "table.csv").write_text("id\n" + "".join(f"{number}\n" for number in range(20)))
    return tmp_path


def _commands(text: str) -> list[list[str]]:
    return [shlex.split(found) for found in re.findall(r"bin/akrunner (run .*)$", text, re.MULTILINE)]


@pytest.mark.parametrize("name", ["crontab", "nightly.service"])
def test_the_commands_are_right(name: str, data: Path, monkeypatch: pytest.MonkeyPatch, leaves_nothing: Path) -> None:
    monkeypatch.chdir(data)
    [words] = _commands((EXAMPLES / name).read_text())
    assert main([*words, "--dry-run", "--json"]) == 0


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason=f"{NOT_RUN}a machine without systemd")
def test_systemd_understands_its_files(tmp_path: Path) -> None:
    for name in ("nightly.service", "nightly.timer"):
        text = (EXAMPLES / name).read_text()
        # a program that is there, whatever the home is
        (tmp_path / name).write_text(text.replace("%h/.venv/bin/akrunner", "/bin/true").replace("%h", "/tmp"))
    words = [
        "systemd-analyze",
        "verify",
        "--man=no",
        "--recursive-errors=no",
        str(tmp_path / "nightly.service"),
        str(tmp_path / "nightly.timer"),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=ENDS)
    assert done.returncode == 0 and "nightly" not in done.stderr, done.stderr


@pytest.mark.parametrize(("name", "file"), [("airflow", "airflow_dag.py"), ("dagster", "dagster_job.py")])
def test_a_scheduler_runs_a_job(name: str, file: str, data: Path, leaves_nothing: Path) -> None:
    python = ENVS / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{NOT_RUN}{name}: scripts/schedulers prepares its environment")
    home = data / "home"
    home.mkdir()
    environment = {
        **{key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONWARNINGS")},
        "AKRUNNER": f"env PYTHONPATH={os.environ.get('PYTHONPATH', '')} {sys.executable} -m akrunner",
        "DATA": str(data), "AIRFLOW_HOME": str(home), "DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "1",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW__CORE__DAGS_FOLDER": str(data / "dags"), "NO_PROXY": "*",
    }  # fmt: skip
    (data / "dags").mkdir()
    copied = shutil.copy(EXAMPLES / file, data / "dags" / file)
    if name == "airflow":
        subprocess.run(
            [python, "-m", "airflow", "db", "migrate"], env=environment, check=True, capture_output=True, timeout=5 * ENDS
        )
    done = subprocess.run([python, copied], env=environment, cwd=data, capture_output=True, text=True, timeout=5 * ENDS)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] in ("success", "True"), done.stdout + done.stderr
    assert pq.read_table(data / "scored.parquet").num_rows == 20
    # what would only fail again is not tried again after ten minutes
    (data / "table.csv").unlink()
    again = subprocess.run([python, copied], env=environment, cwd=data, capture_output=True, text=True, timeout=5 * ENDS)
    assert again.stdout.splitlines()[-1] in ("failed", "False"), again.stdout + again.stderr
    assert "SourceError: source: there is no file table.csv" in again.stdout + again.stderr
