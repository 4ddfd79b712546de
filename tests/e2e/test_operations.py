"""What real jobs say to other programs: their JSON fits its schema, a URL is told, and a wait before a restart ends at once."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import hosts
from tests.conftest import ENDS, Script, wait_for
from tests.unit.progress.test_events import check as check_event
from tests.unit.telling.test_notify import Hook
from tests.unit.test_outcomes import check

pytestmark = pytest.mark.slow

WRITES = """
def main(task_config):
    task_config.report({"loss": 0.5}, step=1)
    print("a line", flush=True)
    task_config.output_writer.write_batch({"a": [1, 2]})
"""
FAILS_ONCE = """
def main(task_config):
    if task_config.attempt == 0:
        raise ValueError("not yet")
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


def test_a_job_is_started_again_after_its_wait(script: Script, table: str, leaves_nothing: Path, tmp_path: Path) -> None:
    words = [
        "run",
        script(FAILS_ONCE),
        "-i",
        table,
        "-o",
        str(tmp_path / "o.csv"),
        "--max-restarts",
        "1",
        "--restart-delay",
        "0.3",
    ]
    done = akrunner(*words, "--progress", "json")
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stderr.splitlines()]
    for event in told:
        check_event(event)
    states = [one["tasks"][0]["state"] for one in told if one.get("doing") == "waiting"]
    assert states and set(states) == {"waiting to start again"}
    assert (told[-1]["event"], told[-1]["ok"], told[-1]["rows_out"]) == ("end", True, 2)


def test_sigterm_ends_the_wait_before_a_restart(script: Script, table: str, leaves_nothing: Path) -> None:
    words = ["run", script(FAILS), "-i", table, "--max-restarts", "3", "--restart-delay", "600", "--progress", "json"]
    with hosts.Popen([sys.executable, "-m", "akrunner", *words], stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        told = (json.loads(line) for line in running.stderr if line.startswith("{"))
        # there is an event about every second: the job goes on waiting
        waits = list(itertools.islice((one for one in told if one.get("doing") == "waiting"), 2))
        assert len(waits) == 2 and running.poll() is None
        asked = time.monotonic()
        running.send_signal(signal.SIGTERM)
        assert running.wait(ENDS) == 143
        assert time.monotonic() - asked < ENDS


def test_a_job_whose_rows_stdout_does_not_take_has_failed(
    script: Script, table: str, leaves_nothing: Path, tmp_path: Path
) -> None:
    words = ["run", script(SCORES), "-i", table, "--output-schema", "a bigint", "--output", "-", "--metrics-file"]
    numbers = tmp_path / "job.prom"
    with open("/dev/full", "wb") as full:
        done = hosts.run(
            [sys.executable, "-m", "akrunner", *words, str(numbers)], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert (
        done.returncode == 4 and "output: cannot write stdout: the disk is full" in done.stderr and "done in" not in done.stderr
    )
    kept = json.loads(akrunner("show", "last", "--json").stdout)
    assert (kept["state"], kept["error"]) == ("failed", "WriteError")
    assert re.search(r"^akrunner_job_exit_code\{.*\} 4.0$", numbers.read_text(), re.MULTILINE)
    assert "last_success" not in numbers.read_text()


SCORES = """
def main(task_config):
    for batch in task_config.batches(10):
        task_config.output_writer.write_batch({"a": batch["a"]})
"""


def test_how_a_stream_was_stopped_is_told_and_kept(
    script: Script, table: str, leaves_nothing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    hook = Hook()
    monkeypatch.setenv("AKRUNNER_NOTIFY", f"http://{hook.place}/T0KEN")
    words = ["stream", script(SCORES), "-i", table, "--follow", "--output-schema", "a bigint", "--json", "--output-live", "-o"]
    out = tmp_path / "o.jsonl"
    try:
        full = akrunner(*words, "/dev/full")
        with hosts.Popen([sys.executable, "-m", "akrunner", *words, str(out)], stdout=subprocess.PIPE, text=True) as running:
            wait_for(lambda: out.exists() and out.stat().st_size > 0)
            running.send_signal(signal.SIGHUP)
            stopped = running.communicate(timeout=ENDS)[0]
        kept = [json.loads(akrunner("show", run, "--json").stdout) for run in ("last-1", "last")]
    finally:
        hook.close()
    printed = [json.loads(full.stdout), json.loads(stopped)]
    assert [(one["error"], one["exit_code"]) for one in printed] == [("WriteError", 4), ("Terminated", 129)]
    told = [body for _, _, body in hook.came]
    assert [(one["error"], one["exit_code"]) for one in told] == [("WriteError", 4), ("Terminated", 129)]
    assert "the disk is full" in told[0]["message"] and printed[0]["run"] == told[0]["run"]
    assert [(one["state"], one["error"]) for one in kept] == [("failed", "WriteError"), ("stopped", "Terminated")]
