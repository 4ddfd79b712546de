"""The projects that `akrunner init` makes, run as they are made: what it says to type next, command by command."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from akrunner.starters.templates import TEMPLATES
from tests import hosts

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


class Shell:
    """A directory in which commands are typed: `akrunner`, `pytest`, and what else a shell understands.

    Their environment is the test's, so that jobs take its warm workers. (tests/e2e/test_first_hour.py types them in a new one.)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # a warning of the project's own test is an error; its directories are no part of what is looked at; it wants no plugin
        of_pytest = [
            "pytest",
            "-q",
            "-W",
            "error",
            "-p",
            "no:cacheprovider",
            "--disable-plugin-autoload",
            f"--basetemp={folder / 'pt'}",
        ]
        self._words = {"akrunner": [sys.executable, "-m", "akrunner"], "pytest": [sys.executable, "-m", *of_pytest]}
        self._functions = "".join(f'{name}() {{ {shlex.join(words)} "$@"; }}\n' for name, words in self._words.items())

    def types(self, command: str, where: str = ".") -> str:
        """Returns: what is printed, on stdout."""
        name, *words = shlex.split(command)
        options: dict[str, Any] = dict(cwd=self.folder / where, capture_output=True, text=True, timeout=300)
        if "|" in words:
            done = subprocess.run(["bash", "-euc", self._functions + command], **options)
        else:
            done = hosts.run([*self._words[name], *words], stdin=hosts.DEVNULL, **options)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return str(done.stdout)


@pytest.fixture
def shell(leaves_nothing: Path, tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_project_runs_as_it_is_made(name: str, shell: Shell) -> None:
    made = shell.types(f"akrunner init project --template {name}")
    cd, *commands = re.findall(r"^  (.*)$", made.partition("Type next:\n")[2], re.MULTILINE)
    assert cd == "cd project" and tuple(commands) == TEMPLATES[name].commands
    project = shell.folder / "project"
    first, second, third = commands
    shell.types(first, "project")
    said = shell.types(second, "project")
    written = project / "predictions.csv"
    assert re.fullmatch(SECOND[name], written.read_text() if written.exists() else said), said
    # it asks itself how good the model is
    assert "1 passed" in shell.types(third, "project")
    made_by_jobs = {"model.zip", "predictions.csv", "__pycache__"}
    left = {path.name for path in project.iterdir()} - made_by_jobs
    shutil.rmtree(project)
    shell.types(f"akrunner init project --template {name} --json")
    assert left == {path.name for path in project.iterdir()}
