"""Which command brings a package into an interpreter's environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.errors import PythonEnvError
from akrunner.launch.interpreters import completing, installing, resolve


@pytest.mark.parametrize(
    ("files", "package", "command"),
    [
        ({}, "tensorflow", "{path} -m pip install tensorflow"),
        ({"pyvenv.cfg": "home = /usr/bin"}, "tf-keras==2.20.*", "{path} -m pip install 'tf-keras==2.20.*'"),
        ({"pyvenv.cfg": "uv = 0.9.5"}, "tensorflow", "uv pip install --python {path} tensorflow"),
        (
            {"pyvenv.cfg": "uv = 0.9.5", "lib/python3.12/site-packages/pip/__init__.py": ""},
            "tensorflow",
            "{path} -m pip install tensorflow",
        ),
        ({"pyvenv.cfg": "uv = 0.9.5", "uv-receipt.toml": ""}, "tensorflow", "uv tool install 'akrunner[tf]'"),
        ({"uv-receipt.toml": ""}, "tf-keras==2.20.*", "uv tool install 'akrunner[tf]' --with 'tf-keras==2.20.*'"),
        ({"pyvenv.cfg": "home = /usr/bin", "pipx_metadata.json": "{{}}"}, "tensorflow", "pipx inject akrunner tensorflow"),
    ],
)
def test_the_command_is_that_of_whoever_made_the_environment(
    tmp_path: Path, files: dict[str, str], package: str, command: str
) -> None:
    home = tmp_path / "akrunner"
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    path = str(home / "bin" / "python")
    assert installing(path, package) == command.format(path=path)


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("uv-receipt.toml", "uv tool upgrade --reinstall akrunner"),
        ("pipx_metadata.json", "pipx reinstall mine"),
        ("pyvenv.cfg", "{path} -m pip install akrunner"),
    ],
)
def test_what_akrunner_lacks_is_brought_by_whoever_made_the_environment(tmp_path: Path, file: str, command: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / file).write_text("")
    path = str(tmp_path / "mine" / "bin" / "python")
    assert completing(path) == command.format(path=path)


def test_a_name_that_is_almost_an_environments() -> None:
    with pytest.raises(PythonEnvError, match=r"called 'tf1.51' on PATH; did you mean 'tf1.15'\? Give .*akrunner env list"):
        resolve("tf1.51")
