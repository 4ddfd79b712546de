"""`akrunner doctor` as a person uses it, on this machine and on what jobs have left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import akrunner
from tests import hosts
from tests.conftest import Script

pytestmark = pytest.mark.slow

FAILS = """
def main(task_config):
    print("about to fail")
    if task_config.task_type == "worker":
        raise ValueError("no column")
    import time
    time.sleep(60)
"""


def doctor(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return hosts.run(
        [sys.executable, "-m", "akrunner", "doctor", *arguments], capture_output=True, text=True, timeout=120, **options
    )


def lines(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, str]]:
    told = json.loads(done.stdout)
    assert done.returncode == told["exit_code"] == (0 if told["ok"] else 1), done.stderr
    return {line["about"]: line for line in told["lines"]}


def test_the_machine(leaves_nothing: Path) -> None:
    env = {**os.environ, "AWS_ACCESS_KEY_ID": "not-to-be-shown", "AKRUNNER_WARM": "0"}
    done = doctor("--quick", "--json", env=env)
    told = lines(done)
    assert {"Python", "TensorFlow", "memory", "cores", "open files", "temp directory", "clock", "ports", "tools"} <= set(told)
    assert "AWS_ACCESS_KEY_ID" in told["credentials of S3"]["found"] and "not-to-be-shown" not in done.stdout
    assert str(leaves_nothing) in told["temp directory"]["found"]


def test_an_environment_that_is_none_and_a_cluster_that_is_not_there(leaves_nothing: Path) -> None:
    done = doctor("--python-env", "/nowhere/python", "--flink-rest", "127.0.0.1:9", "--json")
    told = lines(done)
    assert done.returncode == 1
    assert told["TensorFlow of /nowhere/python"]["state"] == told["Flink cluster"]["state"] == "broken"


def test_it_makes_nothing_and_a_hanging_interpreter_has_ten_seconds(leaves_nothing: Path, tmp_path: Path) -> None:
    hangs = tmp_path / "python"
    hangs.write_text("#!/bin/sh\nexec sleep 50\n")
    hangs.chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    done = doctor("--quick", "--json", "--python-env", str(hangs), env={**env, "HOME": str(tmp_path / "none")})
    told = lines(done)
    assert "it had not ended after 10 s" in told[f"TensorFlow of {hangs}"]["found"]
    assert os.listdir(tmp_path) == ["python"]


def test_a_job_that_failed_is_explained_from_the_directory_its_error_names(leaves_nothing: Path, script: Script) -> None:
    with pytest.raises(akrunner.ScriptFailedError) as failed:
        akrunner.run(script(FAILS), {"a": [1, 2]}, num_workers=2)
    assert failed.value.failure is not None
    found = akrunner.doctor(failed.value.failure.log_path)
    told = {line.about: line for line in found.lines}
    assert not found.ok and found.job is not None and found.job["error"] == "ScriptFailedError"
    assert "ValueError: no column" in told["first to fail"].found and "about to fail" in told["log of worker:0"].found
    assert told["chief:0"].found == "was in main() and was stopped"


def test_a_job_whose_host_was_killed(leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    kept, path = (
        str(tmp_path / "kept"),
        script("import time\n\ndef main(task_config):\n    print('asleep', flush=True)\n    time.sleep(60)\n"),
    )
    command = [sys.executable, "-m", "akrunner", "run", path, "-i", str(tmp_path / "t.csv"), "--work-dir", kept, "-q"]
    process = hosts.Popen(command)
    try:
        deadline = time.monotonic() + 60
        # what is there before its record is no job's yet
        while not os.path.exists(f"{kept}/job.json") or "asleep" not in str(found := akrunner.doctor(kept)):
            assert time.monotonic() < deadline, os.listdir(tmp_path)
            time.sleep(0.1)
        assert "still runs" in found.lines[0].found and found.ok
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    found = akrunner.doctor(kept)
    assert not found.ok and "is gone without a word" in found.lines[0].found
    deadline = time.monotonic() + 60
    while alive(kept):
        assert time.monotonic() < deadline, "its guard ends the tasks"
        time.sleep(0.1)


def alive(folder: str) -> bool:
    """Whether a process has its current directory there."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd").startswith(folder):
                return True
        except OSError:
            continue
    return False


def test_a_job_that_succeeded(leaves_nothing: Path, script: Script, tmp_path: Path) -> None:
    work = str(tmp_path / "kept")
    akrunner.run(script("def main(task_config):\n    pass\n"), {"a": [1, 2, 3]}, work_dir=work)
    done = doctor(work)
    assert done.returncode == 0 and "3 rows in" in done.stdout and "until main() was entered" in done.stdout
