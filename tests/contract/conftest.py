"""The behavioural suite runs against every engine; an engine joins by being named here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, Iterator, List

import psutil
import pytest

import akrunner
from tests.conftest import nothing_is_left

ENGINES = ["local", "flink"]

Run = Callable[..., akrunner.Result]
Workers = Callable[[], List[psutil.Process]]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    """An engine's name, or an engine. On Flink nothing of a job is left on the cluster's side either."""
    if request.param == "local":
        yield "local"
        return
    yield request.getfixturevalue("flink")
    nothing_is_left(request.getfixturevalue("flink_cluster"))


#: rows that would only cost time on Flink: a job of its own each; and moments at which the crash table has the same crash in batch mode
ONCE_ON_FLINK = re.compile(
    r"test_host_killed\[flink-(?!time)|test_a_task_is_killed_at_some_moment\[flink-13|test_jobs_started_together_never_collide\[flink|"
    r"test_fatal\[(train|stream|columns)-flink-.*-(importing|reading|writing)\]|test_harmless\[(train|stream|columns)-flink-(?!leaves)"
)


def pytest_collection_modifyitems(items: List[Any]) -> None:
    items[:] = [item for item in items if not ONCE_ON_FLINK.search(item.name)]


@pytest.fixture
def workers(engine: Any, tmp_path_factory: pytest.TempPathFactory) -> Workers:
    """Gives the worker processes the engine's jobs have now."""
    base = str(tmp_path_factory.getbasetemp())

    def found() -> List[psutil.Process]:
        near = psutil.Process().children() if engine == "local" else psutil.process_iter()
        return [process for process in near if _is_worker(process, base)]

    return found


def _is_worker(process: psutil.Process, base: str) -> bool:
    try:
        bundled = any(part.endswith("bundle.zip") for part in process.cmdline())
        return bundled and process.status() != psutil.STATUS_ZOMBIE and process.environ().get("TMPDIR", "").startswith(base)
    except (psutil.Error, OSError):
        return False


@pytest.fixture
def run(engine: Any, leaves_nothing: Path) -> Iterator[Run]:
    """`akrunner.run` on the engine; a job's defaults are a table of ten rows and a schema of two columns."""

    def start(script: str, source: Any = None, **options: Any) -> akrunner.Result:
        table = {"a": list(range(10)), "x": [i / 2 for i in range(10)]} if source is None else source
        options.setdefault("output_schema", "id bigint, p double")
        return akrunner.run(script, table, engine=engine, **options)

    yield start
