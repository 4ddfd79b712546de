"""The behavioural suite runs against every engine; an engine joins by being named here."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

import akrunner
from akrunner.cluster.resources import THREADS
from akrunner.wire import frames, messages
from akrunner.wire.context import Context
from akrunner.wire.shapes import fields_of
from tests.conftest import ends, nothing_is_left

if TYPE_CHECKING:
    from tests.warmth import Kept

ENGINES = ["local", "flink", "warm"]

Run = Callable[..., akrunner.Result]
Workers = Callable[[], list[psutil.Process]]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    """An engine's name, or an engine. On Flink nothing of a job is left on the cluster's side either. "warm": the local one, and the
    first job's tasks are worker processes that have waited for it."""
    if request.param == "local":
        yield "local"
        return
    if request.param == "warm":
        request.getfixturevalue("leaves_nothing")
        patched = request.getfixturevalue("monkeypatch")
        for name in THREADS:
            # jobs of one and of two tasks want the same
            patched.setenv(name, "1")
        with akrunner.warm(workers=2, preload=()) as warm:
            assert warm.wait()
            yield "local"
            assert warm.status()["taken"] >= 1
        return
    yield request.getfixturevalue("flink")
    nothing_is_left(request.getfixturevalue("flink_cluster"))


#: rows that would only cost time on Flink: a job of its own each; and moments at which the crash table has the same crash in batch mode
ONCE_ON_FLINK = re.compile(
    r"test_host_killed\[flink-(?!time)|test_a_task_is_killed_at_some_moment\[flink-6|test_jobs_started_together_never_collide\[flink|"
    r"test_fatal\[(train|stream|columns)-flink-.*-(importing|reading|writing)\]|test_harmless\[(train|stream|columns)-flink-(?!leaves)"
)
#: rows of the crash table whose end is another for a worker process that has waited; not what it writes, nor where in `main` it crashes
WARM = re.compile(
    r"test_(fatal|harmless)\[warm-.*-(importing|main)\]|test_(after_main|hang|closes_our_pipes|out_of_memory_kill)\["
    r"(?!.*-(reading|writing)\])|test_one_of_two_fails\[.*sleep|test_(hang_after_main|hang_that_ignores_sigterm|binary_output)"
)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    items[:] = [item for item in items if not ONCE_ON_FLINK.search(item.name) and not _only_cold(item)]


def _only_cold(item: Any) -> bool:
    warm = getattr(item, "callspec", None) is not None and item.callspec.params.get("engine") == "warm"
    return warm and not (item.module.__name__.endswith("test_crash_table") and WARM.search(item.name))


def undeclared(kind: int, body: dict[str, Any]) -> list[str]:
    """The fields of a message that `akrunner.wire.messages`, or `context`, does not declare, in whatever object they are."""
    shape = Context if kind == frames.CONTEXT else messages.SHAPES[kind]
    return [f"a {frames.NAMES[kind]} message has {key!r}" for key in sorted(set(_odd("", body, shape)))]


def _odd(owner: str, body: dict[str, Any], shape: Any) -> Iterator[str]:
    required, optional = fields_of(shape)
    for field, value in body.items():
        annotation = {**required, **optional}.get(field)
        if annotation is None:
            yield owner + field
        for inner in getattr(annotation, "__args__", (annotation,)):
            if isinstance(inner, type) and hasattr(inner, "required"):
                for one in value if isinstance(value, list) else [value]:
                    yield from _odd(f"{owner}{field}.", one, inner) if isinstance(one, dict) else ()


@pytest.fixture(autouse=True)
def only_declared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The messages that the test's jobs send and receive have no fields but those that are declared."""
    odd: list[str] = []
    read, write = messages.read, frames.FrameWriter.write_json

    def reading(frame: frames.Frame) -> dict[str, Any]:
        body = read(frame)
        odd.extend(undeclared(frame.kind, body))
        return body

    def writing(writer: frames.FrameWriter, kind: int, body: Any, count: int = 0) -> None:
        odd.extend(undeclared(kind, body))
        write(writer, kind, body, count)

    monkeypatch.setattr(messages, "read", reading)
    monkeypatch.setattr(frames.FrameWriter, "write_json", writing)
    yield
    # there the tasks are not the worker's code
    assert not odd or request.module.__name__.endswith("test_hostile_frames"), "declare it in akrunner/wire/messages.py"


@pytest.fixture
def workers(engine: Any, warm_workers: Kept | None, tmp_path_factory: pytest.TempPathFactory) -> Workers:
    """Gives the worker processes the engine's jobs have now."""
    base = str(tmp_path_factory.getbasetemp())

    def found() -> list[psutil.Process]:
        near = psutil.Process().children() if engine == "local" else psutil.process_iter()
        taken = warm_workers.taken() if warm_workers is not None else []
        return [*taken, *(process for process in near if _is_worker(process, base))]

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


def hangs(start: Callable[[float], Any], where: str) -> None:
    """A job that hangs is stopped by its timeout, and the stack says where it does.

    Args: start: called with that timeout, which is longer the next time: a busy machine takes more time until the job is there.
    """
    for seconds in (1, 4, 16, 60):
        began = time.monotonic()
        with ends(seconds), pytest.raises(akrunner.JobTimeoutError, match=f"timeout={seconds}") as caught:
            start(seconds)
        assert time.monotonic() - began >= seconds
        if where in str(caught.value):
            return
    raise AssertionError(str(caught.value))
