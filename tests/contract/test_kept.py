"""Warm workers that a process of the user's keeps for the command line (`akrunner warm start`), their jobs' hosts not being their parents."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import akrunner
from akrunner import warming
from akrunner.spares import client, talk
from tests import hosts
from tests.conftest import Script

from .test_crash_table import HOST, LONG, gone, wait_for_pids

pytestmark = pytest.mark.slow

KEEP = """
import json, sys
from akrunner.warming import keep

keep({"python_env": None, "workers": 2, "num_workers": 1, "keras": None, "env": {}, "requirements": None, "idle_timeout": 600.0,
      "max_memory": None, "preload": []}, lambda: print("listens", flush=True))
"""
SAYS = """
import os, sys, time

def main(task_config):
    task_config.output_writer.write_batch({"pid": [os.getpid()]})
    CODE
"""
Start = Callable[..., akrunner.Result]


@pytest.fixture
def kept(leaves_nothing: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[psutil.Process]:
    """The process that keeps two, which wait."""
    for name in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    with hosts.Popen([sys.executable, "-c", KEEP], stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "listens\n"
        both_wait()
        yield psutil.Process(process.pid)
        process.send_signal(signal.SIGCONT)
        process.terminate()


def both_wait() -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        status = warming.kept_status()
        if status is not None and status["waiting"] == 2:
            return status
        time.sleep(0.05)
    raise AssertionError("they do not come")


@pytest.fixture
def start(script: Script) -> Start:
    def run(code: str = "pass", **options: Any) -> akrunner.Result:
        return akrunner.run(script(SAYS.replace("CODE", code)), {"a": [1]}, output_schema="pid bigint", **options)

    return run


def test_a_job_takes_one(kept: psutil.Process, start: Start) -> None:
    before = {spare["pid"] for spare in both_wait()["spares"]}
    result = start("__import__('atexit').register(os._exit, 3); time.sleep(0.5); print('said', flush=True)")
    assert result.stats.starts == {"chief:0": "warm"} and result.table["pid"].to_pylist()[0] in before
    (task,) = result.tasks
    assert task.exit == "exit code 3" and task.log_tail == "said" and task.peak_rss > 1 << 20 and task.cpu_seconds > 0
    status = both_wait()
    assert status["taken"] == 1 and status["jobs"] == 0 and status["pid"] == kept.pid


def test_nobody_else_reaches_it(kept: psutil.Process) -> None:
    folder = Path(talk.folder() or "")
    assert oct(folder.stat().st_mode & 0o777) == "0o700" and oct((folder / talk.name()).stat().st_mode & 0o777) == "0o700"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_worker_that_dies(kept: psutil.Process, start: Start, number: signal.Signals) -> None:
    with pytest.raises(akrunner.TaskDiedError, match=number.name):
        start(f"os.kill(os.getpid(), {int(number)})")
    assert start().table.num_rows == 1


def test_one_that_hangs_is_ended(kept: psutil.Process, start: Start) -> None:
    with pytest.raises(akrunner.JobTimeoutError, match="time.sleep|in main"):
        start("time.sleep(1000)", timeout=1.0)


def test_two_tasks_take_two(kept: psutil.Process, start: Start) -> None:
    assert start(num_workers=2).stats.starts == {"chief:0": "warm", "worker:0": "warm"}


def test_the_job_goes_on_when_the_keeper_dies(kept: psutil.Process, start: Start) -> None:
    """What it has started for nobody yet is gone, and how the job's worker ended nobody knows."""
    idle = {spare["pid"] for spare in both_wait()["spares"]}
    result = start(f"os.kill({kept.pid}, 9); time.sleep(0.5)")
    assert result.stats.starts == {"chief:0": "warm"} and result.table.num_rows == 1
    assert any("an unknown exit code" in warning for warning in result.stats.warnings)
    assert gone(list(idle))
    assert (Path(talk.folder() or "") / talk.name()).exists() and talk.keeper() is None
    assert start().stats.starts == {"chief:0": "cold"}, "its socket is still there, and nobody listens"
    assert not (Path(talk.folder() or "") / talk.name()).exists(), "whoever finds that out removes it"


def test_one_that_is_stopped_is_left_alone(kept: psutil.Process, start: Start) -> None:
    kept.suspend()
    assert "does not answer" in start().stats.starts["chief:0"]
    kept.resume()
    assert start().stats.starts == {"chief:0": "warm"}


def test_one_that_is_stopped_is_named_and_ended(kept: psutil.Process) -> None:
    idle = {spare["pid"] for spare in both_wait()["spares"]}
    kept.suspend()
    with pytest.raises(akrunner.StartError, match=rf"\(pid {kept.pid}\) is stopped: .*`akrunner warm stop` ends it"):
        warming.kept_status()
    told = command("status", "--json")
    assert told.returncode == 1 and json.loads(told.stdout)["pid"] == kept.pid == warming.keeper()
    assert (warming.stop_kept() or {})["waiting"] == 2
    assert not (Path(talk.folder() or "") / talk.name()).exists()
    assert gone([kept.pid, *idle]) and warming.kept_status() is None


DEAF = """
import signal, time
from akrunner.spares.daemon import Listening

signal.signal(signal.SIGTERM, signal.SIG_IGN)
listening = Listening()
print("listens", flush=True)
time.sleep(1000)
"""


def test_one_that_never_answers_is_killed(leaves_nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_ANSWER", "_ENDING"):
        monkeypatch.setattr(client, name, 0.2)
    with hosts.Popen([sys.executable, "-c", DEAF], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "listens\n"
        with pytest.raises(
            akrunner.StartError, match=rf"\(pid {process.pid}\) does not answer: .*; `akrunner warm stop` ends it"
        ):
            warming.kept_status()
        assert warming.stop_kept() == {"pid": process.pid}
        assert process.wait(30) == -signal.SIGKILL
    assert warming.kept_status() is None and not (Path(talk.folder() or "") / talk.name()).exists()


def test_nobody_is_ended_for_a_pid_of_another_time(leaves_nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of a dead keeper names a pid that is another process's by now: this one."""
    folder = talk.folder(make=True) or ""
    for text in (f"{psutil.Process().pid} 1", "1 1", "", "x y", f"{psutil.Process().pid}"):
        Path(talk.lock_path(folder)).write_text(text)
        assert talk.keeper() is None and client.end() is None and warming.stop_kept() is None


def test_another_version(kept: psutil.Process, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "version", lambda: "another")
    assert "another version's of akrunner" in start().stats.starts["chief:0"]


def test_a_job_wants_what_they_are_not(kept: psutil.Process, start: Start) -> None:
    assert "variable SAID is set" in start(env={"SAID": "x"}).stats.starts["chief:0"]


@pytest.mark.parametrize("busy", ["time.sleep(1000)", "os.kill(os.getpid(), 19)"])
def test_the_worker_goes_with_its_jobs_host(kept: psutil.Process, script: Script, tmp_path: Path, busy: str) -> None:
    path, out = script(LONG.replace("BUSY", busy)), tmp_path / "pids"
    out.mkdir()
    host = HOST.replace("num_workers=2, ", "").replace('env={"OUT": os.environ["OUT"]}', f'user_params={{"out": {str(out)!r}}}')
    with hosts.Popen([sys.executable, "-c", host, path]) as process:
        pids = wait_for_pids(out, 1)
        assert warming.kept_status()["jobs"] == 1, "it is one of those that waited"
        process.kill()
    assert gone(pids)


def test_stopping_leaves_running_jobs_alone(kept: psutil.Process, start: Start) -> None:
    told: list[Any] = []
    observer = Stops(told)
    result = start("time.sleep(1.0)", observer=observer)
    assert result.stats.starts == {"chief:0": "warm"} and result.tasks[0].exit == "exit code 0"
    assert told and told[0]["jobs"] == 1 and warming.kept_status() is None and warming.stop_kept() is None
    assert gone([spare["pid"] for spare in told[0]["spares"]])


class Stops:
    """Stops them once the job is in main()."""

    def __init__(self, told: list[Any]) -> None:
        self.told = told

    def progress(self, progress: Any) -> None:
        if "running" in progress.states.values() and not self.told:
            self.told.append(warming.stop_kept())

    def log(self, task: str, line: str) -> None:
        pass


def test_connections_that_say_nothing_or_nonsense(kept: psutil.Process, start: Start) -> None:
    with contextlib.ExitStack() as stack:
        for text in (b"", b"\xff" * 64, b"\x02\0\0\0[]", b"\x10\0\0\0" + b'{"do": "take"}  '):
            connection = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            with talk.place() as path:
                connection.connect(path)
            connection.sendall(text)
        assert start().stats.starts == {"chief:0": "warm"}


def test_silent_connections_make_room(kept: psutil.Process) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            connection = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError), talk.place() as path:
                connection.connect(path)
        assert both_wait()["pid"] == kept.pid


def test_no_room_at_all_is_another_word_than_dead(kept: psutil.Process, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise talk.CutOffError("there is no room")

    monkeypatch.setattr(client, "_TRYING", 0.2)
    monkeypatch.setattr(client, "_connected", full)
    with pytest.raises(akrunner.StartError, match=rf"\(pid {kept.pid}\) is busy: .*; ask again"):
        warming.kept_status()


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return hosts.run([sys.executable, "-m", "akrunner", "warm", *arguments], capture_output=True, text=True, timeout=120)


def test_the_commands(leaves_nothing: Path, tmp_path: Path) -> None:
    assert "akrunner warm start" in command("status").stdout and "no warm workers" in command("stop").stdout
    wrong = command("start", "--python-env", "/nowhere")
    assert wrong.returncode == 2 and "there is no /nowhere" in wrong.stderr
    # a stand-in for an interpreter: nothing here imports TensorFlow
    began = command("start", "--workers", "1", "--max-memory", "256MiB", "--json")
    try:
        status = json.loads(began.stdout)
        assert began.returncode == 0 and status["running"] and status["workers"] == 1
        again = command("start")
        assert again.returncode == 0 and "they are kept already" in again.stderr
        assert "kept by pid" in command("status").stdout
    finally:
        ended = command("stop", "--json")
    assert not (Path(talk.folder() or "") / talk.name()).exists()
    assert json.loads(ended.stdout)["stopped"] and json.loads(command("status", "--json").stdout)["running"] is False
    assert gone([status["pid"]])
