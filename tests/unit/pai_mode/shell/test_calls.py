"""A shell script's calls of odpscmd become the statements they hand over; what only running would tell is an error that says what to give."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell import calls
from akrunner.pai_mode.shell.calls import Client, Piece
from akrunner.pai_mode.shell.flow import Field
from akrunner.pai_mode.shell.reader import Reader
from akrunner.pai_mode.shell.values import marked


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a file of statements, in which one is."""
    (tmp_path / "a.sql").write_text("insert a;\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.sql").write_text("insert b;\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pieces(text: str, folder: str = "/folder", **variables: str) -> list[Piece]:
    return Reader(text, folder, variables).read().pieces


@pytest.mark.parametrize(
    "text, variable, meant",
    [
        ("odpscmd", "", True),
        ("/opt/odps/bin/odpscmd", "", True),
        ("odpscmd.sh", "", True),
        ("ODPSCMD", "", True),
        ("my-odpscmd", "", False),
        ("echo", "", False),
        (marked("odpscmd"), "", True),
        (marked("ODPSCMD"), "ODPSCMD", True),
        ("/any/client", "odpscmd_path", True),
        ("echo", "ODPSCMD", False),
        (":", "odpscmd", False),
        (marked("x"), "x", False),
    ],
)
def test_the_client_is_known_by_its_name_or_by_its_variables(text: str, variable: str, meant: bool) -> None:
    assert Client(Reader("", "/", {})).meant(Field([(text, False)], variable)) is meant


@pytest.mark.parametrize(
    "text, found",
    [
        ('odpscmd -e "a;"', [("a;", False, False)]),
        ("odpscmd --execute=a -e b", [("a", False, False), ("b", False, True)]),
        ("odpscmd -f a.sql", [("a.sql", True, False)]),
        ("odpscmd -e a --file=a.sql", [("a", False, False), ("a.sql", True, True)]),
        ("odpscmd < a.sql", [("a.sql", True, False)]),
        ("odpscmd <<E\na\nE", [("a\n", False, False)]),
        ("echo 'a;' | odpscmd", [("a;\n", False, False)]),
        ("odpscmd -k 1 -M -r 3 -e a", [("a", False, False)]),
        ("odpscmd --config=$C -u me -p $KEY --endpoint $E -e a", [("a", False, False)]),
        ("odpscmd --version; odpscmd -h", []),
        ("echo 'a;' > new.sql; odpscmd -f new.sql", [("a;\n", False, False)]),
    ],
)
def test_a_call_hands_over_its_texts_and_files(text: str, found: list[tuple[str, bool, bool]]) -> None:
    assert [(one.text, one.file, one.more) for one in pieces(text)] == found


def test_a_call_has_its_line_and_its_project() -> None:
    assert pieces("\nodpscmd \\\n --project=p --project q -e a\nodpscmd -e b") == [Piece("a", 2, project="q"), Piece("b", 4)]


def test_a_command_of_pai_has_its_quotes_again() -> None:
    (piece,) = pieces("pai -name t -Dscript=a.py -Dx='b c' -Dy=it\\'s -Dz='a\\b;' -Dj='{\"k\":1}'")
    assert piece.text == r"""pai -name t -Dscript=a.py -Dx='b c' -Dy='it\'s' -Dz='a\\b;' -Dj='{"k":1}'"""


def test_what_a_call_prints_is_not_known() -> None:
    made = Reader("odpscmd -e a > log; x=$(cat log)", "/folder", {})
    made.read()
    assert made.written[os.path.join(os.getcwd(), "log")] not in ("", "a")
    with pytest.raises(ConfigError, match=r"line 1: a call stands in \$\(...\) or in backticks"):
        pieces("x=$(odpscmd -e a)")


@pytest.mark.parametrize(
    "text, told",
    [
        ("odpscmd -e a b", r'-e has several words; quote them: -e "..."'),
        ("odpscmd -f a.sql b.sql", "-f has several words"),
        ("odpscmd --frob -e a", "akrunner does not know odpscmd's option --frob"),
        ("odpscmd -k 2 -e a", "-k leaves out the first statements of the call"),
        ("odpscmd --project=a-b -e a", "line 2: --project: "),
        (
            "odpscmd",
            "reads statements that are not known before the script is run; hand them over by -e, -f or a here-document",
        ),
        ("wc -l f | odpscmd", "reads statements that are not known"),
        ('odpscmd -e "drop $t"', r"\$t has no value; give it: --var t=VALUE"),
        ("odpscmd -e $t", r"\$t has no value"),
        ("odpscmd -f $t.sql", r"\$t has no value; give it: --var t=VALUE"),
        ('odpscmd -e "drop $1"', "what the script is called with is not known; give its arguments, --var 1=VALUE"),
        ('odpscmd -e "$#"', r"give its arguments, --var 1=VALUE \(and 2, 3, ...\)"),
        ('odpscmd -e "$0"', r"--var 0=VALUE"),
        ('f() { odpscmd -e "$1"; }; f $u', "what the function is called with is not known: call it with words that are"),
        ('x=$(wc -l f); odpscmd -e "$x"', r"\$x is what `wc -l f` prints, .* --var x=VALUE"),
        ('odpscmd -e "$(wc -l f)"', r"`wc -l f` would have to be run .* x=\$\(...\), and give that: --var x=VALUE"),
        ('y=1; odpscmd -e "${y@Q}"', r"cannot tell what y@Q comes to here; put it into a variable"),
        ('x=$y; grep a f && x=1; odpscmd -e "$x"', r"\$x has no value; give it: --var x=VALUE"),
        (
            "x=1; grep a f && odpscmd -e $x",
            r"depends on line 2 \(x=1; grep a f && odpscmd -e \$x\), .* run it without --dry-run",
        ),
        ("n=$(wc -l f); [ $n = 1 ] && odpscmd -e a", "does not know what `wc -l f` prints; give its variable, --var n=VALUE"),
        ("python3 make.py > m.sql; odpscmd -f m.sql", "the script itself makes or changes m.sql"),
        ("sed -i s/a/b/ a.sql; odpscmd -f a.sql", "the script itself makes or changes a.sql"),
        ("source env.sh; odpscmd -f a.sql", "a.sql is looked for in a directory that is not known; name it from / on"),
    ],
)
def test_what_is_not_known_of_a_call_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as raised:
        pieces(f"\n{text}")
    assert str(raised.value).startswith("line 2: ")


def test_an_error_shows_no_secret() -> None:
    with pytest.raises(ConfigError) as raised:
        pieces("odpscmd --access-key=hunter2 -e a")
    assert "hunter2" not in str(raised.value)


def test_a_file_is_named_from_where_the_script_has_gone(here: Path) -> None:
    (piece,) = pieces("cd sub; odpscmd -f b.sql")
    assert piece == Piece(str(here / "sub" / "b.sql"), 1, True)
    assert pieces("cd sub; cd ..; odpscmd -f a.sql")[0].text == "a.sql"


@pytest.mark.parametrize(
    "statement", ["pai -name t -Dscript=x.py", "pai -name t -Dscript='file://x.py'", "tunnel upload x.csv t", "add py x.py -f"]
)
def test_a_statement_that_names_a_file_behind_cd_is_refused(statement: str) -> None:
    with pytest.raises(ConfigError, match=r"line 1: x\.(py|csv) is looked for where the script has gone by cd"):
        pieces(f'cd sub; odpscmd -e "{statement}"')
    assert len(pieces(f'odpscmd -e "{statement}"')) == 1
    assert len(pieces(f'cd sub; odpscmd -e "{statement.replace("x.", "/x.").replace("file:///x", "file:////x")}"')) == 1


def test_behind_a_job_or_a_download_files_are_not_what_they_were() -> None:
    for text, left in (("select 1;", "insert a;"), ("pai -name t", None), ("tunnel download t x.csv", None)):
        made = Reader(f'odpscmd -e "{text}"', "/folder", {})
        made.read()
        assert (made.content("a.sql") or "").strip() == (left or "")
    # those of a file as well
    for name, text, passed in (
        ("p.sql", "tunnel download t x;", True),
        ("q.sql", "select 1;", False),
        ("nope.sql", None, True),
    ):
        if text is not None:
            Path(name).write_text(text)
        made = Reader(f"odpscmd -f {name}", "/folder", {})
        made.read()
        assert made.passed is passed


def test_the_variable_that_is_to_be_given() -> None:
    assert calls.giving(f"{marked('home')}/bin/x") == "home"
    assert calls.giving(marked("$(which x)")) == "NAME"
    assert calls.giving("x") == "NAME"
