"""Warm workers that died, were stopped, or are no longer what a job wants: it starts cold, says why, and nothing else is different.

They import a module of the test's own, or nothing, in place of TensorFlow.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import akrunner
from akrunner.spares import pool, registry, room, wanted
from akrunner.spares.template import Template
from akrunner.spares.wanted import Wanted
from akrunner.wire import frames
from tests import hosts
from tests.conftest import ENDS, Script, wait_for

from .test_crash_table import gone

pytestmark = pytest.mark.slow

SAYS = """
import os, sys

def main(task_config):
    task_config.output_writer.write_batch({"pid": [os.getpid()], "said": [os.environ.get("SAID", "")]})
"""
Start = Callable[..., akrunner.Result]


@pytest.fixture
def prepared(leaves_nothing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that is imported while the workers wait, and is of a package that may change."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "prepared.py").write_text("VERSION = 1\n")
    os.utime(folder / "prepared.py", (1e9, 1e9))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


@pytest.fixture
def warm(prepared: Path) -> Iterator[akrunner.Warm]:
    with akrunner.warm(workers=1, preload=["prepared"]) as warm:
        assert warm.wait()
        yield warm


@pytest.fixture
def start(script: Script) -> Start:
    path = script(SAYS)

    def run(path: str = path, **options: Any) -> akrunner.Result:
        return akrunner.run(path, {"a": [1]}, output_schema="pid bigint, said string", **options)

    return run


def pids(warm: akrunner.Warm) -> list[int]:
    return [spare["pid"] for spare in warm.status()["spares"]]


def started(result: akrunner.Result) -> str:
    (how,) = result.stats.starts.values()
    return how


def test_each_is_used_once_and_replaced(warm: akrunner.Warm, start: Start) -> None:
    first, second = pids(warm), None
    result = start()
    assert started(result) == "warm" and result.table["pid"].to_pylist() == first
    assert warm.wait()
    second = pids(warm)
    result = start()
    assert started(result) == "warm" and result.table["pid"].to_pylist() == second != first
    assert "2 taken by jobs" in repr(warm) and "MiB" in repr(warm)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
def test_one_that_died_or_was_stopped(warm: akrunner.Warm, start: Start, number: int) -> None:
    """The job takes another, which is forked for it."""
    (pid,) = pids(warm)
    (spare,) = warm._pool.spares()
    with warm._pool._changed:  # nobody replaces it before the job comes
        os.kill(pid, number)
        wait_for(spare.lifeless)
        result = start()
    assert started(result) == "warm" and result.table["pid"].to_pylist() != [pid] and not result.stats.warnings
    assert gone([pid])


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGKILL, "had ended: SIGKILL"), (signal.SIGSEGV, "SIGSEGV"), (signal.SIGSTOP, "was stopped")]
)
def test_what_they_are_forked_from_died_or_was_stopped(warm: akrunner.Warm, start: Start, number: int, words: str) -> None:
    (pid,), (template,) = pids(warm), warm._pool._templates
    with warm._pool._changed:
        os.kill(template.process.pid, number)
        wait_for(template.lifeless)
        result = start()
    assert started(result).startswith("cold: the process that warm workers are forked from ") and words in started(result)
    assert result.table["pid"].to_pylist() != [pid] and not result.stats.warnings
    assert warm.wait() and started(start()) == "warm", "another has taken its place"
    assert gone([pid, template.process.pid])


@pytest.mark.parametrize(("number", "words"), [(signal.SIGKILL, "had ended: SIGKILL"), (signal.SIGSTOP, "was stopped")])
def test_the_job_goes_on_without_what_it_was_forked_from(warm: akrunner.Warm, script: Script, number: int, words: str) -> None:
    (template,) = warm._pool._templates
    path = script(
        SAYS + f"    os.kill({template.process.pid}, {int(number)})\n    __import__('time').sleep(0.5)\n", "goes_on.py"
    )
    result = akrunner.run(path, {"a": [1]}, output_schema="pid bigint, said string")
    assert started(result) == "warm" and result.table.num_rows == 1
    assert any("an unknown exit code" in warning and words in warning for warning in result.stats.warnings)
    assert gone([template.process.pid])


THREAD = "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True, name='mine').start()\n"
NATIVE = "import ctypes\nC = ctypes.CDLL(None)\nC.pthread_create(ctypes.byref(ctypes.c_ulong()), None, C.pause, None)\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (THREAD, "has started the thread mine"),
        (NATIVE, "has started a thread, .*, that a fork would not have"),
        ("import tempfile\nFOLDER = tempfile.TemporaryDirectory()\n", "has made tmp.* in the temp directory"),
        ("OPENED = open(__file__)\nimport mmap\nSHARED = mmap.mmap(-1, 1)\n", "has opened .*prepared.py"),
    ],
)
def test_what_should_not_be_forked_imports_for_itself(prepared: Path, start: Start, code: str, words: str) -> None:
    (prepared / "prepared.py").write_text(code)
    os.utime(prepared / "prepared.py", (1e9, 1e9))
    with akrunner.warm(workers=2, preload=["prepared"]) as warm:
        assert warm.wait() and re.search(words, warm.status()["alone"]) and not warm.status()["templates"]
        first = pids(warm)
        for _ in range(2):
            result = start()
            assert started(result) == "warm" and result.table["pid"].to_pylist()[0] in first
            assert result.tasks[0].exit == "exit code 0" and not result.stats.warnings
        assert warm.wait() and not set(first) & set(pids(warm))


def test_how_they_end_is_known(warm: akrunner.Warm, script: Script) -> None:
    """Also when they are closed meanwhile: what they were forked from stays until then, and no longer."""
    (template,) = warm._pool._templates
    body = "import os, signal, time\ndef main(c):\n    x = bytes(64 << 20)\n    open(c.user_params['out'], 'w').close(); time.sleep(1)\n    END\n"
    for end, words in (("os._exit(7)", "exit code 7"), ("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV")):
        out = script("", "out")
        os.unlink(out)
        path = script(body.replace("END", end), "ends.py")
        if "SEGV" in end:
            closes = threading.Thread(target=lambda out=out: [wait_for(lambda: os.path.exists(out)), warm.close()])
            closes.start()
        with pytest.raises(akrunner.TaskDiedError, match=words) as caught:
            akrunner.run(path, {"a": [1]}, user_params={"out": out})
        assert caught.value.failure is not None
    closes.join()
    assert gone([template.process.pid])


def test_a_program_with_a_command_line(warm: akrunner.Warm, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """It, its module and what is in its environment look as in a process that was started for it."""
    path = script(
        """
        import json, os, pickle, sys
        from akrunner.worker import current

        class Own:
            pass

        if __name__ == "__main__":
            known = {name: value for name, value in os.environ.items() if name.startswith(("AKRUNNER_", "TF_CONFIG"))}
            folder = os.path.dirname(os.environ["AKRUNNER_CHECKPOINT_DIR"])
            known = {name: value.replace(os.getcwd(), "WORK").replace(folder, "JOB") for name, value in sorted(known.items())}
            for name in ("AKRUNNER_JOB", "AKRUNNER_HOST", "AKRUNNER_WARM"):
                known.pop(name, None)
            itself = [vars(sys.modules["__main__"]) is globals(), __file__ == os.path.abspath("program.py"), sorted(globals())]
            told = [sys.argv, itself, pickle.dumps(Own()).decode("latin-1"), known]
            current().output_writer.write_batch({"told": [json.dumps(told)]})
        """,
        "program.py",
    )
    options: Any = dict(script_args=["--epochs", "3"], output_schema="told string", env={"AKRUNNER_DATASET_LENGTH": "7"})
    found = []
    for _ in range(2):
        result = akrunner.run(path, {"a": [1]}, **options)
        found.append((started(result), *result.table["told"].to_pylist()))
        monkeypatch.setenv("AKRUNNER_WARM", "0")
    (first, one), (second, other) = found
    assert (first, second) == ("warm", "cold") and one == other
    assert json.loads(one)[0] == [path, "--epochs", "3"]


def test_one_that_does_not_answer(warm: akrunner.Warm, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    from akrunner.spares import spare

    say = spare.Spare._say
    monkeypatch.setattr(spare.Spare, "_say", lambda self, kind, body: None if kind == frames.OFFER else say(self, kind, body))
    monkeypatch.setattr(spare, "_PATIENCE", 0.1)
    assert "did not answer" in started(start())


def test_a_package_that_was_changed(warm: akrunner.Warm, prepared: Path, start: Start, script: Script) -> None:
    before = pids(warm)
    path = script(
        "import os\nimport prepared\ndef main(c):\n    c.output_writer.write_batch({'pid': [os.getpid()], 'said': [str(prepared.VERSION)]})\n"
    )
    (prepared / "prepared.py").write_text("VERSION = 2\n")
    result = start(path)
    assert result.table["said"].to_pylist() == ["2"] and result.table["pid"].to_pylist() != before
    # another worker, which has imported the new one, may be ready by then
    assert started(result).endswith("prepared.py has changed since") or started(result) == "warm"
    assert warm.wait() and started(start()) == "warm"


def test_a_package_that_was_installed(warm: akrunner.Warm, prepared: Path, start: Start) -> None:
    (prepared / "rows.csv").write_text("a\n1\n")
    assert started(start()) == "warm", "a file that cannot be imported is none"
    assert warm.wait()
    before = pids(warm)
    (prepared / "another.py").write_text("")
    result = start()
    assert result.table["pid"].to_pylist() != before
    assert "something was installed in" in started(result) or started(result) == "warm", "as above"
    assert warm.wait() and started(start()) == "warm"


def test_a_file_of_the_job_with_the_name_of_an_imported_module(warm: akrunner.Warm, start: Start, tmp_path: Path) -> None:
    own = tmp_path / "own" / "prepared.py"
    own.parent.mkdir()
    own.write_text("")
    before = pids(warm)
    assert started(start(user_files=[own])).startswith("cold: prepared.py, one of the job's files, has the name of a module")
    assert pids(warm) == before and started(start()) == "warm", "it is still right for another job"


def test_what_a_job_wants_is_learnt(warm: akrunner.Warm, start: Start) -> None:
    result = start(env={"SAID": "hello"})
    assert started(result) == (
        "cold: the environment variable SAID is set for this one, and may be read when TensorFlow is imported"
    )
    assert result.table["said"].to_pylist() == ["hello"]
    assert warm.wait()
    result = start(env={"SAID": "hello"})
    assert started(result) == "warm" and result.table["said"].to_pylist() == ["hello"]
    assert warm.wait()
    old = os.umask(0o077)
    try:
        assert started(start(env={"SAID": "hello"})) == "cold: they were started with another umask"
    finally:
        os.umask(old)


def test_kinds_that_alternate_stay(prepared: Path, start: Start) -> None:
    """As many as there are to be workers."""
    with akrunner.warm(workers=2, preload=["prepared"]) as warm:
        assert warm.wait()
        for said, how in (
            ("x", "cold"),
            ("x", "warm"),
            ("", "warm"),
            ("x", "warm"),
            ("y", "cold"),
            ("y", "warm"),
            ("x", "warm"),
        ):
            result = start(env={"SAID": said} if said else {})
            assert started(result).partition(":")[0] == how and result.table["said"].to_pylist() == [said]
            assert warm.wait()
            assert len(pids(warm)) == 2 and len(warm.status()["templates"]) <= 2
        assert started(start()).startswith("cold: the environment variable SAID is not set")


def test_what_cannot_be_had_is_not_learnt(warm: akrunner.Warm, start: Start) -> None:
    """A child of the pool's thread has the signals of that thread."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        surroundings = wanted.surroundings()
        warm._pool.note(dataclasses.replace(warm._pool._wanted[0], surroundings={**surroundings, "umask": "0777"}))
        assert started(start()) == "cold: they were started with another blocked signals"
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    assert warm.wait() and started(start()) == "warm"


def test_what_a_script_does_before_the_import(warm: akrunner.Warm, script: Script, start: Start) -> None:
    path = script("import os\nos.environ['TF_X'] = '1'\n" + SAYS, "sets.py")
    how = started(start(path))
    assert how.startswith("cold: sets.py, line 2, changes the environment variable TF_X, which may matter before")


def test_switched_off(warm: akrunner.Warm, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKRUNNER_WARM", "0")
    assert started(start()) == "cold" and not warm.status()["taken"]


def test_three_tasks_and_one_spare(warm: akrunner.Warm, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    path = script("def main(c):\n    pass\n", "two.py")
    akrunner.run(path, {"a": [1, 2]}, num_workers=2)
    assert warm.wait()
    result = akrunner.run(path, {"a": [1, 2, 3]}, num_workers=3)
    assert set(result.stats.starts.values()) == {"warm"}, "what is missing is forked at once"


def test_what_cannot_be_imported(leaves_nothing: Path, start: Start) -> None:
    with akrunner.warm(workers=1, preload=["there_is_none"]) as warm:
        deadline = time.monotonic() + ENDS
        while "No module named 'there_is_none'" not in warm.status()["trouble"]:
            assert time.monotonic() < deadline and not warm.wait(0.1)
        assert "there_is_none" in started(start())


def test_why_there_are_fewer_is_always_said(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room.Processor, "idle_cores", lambda processor: 0.0)
    with akrunner.warm(workers=1, preload=["prepared"]) as warm:
        assert warm.wait() and warm.status()["trouble"] == ""
        (pid,) = pids(warm)
        while warm._pool._hurry:  # somebody has just waited for it: it would be replaced at once
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + ENDS
        while pids(warm) in ([pid], []):  # a fork is replaced however busy the processor is
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(warm.status()["templates"][0]["pid"], signal.SIGKILL)
        assert until(warm, "one that waited ended: .*SIGKILL") and warm.status()["waiting"] == 0
        warm._pool.trouble = ""
        assert until(warm, "the processor is busy; the next is started")
        monkeypatch.setattr(pool, "_LATEST", 0.0)
        monkeypatch.setattr(room, "memory_left", lambda: 1 << 20)
        assert until(warm, "the machine has only 1 MiB of memory left")
        monkeypatch.setattr(room, "memory_left", lambda: 1 << 40)
        monkeypatch.setattr(pool, "Template", lambda *given: {}["a fault of ours"])
        assert until(warm, "none can be started: .*a fault of ours")
    assert warm.status()["trouble"] == "they are being ended"


def until(warm: akrunner.Warm, words: str) -> bool:
    """Whether it says so one day."""
    deadline = time.monotonic() + ENDS
    while not re.search(words, warm.status()["trouble"]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return re.search(words, warm.status()["trouble"]) is not None


def test_idle_ones_go(prepared: Path, start: Start) -> None:
    with akrunner.warm(workers=1, preload=["prepared"], idle_timeout=1.0) as warm:
        assert warm.wait()
        (pid,) = pids(warm)
        assert gone([pid])
        assert started(start()).startswith("cold: ") and warm.wait() and started(start()) == "warm"


def test_memory_is_bounded(prepared: Path, start: Start) -> None:
    with akrunner.warm(workers=2, preload=["prepared"], max_memory=1 << 20) as warm:
        assert not warm.wait(2.0)
        assert "all may have 1 MiB (max_memory=)" in started(start()) and not pids(warm)


def test_in_a_notebook_they_come_by_themselves(leaves_nothing: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    class IPython:
        """As far as it is asked anything."""

        kernel = None
        get_ipython = classmethod(lambda cls: cls)

    monkeypatch.setattr(registry, "_PRELOAD", ())
    assert started(start()) == "cold" and not registry.pools()
    monkeypatch.setitem(sys.modules, "IPython", IPython)
    monkeypatch.setenv("AKRUNNER_WARM", "0")
    assert started(start()) == "cold" and not registry.pools()
    monkeypatch.delenv("AKRUNNER_WARM")
    assert started(start()) == "cold"
    (pool,) = registry.pools()
    assert pool.wait(60) and started(start()) == "warm"
    with akrunner.warm(workers=1, preload=()):
        (asked_for,) = registry.pools()
        assert asked_for is not pool and not pool.spares(), "somebody has asked for others"


def test_wrong_arguments(leaves_nothing: Path) -> None:
    for options, words in (
        ({"workers": 0}, "workers=0"),
        ({"python_env": "/nowhere"}, "there is no /nowhere"),
        ({"idle_timeout": -1}, "idle_timeout=-1"),
        ({"env": {"A": [1]}}, "env"),
        ({"preload": "a b"}, "preload"),
    ):
        with pytest.raises(akrunner.ConfigError, match=words):
            akrunner.warm(**options)


HOST = """
import os, sys, akrunner

warm = akrunner.warm(workers=2, preload=())
assert warm.wait()
print(*[one["pid"] for kind in ("spares", "templates") for one in warm.status()[kind]], flush=True)
if sys.argv[1:]:
    akrunner.run(sys.argv[1], {"a": [1]}, env={"OUT": "x"})
sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["killed", "killed with its guard", "ended", "closed"])
def test_all_are_gone_with_the_host(leaves_nothing: Path, how: str) -> None:
    """One of the two is stopped, and so is what they were forked from: they notice nothing."""
    with hosts.Popen([sys.executable, "-c", HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdin is not None and host.stdout is not None
        spares = [int(pid) for pid in host.stdout.readline().split()]
        guards = [child for child in psutil.Process(host.pid).children() if child.pid not in spares]
        assert len(spares) == 3
        for pid in (spares[0], spares[2]):
            os.kill(pid, signal.SIGSTOP)
        if how == "closed":
            host.stdin.close()
        elif how == "ended":
            host.terminate()
        else:
            # first: a guard that goes on for a moment ends all that would remove what is left, and is killed before it has done so itself
            for guard in guards if how != "killed" else []:
                guard.kill()
            host.kill()
    assert gone(spares)
    deadline = time.monotonic() + 10
    while os.listdir(leaves_nothing) and time.monotonic() < deadline:
        time.sleep(0.05)


@pytest.mark.cold
def test_no_thread_to_hear_what_one_says(leaves_nothing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is gone, and so is what it had, when that is told."""
    start = threading.Thread.start

    def started(thread: threading.Thread) -> None:
        if thread.name.startswith("akrunner-spare-"):
            raise RuntimeError("can't start new thread")
        start(thread)

    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 1000\n")
    python.chmod(0o755)
    pool = tmp_path / "pool"
    pool.mkdir()
    monkeypatch.setattr(threading.Thread, "start", started)
    open_before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Template(Wanted(str(python), {}, "", (), {}, {}), str(pool), ())
    assert not os.listdir(pool) and len(os.listdir("/proc/self/fd")) == open_before
