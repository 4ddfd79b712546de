"""What a prediction is asked for, before anything is started."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from akrunner.engines.registry import engine_of
from akrunner.errors import ConfigError, ModelError
from akrunner.launch.interpreters import Interpreter
from akrunner.serving import job
from akrunner.serving.arguments import PredictArguments
from akrunner.serving.verbs import predict_stream
from tests.unit.serving.test_plan import TWO


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


def test_new_models_are_for_this_machine() -> None:
    with pytest.raises(ConfigError, match="watch: new models are taken by streams of engine='local'"):
        predict_stream("model", [], watch="models", engine="flink")
