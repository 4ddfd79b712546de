"""How a job has ended, for other programs: codes, objects, and the schema that the documentation shows."""

from __future__ import annotations

import dataclasses
import json
import math
import signal
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import akrunner
from akrunner import __main__ as program
from akrunner import outcomes
from akrunner.errors import TaskFailure
from akrunner.running.result import Result
from tests.schemas import checker
from tests.unit.engines.test_base import result as task
from tests.unit.engines.test_base import stats

SCHEMA = json.loads((Path(akrunner.__file__).parents[1] / "docs" / "result.schema.json").read_text())
validate = checker(SCHEMA)
FAILURE = TaskFailure("worker:1", "raised ValueError", "Traceback ...", "exit code 1", "a line", "/logs/worker-1.txt", 7)


def check(body: Any) -> None:
    """Check an object, and that the schema has each of its fields."""
    told = json.loads(json.dumps(outcomes.plain(body), allow_nan=False))
    validate(told)
    kind = SCHEMA["$defs"]["failed" if not told["ok"] else "submitted" if "job" in told else "result"]
    assert set(told) <= set(kind["properties"]), set(told) - set(kind["properties"])


def signalled(number: int) -> BaseException:
    error = KeyboardInterrupt() if number == signal.SIGINT else GeneratorExit()
    vars(error)["signal_number"] = number
    return error


def faulty() -> akrunner.JobError:
    error = akrunner.JobError("a task sent nonsense")
    error.fault = True
    return error


@pytest.mark.parametrize(
    ("error", "name", "code"),
    [
        (akrunner.JobTimeoutError("late"), "", 124),
        (akrunner.SourceError("no such file"), "", 2),
        (akrunner.ReadError("a bad row"), "", 3),
        (akrunner.DataError("too large", row=3, column="x"), "", 3),
        (akrunner.StatementError("no such table"), "", 4),
        (akrunner.JobCancelledError("stopped"), "", 143),
        (akrunner.ScriptFailedError("raised"), "", 1),
        (faulty(), "JobError", 70),
        (ZeroDivisionError("?"), "InternalError", 70),
        # before anything was started
        (MemoryError(), "ConfigError", 2),
        (KeyboardInterrupt(), "Interrupted", 130),
        (GeneratorExit(), "Terminated", 143),
        (signalled(signal.SIGHUP), "Terminated", 129),
        (signalled(signal.SIGINT), "Interrupted", 130),
        # the panic of a library in Rust
        (type("PanicException", (BaseException,), {})("?"), "InternalError", 70),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_the_end_and_the_object_of_an_error(error: BaseException, name: str, code: int) -> None:
    end = outcomes.end_of(error)
    assert (end.name, end.code) == (name or type(error).__name__, code) and end.message
    body = outcomes.failure(error)
    assert (body["ok"], body["error"], body["message"], body["exit_code"]) == (False, *end)
    check(body)


def test_a_signal_counts_for_more_than_what_it_made_of_a_job() -> None:
    assert outcomes.end_of(akrunner.JobError("a pipe broke"), signal.SIGQUIT) == ("Terminated", "terminated", 131)


def test_where_memory_ran_out_says_whose_fault_it_is() -> None:
    scope: Any = {"__name__": "akrunner.engines.feeder"}
    exec("def run():\n    raise MemoryError\n", scope)
    with pytest.raises(MemoryError) as raised:
        scope["run"]()
    assert outcomes.end_of(raised.value)[::2] == ("JobError", 1)


def test_a_failure_has_what_its_error_knows() -> None:
    error = akrunner.ScriptFailedError("[worker:1] raised", failure=FAILURE, others=[FAILURE], work_dir="/kept")
    error.warnings, error.run = ("it was slow",), "r7"
    error.add_note("warning: nobody was told")
    body = outcomes.failure(error)
    check(body)
    assert (body["failure"]["task"], body["log"], body["run"], body["work_dir"]) == (
        "worker:1",
        FAILURE.log_path,
        "r7",
        "/kept",
    )
    assert body["warnings"] == ["it was slow", "warning: nobody was told"]
    of_rows = akrunner.ReadError("broken")
    of_rows.broken = [("a.csv", "cut off")]
    check(outcomes.failure(of_rows))


def test_a_result_fits_the_schema() -> None:
    told = dataclasses.replace(stats({"task": "chief:0", "step": 1, "time_ns": 2, "loss": 0.5}), input_wait_seconds=math.nan)
    result = Result(None, "out.parquet", (task(False),), told, None, None, "r7")
    body = outcomes.success(result, result.output, result.run)
    assert body["stats"] == dataclasses.asdict(result.stats)
    check(body)
    assert outcomes.plain(body)["stats"]["input_wait_seconds"] is None
    check({"ok": True, "exit_code": 0, "job": "ab", "master": "h:1", "name": "akrunner s.py", "run": None})


@pytest.mark.parametrize("wrong", [{"exit_code": 5}, {"run": 7}, {"failure": {"task": "worker:0"}}, {"warnings": "none"}])
def test_an_object_that_does_not_fit_is_seen(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate({**outcomes.head("JobError", "it failed", 1), **wrong})


def test_secrets_and_what_json_does_not_know() -> None:
    told = outcomes.plain({"url": "postgresql://me:secret@h/db", "x": (math.inf, True, 3, Path("/p"))})
    assert told == {"url": "postgresql://me:***@h/db", "x": [None, True, 3, "/p"]}


def test_the_page_has_every_code() -> None:
    page = (Path(akrunner.__file__).parents[1] / "docs" / "operations.md").read_text()
    assert all(f"{code}" in page for code in SCHEMA["$defs"]["failed"]["properties"]["exit_code"]["enum"])


def test_what_ctrl_c_prints_before_the_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    monkeypatch.setattr("sys.argv", ["akrunner", "run", "s.py", "--json"])
    monkeypatch.setattr("os.write", lambda fd, text: written.append(text))
    monkeypatch.setattr("os._exit", lambda code: None)
    program._at_once(signal.SIGINT, None)
    monkeypatch.undo()
    check(json.loads(b"".join(written)))
