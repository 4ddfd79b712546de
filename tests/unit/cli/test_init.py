"""`akrunner init`: what it asks, writes, prints and refuses."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from akrunner.cli import init
from akrunner.cli.main import main
from akrunner.starters.templates import TEMPLATES, contents
from tests.guards import one_guard

__all__ = ["one_guard"]


class Terminal(io.StringIO):
    """A stdin or stderr that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_says_what_it_has_made_and_what_to_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "my project", "--template", "images"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("images: the shape in an image, from folders; 253 files in my project\n")
    assert "\n  shapes/, new/  data\n" in said
    commands = TEMPLATES["images"].commands
    assert said.endswith("\n".join(["\nType next:", "  cd 'my project'", *(f"  {one}" for one in commands), ""]))
    assert (tmp_path / "my project" / "shapes" / "circle" / "00.png").is_file()


def test_here_and_where_nobody_can_be_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("classification: ") and "cd " not in said
    assert {path.name for path in tmp_path.iterdir()} == set(contents(TEMPLATES["classification"]))


def test_a_directory_that_is_called_as_a_template_gets_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "some/text"]) == 0 and capsys.readouterr().out.startswith("text: ")
    assert main(["init", "images", "--template", "ps"]) == 0 and capsys.readouterr().out.startswith("ps: ")


def test_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "p", "-t", "ps", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "ok": True,
        "exit_code": 0,
        "template": "ps",
        "directory": str(tmp_path / "p"),
        "files": list(contents(TEMPLATES["ps"])),
        "commands": list(TEMPLATES["ps"].commands),
    }
    assert main(["init", "p", "-t", "ps", "--json"]) == 2
    assert "job.toml" in json.loads(capsys.readouterr().out)["message"]
    assert main(["init", "p", "-t", "ps", "--force"]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--template", "image"], "template='image': give one of classification, "),
        (["--list", "--force"], "--list writes nothing, so --force means nothing beside it"),
        (["d", "--list"], "so DIRECTORY means nothing beside it"),
        (["--list", "-t", "ps"], "so --template means nothing beside it"),
        ([""], "directory is empty"),
        (["a\0b"], "directory"),
        (["s3://bucket/p"], "a project is a directory of this machine"),
    ],
)
def test_what_is_wrong_writes_nothing(words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", *words]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t") for line in lines] == [
        [one.name, one.text, f"TensorFlow {one.tensorflow}"] for one in TEMPLATES.values()
    ]
    assert main(["init", "--list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["templates"]
    assert [one["name"] for one in told] == list(TEMPLATES) and told[-1]["commands"][0] == "akrunner stream job.toml"


@pytest.mark.parametrize(
    ("answer", "name"),
    [("\n", "classification"), ("4\n", "images"), (" Text \n", "text"), ("7\n0\nimage\nps\n", "ps")],
)
def test_a_person_at_a_terminal_is_asked(answer: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Terminal()
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stderr", asked)
    assert main(["init", "p"]) == 0
    assert (Path("p") / "README.md").read_bytes() == contents(TEMPLATES[name])["README.md"]
    assert "Which project" in asked.getvalue() and "parameter servers" in asked.getvalue()
    assert ("give one of" in asked.getvalue()) is (name == "ps")


def test_no_answer_and_no_question(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(""))
    monkeypatch.setattr("sys.stderr", Terminal())
    assert main(["init", "p"]) == 2 and not Path("p").exists()
    # a program reads JSON, even if it runs at a terminal
    assert main(["init", "p", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["template"] == "classification"


def test_its_help_is_of_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--help"]) == 0
    said = capsys.readouterr().out
    assert "--template" in said and "-t" in said and "DIRECTORY" in said and init.EPILOG.split(";")[0] in said
