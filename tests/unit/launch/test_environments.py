"""Environments by name, packed ones, and requirements on top of them; what would run here is only written down."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import PythonEnvError, UserFilesError
from akrunner.launch import environments
from akrunner.launch.asking import Asked

TF115 = environments.RECIPES["tf1.15"]
TF2 = environments.RECIPES["tf2"]


@pytest.fixture(autouse=True)
def nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own, and no interpreter of this machine's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    for name in ("TF115_PYTHON_ENV_PATH", "TF231_PYTHON_ENV_PATH", "AKRUNNER_ENV_PATH", "AKRUNNER_MAX_UNPACKED"):
        monkeypatch.delenv(name, raising=False)


def executable(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


class Ran:
    """Stands for the programs: writes down the commands, and answers as `answer` says."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.environment: Mapping[str, str] = {}
        self.answer: Callable[[list[str]], Asked] = lambda command: Asked(0, "", "")

    def __call__(
        self, command: Sequence[str], seconds: float | None, env: Mapping[str, str] | None = None, most: int | None = 0
    ) -> Asked:
        self.commands.append(list(command))
        self.environment = env or {}
        if "venv" in command:
            executable(Path(command[-1], "bin", "python"))
        return self.answer(list(command))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    made = Ran()
    monkeypatch.setattr(environments, "ask", made)
    return made


# -- found


def test_the_interpreter_of_a_directory(tmp_path: Path) -> None:
    with pytest.raises(PythonEnvError, match=f"^python_env: {tmp_path}/a is a directory without bin/python; name a venv"):
        environments.python_in(f"{tmp_path}/a")
    third = executable(tmp_path / "a" / "bin" / "python3")
    assert environments.python_in(f"{tmp_path}/a") == third
    plain = executable(tmp_path / "a" / "bin" / "python")
    assert environments.python_in(f"{tmp_path}/a/") == plain


def test_an_unknown_name_is_told_the_known_ones(tmp_path: Path) -> None:
    for asked in (environments.recipe_of, environments.create, environments.remove):
        with pytest.raises(PythonEnvError, match=r"^no environment is called 'tf1'; known: tf1.15, tf2.3, tf2$"):
            asked("tf1")
    assert not (tmp_path / "cache").exists()


def test_candidates_come_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(environments.candidates(TF115)) == [sys.executable]
    by_variable = executable(tmp_path / "alinks" / "bin" / "python3")
    monkeypatch.setenv("TF115_PYTHON_ENV_PATH", str(tmp_path / "alinks"))
    created = executable(Path(environments.created("tf1.15"), "bin", "python"))
    listed = [executable(tmp_path / "one" / "bin" / "python"), executable(tmp_path / "two")]
    monkeypatch.setenv("AKRUNNER_ENV_PATH", f"{tmp_path}/one:{tmp_path}::{tmp_path}/two")
    pyenv = executable(tmp_path / "pyenv" / "versions" / "3.7.9" / "bin" / "python")
    executable(tmp_path / "pyenv" / "versions" / "3.8.1" / "bin" / "python")
    on_path = executable(tmp_path / "path" / "python3.7")
    executable(tmp_path / "path" / "python3.8")
    assert list(environments.candidates(TF115)) == [by_variable, created, *listed, sys.executable, pyenv, on_path]
    assert by_variable not in list(environments.candidates(TF2)), "no other name's variable counts"


def test_the_newest_of_pyenvs_comes_first(tmp_path: Path) -> None:
    versions = ["3.11.9", "3.9.18", "3.9.2", "3.7.17"]
    made = {one: executable(tmp_path / "pyenv" / "versions" / one / "bin" / "python") for one in [*versions, "mambaforge"]}
    assert list(environments.found()) == [made[one] for one in ["mambaforge", *versions]]
    assert list(environments.found("3.9")) == [made["3.9.18"], made["3.9.2"]]


def test_a_shim_of_pyenv_hides_no_interpreter_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "pyenv" / "shims" / "python3")
    on_path = executable(tmp_path / "path" / "python3")
    monkeypatch.setenv("PATH", f"{tmp_path}/pyenv/shims/:{tmp_path}/path")
    assert list(environments.found()) == [on_path]
    monkeypatch.setenv("PATH", f"{tmp_path}/pyenv/shims")
    assert list(environments.found()) == []


def test_alinks_variable_may_name_an_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TF115_PYTHON_ENV_PATH", "~/bin/py")
    with pytest.raises(
        PythonEnvError, match=r"^python_env='tf1.15': TF115_PYTHON_ENV_PATH=~/bin/py: there is no such directory; unset it"
    ):
        next(environments.candidates(TF115))
    python = executable(tmp_path / "bin" / "py")
    assert next(environments.candidates(TF115)) == python


def test_one_interpreter_under_two_names_is_tried_once(tmp_path: Path) -> None:
    python = executable(tmp_path / "path" / "python3.11")
    (tmp_path / "path" / "python3").symlink_to("python3.11")
    assert list(environments.found()) == [python]
    assert list(environments.found("3.11")) == [python]


def test_a_venv_is_another_interpreter_than_the_one_it_was_made_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = executable(tmp_path / "path" / "python3.11")
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "python3").symlink_to(python)
    monkeypatch.setenv("PATH", f"{tmp_path}/venv:{tmp_path}/path")
    assert list(environments.found()) == [python, str(tmp_path / "venv" / "python3")]


# -- made


def test_uv_makes_an_environment_and_brings_its_own_interpreter(
    tmp_path: Path, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = executable(tmp_path / "path" / "uv")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPATH", "/mine")
    folder = environments.created("tf1.15")
    python = f"{folder}/bin/python"
    assert environments.create("tf1.15") == folder and os.path.exists(python)
    assert ran.commands == [
        [uv, "venv", "--quiet", "--python", "3.7", folder],
        [uv, "pip", "install", "--quiet", "--python", python, "tensorflow==1.15.5", "numpy<1.19", "protobuf<3.21"],
        [python, "-m", "compileall", "-qq", folder],
    ]
    assert not {"PYTHONDONTWRITEBYTECODE", "PYTHONPATH"} & set(ran.environment) and ran.environment["PATH"]
    assert environments.create("tf1.15") == folder and len(ran.commands) == 3, "it is made once"
    assert environments.remove("tf1.15") is True and not os.path.exists(folder)
    assert environments.remove("tf1.15") is False


def test_without_uv_it_is_made_with_an_interpreter_that_is_there(tmp_path: Path, ran: Ran) -> None:
    broken = executable(tmp_path / "pyenv" / "versions" / "3.8.19" / "bin" / "python")
    other = executable(tmp_path / "pyenv" / "versions" / "3.8.18" / "bin" / "python")
    base = executable(tmp_path / "path" / "python3.8")

    def answer(command: list[str]) -> Asked:
        if command[0] == broken:
            raise OSError("Exec format error")
        return Asked(0, "3.7\n" if command[0] == other else "3.8\n", "") if command[1] == "-c" else Asked(0, "", "")

    ran.answer = answer
    folder = environments.create("tf2.3")
    made, installed = [command for command in ran.commands if command[1] != "-c"][:2]
    assert made == [base, "-m", "venv", folder]
    assert installed[:4] == [f"{folder}/bin/python", "-m", "pip", "install"] and installed[-2:] == list(
        environments.RECIPES["tf2.3"].packages
    )


def test_any_interpreter_will_do_if_the_name_says_none(ran: Ran) -> None:
    folder = environments.create("tf2")
    assert ran.commands[0] == [sys.executable, "-m", "venv", folder]


def test_no_interpreter_of_the_version_is_told(tmp_path: Path, ran: Ran) -> None:
    with pytest.raises(PythonEnvError, match=r"^tf1.15 needs Python 3.7, and none was found .*`pyenv install 3.7`\), or uv"):
        environments.create("tf1.15")
    assert not os.path.exists(environments.created("tf1.15"))


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (Asked(1, "said first", "no such package\n"), r"^tf2: `.*python -m pip install --quiet .* \.\.\.` failed with exit code 1:\nno such package$"),
        (Asked(-9, "only said", ""), "exit code -9:\nonly said$"),
        (Asked(1, "only said\n", " \n\n"), "exit code 1:\nonly said$"),
        (OSError("No such file or directory"), r"^tf2: cannot run .*/bin/python: No such file"),
    ],
)  # fmt: skip
def test_what_fails_leaves_nothing_and_says_why(done: Any, words: str, ran: Ran) -> None:
    def answer(command: list[str]) -> Asked:
        if "pip" in command:
            if isinstance(done, OSError):
                raise done
            assert isinstance(done, Asked)
            return done
        return Asked(0, "", "")

    ran.answer = answer
    with pytest.raises(PythonEnvError, match=words):
        environments.create("tf2")
    assert not os.path.exists(environments.created("tf2"))


def test_no_password_is_in_what_pip_said(ran: Ran) -> None:
    ran.answer = lambda command: Asked(1, "", "no answer from https://me:geheim@host/simple")
    with pytest.raises(PythonEnvError) as caught:
        environments.create("tf2")
    assert "geheim" not in str(caught.value) and "host/simple" in str(caught.value)


# -- packed


def packed(path: Path, *members: str) -> str:
    source = path.parent / "source"
    for member in members:
        executable(source / member)
    with tarfile.open(path, "w:gz") as archive:
        for name in sorted(os.listdir(source)) if members else []:
            archive.add(source / name, name)
    if members:
        shutil.rmtree(source)
    return str(path)


@pytest.mark.parametrize("top", ["", "env/"])
def test_a_packed_environment_is_unpacked_once_for_each_archive(tmp_path: Path, top: str, ran: Ran) -> None:
    archive = packed(tmp_path / "env.tar.gz", f"{top}bin/python")
    folder = environments.unpacked(archive)
    assert folder.startswith(f"{tmp_path}/cache/akrunner/unpacked/") and os.path.exists(f"{folder}/bin/python")
    (Path(folder) / "mark").write_text("")
    assert environments.unpacked(archive) == folder and os.path.exists(f"{folder}/mark")
    assert environments.there(archive) == f"{folder}/bin/python"
    os.utime(archive, ns=(1, 1))
    assert environments.unpacked(archive) != folder, "another archive by now"
    assert ran.commands == []


def test_conda_mends_what_it_has_packed(tmp_path: Path, ran: Ran) -> None:
    folder = environments.unpacked(packed(tmp_path / "env.tgz", "bin/python", "bin/conda-unpack"))
    assert ran.commands == [[f"{folder}/bin/python", f"{folder}/bin/conda-unpack"]]
    ran.answer = lambda command: Asked(2, "", "no prefix")
    with pytest.raises(PythonEnvError, match=r"/again.tgz: `.*conda-unpack ...` failed with exit code 2:\nno prefix$"):
        environments.unpacked(packed(tmp_path / "again.tgz", "bin/python", "bin/conda-unpack"))
    assert sorted(p.name for p in Path(folder).parent.iterdir() if p.is_dir()) == [os.path.basename(folder)]


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (["a/lib/x", "b/y"], r"env.tgz has no bin/python in it \(there is a, b\)$"),
        ([], r"env.tgz has no bin/python in it \(there is nothing\)$"),
        (["bin/perl"], "a directory without bin/python"),
    ],
)
def test_an_archive_without_an_interpreter_is_refused(tmp_path: Path, members: list[str], words: str) -> None:
    with pytest.raises(PythonEnvError, match=f"^python_env: .*{words}"):
        environments.unpacked(packed(tmp_path / "env.tgz", *members))
    assert not [p for p in (tmp_path / "cache").glob("akrunner/unpacked/*") if p.is_dir()]


def test_an_archive_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(PythonEnvError, match=r"^python_env: there is no .*/gone.zip"):
        environments.unpacked(str(tmp_path / "gone.zip"))


def test_what_counts_as_packed(tmp_path: Path) -> None:
    for text in ("https://host/env", "s3://bucket/env.tar.gz", "env.zip", "env.tar.gz#max=20GB"):
        assert environments.is_packed(text)
    (tmp_path / "venv.zip").mkdir()
    for text in ("tf2", "/usr/bin/python3", str(tmp_path), str(tmp_path / "venv.zip")):
        assert not environments.is_packed(text)


def test_the_interpreter_that_a_path_means(tmp_path: Path) -> None:
    python = executable(tmp_path / "venv" / "bin" / "python")
    assert environments.there(str(tmp_path / "venv")) == environments.there(python) == python
    with pytest.raises(PythonEnvError, match="^python_env: there is no /nowhere/python$"):
        environments.there("/nowhere/python")


# -- requirements


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only this\n\n",
        "numpy\nscikit-learn == 1.3 ; python_version > '3.7'\nrequests[socks]>=2\n",
        "-r other.txt\n--index-url https://host\n-e .\n",
        "./wheels/a.whl\n/abs/b.zip\n~/c.tar.gz\nd-1.0-py3-none-any.whl\n",
        "pkg @ https://host/a.whl\ngit+https://host/x\nC:\\wheels\\a.whl\n$HOME/a.whl\n",
        "\ufeffnumpy\r\npandas  # for the tables\r\n",
        "numpy \\\n    --hash=sha256:00\n",
    ],
)
def test_a_file_of_requirements_is_taken(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.txt").write_text(text, encoding="utf-8")
    environments.check_listed(str(tmp_path / "r.txt"))


@pytest.mark.parametrize("line", ["import numpy", "numpy pandas", "{", "größe", "[tool.poetry]", "x" * 70 + " y"])
def test_another_file_is_refused_by_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "r.txt").write_text(f"numpy\n\n  {line}\n", encoding="utf-8")
    with pytest.raises(
        UserFilesError, match=r"^requirements: .*/r.txt is no file of requirements: .* is nothing that pip installs$"
    ) as e:
        environments.check_listed(str(tmp_path / "r.txt"))
    assert repr(line[:60]) in str(e.value)


def test_requirements_are_installed_once_for_an_interpreter_and_a_list(tmp_path: Path, ran: Ran) -> None:
    python, other = executable(tmp_path / "python"), executable(tmp_path / "other")
    listed = tmp_path / "r.txt"
    listed.write_text("numpy\n")
    folder = environments.overlay(python, str(listed))
    assert ran.commands == [
        [
            *(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-conflicts"),
            *("--target", folder, "-r", str(listed)),
        ]
    ]
    assert environments.overlay(python, str(listed)) == folder and len(ran.commands) == 1
    assert environments.overlay(other, str(listed)) != folder
    listed.write_text("pandas\n")
    assert environments.overlay(python, str(listed)) != folder and len(ran.commands) == 3
    listed.write_text("numpy\n")
    assert environments.overlay(python, str(listed)) == folder and len(ran.commands) == 3


def test_requirements_that_cannot_be_had(tmp_path: Path, ran: Ran) -> None:
    python = executable(tmp_path / "python")
    with pytest.raises(UserFilesError, match=r"^requirements: there is no .*/gone.txt"):
        environments.overlay(python, str(tmp_path / "gone.txt"))
    with pytest.raises(UserFilesError, match=r"^requirements: .* is a directory; name the file with the requirements$"):
        environments.overlay(python, str(tmp_path))
    (tmp_path / "r.txt").write_text("numpy\n")
    ran.answer = lambda command: Asked(1, "", "no matching distribution")
    with pytest.raises(
        PythonEnvError, match=r"^requirements .*/r.txt: `.*` failed with exit code 1:\nno matching distribution$"
    ):
        environments.overlay(python, str(tmp_path / "r.txt"))
    assert not [p for p in (tmp_path / "cache").glob("akrunner/overlays/*") if p.is_dir()]
