"""What a prediction is asked for, before anything is started."""

from __future__ import annotations

from typing import Any, Dict, Iterator

import pyarrow as pa
import pytest

from akrunner.api import engine_of
from akrunner.serving import job
from tests.unit.serving.test_plan import TWO


class _Opened:
    path = "model"


def names(*given: str) -> Iterator[str]:
    return iter(given)


def test_names_given_as_an_iterator_are_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "check_model", lambda model: None)
    monkeypatch.setattr(job, "open_model", lambda model: _Opened())
    monkeypatch.setattr(job, "signature_of", lambda *given: TWO)
    monkeypatch.setattr(job, "interpreter_for", lambda *given: "python")
    monkeypatch.setattr(job, "job_for", lambda *given, **more: None)
    values: Dict[str, Any] = dict(
        model="model", source=pa.table({"a": [1.0], "b": ["x"], "c": [1]}), selected_cols=names("a", "b"),
        input_signature_defs=names("a", "b"), output_signature_defs=names("y"), signature_def_key="serving_default",
        graph_def_tag="serve", output_schema=None, reserved_cols=names("c"), batch_size=1, num_workers=1, python_env=None,
        select=None, input_schema=None, input_format=None, env=None, timeout=None, start_timeout=1.0, engine=engine_of("local"),
    )  # fmt: skip
    plan = job.Prediction.prepare(**values).plan
    assert plan.reserved == ("c",) and [name for one in plan.inputs for name in one.columns] == ["a", "b"]
