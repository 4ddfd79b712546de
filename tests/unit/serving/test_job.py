"""A prediction: what is checked before anything is started, which chunks a model is sent, and how its answers come back in the table's order."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from akrunner.engines.registry import engine_of
from akrunner.errors import (
    ConfigError,
    InputLostError,
    JobError,
    JobTimeoutError,
    ModelError,
    ScriptFailedError,
    SinkError,
    SourceError,
    TaskFailure,
)
from akrunner.io import limits
from akrunner.launch.interpreters import Interpreter
from akrunner.model import Model
from akrunner.serving import job
from akrunner.serving.arguments import PredictArguments
from akrunner.serving.verbs import predict_stream
from akrunner.spec import Capabilities
from tests.unit.engines.test_base import stats
from tests.unit.serving.test_plan import ONE, TWO


class _Opened:
    path = "model"


def names(*given: str) -> Iterator[str]:
    return iter(given)


def test_names_given_as_an_iterator_are_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "check_model", lambda model: None)
    monkeypatch.setattr(job, "open_model", lambda model: _Opened())
    monkeypatch.setattr(job, "signature_of", lambda *given: TWO)
    monkeypatch.setattr(job, "interpreter_for", lambda *given: Interpreter("python", (), "", ""))
    monkeypatch.setattr(job, "job_for", lambda *given, **more: None)
    given = PredictArguments(
        "model",
        pa.table({"a": [1.0], "b": ["x"], "c": [1]}),
        selected_cols=names("a", "b"),
        input_signature_defs=names("a", "b"),
        output_signature_defs=names("y"),
        reserved_cols=names("c"),
    )
    plan = job.Prediction.prepare(given, engine_of("local")).plan
    assert plan.reserved == ("c",) and [name for one in plan.inputs for name in one.columns] == ["a", "b"]


def test_a_new_model_must_take_and_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = job.Plan.make(TWO, pa.schema([("a", pa.float32()), ("b", pa.string())]))
    fewer = dataclasses.replace(TWO, inputs={"a": TWO.inputs["a"]})
    other = dataclasses.replace(TWO, outputs={"else": next(iter(TWO.outputs.values()))})
    found = {"model": TWO, "same": TWO, "fewer": fewer, "other": other}
    monkeypatch.setattr(job, "signature_of", lambda path, key, tag: found[path])
    given: Any = SimpleNamespace(user_params={"signature": "serving_default", "tags": ["serve"]})
    model: Any = SimpleNamespace(path="model")
    prediction = job.Prediction(model, plan, given, job.TableSource(pa.schema([]), lambda: iter(())), True)
    new: Any = SimpleNamespace(path="same")
    prediction._check_new(new)
    for path in ("fewer", "other"):
        new.path = path
        with pytest.raises(ModelError, match="its signature is .*, and the stream's model has"):
            prediction._check_new(new)


@pytest.mark.parametrize(
    ("wrong", "words"), [({"timeout": 0}, "^timeout=0"), ({}, "^model: "), ({"output_schema": "p dubel"}, "^output_")]
)
def test_lines_are_not_waited_for_before_the_model_and_the_options_are_right(
    wrong: dict[str, Any], words: str, tmp_path: Path
) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(ConfigError, match=words):
        predict_stream(str(tmp_path / "no model"), str(tmp_path / "empty.jsonl"), follow=True, **{"timeout": 5, **wrong})


def test_new_models_are_for_this_machine() -> None:
    with pytest.raises(ConfigError, match="watch: new models are taken by streams of engine='local'"):
        predict_stream("model", [], watch="models", engine="flink")


# -- with an engine that computes y = 2x itself


class Engine:
    """Each worker answers in its order, the last of them first, when all has been sent, or sooner where the test says so.

    Attributes: job: that was run; chunks: of rows, that were sent; lost: answers that never come; error: raised in place of the first answer.
    """

    name = "mine"
    capabilities = Capabilities()

    def __init__(self, lost: int = 0, error: BaseException | None = None) -> None:
        self.lost, self.error = lost, error
        self.chunks: list[int] = []

    def check(self, job: Any) -> None: ...

    def run(self, job: Any, source: Any, sink: Any, observer: Any, cancel: Any = None) -> Any:
        self.job = job
        tasks = job.cluster.with_rows
        sent: list[list[pa.RecordBatch]] = [[] for _ in tasks]
        for turn, chunk in enumerate(source.batches()):
            self.chunks.append(chunk.num_rows)
            sent[turn % len(tasks)].append(chunk)
        if self.error is not None:
            raise self.error
        answers = [(task, chunk) for task, chunks in reversed(list(zip(tasks, sent))) for chunk in chunks]
        for task, chunk in answers[: len(answers) - self.lost]:
            values = [2 * value for value in chunk.column(0).to_pylist()]
            sink.write(task, pa.record_batch({"y": pa.array(values, pa.float32())}))
        return SimpleNamespace(tasks=(), stats=stats(), work_dir=None, only_asked=False)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A model that takes x and gives y; neither it nor an interpreter is looked at."""
    monkeypatch.setattr(job, "open_model", lambda model: _Opened())
    monkeypatch.setattr(job, "signature_of", lambda *given: ONE)
    monkeypatch.setattr(job, "interpreter_for", lambda *given: Interpreter("/py", (3, 11), "2.20.0", ""))
    (tmp_path / "m").mkdir()
    return str(tmp_path / "m")


def table(rows: int) -> pa.Table:
    return pa.table({"id": range(rows), "x": [float(i) for i in range(rows)]})


@pytest.mark.parametrize("workers, batch_size", [(1, 1024), (2, 1), (3, 4), (3, 10_000)])
def test_answers_stand_beside_their_rows_in_the_tables_order(
    model: str, monkeypatch: pytest.MonkeyPatch, workers: int, batch_size: int
) -> None:
    monkeypatch.setattr(job, "_CHUNK_ROWS", 8)
    engine = Engine()
    given = PredictArguments(model, table(100), engine=engine, num_workers=workers, batch_size=batch_size, selected_cols=["x"])
    result = job.run_predict(given, None)
    assert result.table is not None and result.table.to_pydict() == {
        "id": list(range(100)), "x": [float(i) for i in range(100)], "y": [2.0 * i for i in range(100)],
    }  # fmt: skip
    # whole batches of the model's, about so many rows at a time
    size = max(1, 8 // batch_size) * batch_size
    assert engine.chunks == [size] * (100 // size) + ([100 % size] if 100 % size else [])


def test_a_table_without_rows_has_the_columns_of_its_answers(model: str) -> None:
    result = job.run_predict(PredictArguments(model, table(0), engine=Engine(), selected_cols=["x"]), None)
    assert result.table is not None and result.table.num_rows == 0 and result.table.column_names == ["id", "x", "y"]


def test_only_the_reserved_columns_are_kept(model: str) -> None:
    given = PredictArguments(model, table(3), engine=Engine(), selected_cols=["x"], reserved_cols=["id"])
    result = job.run_predict(given, None)
    assert result.table is not None and result.table.to_pydict() == {"id": [0, 1, 2], "y": [0.0, 2.0, 4.0]}


def test_the_job_is_a_stream_of_columns_into_a_module(model: str) -> None:
    engine = Engine()
    given = PredictArguments(
        model,
        table(3),
        engine=engine,
        selected_cols=["x"],
        graph_def_tag="serve, gpu",
        num_workers=2,
        env={"A": "b"},
        timeout=9,
    )
    job.run_predict(given, None)
    ran = engine.job
    assert (ran.mode, ran.data_format, ran.script.module, ran.python) == ("stream", "columns", "akrunner.worker.predict", "/py")
    assert ran.model == os.path.abspath("model") and ran.env == {"A": "b"} and ran.supervision.timeout == 9
    assert len(ran.cluster.with_rows) == 2 and ran.cluster.num_ps == 0 and ran.overlay == ""
    params = ran.user_params
    assert (params["tags"], params["signature"], params["batch_size"]) == (["serve", "gpu"], "serving_default", 1024)
    assert params["outputs"] == [{"column": "y", "name": "y"}] and params["answer_errors"] is False


def test_no_model_is_loaded_behind_the_end_of_the_time(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def long(*asked: str) -> str:
        limits._LIMITS.set(limits.Limits(60.0, time.monotonic() - 1))
        return "installed"

    monkeypatch.setattr(job, "check_requirements", lambda *given: None)
    monkeypatch.setattr(job.environments, "overlay", long)
    engine = Engine()
    given = PredictArguments(model, table(3), engine=engine, selected_cols=["x"], requirements="r.txt", timeout=60)
    with pytest.raises(JobTimeoutError, match=r"longer than timeout=60 s .*its preparation \(packages of requirements="):
        job.run_predict(given, None)
    assert not hasattr(engine, "job")


def test_answers_that_never_came_are_an_error_and_no_file_is_left(model: str, tmp_path: Path) -> None:
    given = PredictArguments(
        model, table(10_000), engine=Engine(lost=2), batch_size=1, selected_cols=["x"], output=tmp_path / "o.csv"
    )
    with pytest.raises(InputLostError, match="^2 chunks of rows were sent to the model and never answered"):
        job.run_predict(given, None)
    with pytest.raises(InputLostError, match="^1 chunk of rows was sent to the model and never answered"):
        job.run_predict(replace(given, engine=Engine(lost=1)), None)
    assert os.listdir(tmp_path) == ["m"]


def test_rows_of_an_output_are_in_its_file(model: str, tmp_path: Path) -> None:
    given = PredictArguments(model, table(2), engine=Engine(), selected_cols=["x"], output=tmp_path / "o.csv")
    result = job.run_predict(given, None)
    assert result.table is None and result.output == str(tmp_path / "o.csv")
    assert [line.split(",")[0] for line in (tmp_path / "o.csv").read_text().split()[1:]] == ["0", "1"]


def test_a_script_that_failed_is_told_with_the_rows_it_had(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "_CHUNK_ROWS", 4)
    failed = ScriptFailedError("it raised", failure=TaskFailure("worker:0", "raised"), work_dir="/kept")
    given = PredictArguments(model, table(10), engine=Engine(error=failed), selected_cols=["x"], num_workers=2, batch_size=4)
    with pytest.raises(ScriptFailedError, match="^it raised; it had rows 4 to 7 of the table") as told:
        job.run_predict(given, None)
    assert told.value.failure is failed.failure and told.value.work_dir == "/kept"


@pytest.mark.parametrize(
    "error", [JobError("no"), ScriptFailedError("no"), ScriptFailedError("no", failure=TaskFailure("ps:0", "raised"))]
)
def test_a_failure_that_is_of_no_rows_stays_as_it_is(model: str, error: JobError) -> None:
    with pytest.raises(type(error)) as told:
        job.run_predict(PredictArguments(model, table(3), engine=Engine(error=error), selected_cols=["x"]), None)
    assert told.value is error


@pytest.mark.parametrize(
    "fields, kind, words",
    [
        ({"batch_size": 0}, ConfigError, "batch_size"), ({"signature_def_key": 3}, ModelError, "signature_def_key"), ({"graph_def_tag": None}, ModelError, "graph_def_tag"), ({"num_workers": 0}, ConfigError, "num_workers"),
        ({"selected_cols": 3}, ConfigError, "selected_cols"), ({"reserved_cols": ["z"]}, ConfigError, "reserved_cols"), ({"output_schema": "y bigimt"}, ConfigError, "output_schema"), ({"flush_seconds": -1}, ConfigError, "flush_seconds"),
        ({"work_dir": "oss://b/x"}, ConfigError, "^work_dir"), ({"env": {"A=B": "1"}}, ConfigError, "env"), ({"source": "no.csv"}, SourceError, "no.csv"), ({"select": 3}, ConfigError, "^select"), ({"output": 3}, SinkError, "output"),
        ({"overwrite": "yes"}, ConfigError, "overwrite"), ({"model": 3}, ModelError, "^model must be a Model, a path or a model table, not 3"), ({"model": "a\0b"}, ModelError, "model"),
    ],
    ids=str,
)  # fmt: skip
def test_an_argument_that_is_wrong_is_named(model: str, fields: dict[str, Any], kind: type[Exception], words: str) -> None:
    given = {"model": model, "source": table(3), "engine": Engine(), "selected_cols": ["x"], **fields}
    with pytest.raises(kind, match=words):
        job.run_predict(PredictArguments(**given), None)


def test_rows_are_put_in_place_neither_of_the_model_nor_of_the_table(model: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    (tmp_path / "m.zip").write_text("")
    for source, output in ((str(tmp_path / "t.csv"), tmp_path / "t.csv"), (table(1), tmp_path / "m.zip")):
        given = PredictArguments(
            str(tmp_path / "m.zip"),
            source,
            engine=Engine(),
            selected_cols=["x"],
            output=output,
            output_format="csv",
            overwrite=True,
        )
        with pytest.raises(SinkError, match=output.name):
            job.run_predict(given, None)
    # a plan refuses it as well
    with pytest.raises(SinkError, match=r"m\.zip"):
        job.checked(given)


def test_a_stream_holds_nothing_back_for_a_fuller_chunk(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [table(3).to_batches()[0], table(5).to_batches()[0]]
    engine = Engine()
    with job.run_predict_stream(
        PredictArguments(model, pa.Table.from_batches(batches), engine=engine, selected_cols=["x"], batch_size=4),
        False,
        None,
        None,
        1.0,
    ) as stream:
        assert [row["y"] for batch in stream for row in batch.to_pylist()] == [0.0, 2.0, 4.0, 0.0, 2.0, 4.0, 6.0, 8.0]
    assert engine.chunks == [3, 5]


def test_models_are_taken_as_they_are_from_tables_and_from_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(Model, "from_table", lambda table: opened.append(table))
    monkeypatch.setattr(Model, "from_saved_model", lambda path: opened.append(path))
    mine = Model.__new__(Model)
    assert job.open_model(mine) is mine and opened == []
    some = pa.table({"model_id": [0]})
    job.open_model(some)
    job.open_model("m")
    assert opened[0] is some and opened[1] == "m"
    for wrong in (None, 3, ["m"]):
        with pytest.raises(ModelError, match="^model must be a Model"):
            job.check_model(wrong)
