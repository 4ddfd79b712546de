"""A plugin: jobs of tests that start TensorFlow take warm workers, so that it is imported once and not by each of them.

::

    one of pytest's processes -- `akrunner warm start` --> keeper of warm workers --> template, forks
        a test with the marker `tensorflow`: its jobs, those of its commands, too    --- take one --->

A test with the marker `cold`, or on Flink, knows nothing of them: its state directory is another. The others have all the same
environment, as far as it is read when TensorFlow is imported; those of another interpreter, or with other threads, another keeper.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

import akrunner
from akrunner import warming
from akrunner.cli.main import main
from akrunner.cluster.resources import THREADS
from akrunner.spares.wanted import early
from tests import models

#: seconds: what a job has left in a worker has ended by then
_ENDS = 60.0
#: seconds without a test until workers of a kind go
IDLE = "90"
#: what scripts/flink and scripts/matrix prepare
ENVS = Path(os.environ.get("AKRUNNER_TEST_ENVS", Path(__file__).parents[1] / ".envs"))


class Kind(NamedTuple):
    """Which workers wait. Attributes: python: an interpreter of `tests.worker.conftest.MATRIX`, "" for this one; threads: of each;
    keras: "legacy" for jobs with that option."""

    python: str = ""
    threads: str = "1"
    keras: str = ""


def kind_of(item: pytest.Item) -> Kind | None:
    """What the jobs of this test take; None: they start cold."""
    marked = {mark.name for mark in item.iter_markers()}
    if not marked & {"tensorflow", "matrix"} or marked & {"cold", "flink"} or item.nodeid.startswith("tests/unit/"):
        return None
    asked = item.get_closest_marker("warm")
    params = getattr(item, "callspec", None)
    given = params.params if params is not None else {}
    told = {"python": given.get("matrix_python", ""), "keras": given.get("keras") or ""}
    return Kind(**{**told, **(asked.kwargs if asked is not None else {})})


#: as a job's script, what saves a model by itself
_SAVES = """
import sys

def main(task_config):
    sys.argv[1:] = [task_config.user_params["path"]]
    exec(compile(task_config.user_params["code"], "model.py", "exec"), {})
"""


class Kept:
    """Warm workers for the tests of one process that want the same.

    Attributes: environ: what each of those tests has in its environment, and nothing else that is read when TensorFlow is imported.
    """

    def __init__(self, base: Path, kind: Kind) -> None:
        self._base = base
        self._python = str(ENVS / kind.python / "bin" / "python") if kind.python else sys.executable
        self.environ = {
            **early(os.environ),
            "XDG_STATE_HOME": str(base / "state"),
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(base.parent / "cache")),
            # a job of two tasks wants what one of one wants
            **{name: kind.threads for name in THREADS},
            # where Alink's operators look for it
            **({"TF115_PYTHON_ENV_PATH": str(ENVS / "tf1.15")} if kind.python == "tf1.15" else {}),
        }
        (base / "tmp").mkdir()
        self._keras = ["--keras", kind.keras] if kind.keras else []
        self._pid = 0
        self._models: dict[str, str] = {}

    def start(self) -> None:
        """Begin, or go on: they end by themselves when no test has come for long. In the environment of `enter`."""
        status = warming.kept_status(hurry=True)
        if status is not None:
            return
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("TMPDIR", str(self._base / "tmp"))
            patched.setattr(tempfile, "tempdir", None)
            command = ["warm", "start", "--workers", "2", "--python-env", self._python, "--idle-timeout", IDLE]
            assert main([*command, *self._keras]) == 0
        deadline = time.monotonic() + _ENDS
        # a job waits for a template that imports, and starts cold where there is none yet
        while not (status := self.status())["templates"] and time.monotonic() < deadline:
            time.sleep(0.02)
        self._pid = int(status["pid"])

    def enter(self, patched: pytest.MonkeyPatch) -> None:
        """Have this process' environment be what it is when workers are taken. A test may have imported TensorFlow, which changes it."""
        for name in early(os.environ).keys() - self.environ.keys():
            patched.delenv(name)
        for name, value in self.environ.items():
            patched.setenv(name, value)

    def stop(self) -> None:
        try:
            keeper = psutil.Process(self._pid)
            all_of_it = [keeper, *keeper.children(recursive=True)]
        except psutil.NoSuchProcess:
            all_of_it = []
        with pytest.MonkeyPatch.context() as patched:
            self.enter(patched)
            assert main(["warm", "stop"]) == 0
        _, alive = psutil.wait_procs(all_of_it, timeout=_ENDS)
        assert not alive and not os.listdir(self._base / "tmp")

    def status(self) -> Any:
        """As `akrunner warm status` has it, with nothing in it when there is nobody."""
        return warming.kept_status() or {}

    def model(self, code: str) -> str:
        """The directory of a SavedModel, which is made once. Args: code: as of `tests.models.make`."""
        if code not in self._models:
            path, script = self._base / f"model-{len(self._models)}", self._base / "saves.py"
            script.write_text(_SAVES)
            akrunner.run(str(script), {"a": [1]}, user_params={"path": str(path), "code": code})
            self._models[code] = str(path)
        return self._models[code]

    def taken(self) -> list[psutil.Process]:
        """Worker processes that jobs have taken and that are there."""
        try:
            below = psutil.Process(self._pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        status = self.status()
        idle = {one["pid"] for kind in ("spares", "templates") for one in status.get(kind, ())}
        return [process for process in below if process.pid not in idle and _is_worker(process)]


def _is_worker(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and any(part.endswith("bundle.zip") for part in process.cmdline())
    except psutil.Error:
        return False


@pytest.fixture(scope="session")
def keepers() -> Iterator[dict[Kind, Kept]]:
    """Those that tests have begun."""
    keepers: dict[Kind, Kept] = {}
    yield keepers
    for kept in keepers.values():
        kept.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have each test whose jobs take warm workers ask for them, before its other fixtures. Were `warm_workers` of all tests, each of thousands that
    know no job would make it, too."""
    for item in items:
        if kind_of(item) is not None:
            # those of a wider scope stay before it, as pytest has them
            wider = {name for name, made in item._fixtureinfo.name2fixturedefs.items() if made[-1].scope != "function"}
            others = [name for name in item.fixturenames if name != "warm_workers"]
            others.insert(len(list(itertools.takewhile(wider.__contains__, others))), "warm_workers")
            item.fixturenames[:] = others


@pytest.fixture
def warm_workers(request: pytest.FixtureRequest) -> Iterator[Kept | None]:
    """None in a test whose jobs start cold."""
    kind = kind_of(request.node)
    if kind is None or (kind.python and not (ENVS / kind.python).is_dir()):
        yield None
        return
    keepers: dict[Kind, Kept] = request.getfixturevalue("keepers")
    if kind not in keepers:
        keepers[kind] = Kept(request.getfixturevalue("tmp_path_factory").mktemp("kept"), kind)
    kept = keepers[kind]
    kept.enter(request.getfixturevalue("monkeypatch"))
    kept.start()
    yield kept
    kept.enter(request.getfixturevalue("monkeypatch"))
    deadline = time.monotonic() + _ENDS
    while (left := kept.taken()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left, f"still running: {[process.cmdline() for process in left]}"


@pytest.fixture
def saved_model(warm_workers: Kept | None, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Code of `tests.models` -> the directory of what it saves; the same for all tests of a process."""

    def saved(code: str) -> str:
        if warm_workers is not None:
            return warm_workers.model(code)
        if code not in _MADE:
            _MADE[code] = models.make(sys.executable, code, tmp_path_factory.mktemp("models") / "model")
        return _MADE[code]

    return saved


#: code -> directory, of what was made without warm workers
_MADE: dict[str, str] = {}
