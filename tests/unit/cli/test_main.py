"""Which module is imported for which command."""

import re
import subprocess
import sys
from typing import Any, Iterator, Tuple

import pytest

from akrunner.cli.main import load, main

EVERY = set(load([]).commands)


@pytest.mark.parametrize("name", sorted(EVERY))
def test_a_command_is_there_without_the_others(name: str) -> None:
    assert set(load([name, "--json"]).commands) == set(load(["--json", name]).commands) == {name}


def test_a_word_that_is_no_command_stands_beside_all_that_are(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["rnu"], ["--help"], ["--version", "run"], ["--", "run"]):
        assert set(load(words).commands) == EVERY
    assert main(["pakc"]) == 2
    assert "No such command 'pakc'" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--version"], ["status", "--nonsense"], ["flink", "stop", "--help"]])
def test_what_needs_no_rows_imports_nothing_that_carries_them(words: list) -> None:
    code = "import sys; from akrunner.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert not {"numpy", "pyarrow", "fsspec", "duckdb", "psutil", "asyncio"} & set(done.stderr.split())


def _every(command: Any, words: Tuple[str, ...] = ()) -> Iterator[Tuple[Tuple[str, ...], Any]]:
    """A command and those in it, each with the words that call it."""
    yield words, command
    for name, one in getattr(command, "commands", {}).items():
        yield from _every(one, (*words, name))


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("words, command", [pytest.param(words, one, id=" ".join(words)) for words, one in _every(load([]))])
def test_help_is_text_and_names_every_option(
    words: Tuple[str, ...], command: Any, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", width)
    assert main([*words, "--help"]) == 0
    said = capsys.readouterr().out
    for one in command.params:
        if getattr(one, "hidden", False):
            continue
        for name in one.opts if one.param_type_name == "option" else (one.metavar or one.name).split():
            assert name in said
        # every word of it, wherever the line was broken; what brackets hold, too
        for word in re.sub(r"\\(?=\[)", "", one.help or "").split():
            assert _bare(word) in _bare(said), f"{one.name}: {word}"
    assert "[bold]" not in said
    assert "[/" not in re.sub(r"\[/pt=VALUE\]", "", said)


def _bare(text: str) -> str:
    """Without what stands around cells, and blanks."""
    return re.sub(r"[\s│]", "", text)


def test_paragraphs_of_help_are_broken_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for words, command in _every(load([])):
        for text in (command.help or "", command.epilog or ""):
            assert not re.search(r"[^\\\n]\n[^\n]", text), words
    assert (
        "--selected-cols sepal_length,sepal_width,petal_length,petal_width \\\n" in load(["predict"]).commands["predict"].help
    )
