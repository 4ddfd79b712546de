"""Who is told of a job, in which order, and that it ends as it would have ended."""

from __future__ import annotations

import os
import types
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.engines.base import Outcome, Progress, ReportObserver
from akrunner.errors import ConfigError, JobCancelledError, ScriptFailedError, SourceError, TaskFailure
from akrunner.telling import listeners
from akrunner.telling.listeners import Telling, name_of
from tests.unit.engines.test_base import stats
from tests.unit.notebook.kernel import Shown, kernel

__all__ = ["kernel"]


def asked(**given: Any) -> Any:
    nobody = dict.fromkeys(("notify", "metrics_file", "metrics_port", "mlflow", "mlflow_experiment"))
    return types.SimpleNamespace(**{**nobody, "metrics_host": "127.0.0.1", "progress": "auto", **given})


def run(name: str | None) -> Any:
    return types.SimpleNamespace(id=name, path=None, about=None)


@pytest.fixture(autouse=True)
def no_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest has handlers of its own."""
    monkeypatch.setattr(listeners.Logs, "wanted", lambda: False)
    monkeypatch.setattr(listeners.Spans, "wanted", lambda: False)


def test_nobody_asked() -> None:
    observer: Any = object()
    assert Telling("run", "s.py", asked(), None).observer is None
    assert Telling("run", "s.py", asked(), observer).observer is observer


def test_a_success_is_told_once() -> None:
    seen: list[Any] = []
    outcome = Outcome(
        (),
        stats(
            {"task": "chief:0", "step": 1, "time_ns": 5, "loss": 0.5},
            {"task": "chief:0", "step": 2, "time_ns": 6, "loss": 0.25},
        ),
        None,
    )
    with pytest.raises(ValueError), Telling("run", "/a/s.py", asked(notify=seen.append), None) as told:
        told.begun(run("r7"))
        assert told.succeed(outcome, "out.csv") is outcome
        raise ValueError("of the caller")
    [body] = seen
    assert (body["ok"], body["output"], body["run"]) == (True, "out.csv", "r7")
    assert body["metrics"] == {"chief:0": {"step": 2, "loss": 0.25}} and body["stats"]["reports"] == []
    about = body["about"]
    assert (about["verb"], about["script"]) == ("run", "s.py") and about["began"] <= about["ended"]
    assert len(outcome.stats.reports) == 2 and outcome.stats.warnings == []


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (SourceError("there is no such file"), 2, "there is no such file"),
        (ScriptFailedError("it raised"), 1, "it raised"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (JobCancelledError("the job was stopped by its caller"), 143, "the job was stopped by its caller"),
    ],
)
def test_a_failure_is_told_and_stays_what_it_is(error: BaseException, code: int, message: str) -> None:
    seen: list[Any] = []
    with pytest.raises(type(error)) as raised, Telling("run", "s.py", asked(notify=seen.append), None):
        raise error
    assert raised.value is error and not hasattr(error, "__notes__")
    [body] = seen
    assert (body["ok"], body["exit_code"], body["message"]) == (False, code, message)


def test_what_cannot_be_told_is_a_warning(tmp_path: Path) -> None:
    outcome = Outcome((), stats(), None)
    with Telling("run", "s.py", asked(notify=lambda body: 1 / 0), None) as told:
        told.succeed(outcome)
    assert outcome.stats.warnings == ["notify: the function raised ZeroDivisionError: division by zero (notify=, --notify)"]
    with pytest.raises(SourceError) as raised, Telling("run", "s.py", asked(notify=lambda body: 1 / 0), None):
        raise SourceError("there is no such file")
    assert raised.value.__notes__ == [f"warning: {outcome.stats.warnings[0]}"]


def test_a_stream_ends_in_its_thread() -> None:
    seen: list[Any] = []
    outcome = Outcome((), stats(), None)
    with Telling("stream", "s.py", asked(notify=seen.append), None) as told:
        told.begun(run(None))
    assert seen == [] and told.to_its_end(lambda: outcome) is outcome
    failed = Telling("stream", "s.py", asked(notify=seen.append), None)
    with pytest.raises(ZeroDivisionError):
        failed.to_its_end(lambda: 1 / 0)
    assert [body["ok"] for body in seen] == [True, False] and seen[1]["exit_code"] == 70


def test_all_are_told_how_it_gets_on(tmp_path: Path) -> None:
    seen: list[Any] = []
    observer: Any = types.SimpleNamespace(progress=seen.append, log=lambda task, line: seen.append(line))
    with pytest.raises(ScriptFailedError), Telling("run", "s.py", asked(metrics_file=tmp_path / "a.prom"), observer) as told:
        told.begun(run("r7"))
        assert told.observer is not None
        now = Progress(1.0, 5, 50, 0, 0, {}, {})
        told.observer.progress(now)
        told.observer.log("chief:0", "a line")
        raise ScriptFailedError("it raised")
    assert seen == [now, "a line"]
    text = (tmp_path / "a.prom").read_text()
    assert 'akrunner_job_rows_total{name="a",way="in"} 5.0' in text and 'akrunner_job_exit_code{name="a"} 1.0' in text


class Heard:
    """A listener that keeps what it is told, and then raises `raises`."""

    what = "records"
    told: list[Any] = []
    raises: Exception | None = None

    def __init__(self, *of: str) -> None:
        type(self).told = []

    @staticmethod
    def wanted() -> bool:
        return True

    def _hear(self, what: Any) -> None:
        self.told.append(what)
        if self.raises is not None:
            raise self.raises

    begun = progress = ended = _hear

    def log(self, task: str, line: str) -> None:
        self._hear(line)


def test_no_listener_fails_a_job(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(listeners, "Logs", Heard)
    monkeypatch.setattr(Heard, "raises", RuntimeError("the handler is broken"))
    seen: list[Any] = []
    outcome = Outcome((), stats(), None)
    with Telling("run", "s.py", asked(notify=seen.append), None) as told:
        told.begun(run("r7"))
        assert told.observer is not None
        told.observer.progress(Progress(1.0, 5, 50, 0, 0, {}, {}))
        told.observer.log("chief:0", "a line")
        told.succeed(outcome)
    assert len(Heard.told) == 4 and seen[0]["ok"]
    why = "records do not have all of this job: RuntimeError: the handler is broken"
    assert outcome.stats.warnings == [why]
    # a warning of the end is in the log, too
    assert [(one.getMessage(), vars(one)["job"]) for one in caplog.records] == [(why, "r7")]


def test_who_listens_is_told_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "Logs", Heard)
    url = "postgresql://me:geheim@h/db"
    error = ScriptFailedError(f"cannot open {url}", failure=TaskFailure("chief:0", "raised", f"Traceback: {url}"))
    with pytest.raises(ScriptFailedError), Telling("run", f"{url}?sslkey=geheim", asked(), None) as told:
        assert told.observer is not None
        told.observer.progress(Progress(1.0, 0, 0, 0, 0, {}, {}, (f"slow: {url}",)))
        told.observer.progress(Progress(1.0, 0, 0, 0, 0, {}, {}, (f"slow: {url}", "again")))
        error.warnings = (f"slow: {url}",)
        raise error
    first, second, end = Heard.told
    hidden = "slow: postgresql://me:***@h/db"
    assert first.warnings == (hidden,) and second.warnings == (hidden, "again") and end["warnings"] == [hidden]
    assert end["failure"]["traceback"] == "Traceback: postgresql://me:***@h/db" and "geheim" not in str(end)


@pytest.mark.parametrize("wrong", [{"metrics_file": "/no/such/directory/a.prom"}, {"metrics_port": 70000}])
def test_what_cannot_be_opened_is_told_to_the_others(wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "Logs", Heard)
    seen: list[Any] = []
    with pytest.raises(ConfigError) as raised, Telling("run", "s.py", asked(notify=seen.append, **wrong), None):
        raise AssertionError("nothing begins")
    [name] = wrong
    assert str(raised.value).startswith(name) and [one["message"] for one in (*seen, *Heard.told)] == [str(raised.value)] * 2


def test_a_wrong_wish_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="^notify: "):
        akrunner.run("s.py", "t.csv", notify="hooks.example.com")
    with pytest.raises(ConfigError, match="^metrics_host= .* means nothing without metrics_port="):
        akrunner.run("s.py", "t.csv", metrics_host="0.0.0.0")


def test_what_people_call_it() -> None:
    assert [name_of(one) for one in ("/a/train.py", Path("model.zip"), "model/", name_of, stats(), "", "/a/no#1?.py")] == [
        "train.py", "model.zip", "model", "name_of", "Stats", "?", "no#1?.py",
    ]  # fmt: skip


def test_what_is_asked_for_by_name_is_shown_beside_an_observer(capsys: pytest.CaptureFixture[str]) -> None:
    class Quiet:
        def progress(self, progress: Progress) -> None: ...
        def log(self, task: str, line: str) -> None: ...

    with Telling("run", "/a/s.py", asked(progress="plain"), Quiet()) as told:
        told.begun(run("r7"))
        told.succeed(Outcome((), stats(), None), "out.csv")
    assert capsys.readouterr().err.startswith("akrunner: run s.py: done in ")
    with pytest.raises(ConfigError, match="progress='loud'"), Telling("run", "/a/s.py", asked(progress="loud"), None):
        pass


def test_in_a_notebook_a_job_without_an_observer_is_shown(kernel: Shown) -> None:
    with pytest.raises(KeyboardInterrupt) as raised, Telling("run", "/a/s.py", asked(), None) as told:
        told.begun(run("r7"))
        assert told.observer is not None
        told.observer.progress(Progress(1.0, 0, 0, 0, 0, {"chief:0": "running"}, {}))
        raise KeyboardInterrupt
    assert kernel.plain[-1].startswith("run s.py: stopped after")
    assert raised.value._render_traceback_() == [  # type: ignore[attr-defined]
        "KeyboardInterrupt: run s.py was stopped, and its processes have ended. It is kept as r7."
    ]
    observer: Any = object()
    assert Telling("run", "s.py", asked(), observer).observer is observer, "who has an observer shows what she wants"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://h/a/train.py?X-Amz-Signature=geheim", "train.py"),
        ("https://h/a/train.zip#sha256=geheim", "train.zip"),
        ("https://me:geheim@h", "me:***@h"),
        ("s3://bucket/model/?versionId=geheim", "model"),
    ],
)
def test_what_people_call_it_has_no_secret(url: str, name: str) -> None:
    assert name_of(url) == name


def test_mlflow_gets_every_report_and_the_files_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    class Noted:
        def __init__(self, *given: Any) -> None:
            calls.append(given)

        def begin(self, *given: Any) -> None:
            calls.append(given)

        def report(self, report: Any) -> None:
            calls.append(report)

        def ended(self, body: Any, files: Any) -> list[str]:
            calls.append((body["ok"], [(one.path, one.at) for one in files]))
            return ["mlflow: it is away"]

    monkeypatch.setattr(listeners, "Mlflow", Noted)
    (tmp_path / "logs").mkdir()
    (tmp_path / "old.html").write_text("of an earlier job")
    os.utime(tmp_path / "old.html", (0, 0))
    kept = types.SimpleNamespace(id="r7", path=str(tmp_path), about="about", hparams={"lr": 0.1})
    outcome = types.SimpleNamespace(stats=stats(), tasks=(), work_dir=None, model=types.SimpleNamespace(path=str(tmp_path)))
    with Telling("train", "s.py", asked(mlflow="auto", report=tmp_path / "old.html"), None) as told:
        told.begun(kept)  # type: ignore[arg-type]
        assert isinstance(told.observer, ReportObserver)
        told.observer.report({"loss": 0.5})
        told.succeed(outcome)
    logs = (str(tmp_path / "logs"), "logs")
    assert calls == [("auto", None), ("about", "r7", {"lr": 0.1}), {"loss": 0.5}, (True, [(str(tmp_path), "model"), logs])]
    assert outcome.stats.warnings == ["mlflow: it is away"]
