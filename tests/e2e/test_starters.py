"""The projects that `akrunner init` makes, run as they are made: what it says to type next, command by command."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from akrunner.starters.templates import TEMPLATES

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

#: template -> what its second command writes, or prints
SECOND = {
    "classification": r'"id","sepal_length","sepal_width","petal_length","petal_width","p","species"\n1,.*"setosa"\n2,.*"versicolor"\n3,.*"virginica"\n(.*\n){3}',
    "regression": r'"id","area","district","floor","age","balcony","rent"\n(.*\n){20}',
    "text": r'"id","text","p","topic"\n(.*"(billing|delivery|technical)"\n){20}',
    "images": r'"path","label","p"\n(".*\.png","(circle|square|triangle)",.*\n){9}',
    "ps": r'"user","film","stars"\n(\d+,\d+,[1-5].*\n){6}',
    "streaming": r'({"id":[345]\d+,"power":.*,"expected":.*}\n)+',
}


@pytest.fixture
def shell(leaves_nothing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for projects, in which a shell finds `akrunner` and `pytest`."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()
    # a warning of the project's own test is an error; its directories are no part of what is looked at
    of_pytest = f"pytest -q -W error -p no:cacheprovider --basetemp={tmp_path / 'pt'}"
    for name, words in (("akrunner", "akrunner"), ("pytest", of_pytest)):
        path = tmp_path / "bin" / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -m {words} "$@"\n')
        path.chmod(0o755)
    return tmp_path


def typed(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["bash", "-euc", command], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_project_runs_as_it_is_made(name: str, shell: Path) -> None:
    made = typed(f"akrunner init project --template {name}", shell)
    cd, *commands = re.findall(r"^  (.*)$", made.stdout.partition("Type next:\n")[2], re.MULTILINE)
    assert cd == "cd project" and tuple(commands) == TEMPLATES[name].commands
    project = shell / "project"
    first, second, third = commands
    typed(first, project)
    said = typed(second, project).stdout
    written = project / "predictions.csv"
    assert re.fullmatch(SECOND[name], written.read_text() if written.exists() else said), said
    # it asks itself how good the model is
    assert "1 passed" in typed(third, project).stdout
    made_by_jobs = {"model.zip", "predictions.csv", "__pycache__"}
    left = {path.name for path in project.iterdir()} - made_by_jobs
    shutil.rmtree(project)
    typed(f"akrunner init project --template {name} --json", shell)
    assert left == {path.name for path in project.iterdir()}
