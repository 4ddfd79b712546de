"""What real jobs say to other programs: their JSON fits its schema, a URL is told, and a wait before a restart ends at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import hosts
from tests.conftest import ENDS, Script
from tests.unit.telling.test_notify import Hook
from tests.unit.test_outcomes import check

pytestmark = pytest.mark.slow

WRITES = """
def main(task_config):
    task_config.report({"loss": 0.5}, step=1)
    print("a line", flush=True)
    task_config.output_writer.write_batch({"a": [1, 2]})
"""
FAILS = """
def main(task_config):
    raise ValueError("no column 'petal'")
"""


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i / 2}\n" for i in range(20)))
    return str(path)


def akrunner(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return hosts.run([sys.executable, "-m", "akrunner", *words], capture_output=True, text=True, timeout=ENDS, **options)


def test_what_a_command_prints_and_a_url_is_told(
    script: Script, table: str, leaves_nothing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    hook = Hook()
    monkeypatch.setenv("AKRUNNER_NOTIFY", f"http://{hook.place}/T0KEN")
    out, metrics = str(tmp_path / "o.csv"), str(tmp_path / "nightly.prom")
    try:
        well = akrunner(
            "run", script(WRITES), "-i", table, "-o", out, "--json", "--log-format", "json", "--metrics-file", metrics
        )
        failed = akrunner("run", script(FAILS), "-i", table, "--json", "--num-workers", "2")
        refused = akrunner("run", script(WRITES), "-i", "no-such.csv", "--json")
    finally:
        hook.close()
    assert (well.returncode, failed.returncode, refused.returncode) == (0, 1, 2), well.stderr
    printed = [json.loads(done.stdout) for done in (well, failed, refused)]
    told = [body for _, _, body in hook.came]
    for body in [*printed, *told]:
        check(body)
    assert [body["exit_code"] for body in told] == [0, 1, 2]
    assert told[0]["metrics"] == {"chief:0": {"step": 1, "loss": 0.5}} and told[0]["about"]["script"].endswith(".py")
    assert "ValueError: no column 'petal'" in told[1]["failure"]["traceback"] and told[1]["run"] == printed[1]["run"]
    assert "no-such.csv" in told[2]["message"]
    lines = [json.loads(line) for line in well.stderr.splitlines()]
    assert [line["task"] for line in lines if line["message"] == "a line"] == ["chief:0"]
    assert 'akrunner_job_rows_total{name="nightly",way="in"} 20.0' in Path(metrics).read_text()
    kept = akrunner("show", printed[0]["run"], "--json").stdout
    assert "T0KEN" not in kept and hook.place not in kept


def test_sigterm_ends_the_wait_before_a_restart(script: Script, table: str, leaves_nothing: Path) -> None:
    words = ["run", script(FAILS), "-i", table, "--max-restarts", "3", "--restart-delay", "600"]
    with hosts.Popen([sys.executable, "-m", "akrunner", *words], stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        first = running.stderr.readline()
        assert "; everything is started again after " in first, first
        asked = time.monotonic()
        running.send_signal(signal.SIGTERM)
        assert running.wait(ENDS) == 143
        assert time.monotonic() - asked < ENDS
