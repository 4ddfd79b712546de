"""Environments that are named, packed, or laid over: real interpreters, real pip."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.launch import environments, interpreters
from tests import hosts
from tests.conftest import Script

pytestmark = pytest.mark.slow

SAYS = "import sys\ndef main(c):\n    print(sys.prefix)\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own; no environment of the machine's has a part in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "no-pyenv"))
    # the shims of the machine's pyenv would look there in vain, each with several processes of bash
    folders = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("PATH", os.pathsep.join(folder for folder in folders if Path(folder).name != "shims"))
    for name in ("TF115_PYTHON_ENV_PATH", "TF231_PYTHON_ENV_PATH", "AKRUNNER_ENV_PATH"):
        monkeypatch.delenv(name, raising=False)
    interpreters._told.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A virtual environment with something that says it is TensorFlow 1.15.5."""
    folder = tmp_path / "venv"
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "tensorflow.py").write_text("")
    info = site / "tensorflow-1.15.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflow\nVersion: 1.15.5\n")
    return folder


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return hosts.run([sys.executable, "-m", "akrunner", "env", *arguments], capture_output=True, text=True, timeout=120)


def test_a_name_that_stands_for_nothing() -> None:
    with pytest.raises(
        akrunner.PythonEnvError, match=r"TensorFlow 1\.15\.\* was found; create one with `akrunner env create tf1.15`"
    ):
        interpreters.resolve("tf1.15")
    with pytest.raises(akrunner.PythonEnvError, match=r"no interpreter called 'tf9'.*a name: tf1.15, tf2.3, tf2"):
        interpreters.resolve("tf9")


@pytest.mark.parametrize("variable", ["TF115_PYTHON_ENV_PATH", "AKRUNNER_ENV_PATH"])
def test_a_name_found_by_a_variable(stand_in: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, str(stand_in))
    found = interpreters.resolve("tf1.15")
    assert found.path == str(stand_in / "bin" / "python") and found.tensorflow == "1.15.5"
    listed = json.loads(command("list", "--json").stdout)["interpreters"]
    assert {"tf1.15"} == {name for row in listed for name in row["names"] if row["path"] == found.path}
    table = command("list").stdout
    assert "tf1.15" in table and "1.15.5" in table and str(stand_in) in table


def test_alinks_variable_wins_over_what_was_made(stand_in: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Path(environments.created("tf1.15"))
    made.parent.mkdir(parents=True, exist_ok=True)
    made.symlink_to(stand_in)
    assert interpreters.resolve("tf1.15").path == str(made / "bin" / "python")
    monkeypatch.setenv("TF115_PYTHON_ENV_PATH", str(stand_in))
    assert interpreters.resolve("tf1.15").path == str(stand_in / "bin" / "python")
    monkeypatch.setenv("TF115_PYTHON_ENV_PATH", str(stand_in / "none"))
    with pytest.raises(akrunner.PythonEnvError, match=f"TF115_PYTHON_ENV_PATH={stand_in}/none: there is no such directory"):
        interpreters.resolve("tf1.15")
    assert "1.15.5" not in command("list").stdout


def test_probes_are_remembered_until_something_changes(stand_in: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = str(stand_in / "bin" / "python")
    assert interpreters.probe(python).tensorflow == "1.15.5"
    runs: list[Any] = []
    real = interpreters.ask
    monkeypatch.setattr(interpreters, "ask", lambda *a, **k: (runs.append(a), real(*a, **k))[1])
    interpreters._told.cache_clear()
    assert interpreters.probe(python).tensorflow == "1.15.5" and not runs
    (site,) = stand_in.glob("lib/python*/site-packages")
    (site / "tensorflow-1.15.5.dist-info").rename(site / "tensorflow-2.3.4.dist-info")
    (site / "tensorflow-2.3.4.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflow\nVersion: 2.3.4\n")
    interpreters._told.cache_clear()
    assert interpreters.probe(python).tensorflow == "2.3.4" and len(runs) == 1
    assert oct(os.stat(cache / "akrunner").st_mode & 0o777) == "0o700"


@pytest.mark.parametrize("form", ["tar.gz", "zip", "url"])
def test_a_packed_environment(
    stand_in: Path, tmp_path: Path, leaves_nothing: Path, script: Script, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unpacked once into the cache, mended by its conda-unpack, and run."""
    (stand_in / "bin" / "conda-unpack").write_text("import sys, pathlib; pathlib.Path(sys.prefix, 'mended').write_text('x')")
    packed = tmp_path / ("env.zip" if form == "zip" else "env.tar.gz")
    if form == "zip":
        with zipfile.ZipFile(packed, "w") as archive:
            for path in sorted(stand_in.rglob("*")):
                info = zipfile.ZipInfo(
                    str(path.relative_to(stand_in)) + ("/" if path.is_dir() and not path.is_symlink() else "")
                )
                info.external_attr = path.lstat().st_mode << 16
                if path.is_symlink():
                    archive.writestr(info, os.readlink(path))
                elif path.is_file():
                    archive.writestr(info, path.read_bytes())
    else:
        with tarfile.open(packed, "w:gz") as archive:
            archive.add(stand_in, "env")
    given = packed.as_uri() if form == "url" else str(packed)
    for _ in range(2):
        result = akrunner.run(script(SAYS), {"a": [1]}, python_env=given)
        prefix = Path(result.tasks[0].log_tail.strip())
        assert str(prefix).startswith(str(tmp_path / "cache" / "akrunner" / "unpacked")) and (prefix / "mended").exists()
    assert len([p for p in (tmp_path / "cache" / "akrunner" / "unpacked").iterdir() if p.is_dir()]) == 1


def test_archives_that_are_no_environment(tmp_path: Path) -> None:
    empty = tmp_path / "env.tar.gz"
    with tarfile.open(empty, "w:gz") as archive:
        archive.add(__file__, "notes.txt")
    with pytest.raises(akrunner.PythonEnvError, match=r"no bin/python in it \(there is notes.txt\)"):
        interpreters.resolve(str(empty))
    with pytest.raises(akrunner.PythonEnvError, match="there is no .*nothing.zip"):
        interpreters.resolve(str(tmp_path / "nothing.zip"))
    (tmp_path / "bad.zip").write_text("no zip")
    with pytest.raises(akrunner.PythonEnvError, match="bad.zip"):
        interpreters.resolve(str(tmp_path / "bad.zip"))


def wheel(folder: Path) -> Path:
    """A wheel of one module."""
    path = folder / "frobnicate-1.0-py3-none-any.whl"
    info = "frobnicate-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("frobnicate.py", "ANSWER = 42\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: frobnicate\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_requirements(tmp_path: Path, leaves_nothing: Path, script: Script) -> None:
    """Installed once beside the interpreter, for the tasks and nobody else."""
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"{wheel(tmp_path)}\n")
    body = """
    import sys
    import frobnicate

    def main(task_config):
        assert frobnicate.ANSWER == 42 and "overlays" in frobnicate.__file__ and frobnicate.__file__.startswith(sys.path[-1])
    """
    for _ in range(2):
        akrunner.run(script(body), {"a": [1]}, requirements=requirements)
    with pytest.raises(ImportError):
        __import__("frobnicate")
    requirements.write_text(f"{tmp_path}/not-there-1.0-py3-none-any.whl\n")
    with pytest.raises(akrunner.PythonEnvError, match="(?s)requirements .*not-there"):
        akrunner.run(script(body), {"a": [1]}, requirements=requirements)
    with pytest.raises(akrunner.UserFilesError, match="requirements: there is no nowhere.txt"):
        akrunner.run(script(body), {"a": [1]}, requirements="nowhere.txt")
    left = [p.name for p in (tmp_path / "cache" / "akrunner" / "overlays").iterdir() if p.is_dir()]
    assert len(left) == 1, "what could not be installed is gone"


def test_create_and_remove(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The real thing but for the packages, which are a wheel of ours: TensorFlow is a large download."""
    monkeypatch.setattr(environments.shutil, "which", lambda name, path=None: None)
    recipe = environments.Recipe("tf2", "", "", (str(wheel(tmp_path)),))
    monkeypatch.setitem(environments.RECIPES, "tf2", recipe)
    path = environments.create("tf2")
    assert path == str(cache / "akrunner" / "envs" / "tf2") and environments.create("tf2") == path
    python = environments.python_in(path)
    said = subprocess.run([python, "-c", "import frobnicate; print(frobnicate.ANSWER)"], capture_output=True, text=True)
    assert said.stdout == "42\n"
    kept = shutil.copytree(path, tmp_path / "kept", symlinks=True, copy_function=os.link)
    assert environments.remove("tf2") and not environments.remove("tf2") and not os.path.exists(path)
    monkeypatch.setitem(environments.RECIPES, "tf2", environments.Recipe("tf2", "", "", (str(tmp_path / "no.whl"),)))
    really = environments._called

    def called(words: list[str], name: str) -> None:
        """Use the venv of before once more, because it takes 5 seconds to make one; everything else runs as it does."""
        if words[1:3] == ["-m", "venv"]:
            os.rename(kept, words[3])
        else:
            really(words, name)

    monkeypatch.setattr(environments, "_called", called)
    with pytest.raises(akrunner.PythonEnvError, match="failed with exit code 1"):
        environments.create("tf2")
    assert not os.path.exists(path), "nothing half-made is left"
    with pytest.raises(akrunner.PythonEnvError, match="tf1.15 needs Python 3.7, and none was found by pyenv or on PATH"):
        environments.create("tf1.15")


def test_the_commands() -> None:
    unknown = command("create", "tf9")
    assert unknown.returncode == 2 and "no environment is called 'tf9'; known: tf1.15, tf2.3, tf2" in unknown.stderr
    assert "there is none that akrunner made" in command("remove", "tf2.3").stdout
    probed = command("probe", sys.executable)
    assert probed.returncode == 0 and ".".join(map(str, sys.version_info[:3])) in probed.stdout
    assert command("probe", "/nowhere/python").returncode == 2
    assert "akrunner env create tf1.15" in command("list").stderr
