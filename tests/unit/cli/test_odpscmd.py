"""`akrunner odpscmd`: where its statements come from, and how their rows are printed."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import akrunner
from akrunner.cli import odpscmd
from akrunner.cli.main import main

FRAME = "+------------+\n| id         | \n+------------+\n| 1          | \n| 2          | \n+------------+\n"


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project demo has a table iris, of two rows."""
    for name in ("AKRUNNER_PROJECT", "AKRUNNER_PAI_SCRIPT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "tables"))
    (tmp_path / "tables/demo/iris").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "tables/demo/iris/a.parquet")


class _Stdin(io.TextIOWrapper):
    """A stdin with some bytes. Attributes: terminal: whether it says that it is one."""

    def __init__(self, given: bytes, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(given))
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def test_rows_are_printed_in_the_clients_frame(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["odpscmd", "--project=demo", "-e", "select id from iris order by id;"]) == 0
    assert capsys.readouterr().out == FRAME


def test_rows_are_printed_as_csv_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["odpscmd", "--project", "demo", "-M", "-e", "select id from iris order by id; select 'a,b' as t;"]) == 0
    assert capsys.readouterr().out == 'id\n1\n2\nt\n"a,b"\n'


def test_rows_do_not_steer_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["odpscmd", "-M", "-e", "select '\x1b[2J' as t;"]
    assert main(line) == 0
    assert capsys.readouterr().out == "t\n\x1b[2J\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(line) == 0
    assert capsys.readouterr().out == "t\n\\x1b[2J\n"


@pytest.mark.slow
def test_statements_of_files_and_of_the_line_run_in_their_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job.sql").write_text("select 2 as b;\n")
    line = ["odpscmd", "-M", "-e", "select 1 as a;", "-f", str(tmp_path / "job.sql"), "-e", "select 3 as c;"]
    assert main(line) == 0
    assert capsys.readouterr().out == "a\n1\nb\n2\nc\n3\n"
    assert main([*line, "-k", "2"]) == 0
    assert capsys.readouterr().out == "b\n2\nc\n3\n"


def test_statements_come_from_stdin_if_the_line_has_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(odpscmd, "check_stdin", lambda name, stdin: None)
    monkeypatch.setattr(sys, "stdin", _Stdin("select 'grün' as t;\n".encode()))
    assert main(["odpscmd", "-M"]) == 0
    assert capsys.readouterr().out == "t\ngrün\n"


def test_a_terminal_is_no_place_for_statements(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(odpscmd, "check_stdin", lambda name, stdin: None)
    monkeypatch.setattr(sys, "stdin", _Stdin(b"", terminal=True))
    assert main(["odpscmd"]) == 2
    assert "odpscmd: nobody can type into it here: give statements" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["-v", "--version"])
def test_the_version_says_who_stands_in_the_place_of_the_client(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["odpscmd", word]) == 0
    assert capsys.readouterr().out == f"akrunner {akrunner.__version__}, in the place of MaxCompute's client\n"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (["-e", "select * from nowhere;", "--project=demo"], 2, "nowhere"),
        (["--frobnicate"], 2, "odpscmd: '--frobnicate' is no option of MaxCompute's client"),
        (["-e"], 2, "odpscmd: -e needs a value"),
        (["-e", "select 1;", "-k", "x"], 2, "odpscmd: -k 'x': which statement is to be the first?"),
        (["-f", "nowhere.sql"], 2, "nowhere.sql"),
    ],
)
def test_what_is_wrong_is_said(line: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["odpscmd", *line]) == code
    out, err = capsys.readouterr()
    assert said in err and out == ""


def test_rows_before_an_error_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["odpscmd", "--project=demo", "-M", "-e", "select 1 as a; select * from nowhere;"]) == 2
    assert capsys.readouterr().out == "a\n1\n"
