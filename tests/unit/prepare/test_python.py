"""Which interpreter the tasks have, and whether requirements can be installed for it. No interpreter is run.

A package in place of a list of them is in `tests/unit/test_prepare.py`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import ConfigError, PythonEnvError, UserFilesError
from akrunner.launch import interpreters
from akrunner.launch.interpreters import Interpreter
from akrunner.prepare import python
from akrunner.prepare.python import check_requirements, environment_of, instead_of, interpreter_for, optional_path
from akrunner.spec import Capabilities

HERE, THERE, UNPACKING = Capabilities(), Capabilities(here=False), Capabilities(here=False, unpacks=True)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What interpreters were looked for on this machine; each is found."""
    calls: list[Any] = []

    def resolve(name: str | None, keras: str | None = None) -> Interpreter:
        calls.append((name, keras))
        return Interpreter("/found", (3, 11), "2.20.0", "")

    monkeypatch.setattr(interpreters, "resolve", resolve)
    return calls


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of environments that are found; a test adds to them."""
    found: set[str] = set()

    def named(recipe: Any, *given: Any) -> Interpreter:
        if recipe.name not in found:
            raise PythonEnvError(f"python_env={recipe.name!r}: no interpreter")
        return Interpreter(f"/{recipe.name}", (3, 7), recipe.tensorflow + "5", "")

    monkeypatch.setattr(interpreters, "named", named)
    monkeypatch.delenv("TF115_PYTHON_ENV_PATH", raising=False)
    return found


def test_an_interpreter_of_this_machine_is_looked_at_here(asked: list[Any]) -> None:
    assert interpreter_for(None, HERE).path == "/found"
    assert interpreter_for(Path("/no/such"), HERE, "legacy").path == "/found"
    assert asked == [(None, None), ("/no/such", "legacy")]


def test_one_that_is_only_on_the_clusters_machines_is_looked_at_there(asked: list[Any], tmp_path: Path) -> None:
    assert interpreter_for("/no/such/python", THERE) == Interpreter("/no/such/python", (), "", "")
    assert asked == []
    # what is here as well, a name, and a relative path are looked at here
    for given in (str(tmp_path), "tf2", "no/such", None):
        interpreter_for(given, THERE)
    assert [name for name, _ in asked] == [str(tmp_path), "tf2", "no/such", None]


def test_a_packed_environment_is_unpacked_where_the_tasks_are_if_the_engine_does_that(
    asked: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    (tmp_path / "env.tar.gz").write_bytes(b"\x1f\x8b")
    assert interpreter_for("env.tar.gz", UNPACKING).path == str(tmp_path / "env.tar.gz")
    assert interpreter_for("https://h/env.tar.gz", UNPACKING).path == "https://h/env.tar.gz"
    assert asked == []
    interpreter_for("env.tar.gz", THERE)
    interpreter_for("env.tar.gz", HERE)
    assert asked == [("env.tar.gz", None)] * 2


def test_a_named_environment_that_is_none_is_told(there: set[str]) -> None:
    there.add("tf2")
    assert environment_of("tf2").path == "/tf2"
    with pytest.raises(PythonEnvError, match="tf9"):
        environment_of("tf9")


def test_another_environment_is_taken_only_if_the_first_is_not_there(there: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PythonEnvError, match=r"python_env='tf1\.15'"):
        instead_of("tf1.15", "tf2")
    there.add("tf2")
    other = instead_of("tf1.15", "tf2")
    assert other is not None and other.path == "/tf2"
    # whoever names one means it
    monkeypatch.setenv("TF115_PYTHON_ENV_PATH", "/mine")
    with pytest.raises(PythonEnvError, match=r"^TF115_PYTHON_ENV_PATH=/mine is no environment with TensorFlow 1\.15\.\*: "):
        instead_of("tf1.15", "tf2")
    there.add("tf1.15")
    assert instead_of("tf1.15", "tf2") is None


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "python").write_text("")
    return str(tmp_path / "python")


def test_requirements_are_a_file_or_a_url(tmp_path: Path, own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r.txt").write_text("# mine\nnumpy>=1,<2\n\n--index-url https://h\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in (str(tmp_path / "r.txt"), "~/r.txt", "https://h/r.txt"):
        check_requirements(given, own)
    with pytest.raises(UserFilesError, match=r"^requirements: there is no .*/q\.txt"):
        check_requirements(str(tmp_path / "q.txt"), own)
    with pytest.raises(UserFilesError, match="^requirements: there is no "):
        check_requirements(str(tmp_path), own)


def test_a_file_of_something_else_is_no_requirements(tmp_path: Path, own: str) -> None:
    (tmp_path / "r.txt").write_text("numpy\n{ 'a': 1 }\n")
    with pytest.raises(UserFilesError, match="is no file of requirements: \"{ 'a': 1 }\" is nothing that pip installs"):
        check_requirements(str(tmp_path / "r.txt"), own)


@pytest.mark.parametrize("interpreter", ["/no/such/python", "https://h/env.tar.gz"])
def test_nothing_is_installed_for_an_interpreter_of_the_cluster(tmp_path: Path, interpreter: str) -> None:
    with pytest.raises(
        ConfigError, match=f"^requirements= are installed for an interpreter of this machine, and {interpreter} is"
    ):
        check_requirements(str(tmp_path / "r.txt"), interpreter)


def test_a_path_may_be_left_out() -> None:
    assert optional_path("python_env", None) is None and optional_path("python_env", Path("a")) == os.fspath("a")
    for wrong in (3, "", "a\0b"):
        with pytest.raises(ConfigError, match="^python_env"):
            optional_path("python_env", wrong)  # type: ignore[arg-type]


def test_the_pattern_of_packages_takes_them_with_versions_and_extras() -> None:
    for words in ("numpy", "numpy==1.26.*", "a[x,y]>=1,<2 b", "a,b", "torch>=2.0+cu118"):
        assert python._PACKAGES.fullmatch(words), words
    for words in ("", "???", "-r", "a b/c"):
        assert not python._PACKAGES.fullmatch(words), words
