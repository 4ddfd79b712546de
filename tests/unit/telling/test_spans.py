"""A job as spans, by OpenTelemetry's own library."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from akrunner.engines.base import Progress
from akrunner.engines.supervision.states import RESTARTING, TaskState
from akrunner.telling.spans import Spans

STARTING, RUNNING = TaskState.STARTING.value, TaskState.RUNNING.value
DOCS = Path(__file__).parents[3] / "docs" / "operations.md"


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The spans that have ended."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", lambda name: provider.get_tracer(name))
    yield lambda: exporter.get_finished_spans()
    provider.shutdown()


def progress(state: str, attempt: int = 0) -> Progress:
    return Progress(1.0, 0, 0, 0, 0, {"chief:0": state}, {}, ("slow",), attempt=attempt)


def test_a_job_is_a_span_with_what_its_tasks_do(ended: Any) -> None:
    spans = Spans("run", "train.py")
    spans.begun("r7")
    for one in (progress(STARTING), progress(RUNNING), progress(RUNNING), progress(RUNNING, 1)):
        spans.progress(one)
    spans.log("chief:0", "a line")
    spans.ended({"ok": True, "exit_code": 0, "stats": dict.fromkeys(("rows_in", "rows_out", "bytes_in", "bytes_out"), 5)})
    *tasks, job = ended()
    assert [(one.name, one.attributes["akrunner.attempt"]) for one in tasks] == [
        ("starting", 0),
        ("running", 0),
        ("running", 1),
    ]
    assert all(one.parent.span_id == job.context.span_id and one.attributes["akrunner.task"] == "chief:0" for one in tasks)
    assert (job.name, job.attributes["akrunner.run"], job.attributes["akrunner.rows_in"]) == ("akrunner run", "r7", 5)
    assert [(one.name, one.attributes["message"]) for one in job.events] == [("warning", "slow")] and job.status.is_unset


def test_the_docs_have_the_names_of_all_spans() -> None:
    told = DOCS.read_text().partition("## Spans")[2].partition("\n## ")[0]
    assert [state for state in (*(state.value for state in TaskState), RESTARTING) if f"`{state}`" not in told] == []


def test_a_failure_is_an_error_of_the_span(ended: Any) -> None:
    failure = {"task": "chief:0", "traceback": "Traceback ..."}
    Spans("run", "train.py").ended(
        {"ok": False, "exit_code": 1, "error": "ScriptFailedError", "message": "it raised", "failure": failure}
    )
    Spans("run", "train.py").ended({"ok": False, "exit_code": 130, "error": "Interrupted", "message": "", "failure": None})
    failed, stopped = ended()
    assert not failed.status.is_ok and failed.status.description == "ScriptFailedError: it raised"
    assert (
        failed.events[0].attributes["exception.stacktrace"] == "Traceback ..."
        and stopped.attributes["akrunner.exit_code"] == 130
    )


def test_only_where_the_program_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Spans.wanted()
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert not Spans.wanted()
