"""KEY=VALUE on the command line, and in files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import akrunner
from akrunner.cli import values
from akrunner.cli.values import environment, pairs, params


def test_variables_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "e.env"
    path.write_text('# comment\n\nexport A=1\nB = two words \nC=\'as $it \\n is\'\nD="line\\nend \\"q\\""\nE=\nF=a=b#c\n')
    assert environment([], [str(path)]) == {
        "A": "1", "B": "two words", "C": "as $it \\n is", "D": 'line\nend "q"', "E": "", "F": "a=b#c",
    }  # fmt: skip
    assert environment(["A=2"], [str(path)])["A"] == "2"


def test_a_file_of_another_system(tmp_path: Path) -> None:
    path = tmp_path / "e.env"
    path.write_bytes("\ufeffA=1\r\nB=x\u2028C=\x0cD=2\r\n".encode())
    assert environment([], [str(path)]) == {"A": "1", "B": "x\u2028C=\x0cD=2"}
    path.write_text('{"a": 1}', encoding="utf-8-sig")
    assert params([f"b=@{path}"], str(path)) == {"a": 1, "b": {"a": 1}}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("A", "write KEY=VALUE"),
        ("A='x", "not closed"),
        ("OK=2", "gives OK once more"),
        ("export OK = 3", "once more"),
        ("A B=s3cret", "it has a blank"),
        ('A="x" s3cret', "follows"),
    ],
)
def test_bad_lines_of_a_file(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "e.env"
    path.write_text(f"OK=1\n{line}\n")
    with pytest.raises(akrunner.ConfigError, match=f"line 2 of .*{words}") as caught:
        environment([], [str(path)])
    assert "s3cret" not in str(caught.value)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "e.env"
    path.write_bytes("A=gr\xfcn\n".encode("latin-1"))
    for call in (lambda: environment([], [str(path)]), lambda: params([], str(path)), lambda: params([f"k=@{path}"], None)):
        with pytest.raises(akrunner.ConfigError, match="e.env: line 1 is not UTF-8 .*0xfc.*; save it as UTF-8"):
            call()


def test_a_fifo_is_no_file_of_arguments(tmp_path: Path) -> None:
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    for call in (lambda: environment([], [path]), lambda: params([], path), lambda: params([f"k=@{path}"], None)):
        with pytest.raises(akrunner.ConfigError, match="fifo: it is a pipe, not a file: write it to a file first"):
            call()


def test_a_value_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("s3cret\n")
    given = [f"a=@{path}", "b=@@me", "c=x"]
    assert pairs(given, "--env", files=True) == {"a": "s3cret", "b": "@me", "c": "x"}
    assert pairs(["a=@x"], "--flink-option") == {"a": "@x"}
    (tmp_path / "p.json").write_text('{"k": 1, "c": 2}')
    assert params([f"a=@{tmp_path / 'p.json'}", "c=3"], str(tmp_path / "p.json")) == {"k": 1, "c": 3, "a": {"k": 1, "c": 2}}


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"x": [{"a": 1, "b": 2, "a": 1}]}'])
def test_a_key_that_is_there_twice(text: str, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(text)
    with pytest.raises(akrunner.ConfigError, match="^--params-file: .* has the key 'a' twice"):
        values.params([], str(file))
    with pytest.raises(akrunner.ConfigError, match="^--param k has the key 'a' twice"):
        values.params(["k=" + text], None)


def test_a_url_is_no_file() -> None:
    url = "s3://u:secret@b/x"
    for call in (
        lambda: values.params([], url),
        lambda: values.params(["k=@" + url], None),
        lambda: values.environment([], [url]),
    ):
        with pytest.raises(
            akrunner.ConfigError, match=r"^--[\w-]+.* s3://u:\*\*\*@b/x is a URL, and this must be a file of this machine"
        ):
            call()


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("--mlflow -i a.csv", "--mlflow=auto -i a.csv"),
        ("--mlflow train.py", "--mlflow=auto train.py"),
        ("--mlflow https://h/train.py", "--mlflow=auto https://h/train.py"),
        ("--mlflow http://h:5000 train.py", "--mlflow=http://h:5000 train.py"),
        ("train.py --mlflow databricks", "train.py --mlflow=databricks"),
        ("train.py --mlflow", "train.py --mlflow=auto"),
        ("--mlflow=./runs train.py", "--mlflow=./runs train.py"),
        ("--profile-input train.py --dry-run=5", "--profile-input=20 train.py --dry-run --dry-run-rows=5"),
    ],
)
def test_options_whose_values_may_be_left_out(given: str, made: str) -> None:
    assert values.with_values(given.split()) == made.split()
