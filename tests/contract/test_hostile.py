"""Hostile objects, one after the other, as every parameter of everything that is public: whatever comes out is akrunner's own."""

from __future__ import annotations

import contextlib
import inspect
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import akrunner
from akrunner import alink, checkup, flink, warming
from akrunner.alink.params import WithParams
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.workdir import WorkDir
from tests.guards import one_guard
from tests.unit.test_signature import message, tensor

pytestmark = pytest.mark.slow

__all__ = ["one_guard"]

#: of a model of one input and one output
MODEL = message(
    (1, 1),
    (
        2,
        message(
            (1, message((4, "serve"))),
            (
                5,
                message((1, "serving_default"), (2, message((1, tensor("x", 1, -1)), (2, tensor("y", 1, -1)), (3, "predict")))),
            ),
        ),
    ),
)


class Stopped(akrunner.AkrunnerError):
    """In place of a start: what was given was good enough."""


def method(name: str) -> type:
    def no(self: Any, *args: Any) -> Any:
        raise RuntimeError(f"{name} of a hostile object")

    return type("Hostile" + name.strip("_"), (), {name: no})


def number_with(name: str, kind: type) -> Any:
    """A number that has the type a parameter asks for, and a method that raises."""

    def no(self: Any, *args: Any) -> Any:
        raise RuntimeError(f"{name} of a hostile number")

    return type(f"Hostile{kind.__name__}{name.strip('_')}", (kind,), {name: no})(1)


def broken() -> Iterator[Any]:
    yield {"a": 1}
    raise RuntimeError("a hostile generator")


METHODS = (
    "__str__",
    "__repr__",
    "__fspath__",
    "__iter__",
    "__len__",
    "__bool__",
    "__eq__",
    "__arrow_c_stream__",
    "__getattr__",
)
METHODS_OF_NUMBERS = ("__int__", "__index__", "__float__")
#: each is made anew: a generator is used up
HOSTILE: tuple[Callable[[], Any], ...] = (
    object, lambda: None, lambda: math.nan, lambda: -1, lambda: 2**70, lambda: b"bytes", lambda: "\0", lambda: lambda: None, lambda: "",
    lambda: {}, lambda: [], lambda: [None], lambda: {None: 1}, lambda: "\ud800", lambda: np.arange(3), lambda: True, lambda: int,
    lambda: 10**5000, lambda: [10**5000], lambda: {"a": 10**5000}, lambda: {10**5000: 1}, lambda: "x" * 10_000, lambda: pa.schema([]), broken, *(method(name) for name in METHODS),
    *(lambda name=name, kind=kind: number_with(name, kind) for name in METHODS_OF_NUMBERS for kind in (int, float)),
)  # fmt: skip


@pytest.fixture
def nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def stopped(*args: Any, **options: Any) -> Any:
        raise Stopped

    monkeypatch.setattr(WorkDir, "create", stopped)
    monkeypatch.setattr(FlinkEngine, "attach", stopped)
    monkeypatch.setattr(warming, "Pool", stopped)
    monkeypatch.setattr(checkup, "looked", stopped)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.py").write_text("def main(task_config):\n    pass\n")
    (tmp_path / "t.csv").write_text("x\n1\n")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "saved_model.pb").write_bytes(MODEL)
    return tmp_path


def tried(call: Callable[..., Any], given: dict[str, Any], name: str) -> list[str]:
    """Every hostile object as one parameter. Returns: what came out that is not akrunner's."""
    foreign = []
    for make in HOSTILE:
        value = make()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = call(**{**given, name: value})
                if isinstance(made, akrunner.StreamJob):
                    with made:
                        list(made)
        except akrunner.AkrunnerError as e:
            str(e)
        except Exception as e:
            foreign.append(f"{name}={type(value).__name__}: {type(e).__name__}: {e}")
    return foreign


def parameters(call: Callable[..., Any]) -> list[str]:
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [one.name for one in inspect.signature(call).parameters.values() if one.kind not in kinds and one.name != "self"]


SCRIPT = {"script": "s.py", "source": {"x": [1.0]}}
PREDICTS = {"model": "model", "source": {"x": [1.0]}}
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "run": (akrunner.run, SCRIPT),
    "train": (akrunner.train, SCRIPT),
    "stream": (akrunner.stream, SCRIPT),
    "plan": (akrunner.plan, SCRIPT),
    "predict": (akrunner.predict, PREDICTS),
    "plan_predict": (akrunner.plan_predict, PREDICTS),
    "predict_stream": (akrunner.predict_stream, PREDICTS),
    "LocalPredictor": (akrunner.LocalPredictor, {"model": "model"}),
    "pai": (akrunner.pai, {"command": "PAI -name tensorflow2 -Dscript=s.py;", "python_env": sys.executable}),
    "doctor": (akrunner.doctor, {}),
    "pack": (akrunner.pack, {"source": "t.csv", "output": "packed"}),
    "warm": (akrunner.warm, {}),
    "Model.from_saved_model": (akrunner.Model.from_saved_model, {}),
    "Model.from_table": (akrunner.Model.from_table, {}),
    "Schema.parse": (akrunner.Schema.parse, {"text": "a bigint"}),
    "Schema.from_arrow": (akrunner.Schema.from_arrow, {}),
    "FlinkEngine": (FlinkEngine, {}),
    "flink.run": (flink.run, {**SCRIPT, "output_schema": "a bigint"}),
    "flink.stream": (flink.stream, {**SCRIPT, "output_schema": "a bigint"}),
    "flink.predict": (flink.predict, PREDICTS),
    "alink.useLocalEnv": (alink.useLocalEnv, {"parallelism": 1}),
    "alink.useRemoteEnv": (alink.useRemoteEnv, {"host": "h", "port": 1, "parallelism": 1}),
    "alink.TableSourceBatchOp": (alink.TableSourceBatchOp, {"table": {"a": [1]}}),
    "alink.MemSourceBatchOp": (alink.MemSourceBatchOp, {"rows": [(1,)], "schemaStr": "a bigint"}),
}  # fmt: skip
WALK = [(name, parameter) for name, (call, _) in CALLS.items() for parameter in parameters(call)]


@pytest.mark.parametrize(("name", "parameter"), WALK, ids=lambda value: value)
def test_public_functions(name: str, parameter: str, nothing_starts: Path) -> None:
    call, given = CALLS[name]
    assert tried(call, given, parameter) == []


@pytest.mark.parametrize("name", ["run", "predict", "plan"])
def test_a_job_file_in_place_of_the_script(name: str, nothing_starts: Path) -> None:
    assert tried(CALLS[name][0], {}, "job") == [
        f"job=NoneType: CallError: akrunner.{name}: {'model' if name == 'predict' else 'script'}= is missing, or a job file in its place (job=)"
    ]


def test_every_public_name_is_walked() -> None:
    walked = {name.partition(".")[0] for name in CALLS}
    others = {"Checkup", "Packed", "Plan", "PredictPlan", "Result", "StreamJob", "TaskFailure", "Warm"}  # made by akrunner
    kinds = [name for name in akrunner.__all__ if not name.endswith("Error") and not inspect.ismodule(getattr(akrunner, name))]
    assert set(kinds) - others <= walked


OPERATORS = [
    kind for kind in (getattr(alink, name) for name in alink.__all__) if isinstance(kind, type) and issubclass(kind, WithParams) and kind.TAKES
]  # fmt: skip


@pytest.mark.parametrize("kind", OPERATORS, ids=lambda kind: kind.__name__)
def test_parameters_of_operators(kind: Any) -> None:
    for param in kind.TAKES:
        title = param.name[0].upper() + param.name[1:]

        def put(value: Any, title: str = title) -> None:
            operator = kind.__new__(kind)
            WithParams.__init__(operator)
            getattr(operator, "set" + title)(value)
            with contextlib.suppress(akrunner.AkrunnerError):
                operator._check_required()

        assert tried(put, {}, "value") == []


METHODS_OF_TABLES = (
    ("select", {}), ("where", {}), ("as_", {}), ("orderBy", {"fieldName": "a"}), ("groupBy", {"groupByPredicate": "a", "selectClause": "a"}),
    ("sample", {"ratio": 0.5}), ("firstN", {}), ("join", {"joinPredicate": "a.a = b.a"}), ("linkFrom", {}), ("fromTable", {}),
)  # fmt: skip


@pytest.mark.parametrize(("name", "given"), METHODS_OF_TABLES, ids=lambda value: value if isinstance(value, str) else "")
def test_methods_of_tables(name: str, given: dict[str, Any]) -> None:
    operator = alink.TableSourceBatchOp({"a": [1, 2]})
    method = getattr(operator, name)
    if name == "join":
        given = {"right": operator, **given}
    for parameter in parameters(method):

        def call(**arguments: Any) -> None:
            made = method(**arguments)
            if isinstance(made, alink.BatchOperator):
                made.getColNames()

        assert tried(call, given, parameter) == []
    alink.resetEnv()
