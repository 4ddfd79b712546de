"""The behavioural suite runs against every engine; an engine joins by being named here."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Iterator, List

import psutil
import pytest

import akrunner
from akrunner.engines.flink import FlinkEngine, cluster
from akrunner.engines.flink.java import java_home
from tests.worker.conftest import not_run

ENGINES = ["local", "flink"]
#: what scripts/flink prepares
FLINK = Path(__file__).parents[2] / ".envs" / "flink" / "bin" / "python"

Run = Callable[..., akrunner.Result]


@pytest.fixture(scope="session")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkEngine]:
    """A real session cluster of two TaskManagers, and the engine for it."""
    if not FLINK.exists():
        not_run("Flink", "scripts/flink could not prepare it")
    started = cluster.start(str(tmp_path_factory.mktemp("flink")), str(FLINK), taskmanagers=2, slots=4, port=0)
    with pytest.MonkeyPatch.context() as patched:
        # not in a test's own temp directory
        patched.setenv("TMPDIR", str(tmp_path_factory.mktemp("flink-client")))
        patched.setattr(tempfile, "tempdir", None)
        engine = FlinkEngine(started.address, python=str(FLINK))
        engine.__enter__().client(java_home(str(FLINK)))
    try:
        yield engine
    finally:
        engine.__exit__()
        started.stop()
    assert not [pid for pid in started.processes if psutil.pid_exists(pid)]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An engine's name, or an engine. On Flink nothing of a job is left on the cluster's side either."""
    if request.param == "local":
        yield "local"
        return
    yield request.getfixturevalue("flink")
    temp = next(tmp_path_factory.getbasetemp().glob("flink[0-9]*")) / "tmp"
    deadline = time.monotonic() + 10
    while (left := left_on_the_cluster(temp)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left


def left_on_the_cluster(temp: Path) -> List[str]:
    """Directories of tasks, and processes of theirs, that TaskManagers still have."""
    left = [path.name for path in temp.glob("akrunner-*")]
    for process in psutil.process_iter():
        try:
            environ = process.environ()
            if "AKRUNNER_JOB" in environ and environ.get("TMPDIR", "").startswith(str(temp)):
                left.append(" ".join(process.cmdline()) or str(process.pid))
        except (psutil.Error, OSError):
            continue
    return left


#: of the crash table, the rows that run on Flink too: each costs a job there
CRASHES_ON_FLINK = re.compile(
    r"test_fatal\[flink-(raises|SIGKILL|os._exit\(0\))-(importing|main)\]|test_after_main\[flink-SIGKILL\]|test_wrong_row\[flink-a|"
    r"test_one_of_two_fails\[flink-time|test_harmless\[flink-leaves a daemon-main|test_source_that_raises\[flink-OSE|test_value_that_cannot_cross"
)
#: modules that run on Flink
ON_FLINK = ("test_batch", "test_train")


def pytest_collection_modifyitems(items: List[Any]) -> None:
    """What Flink does not run yet, and what would only cost time, is not collected for it."""
    items[:] = [item for item in items if _engine_of(item) != "flink" or _runs_on_flink(item)]


def _engine_of(item: Any) -> Any:
    return item.callspec.params.get("engine") if hasattr(item, "callspec") else None


def _runs_on_flink(item: Any) -> bool:
    module = item.module.__name__.rpartition(".")[2]
    if module == "test_crash_table":
        return CRASHES_ON_FLINK.search(item.name) is not None
    return module in ON_FLINK


@pytest.fixture
def seconds(engine: Any) -> float:
    """How much longer than on the local engine a job may take."""
    return 0.0 if engine == "local" else 15.0


@pytest.fixture
def run(engine: Any, leaves_nothing: Path) -> Iterator[Run]:
    """`akrunner.run` on the engine; a job's defaults are a table of ten rows and a schema of two columns."""

    def start(script: str, source: Any = None, **options: Any) -> akrunner.Result:
        table = {"a": list(range(10)), "x": [i / 2 for i in range(10)]} if source is None else source
        options.setdefault("output_schema", "id bigint, p double")
        return akrunner.run(script, table, engine=engine, **options)

    yield start
