"""What is said of a wrong command line, beside the lines of `test_main`: values, files, and words that are no commands."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from akrunner.cli import mistaken
from akrunner.cli.main import load


def failed(line: str) -> Any:
    """Return the error of Typer for a command line that it does not take."""
    words = line.split()
    command = load(words)
    try:
        with command.make_context("akrunner", list(words)) as context:
            command.invoke(context)
    except Exception as e:
        assert hasattr(e, "format_message"), e
        return e
    raise AssertionError("it was taken")


def explained(line: str) -> str:
    error = failed(line)
    mistaken.explain(error, line.split(), lambda: load(["--help"]))
    return str(error.message)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("plan s.py", "No such command 'plan'. What a job would do is shown by akrunner run SCRIPT -i TABLE --dry-run."),
        ("help tables", "No such command 'help'. See akrunner tables --help."),
        ("s.py -i t.csv", "No such command 's.py'. It is a file: akrunner run s.py -i t.csv"),
        ("run job.JSON", "job.JSON is no script; a job file is TOML, and its name ends in .toml"),
        ("run trian.py -q", "There is no file trian.py; did you mean train.py?"),
        ("run sub/trian.py", "There is no file sub/trian.py; did you mean sub/train.py?"),
        ("run nowhere/x.py", "There is no file nowhere/x.py"),
        ("train s.py -q t.csv", "t.csv stands there without its flag: akrunner train s.py --input t.csv."),
        ("predict s.py -i t.csv t.csv", "t.csv stands there without its flag: akrunner predict s.py --input t.csv."),
        ("run s.py -i t.csv --dry-run 12", "--dry-run takes its number behind a =: --dry-run=12."),
    ],
)
def test_what_to_type_instead_is_said(line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("s.py", "t.csv", "train.py", "sub/train.py"):
        (tmp_path / name).touch()
    assert explained(line).endswith(said)


def test_a_value_of_an_option_is_no_file_in_the_wrong_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("s.py", "t.csv"):
        (tmp_path / name).touch()
    assert "stands there without its flag" not in explained("run s.py -o t.csv -i t.csv extra")
    assert explained("run -o t.csv") == "", "Typer's own words are right"


def test_a_word_that_is_neither_a_command_nor_a_file_is_left_to_typer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "It is a file" not in explained("nowhere.py") and "No such command 'nowhere.py'" in explained("nowhere.py")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("train --output x", "The model goes to --model-out."),
        ("run --batch_size 3", "batch_size= is an argument of "),
        ("run --NUM-WORKERS 2", "Did you mean --num-workers?"),
        ("stream --frobnicate", "it stands behind --: akrunner stream SCRIPT ... -- --frobnicate."),
        ("run --model x", "SCRIPT stands there without a name: akrunner run SCRIPT --input TABLE."),
        ("tables --frobnicate", "No such option: --frobnicate. See akrunner tables --help."),
        ("env create --jsn", "Did you mean --json?"),
    ],
)
def test_an_option_that_is_not_there(line: str, said: str) -> None:
    assert said in explained(line) and explained(line).startswith("No such option: --")


@pytest.mark.parametrize("line", ["tables show t --rows much", "tables show t --rows=much"])
def test_the_value_that_no_option_takes_is_shown_once(line: str) -> None:
    assert explained(line).count("'much'") == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("run s.py -i t.csv --num-workers two", "num_workers='two': give a whole number (--num-workers)"),
        ("run s.py -i t.csv --profile-input=", "profile_input='': give a whole number (--profile-input)"),
        ("run s.py -i t.csv --num-workers=2.5", "num_workers='2.5': give a whole number (--num-workers)"),
        ("run s.py -i t.csv --start-timeout soon", "start_timeout='soon': give a number (--start-timeout)"),
    ],
)
def test_what_is_no_number_is_said_with_its_option(line: str, said: str) -> None:
    assert str(mistaken.no_number(failed(line), line.split())) == said


def test_what_is_no_number_in_the_environment_is_said_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKRUNNER_START_TIMEOUT", "soon")
    line = "run s.py -i t.csv"
    said = "start_timeout='soon': give a number (AKRUNNER_START_TIMEOUT in the environment)"
    assert str(mistaken.no_number(failed(line), line.split())) == said


@pytest.mark.parametrize("line", ["run", "run --frobnicate", "nonsense", "tables show --rows x"])
def test_another_error_is_not_about_a_number(line: str) -> None:
    assert mistaken.no_number(failed(line), line.split()) is None


def test_a_directory_that_is_gone_is_no_error_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    shutil.rmtree(tmp_path / "gone")
    monkeypatch.chdir(tmp_path)
    assert explained("run gone/s.py").endswith("There is no file gone/s.py")
