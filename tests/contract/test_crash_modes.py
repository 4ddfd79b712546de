"""The crash table of the other modes: train, stream, and rows as columns. Batch is `test_crash_table`; predict, whose worker
processes run no script, `test_predict`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import akrunner
from tests.chaos.programs import stand_in
from tests.conftest import Script, ends
from tests.contract.conftest import Workers, hangs

from .test_crash_table import BEFORE_DONE, CLOSES, FATAL, HARMLESS, SCRIPT

pytestmark = pytest.mark.slow

#: reading without TensorFlow: a first batch of columns
READ_COLUMNS = """
    if WHEN == "reading":
        assert len(next(task_config.batches(4))["a"]) == 4
        happens()
"""
READ_FILE = SCRIPT[SCRIPT.index('    if WHEN == "reading"') : SCRIPT.index('    if WHEN == "main"')]
COLUMNS = SCRIPT.replace(READ_FILE, READ_COLUMNS)
EXPORT = (
    SCRIPT
    + """
    open(os.path.join(task_config.saved_model_dir, "saved_model.pb"), "wb").close()
"""
)

Start = Callable[..., Any]


def train(path: str, table: Any, **options: Any) -> akrunner.Result:
    return akrunner.train(path, table, **options)


def stream(path: str, table: Any, **options: Any) -> Any:
    with akrunner.stream(path, table, data_format="columns", **options) as job:
        rows = [row for batch in job for row in batch.to_pylist()]
    assert job.stats is not None
    return rows, job.stats


def columns(path: str, table: Any, **options: Any) -> akrunner.Result:
    return akrunner.run(path, table, data_format="columns", **options)


MODES: dict[str, tuple[Start, str]] = {"train": (train, EXPORT), "stream": (stream, COLUMNS), "columns": (columns, COLUMNS)}


@pytest.fixture(params=MODES)
def start(request: pytest.FixtureRequest, engine: str, script: Script, leaves_nothing: Path, tmp_path: Path) -> Iterator[Start]:
    """Start a job of the mode whose script does something at some time. A model that comes back is looked at with what stands for
    TensorFlow here: `test_train` has the real one."""
    job, code = MODES[request.param]
    env = {"PYTHONPATH": stand_in(tmp_path / "stub")} if request.param == "train" else {}

    def go(when: str, event: str, **options: Any) -> Any:
        table = {"a": list(range(10)), "x": [i / 2 for i in range(10)]}
        path = script(code.format(when=when, event=event))
        return job(path, table, engine=engine, output_schema="id bigint, p double", env=env, **options)

    yield go


@pytest.mark.parametrize("when", BEFORE_DONE)
@pytest.mark.parametrize("event", FATAL)
def test_fatal(start: Start, event: str, when: str) -> None:
    code, error, words = FATAL[event]
    with ends(), pytest.raises(error) as caught:
        start(when, code)
    for word in words:
        assert word in str(caught.value) or (word == "without saying" and when == "importing"), str(caught.value)
    assert caught.value.failure is not None and os.path.exists(caught.value.failure.log_path)


@pytest.mark.parametrize("event", HARMLESS)
def test_harmless(start: Start, event: str) -> None:
    done = start("main", HARMLESS[event])
    assert (len(done[0]) if isinstance(done, tuple) else done.table.num_rows) == 3


@pytest.mark.parametrize("when", ["importing", "reading", "writing"])
def test_hang(start: Start, when: str) -> None:
    hangs(lambda seconds: start(when, "time.sleep(1000)", timeout=seconds), "in happens")


@pytest.mark.parametrize("when", ["main", "writing"])
def test_closes_our_pipes(start: Start, when: str) -> None:
    with pytest.raises(akrunner.JobError):
        start(when, CLOSES + "; time.sleep(0.5)", timeout=5)


def test_the_other_worker_goes_too(start: Start, workers: Workers) -> None:
    event = "os.kill(os.getpid(), 9) if json.loads(os.environ['TF_CONFIG'])['task']['type'] == 'chief' else time.sleep(1000)"
    with ends(), pytest.raises(akrunner.TaskDiedError, match=r"\[chief:0\] .*SIGKILL"):
        start("main", "import json; " + event, num_workers=3)
    assert not workers()
