"""The numbers of a job as OpenMetrics, read by the parser of Prometheus' own library."""

from __future__ import annotations

import os
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from akrunner.engines.base import Progress
from akrunner.errors import ConfigError
from akrunner.telling import metrics
from akrunner.telling.metrics import Metrics

HOST = "127.0.0.1"


def progress(rows: int, attempt: int = 0, state: str = "main", stalls: int = 0) -> Progress:
    return Progress(
        1.0,
        rows,
        rows * 10,
        rows // 2,
        rows,
        {"chief:0": state},
        {"chief:0": {'lo"ss\n': 0.5}},
        ("slow",),
        attempt=attempt,
        stalls=stalls,
    )


def read(text: str) -> dict[str, Any]:
    """Return the samples by name and labels but the name of the job."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            others = {key: value for key, value in sample.labels.items() if key != "name"}
            assert sample.labels["name"] == "nightly"
            found[" ".join([sample.name, *(f"{key}={value}" for key, value in sorted(others.items()))])] = sample.value
    return found


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_EVERY", 0.0)


def test_a_file_has_the_numbers_from_the_beginning_to_the_end(at_once: None, tmp_path: Path) -> None:
    file = tmp_path / "nightly.prom"
    told = Metrics("run", "train.py", str(file), None, HOST)
    first = read(file.read_text())
    assert first["akrunner_job_running"] == 1 and "akrunner_job_exit_code" not in first
    told.begun("r7")
    told.progress(progress(100))
    now = read(file.read_text())
    assert now["akrunner_job_info run=r7 script=train.py verb=run"] == 1
    assert now["akrunner_job_rows_total way=in"] == 100 and now["akrunner_job_bytes_total way=in"] == 1000
    assert now["akrunner_task_state state=main task=chief:0"] == 1
    assert now['akrunner_task_metric metric=lo"ss\n task=chief:0'] == 0.5 and now["akrunner_job_warnings_total"] == 1
    told.ended({"ok": False, "exit_code": 124})
    end = read(file.read_text())
    assert end["akrunner_job_running"] == 0 and end["akrunner_job_exit_code"] == 124
    assert "akrunner_job_last_success_timestamp_seconds" not in end and not [name for name in end if "_state" in name]
    assert os.listdir(tmp_path) == ["nightly.prom"] and file.stat().st_mode & 0o044


def test_counters_go_on_when_the_tasks_are_started_again(at_once: None, tmp_path: Path) -> None:
    file = tmp_path / "nightly.prom"
    told = Metrics("run", "train.py", str(file), None, HOST)
    # between two attempts there are no rows
    for one in (progress(100, stalls=1), progress(0, state="waiting"), progress(30, attempt=1), progress(70, attempt=2)):
        told.progress(one)
    now = read(file.read_text())
    assert now["akrunner_job_rows_total way=in"] == 200
    assert now["akrunner_job_restarts_total"] == 2 and now["akrunner_job_stalls_total"] == 1


def test_the_last_success_stays_when_the_next_job_begins(at_once: None, tmp_path: Path) -> None:
    file, name = tmp_path / "nightly.prom", "akrunner_job_last_success_timestamp_seconds"
    Metrics("run", "train.py", str(file), None, HOST).ended({"ok": True, "exit_code": 0, "stats": {"rows_in": 9}})
    done = read(file.read_text())
    assert done["akrunner_job_rows_total way=in"] == 9
    Metrics("run", "train.py", str(file), None, HOST).ended({"ok": False, "exit_code": 1})
    assert read(file.read_text())[name] == done[name] > 1e9


def test_a_file_that_can_no_longer_be_written_is_a_warning(at_once: None, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    told = Metrics("run", "train.py", str(folder / "nightly.prom"), None, HOST)
    (folder / "nightly.prom").unlink()
    folder.rmdir()
    told.progress(progress(1))
    told.ended({"ok": False, "exit_code": 1})
    [warning] = told.warnings
    assert warning.startswith(f"metrics_file: {folder}/nightly.prom is not up to date: ") and warning.endswith(
        "--metrics-file)"
    )


def test_a_file_of_something_else_is_not_replaced_and_the_port_is_given_back(port: int, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("def main(config): ...\n")
    os.mkfifo(tmp_path / "fifo")
    for path, why in (
        (script, "has something else than metrics"),
        (tmp_path, "is no file"),
        (tmp_path / "fifo", "is no file"),
        (tmp_path / "no" / "a.prom", "cannot write"),
    ):
        with pytest.raises(ConfigError, match=f"^metrics_file: .*{why}"):
            Metrics("run", "train.py", str(path), port, HOST)
    assert script.read_text() == "def main(config): ...\n"


@pytest.fixture
def port() -> Iterator[int]:
    with socket.socket() as held:
        held.bind((HOST, 0))
        number = held.getsockname()[1]
    yield number
    # it is given back
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((HOST, number))


def test_a_port_serves_them_while_the_job_runs(port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", HOST)
    told = Metrics("run", "/jobs/nightly.py", None, port, HOST)
    told.progress(progress(100))
    asked = urllib.request.Request(
        f"http://{HOST}:{port}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    )
    with urllib.request.urlopen(asked, timeout=10) as answer:
        assert read(answer.read().decode())["akrunner_job_rows_total way=in"] == 100
    # the file of the job that runs is not touched
    file = tmp_path / "nightly.prom"
    with pytest.raises(ConfigError, match=f"^metrics_port={port}: it cannot be listened at on {HOST} .*in use"):
        Metrics("run", "train.py", str(file), port, HOST)
    assert not file.exists()
    told.ended({"ok": False, "exit_code": 1})
    told.close()


@pytest.mark.parametrize(
    ("number", "host", "why"),
    [(0, HOST, "metrics_port"), (70000, HOST, "metrics_port"), (9464, "no such host", "metrics_host")],
)
def test_a_port_that_is_none_is_refused(number: int, host: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"^{why}"):
        Metrics("run", "train.py", None, number, host)
