"""`tests/forked`, with a small package in place of Flink's Python: a worker that is forked is what it would be by itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import alive, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="it has sockets of Linux")]

IMPORTED = "import os\n{}\nPID = os.getpid()\n"
WORKER = """
import json, os, sys, time
from pyflink.fn_execution.beam import beam_sdk_worker_main
told = {"own": os.getpid(), "imported": beam_sdk_worker_main.PID, "argv": sys.argv[1:], "main": __name__, "cwd": os.getcwd()}
told["parent"] = os.getppid()
print(json.dumps({**told, "said": os.environ["SAID"], "path": "/of/a/job" in sys.path}), flush=True)
if "stays" in sys.argv:
    time.sleep(1000)
"""


class TaskManager:
    """A shell with a session of its own."""

    def __init__(self, folder: Path, imported: str = "") -> None:
        package = folder / "pyflink" / "fn_execution" / "beam"
        package.mkdir(parents=True)
        (package / "beam_sdk_worker_main.py").write_text(IMPORTED.format(imported))
        (package / "beam_boot.py").write_text(WORKER)
        self._folder = folder
        path = f"{Path(__file__).parents[1] / 'forked'}{os.pathsep}{folder}"
        self.shell = subprocess.Popen(
            ["sh"], stdin=subprocess.PIPE, text=True, start_new_session=True, env={**os.environ, "PYTHONPATH": path}, cwd=folder
        )

    def worker(self, name: str) -> tuple[psutil.Process, dict[str, Any]]:
        """Start one. Returns: the process that was started, and what the worker says."""
        (self._folder / name).mkdir()
        out, pid = self._folder / f"{name}.json", self._folder / f"{name}.pid"
        start = (
            f"SAID={name} PYTHONPATH=$PYTHONPATH:/of/a/job {sys.executable} -m pyflink.fn_execution.beam.beam_boot --id {name}"
        )
        assert self.shell.stdin is not None
        self.shell.stdin.write(f"cd {name}; {start} > {out} & echo $! > {pid}; cd ..\n")
        self.shell.stdin.flush()
        wait_for(lambda: out.exists() and out.read_text().endswith("\n"))
        return psutil.Process(int(pid.read_text())), json.loads(out.read_text())

    def there(self) -> list[int]:
        """The processes of its session."""
        found = []
        for process in psutil.process_iter():
            try:
                if os.getsid(process.pid) == self.shell.pid and alive(process):
                    found.append(process.pid)
            except OSError:
                continue
        return found


@pytest.fixture
def manager(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[TaskManager]:
    made = TaskManager(tmp_path, getattr(request, "param", ""))
    yield made
    assert made.shell.stdin is not None
    made.shell.stdin.close()
    made.shell.wait()
    # what it has forked ends when it is gone
    wait_for(lambda: not made.there())


def test_workers_are_forked(manager: TaskManager, tmp_path: Path) -> None:
    imported = set()
    for name in ("first", "second", "third"):
        asked, told = manager.worker(name)
        imported.add(told["imported"])
        assert told["own"] not in (told["imported"], asked.pid)
        assert told == {
            **{"own": told["own"], "imported": told["imported"], "argv": ["--id", name], "main": "__main__"},
            **{"cwd": str(tmp_path / name), "said": name, "path": True, "parent": manager.shell.pid},
        }
        wait_for(lambda asked=asked: not alive(asked))
    assert len(imported) == 1, "one process has imported what they need"


def test_a_worker_ends_with_the_process_that_was_started(manager: TaskManager) -> None:
    manager.worker("first")
    asked, told = manager.worker("stays")
    worker = psutil.Process(told["own"])
    assert alive(asked) and alive(worker)
    asked.kill()
    wait_for(lambda: not alive(worker))


@pytest.mark.parametrize(
    "manager", ["if os.path.samestat(os.fstat(1), os.stat(os.devnull)): raise RuntimeError('in the server')"], indirect=True
)
def test_workers_start_by_themselves_where_the_server_dies(manager: TaskManager) -> None:
    for name in ("first", "second", "third"):
        _, told = manager.worker(name)
        assert told["imported"] == told["own"]
