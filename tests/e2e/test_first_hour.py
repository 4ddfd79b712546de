"""A newcomer's first hour, command by command: install, init, run, break the script, read the error, replay, fix, look back, report.

Nothing is asked of akrunner but what it says to type, and what docs/start.md says.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

# warm workers would be of another interpreter
pytestmark = [pytest.mark.tensorflow, pytest.mark.slow, pytest.mark.cold]

#: seconds of a command
PATIENCE = 300.0


class Newcomer:
    """Who has a new environment and an empty home, and types commands.

    Args: home: an empty directory.
    Attributes: here: the directory in which the next command is typed.
    """

    def __init__(self, home: Path) -> None:
        self.here = home
        self._environ = {
            "HOME": str(home),
            "PATH": f"{home / 'venv' / 'bin'}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TMPDIR": os.environ["TMPDIR"],
        }

    def types(self, line: str, code: int = 0) -> str:
        """Type a line. Returns: what is printed, on stdout and stderr."""
        done = subprocess.run(
            shlex.split(line),
            cwd=self.here, env=self._environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == code, f"{line}\n{done.stdout}"
        return done.stdout


@pytest.fixture
def she(leaves_nothing: Path, tmp_path: Path) -> Newcomer:
    """A newcomer with an environment in which there is what akrunner needs, and no akrunner."""
    home = tmp_path / "home"
    home.mkdir()
    # without a network: what an index would bring is that of the tests' own environment, which is looked at behind its own packages
    venv.create(home / "venv", symlinks=True)
    (site,) = home.glob("venv/lib/python*/site-packages")
    (site / "index.pth").write_text(sysconfig.get_path("purelib"))
    checkout = home / "checkout"
    shutil.copytree(ROOT / "akrunner", checkout / "akrunner", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    return Newcomer(home)


def test_the_first_hour(she: Newcomer) -> None:
    home = she.here
    she.types(
        f"{home}/venv/bin/python -m pip install --no-deps --no-build-isolation --no-index --quiet --disable-pip-version-check ./checkout"
    )
    made = she.types("akrunner init flowers --template classification")
    cd, train, *_ = re.findall(r"^  (.*)$", made.partition("Type next:\n")[2], re.MULTILINE)
    assert (cd, train) == ("cd flowers", "akrunner train job.toml")
    she.here = home / "flowers"
    script = she.here / "train.py"

    # it runs as it is made
    said = she.types(f"{train} --param epochs=2")
    assert "150 rows in" in said and "test_accuracy" in said and f"output: {she.here}/model.zip" in said
    assert "run: r1   (akrunner show r1)" in said
    good = (she.here / "model.zip").read_bytes()

    # a column is misspelt: the error has the line, the cause, and what to type next
    whole = script.read_text()
    script.write_text(whole.replace('label="species"', 'label="spezies"'))
    said = she.types(f"{train} --param epochs=2", code=1)
    assert "ScriptFailedError: [chief:0] raised" in said and "did you mean 'species'?" in said
    number = next(at for at, line in enumerate(script.read_text().splitlines(), 1) if "spezies" in line)
    assert f'File "{script}", line {number}, in rows' in said
    assert said.rstrip().endswith("run r2: akrunner show r2") and (she.here / "model.zip").read_bytes() == good
    [again] = re.findall(r"^to replay \[chief:0\] .*: (akrunner .*)$", said, re.MULTILINE)

    # as it says: first with its rows kept, then that task alone, in the foreground
    said = she.types(again, code=1)
    [replay] = re.findall(r"^to replay \[chief:0\] .*: (akrunner replay .*)$", said, re.MULTILINE)
    said = she.types(replay, code=1)
    assert "did you mean 'species'?" in said and f"line {number}, in rows" in said
    work_dir = Path(shlex.split(replay)[2])
    assert she.types(f"akrunner doctor {work_dir}", code=1).count("train.py")

    # it is mended
    script.write_text(whole)
    assert "test_accuracy" in she.types(f"{train} --param epochs=2")
    listed = she.types("akrunner runs")
    states = re.findall(r"^(r\d)\s+(\w+)", listed, re.MULTILINE)
    assert states == [("r4", "succeeded"), ("r3", "failed"), ("r2", "failed"), ("r1", "succeeded")], listed
    assert "test_accuracy" in she.types("akrunner show last") and "spezies" in she.types("akrunner show r2")
    said = she.types("akrunner report last -o report.html")
    assert "report.html" in said and "r4 succeeded" in (she.here / "report.html").read_text()

    # what is left is what she has made, and the directory that --debug has kept for her
    shutil.rmtree(work_dir)
    assert {path.name for path in she.here.iterdir()} - {"__pycache__"} == {
        "README.md", "iris.csv", "job.toml", "model.zip", "new.csv", "report.html", "test_train.py", "train.py",
    }  # fmt: skip
