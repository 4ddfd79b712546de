"""What an interpreter is asked, and which command brings a package into its environment."""

from __future__ import annotations

import importlib.machinery
import json
import sys
from pathlib import Path

import pytest

from akrunner.errors import PythonEnvError
from akrunner.launch import interpreters
from akrunner.launch.asking import Asked
from akrunner.launch.interpreters import completing, installing, probe, pyflink_of, resolve


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


# -- what it is asked


class Interpreters:
    """Files that are asked, and what they answer.

    Attributes: path: of one; answer: what it says; asked: how often.
    """

    def __init__(self, folder: Path) -> None:
        self.site = folder / "site-packages"
        self.site.mkdir()
        self.path = str(folder / "python")
        Path(self.path).write_text("")
        self.asked = 0
        self.answer = {name: "" for name in ("tensorflow", "tf_keras", "numpy", "protobuf", "pyflink")}

    def ask(self, command: list[str], seconds: float, noted: bool) -> Asked:
        assert command[0] == self.path
        self.asked += 1
        return Asked(0, json.dumps({**self.answer, "python": [3, 11, 7], "site": str(self.site)}), "")

    def has(self, **packages: str) -> None:
        """Install packages, which changes the directory they are in."""
        self.answer.update(packages)
        (self.site / f"{len(list(self.site.iterdir()))}").mkdir()


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Interpreters:
    made = Interpreters(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(interpreters, "ask", made.ask)
    return made


def later() -> None:
    """Go on as another process would."""
    interpreters._told.cache_clear()


def test_one_with_pyflink_is_asked_once(one: Interpreters) -> None:
    one.has(pyflink="2.3.0")
    for _ in range(2):
        assert pyflink_of(one.path) == "2.3.0" and probe(one.path).python == (3, 11, 7)
        later()
        assert one.asked == 1
    # in the same process
    assert pyflink_of(one.path) == "2.3.0"
    one.has(pyflink="2.4.0")
    assert pyflink_of(one.path) == "2.4.0" and one.asked == 2


def test_one_without_pyflink_may_have_got_it_since(one: Interpreters) -> None:
    assert pyflink_of(one.path) == ""
    one.answer["pyflink"] = "2.3.0"
    assert pyflink_of(one.path) == "2.3.0"
    later()
    asked = one.asked
    assert pyflink_of(one.path) == "2.3.0" and one.asked == asked


def test_what_an_earlier_akrunner_remembered_says_nothing_of_pyflink(one: Interpreters, tmp_path: Path) -> None:
    one.has(pyflink="2.3.0", tensorflow="2.20.0")
    probe(one.path)
    kept = tmp_path / "cache" / "akrunner" / "probes.json"
    told = json.loads(kept.read_text())
    del told[one.path]["pyflink"]
    kept.write_text(json.dumps(told))
    later()
    assert pyflink_of(one.path) == "2.3.0" and one.asked == 2


@pytest.mark.parametrize("damaged", ["{", "[]", "null", "3", "[" * 200_000])
def test_a_damaged_cache_is_written_anew(damaged: str, one: Interpreters, tmp_path: Path) -> None:
    one.has(pyflink="2.3.0")
    assert pyflink_of(one.path) == "2.3.0"
    (written,) = (tmp_path / "cache").rglob("probes.json")
    written.write_text(damaged)
    for _ in range(2):
        later()
        assert pyflink_of(one.path) == "2.3.0"
    assert one.asked == 2


def test_a_cache_that_cannot_be_written_remembers_nothing(
    one: Interpreters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    one.has(pyflink="2.3.0")
    for _ in range(2):
        assert pyflink_of(one.path) == "2.3.0"
        later()
    assert one.asked == 2


@pytest.mark.parametrize(
    ("found", "versions", "said"),
    [
        ((), {"apache-flink": "2.3.0"}, ""), (("pyflink",), {"apache-flink": "2.3.0"}, "2.3.0"), (("pyflink",), {}, "2.2.1"),
        (("pyflink", "no package"), {}, ""),
    ],
    ids=["none", "installed", "without metadata", "a directory of this name"],
)  # fmt: skip
def test_what_it_runs_finds_pyflink(
    found: tuple[str, ...], versions: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "pyflink").mkdir()
    if "no package" not in found:
        (tmp_path / "pyflink" / "version.py").write_text("__version__ = '2.2.1'\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("pyflink", "pyflink.version"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    spec = importlib.machinery.ModuleSpec("pyflink", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec if name in found else None)
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)
    exec(interpreters._PROBE, {})
    assert json.loads(capsys.readouterr().out)["pyflink"] == said
    for name in ("pyflink", "pyflink.version"):
        sys.modules.pop(name, None)
