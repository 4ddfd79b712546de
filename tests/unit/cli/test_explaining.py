"""`akrunner explain`: what is printed for people and for machines, and the exit code."""

from __future__ import annotations

import json

import pytest

from akrunner.cli import explaining
from akrunner.cli.main import main
from akrunner.codes.catalogue import families


def test_a_code_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "ak301"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("AK301  There is no such file  (SourceError)\n\nCause: ")
    assert "\nCure: " in out and "source: there is no file" in out and out.endswith("/docs/errors.md#ak301\n")


def test_a_program_gets_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "AK510", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["code"], told["classes"], told["messages"]) == (True, "AK510", ["StartError"], [])
    assert set(told) == {"ok", "exit_code", "code", "classes", "title", "cause", "cure", "messages", "page"}


def test_a_link_names_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert explaining._plain("[a](https://b)") == "a (https://b)"
    assert main(["explain", "AK200", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cure"].endswith("types (docs/types.md) has every type.")


def test_codes_are_listed_by_their_classes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    out = capsys.readouterr().out
    assert all(code in out for code in families()) and "\nSourceError\n  AK300  " in out
    assert main(["explain", "outputerror", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["codes"]
    assert [one["code"] for one in told] == ["AK540"]


@pytest.mark.parametrize(("word", "near"), [("AK3O1", "AK301"), ("SourceEror", "SourceError"), ("nonsense", "")])
def test_another_word_is_refused(word: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", word]) == 2
    err = capsys.readouterr().err
    assert (
        f"there is no code '{word}'; " in err and (f"did you mean {near}?" in err) == bool(near) and err.endswith(" [AK105]\n")
    )


def test_a_reader_need_not_read_it_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("akrunner.cli.main.ended", lambda run, as_json, is_help, only_tells: is_help)
    assert main(["explain"]) and main(["explain", "AK301", "--json"]) and not main(["show", "last"])
