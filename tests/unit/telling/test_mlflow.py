"""A job as a run of MLflow: what its client is told, and when, with a client that notes it. The real server is in tests/e2e/test_mlflow.py."""

from __future__ import annotations

import importlib.machinery
import os
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.history.record import Record
from akrunner.telling import mlflow
from akrunner.telling.mlflow import AUTO, Files, Mlflow
from tests.conftest import wait_for

SUCCESS = {"ok": True, "exit_code": 0, "stats": {"rows_in": 150, "seconds": 1.5, "bound": "unknown"}}
FAILURE = {
    "ok": False, "exit_code": 1, "error": "ScriptFailedError", "message": "it raised", "failure": {"task": "chief:0", "traceback": "Traceback ..."},
}  # fmt: skip


class Refused(Exception):
    """An answer of the server. Args: status: its status."""

    def __init__(self, words: str, status: int = 400) -> None:
        super().__init__(words)
        self.answer = status

    def get_http_status_code(self) -> int:
        return self.answer


class Server:
    """What is there in place of MLflow's package. Attributes: calls: of the client; errors: what its next calls raise; hangs: lets a call wait."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.errors: list[Exception] = []
        self.hangs = threading.Event()
        self.hangs.set()

    def __getattr__(self, name: str) -> Any:
        def called(*args: Any, **given: Any) -> Any:
            assert self.hangs.wait(60)
            if self.errors:
                raise self.errors.pop(0)
            self.calls.append((name, (*args, *given.values())))
            return None if name == "get_experiment_by_name" else types.SimpleNamespace(info=types.SimpleNamespace(run_id="run"))

        return called

    def of(self, name: str) -> list[Any]:
        return [args for called, args in self.calls if called == name]

    def batches(self) -> list[list[Any]]:
        """What was logged as params, metrics and tags, in order."""
        return [list(one) for args in self.of("log_batch") for one in args[1:]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    entities: Any = types.ModuleType("mlflow.entities")
    entities.Metric = entities.Param = entities.RunTag = lambda *values: values
    package: Any = types.ModuleType("mlflow")
    package.__spec__ = importlib.machinery.ModuleSpec("mlflow", None)
    package.entities, package.active_run = entities, lambda: None
    package.MlflowClient = lambda tracking_uri: (made.calls.append(("client", tracking_uri)), made)[1]
    monkeypatch.setitem(sys.modules, "mlflow", package)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    monkeypatch.setattr(mlflow, "_EVERY", 0.01)
    monkeypatch.setattr(mlflow, "_AGAIN", 0.01)
    for name in ("MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"):
        monkeypatch.delenv(name, raising=False)
    return made


def record(**fields: Any) -> Record:
    given = {
        "tasks": ["chief:0", "worker:0"],
        "host": {"machine": "m"},
        "versions": {"akrunner": "0.1.0", "host python": "3.12"},
        **fields,
    }
    return Record(1, "r7", "train", "running", 0.0, script="/a/train.py", **given)


def begun(to: str = "http://h:5000", experiment: str | None = None, **params: Any) -> Mlflow:
    made = Mlflow(to, experiment)
    made.begin(
        record(arguments={"num_workers": 2, "user_params": {"x": 1}, "env": {"A": "b"}, "source": "a.csv"}), "r7", params
    )
    return made


def report(task: str, step: int | None, **metrics: float) -> dict[str, Any]:
    return {"task": task, "step": step, "time_ns": 5_000_000, **metrics}


def test_a_run_from_its_beginning_to_its_end(server: Server, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("")
    told = begun(experiment="iris", lr=0.1)
    for one in (report("chief:0", None, loss=0.5), report("chief:0", None, loss=0.25), report("worker:0", 7, **{"top:5": 1.0})):
        told.report(one)
    assert told.ended(SUCCESS, [Files(str(tmp_path), "model"), Files(str(tmp_path / "page.html"), "")]) == []
    assert server.calls[0] == ("client", "http://h:5000") and server.of("create_experiment") == [("iris",)]
    [(_, start, tags, name)] = server.of("create_run")
    assert (name, start) == ("train r7", 0) and tags["akrunner.run"] == "r7" and tags["akrunner.version.host_python"] == "3.12"
    assert tags["mlflow.source.name"] == "train.py" and tags["akrunner.machine"] == "m"
    params, *metrics, numbers, end = server.batches()
    assert dict(params) == {"lr": "0.1", "akrunner.num_workers": "2", "akrunner.source": "a.csv"}
    assert [one for part in metrics for one in part] == [
        ("loss", 0.5, 5, 0),
        ("loss", 0.25, 5, 1),
        ("worker-0/top_5", 1.0, 5, 7),
    ]
    assert {name: value for name, value, *_ in numbers} == {"akrunner/rows_in": 150.0, "akrunner/seconds": 1.5}
    assert dict(end) == {"akrunner.exit_code": "0"} and server.of("set_terminated") == [("run", "FINISHED")]
    assert server.of("log_artifacts") == [("run", str(tmp_path), "model")]
    assert server.of("log_artifact") == [("run", str(tmp_path / "page.html"), None)]
    # a job has one end
    assert told.ended(SUCCESS, []) == []


@pytest.mark.parametrize(
    ("code", "status"), [(1, "FAILED"), (124, "FAILED"), (129, "KILLED"), (130, "KILLED"), (143, "KILLED")]
)
def test_how_a_job_ends_that_has_not_succeeded(server: Server, code: int, status: str) -> None:
    assert begun().ended({**FAILURE, "exit_code": code, "message": "https://me:hidden@h/ is away"}, []) == []
    assert server.of("set_terminated") == [("run", status)] and server.of("log_text") == [
        ("run", "Traceback ...", "failure.txt")
    ]
    tags = dict(server.batches()[-1])
    assert tags["akrunner.error"] == "ScriptFailedError" and "hidden" not in tags["akrunner.message"]


def test_many_metrics_go_in_batches(server: Server) -> None:
    told = begun()
    server.hangs.clear()
    for step in range(1500):
        told.report(report("chief:0", step, a=0.0, b=1.0))
    server.hangs.set()
    assert told.ended(SUCCESS, []) == []
    metrics = [part for part in server.batches() if part and part[0][0] == "a"]
    assert sum(map(len, metrics)) == 3000 and max(map(len, metrics)) == 1000


def test_a_server_that_is_away_for_a_while_gets_everything(server: Server) -> None:
    server.errors += [OSError("Connection refused"), Refused("try later", 503)]
    told = begun()
    told.report(report("chief:0", 1, loss=0.5))
    wait_for(lambda: server.of("create_run"))
    server.errors.append(Refused("too many", 429))
    told.report(report("chief:0", 2, loss=0.25))
    wait_for(lambda: not server.errors)
    assert told.ended(SUCCESS, []) == []
    assert [one[3] for part in server.batches() for one in part if one[0] == "loss"] == [1, 2]


@pytest.mark.parametrize("fault", [TypeError("a float is required"), FileNotFoundError(2, "No such file", "/x")])
def test_a_fault_of_the_client_does_not_keep_the_run_from_its_end(server: Server, fault: Exception) -> None:
    told = begun()
    wait_for(lambda: server.of("log_batch"))
    server.errors.append(fault)
    told.report(report("chief:0", 1, loss=0.5))
    [warning] = told.ended(SUCCESS, [])
    assert warning.startswith("mlflow: metrics: ") and server.of("set_terminated") == [("run", "FINISHED")]


def test_a_report_that_is_no_metric_does_not_keep_the_run_from_its_end(server: Server) -> None:
    told = begun()
    told.report({**report("chief:0", 1, loss=0.5), "time_ns": None})
    [warning] = told.ended(SUCCESS, [])
    assert warning.startswith("mlflow: metrics: ") and server.of("set_terminated") == [("run", "FINISHED")]


def test_what_is_refused_is_a_warning_and_the_rest_goes_on(server: Server) -> None:
    told = begun()
    wait_for(lambda: server.of("log_batch"))
    server.errors.append(Refused("INVALID_PARAMETER_VALUE: no such metric"))
    told.report(report("chief:0", 1, loss=0.5))
    [warning] = told.ended(SUCCESS, [])
    assert warning == "mlflow: metrics: INVALID_PARAMETER_VALUE: no such metric (mlflow=, --mlflow)"
    assert server.of("set_terminated") == [("run", "FINISHED")]


def test_a_server_that_never_answers(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.errors += [OSError("Connection refused")] * 1000
    [warning] = begun().ended(SUCCESS, [])
    assert warning.startswith("mlflow: not all of the run was logged: Connection refused")
    monkeypatch.setattr(mlflow, "_UNANSWERED_SECONDS", 0.2)
    server.hangs.clear()
    [warning] = begun().ended(SUCCESS, [])
    assert warning == "mlflow: no server has answered within 0 s (mlflow=, --mlflow)"
    server.hangs.set()


def test_a_server_that_no_longer_answers(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlflow, "_HASTY_SECONDS", 0.2)
    told = begun()
    wait_for(lambda: server.of("log_batch"))
    server.hangs.clear()
    [warning] = told.ended({**FAILURE, "exit_code": 130}, [])
    assert warning == "mlflow: the server has not taken all of the run within 0 s (mlflow=, --mlflow)"
    server.hangs.set()


def test_reports_that_are_too_many_are_counted(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlflow, "_MOST_REPORTS", 2)
    server.hangs.clear()
    told = begun()
    for step in range(5):
        told.report(report("chief:0", step, loss=0.5))
    server.hangs.set()
    assert told.ended(SUCCESS, []) == ["mlflow: 3 reports were left out, as too many waited for the server (mlflow=, --mlflow)"]


def test_where_a_run_is(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "4")
    begun(AUTO).ended(SUCCESS, [])
    active = types.SimpleNamespace(info=types.SimpleNamespace(run_id="outer", experiment_id="5"))
    monkeypatch.setattr(sys.modules["mlflow"], "active_run", lambda: active)
    begun(AUTO).ended(SUCCESS, [])
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "iris")
    begun().ended(SUCCESS, [])
    (plain, *_), (inside, _, tags, _), _ = server.of("create_run")
    assert (plain, inside, tags["mlflow.parentRunId"]) == ("4", "5", "outer")
    assert [one for name, one in server.calls if name == "client"] == [None, None, "http://h:5000"]
    assert "mlflow.parentRunId" not in server.of("create_run")[2][2] and server.of("get_experiment_by_name") == [("iris",)]


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("model.units", "model.units"), ("top 5/acc", "top 5/acc"), ("a:b", "a_b"), ("/a", "_a"), ("../a", "___a"), ("a//b", "a__b"),
        ("", "_"), (".", "_"), ("größe", "größe"), ("x" * 300, "x" * 250),
    ],
)  # fmt: skip
def test_names_that_mlflow_takes(name: str, named: str) -> None:
    assert mlflow._named(name) == named


def test_wrong_wishes(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for to, experiment, words in (
        (" ", None, "^mlflow is empty"),
        (5, None, "^mlflow must be text"),
        (AUTO, "", "^mlflow_experiment is empty"),
    ):
        with pytest.raises(ConfigError, match=words):
            Mlflow(to, experiment)  # type: ignore[arg-type]
    monkeypatch.delitem(sys.modules, "mlflow")
    monkeypatch.setattr(mlflow.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        ConfigError, match=r"^mlflow: it needs MLflow's library, which is missing: pip install 'akrunner\[mlflow\]'"
    ):
        Mlflow(AUTO, None)


@pytest.mark.parametrize("before", [None, "false"])
def test_mlflow_prints_nothing_and_its_variable_stays(before: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(mlflow._SILENT, raising=False)
    if before is not None:
        monkeypatch.setenv(mlflow._SILENT, before)
    seen: list[str | None] = []
    client = types.SimpleNamespace(set_terminated=lambda run, status: seen.append(os.environ.get(mlflow._SILENT)))
    mlflow._terminate(client, "run", "FINISHED")
    assert seen == ["true"] and os.environ.get(mlflow._SILENT) == before
