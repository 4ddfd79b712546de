"""A job that is kept as a run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.engines.base import Outcome, Stats
from akrunner.errors import ConfigError, JobError
from akrunner.history import record
from akrunner.history.keeping import VARIABLE, Keeping
from akrunner.history.record import Record
from akrunner.launch.interpreters import Interpreter
from akrunner.prepare.job import Prepared
from akrunner.reports import page
from akrunner.running.kept import begun, kept_job, kept_to_its_end, page_of
from akrunner.schema import Schema
from akrunner.spec import JobSpec, ScriptSpec

JOB = JobSpec(ScriptSpec("/me/t.py", "t.py"), Schema(()), "/envs/bin/python", notes=("first",))
ENGINE: Any = SimpleNamespace(name="local")
STATS = Stats(1.0, 0.5, 0.1, 0.2, 1, 2, 3, 4, 0.0, 0.0, 0.0, "unknown", (1,))


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_the_job_says_where_it_is_kept() -> None:
    table: Any = None
    run = Keeping("run", {}, None)
    prepared = begun(run, Prepared(JOB, table, Interpreter("/envs/bin/python", (3, 11, 7), "2.20.0", "")), ENGINE)
    assert prepared.job.kept == run.path and prepared.job.notes == ("first",)
    found = record.read(str(run.path))
    assert (found.script, found.engine, found.tasks) == ("/me/t.py", "local", ["chief:0"])
    assert found.versions["python"] == "3.11.7 (/envs/bin/python)" and found.versions["tensorflow"] == "2.20.0"


def test_a_warning_is_one_of_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    job = kept_job(Keeping("run", {}, None), JOB, "model", ENGINE, None)
    assert job.kept is None and job.notes[0] == "first" and job.notes[1].startswith("this run is not kept")


def test_a_stream_is_kept_to_its_end() -> None:
    run = Keeping("stream", {}, None)
    kept_job(run, JOB, "t.py", ENGINE, None)
    done = Outcome((), STATS, None)
    assert kept_to_its_end(run, lambda: done) is done and record.read(str(run.path)).state == record.SUCCEEDED
    run = Keeping("stream", {}, None)
    kept_job(run, JOB, "t.py", ENGINE, None)

    def fails() -> Outcome:
        raise JobError("no")

    with pytest.raises(JobError):
        kept_to_its_end(run, fails)
    assert record.read(str(run.path)).state == record.FAILED


def test_a_page_that_cannot_be_is_refused_before_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert page_of(None, False) is None and page_of(tmp_path / "r.html", None) is not None
    with pytest.raises(ConfigError, match="report: there is no directory"):
        page_of(tmp_path / "none" / "r.html", None)
    with pytest.raises(ConfigError, match="report must be a path, not 7"):
        page_of(7, None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="report: the page is made from what is kept of a run: leave keep_run=False"):
        page_of(tmp_path / "r.html", False)
    monkeypatch.setenv(VARIABLE, "0")
    with pytest.raises(ConfigError, match=f"{VARIABLE}=0"):
        page_of(tmp_path / "r.html", None)


def test_a_relative_path_is_that_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written: list[str] = []
    monkeypatch.setattr(page, "write", lambda record, folder, output: written.append(output))
    made = page_of("r.html", None)
    monkeypatch.chdir("/")
    assert made is not None
    made(Record(1, "r1", "run", "succeeded", 1.0), "/kept")
    assert written == [str(tmp_path / "r.html")]
