"""`run`, `train` and `stream` once their arguments are gathered: what the engine is given, and what becomes of its rows. No process is started."""

from __future__ import annotations

import os
import shutil
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner import api, runs
from akrunner import model as models
from akrunner.api import run_batch, run_stream, run_train
from akrunner.engines.base import Outcome, Stats, TaskResult
from akrunner.errors import ConfigError, JobError, ModelError, SinkError, WriteError
from akrunner.io import limits
from akrunner.launch.interpreters import Interpreter
from akrunner.model import saving
from akrunner.prepare import job as preparing
from akrunner.prepare.arguments import Arguments
from akrunner.spec import Capabilities, TaskSpec
from akrunner.stream_job import StreamJob

CHIEF = TaskSpec("chief", 0)
MAIN = "def main(task_config):\n    pass\n"
ROWS = pa.record_batch({"a": [1, 2]})


class Leftovers:
    """Attributes: folders: temporary ones that were made and are there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders: list[str] = []

    def temp_folder(self, prefix: str) -> str:
        folder = self.root / f"{prefix}{len(self.folders)}"
        folder.mkdir(parents=True)
        self.folders.append(str(folder))
        return str(folder)

    def register(self, path: str) -> None: ...

    def drop(self, path: str) -> None:
        if path in self.folders:
            self.folders.remove(path)
        shutil.rmtree(path, ignore_errors=True)


class Engine:
    """Attributes: jobs: that were run; writes: the rows each writes; error: raised behind them; asked: it gives its help only; exports: a train job's files."""

    name = "mine"
    capabilities = Capabilities()

    def __init__(self) -> None:
        self.jobs: list[Any] = []
        self.writes: list[pa.RecordBatch] = [ROWS]
        self.error: BaseException | None = None
        self.asked = False
        self.exports: tuple[str, ...] = ("saved_model.pb",)

    def check(self, job: Any) -> None: ...

    def run(self, job: Any, source: Any, sink: Any, observer: Any, cancel: threading.Event | None = None) -> Outcome:
        self.jobs.append(job)
        self.rows = sum(batch.num_rows for batch in source.batches())
        for batch in self.writes:
            sink.write(CHIEF, batch)
        if job.model_dir is not None and self.exports:
            os.makedirs(os.path.join(job.model_dir, "model"))
            for name in self.exports:
                Path(job.model_dir, "model", name).write_text("graph")
        if self.error is not None:
            raise self.error
        task = TaskResult("chief:0", 2, 2, 0.0, 0.0, "exit code 0", 0, 0.0, "3.11", "", None, only_asked=self.asked)
        stats = Stats(
            *(1.0, 0.0, 0.0, 0.0, 2, 0, 2, 0), host_blocked_seconds=0.0, input_wait_seconds=0.0, output_blocked_seconds=0.0, bound="unknown", shares=(2,)
        )  # fmt: skip
        return Outcome((task,), stats, "/kept")


@pytest.fixture(autouse=True)
def leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Leftovers]:
    """No guard is started, and no interpreter is looked for."""
    made = Leftovers(tmp_path / "temp")
    for module in (api, models, saving):
        monkeypatch.setattr(module, "leftovers", made)
    monkeypatch.setattr(preparing, "interpreter_for", lambda *given: Interpreter("/py", (3, 11), "2.20.0", ""))
    yield made


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def given(tmp_path: Path, engine: Engine) -> Any:
    """(arguments) -> all of them."""
    (tmp_path / "s.py").write_text(MAIN)
    return lambda **fields: Arguments(str(tmp_path / "s.py"), **{"source": {"a": [1, 2, 3]}, "engine": engine, **fields})


def test_rows_without_an_output_are_in_memory(given: Any, engine: Engine) -> None:
    result = run_batch(given(), None)
    assert result.table is not None and result.table.to_pylist() == [{"a": 1}, {"a": 2}] and result.output is None
    assert engine.rows == 3 and engine.jobs[0].mode == "batch" and result.work_dir == "/kept"


@pytest.mark.parametrize("schema", [None, "a bigint"])
def test_rows_of_an_output_are_in_its_file_and_not_in_memory(given: Any, tmp_path: Path, schema: str | None) -> None:
    result = run_batch(given(output=tmp_path / "o.parquet", output_schema=schema), None)
    assert result.table is None and result.output == str(tmp_path / "o.parquet")
    assert pq.read_table(tmp_path / "o.parquet").to_pylist() == [{"a": 1}, {"a": 2}]


def test_of_a_job_that_failed_no_file_is_left(given: Any, engine: Engine, tmp_path: Path) -> None:
    engine.error = JobError("it failed")
    (tmp_path / "o.csv").write_text("old\n")
    with pytest.raises(JobError, match="it failed"):
        run_batch(given(output=tmp_path / "o.csv", overwrite=True), None)
    assert (tmp_path / "o.csv").read_text() == "old\n"
    assert sorted(os.listdir(tmp_path)) == ["o.csv", "s.py"]


def test_a_script_that_only_gave_its_help_made_no_file(given: Any, engine: Engine, tmp_path: Path) -> None:
    engine.asked, engine.writes = True, []
    result = run_batch(given(output=tmp_path / "o.csv"), None)
    assert result.output is None and not (tmp_path / "o.csv").exists()


def test_an_output_without_rows_needs_its_columns(given: Any, engine: Engine, tmp_path: Path) -> None:
    engine.writes = []
    with pytest.raises(WriteError, match=r"output_schema= \(--output-schema\)"):
        run_batch(given(output=tmp_path / "o.csv"), None)
    assert run_batch(given(output=tmp_path / "o.csv", output_schema="a bigint"), None).output == str(tmp_path / "o.csv")


@pytest.mark.parametrize(
    "verb", [run_batch, lambda given, who: run_train(given, None, False, who), lambda given, who: run_stream(given, False, who)]
)
def test_who_looks_on_and_who_runs_it_is_checked_first(given: Any, engine: Engine, verb: Any) -> None:
    with pytest.raises(ConfigError, match="^observer must have"):
        verb(given(), "me")
    with pytest.raises(ConfigError, match="^engine"):
        verb(given(engine=3), None)
    assert engine.jobs == []


class Timed(Engine):
    """Attributes: counts_from: when the time began that its job may take."""

    counts_from: float | None

    def run(self, *given: Any) -> Outcome:
        self.counts_from = limits.current().began
        return super().run(*given)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["batch", "into a file", "train", "stream"])
def test_the_opening_of_a_table_is_in_the_time_that_its_job_may_take(given: Any, tmp_path: Path, verb: str) -> None:
    engine, drawn = Timed(), []

    def rows() -> Iterator[dict[str, int]]:
        drawn.append(time.monotonic())
        yield {"a": 1}

    before = time.monotonic()
    output = {"output": tmp_path / "o.csv"} if verb == "into a file" else {}
    every = given(source=rows(), engine=engine, timeout=600, output_schema="a bigint", **output)
    if verb == "train":
        run_train(every, None, False, None)
    elif verb == "stream":
        with run_stream(every, False, None) as job, job.limited():
            list(job)
            assert limits.current().began == engine.counts_from
    else:
        run_batch(every, None)
    assert engine.counts_from is not None and before <= engine.counts_from <= drawn[0]


def test_a_model_is_temporary_until_it_is_saved(given: Any, leftovers: Leftovers) -> None:
    result = run_train(given(), None, False, None)
    assert result.model is not None and result.output is None
    (folder,) = leftovers.folders
    assert result.model.path == os.path.join(folder, "model") and os.path.isdir(folder)
    del result
    assert leftovers.folders == [] and not os.path.exists(folder), "it goes with the last reference"


def test_a_model_is_saved_where_that_was_asked_for(given: Any, tmp_path: Path) -> None:
    result = run_train(given(), tmp_path / "m", False, None)
    assert result.output == str(tmp_path / "m") and (tmp_path / "m" / "saved_model.pb").read_text() == "graph"
    with pytest.raises(ModelError, match=r"model_out: .*exists; give overwrite=True"):
        run_train(given(), tmp_path / "m", False, None)
    run_train(given(overwrite=True), tmp_path / "m", False, None)


def test_a_train_job_without_a_model_fails_and_leaves_nothing(given: Any, engine: Engine, leftovers: Leftovers) -> None:
    engine.exports = ()
    with pytest.raises(ModelError):
        run_train(given(), None, False, None)
    assert leftovers.folders == []
    engine.asked = True
    assert run_train(given(), None, False, None).model is None, "help was asked for, and no model"
    assert leftovers.folders == []


def test_a_train_job_that_failed_leaves_no_directory(given: Any, engine: Engine, leftovers: Leftovers) -> None:
    engine.error = JobError("it failed")
    with pytest.raises(JobError):
        run_train(given(), None, False, None)
    assert leftovers.folders == []


def test_a_model_that_cannot_be_saved_is_told_before_the_job(given: Any, engine: Engine, tmp_path: Path) -> None:
    for target, words in ((tmp_path, "exists"), (3, "model_out"), (tmp_path / "m.tar", "a model is saved as a directory")):
        with pytest.raises(ModelError, match=words):
            run_train(given(), target, False, None)  # type: ignore[arg-type]
    assert engine.jobs == []


def test_earlier_checkpoints_are_removed_only_when_all_arguments_are_right(given: Any, tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "checkpoint").write_text("")
    (tmp_path / "c" / "mine.txt").write_text("")
    with pytest.raises(ConfigError, match="^resume= goes on with what remove_checkpoint_before_training= removes"):
        run_train(given(checkpoint_dir=str(tmp_path / "c"), resume=True), None, True, None)
    with pytest.raises(ConfigError, match="^remove_checkpoint_before_training= needs checkpoint_dir=$"):
        run_train(given(), None, True, None)
    with pytest.raises(ConfigError, match="remove_checkpoint_before_training"):
        run_train(given(checkpoint_dir=str(tmp_path / "c")), None, "yes", None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="num_workers"):
        run_train(given(checkpoint_dir=str(tmp_path / "c"), num_workers=0), None, True, None)
    run_train(given(checkpoint_dir=str(tmp_path / "c")), None, False, None)
    assert sorted(os.listdir(tmp_path / "c")) == ["checkpoint", "mine.txt"]
    run_train(given(checkpoint_dir=str(tmp_path / "c")), None, True, None)
    assert os.listdir(tmp_path / "c") == ["mine.txt"]


def test_a_stream_gives_its_rows_as_they_come(given: Any, engine: Engine) -> None:
    with run_stream(given(output_schema="a bigint"), False, None) as job:
        assert job.schema == pa.schema([("a", pa.int64())])
        assert [batch.to_pylist() for batch in job] == [[{"a": 1}, {"a": 2}]]
    assert engine.jobs[0].mode == "stream" and job.stats is not None and job.stats.rows_in == 2


def test_a_stream_follows_one_file_only(given: Any, engine: Engine) -> None:
    with pytest.raises(ConfigError, match="^follow= is for one file; the source is dict$"):
        run_stream(given(), True, None)
    with pytest.raises(SinkError, match="output_format"):
        run_stream(given(output_format="xls"), False, None)
    assert engine.jobs == []


def test_a_table_of_pyflink_needs_its_engine(given: Any) -> None:
    table = type("Table", (types.SimpleNamespace,), {"__module__": "pyflink.table.table"})()
    with pytest.raises(ConfigError, match="give engine='flink'"):
        run_batch(given(source=table), None)


@pytest.mark.parametrize(
    ("error", "state"), [(RuntimeError("can't start new thread"), "failed"), (KeyboardInterrupt(), "stopped")]
)
def test_a_stream_whose_thread_does_not_start_has_ended(
    error: BaseException, state: str, given: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> StreamJob:
        raise error

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(api, "StreamJob", none)
    told: list[Any] = []
    with pytest.raises(type(error)):
        run_stream(given(output_schema="a bigint", keep_run=True, notify=told.append), False, None)
    assert runs.get("last").state == state and [one["ok"] for one in told] == [False]
