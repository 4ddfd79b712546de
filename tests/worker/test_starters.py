"""The projects that `akrunner init` makes, on the oldest TensorFlows that their pages name. (tests/e2e runs them on this one.)"""

from __future__ import annotations

from pathlib import Path

import pytest

import akrunner
from akrunner.launch.interpreters import Interpreter
from akrunner.starters import writing
from akrunner.starters.templates import TEMPLATES, contents

pytestmark = [pytest.mark.matrix, pytest.mark.slow]


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    writing.write(str(tmp_path / "p"), contents(TEMPLATES[request.param]))
    return tmp_path / "p"


@pytest.mark.parametrize(
    ("project", "metric", "most", "least"),
    [("classification", "test_accuracy", 1.0, 0.85), ("regression", "test_error", 90.0, 1.0)],
    indirect=["project"],
)
def test_what_trains_on_every_tensorflow(
    project: Path, metric: str, most: float, least: float, matrix_python: Interpreter, leaves_nothing: Path
) -> None:
    result = akrunner.train(project / "job.toml", python_env=matrix_python.path)
    assert least < result.stats.reports[-1][metric] <= most
    assert (project / "model.zip").is_file()


@pytest.mark.parametrize("project", ["streaming"], indirect=True)
def test_what_learns_from_a_stream_on_every_tensorflow(project: Path, matrix_python: Interpreter, leaves_nothing: Path) -> None:
    with akrunner.stream(project / "job.toml", python_env=matrix_python.path) as job:
        alarms = [row["id"] for batch in job for row in batch.to_pylist()]
    assert alarms and 3000 <= min(alarms) and max(alarms) < 3500
