"""What `echo`, `printf`, `seq`, ... print, where it is known without running them."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.pai_mode.shell import dates
from akrunner.pai_mode.shell.flow import MARK
from akrunner.pai_mode.shell.prints import PRINTED, formatted
from akrunner.pai_mode.shell.reader import Reader
from akrunner.pai_mode.shell.values import marked

UNKNOWN = marked("x")


def reader(folder: str = "/folder") -> Reader:
    made = Reader("", folder, {})
    made.state.folder = folder
    return made


def printed(name: str, *words: str) -> str | None:
    return PRINTED[name](reader(), list(words))


@pytest.mark.parametrize(
    "words, made",
    [
        ([], "\n"),
        (["a", "b c"], "a b c\n"),
        (["-n", "a"], "a"),
        (["-e", r"a\tb\\n"], "a\tb\\n\n"),
        (["-ne", r"a\n"], "a\n"),
        (["-e", "-E", r"a\tb"], "a\\tb\n"),
        ([r"a\tb"], "a\\tb\n"),
        (["--", "-n"], "-- -n\n"),
        (["-x"], "-x\n"),
        (["a", "-n"], "a -n\n"),
        (["-e", r"\x41"], None),
        (["-e", "a\\"], None),
        ([UNKNOWN], f"{UNKNOWN}\n"),
    ],
)
def test_echo(words: list[str], made: str | None) -> None:
    assert printed("echo", *words) == made


@pytest.mark.parametrize(
    "words, made",
    [
        ([], ""),
        (["a"], "a"),
        (["%s-%s\\n", "a", "b c"], "a-b c\n"),
        (["%s\\n", "a", "b"], "a\nb\n"),
        (["%s,%s;", "a", "b", "c"], "a,b;c,;"),
        (["%s"], ""),
        (["a", "b"], "a"),
        (["%d %i", "010", "+5"], "8 5"),
        (["%d"], "0"),
        (["%03d|%-3d|%3d", "7", "7", "-7"], "007|7  | -7"),
        (["%05d", "-3"], "-0003"),
        (["%5s|%-3s|", "a", "b"], "    a|b  |"),
        (["100%% \\t\\\\"], "100% \t\\"),
        (["%s!", UNKNOWN], f"{UNKNOWN}!"),
        (["%d", UNKNOWN], None),
        (["%5s", UNKNOWN], None),
        (["%d", "x"], None),
        (["%d", "08"], None),
        (["%x", "1"], None),
        (["%.2f", "1"], None),
        (["%08s", "a"], None),
        (["%5s", "\u4e2d"], None),
        (["\\x41"], None),
        (["-v"], None),
        ([UNKNOWN], None),
    ],
)
def test_printf(words: list[str], made: str | None) -> None:
    assert formatted(words) == made


@pytest.mark.parametrize(
    "words, made",
    [
        (["3"], "1\n2\n3\n"),
        (["2", "4"], "2\n3\n4\n"),
        (["1", "3", "8"], "1\n4\n7\n"),
        (["3", "-1", "1"], "3\n2\n1\n"),
        (["3", "1"], ""),
        (["-w", "8", "10"], "08\n09\n10\n"),
        (["-s", ",", "3"], "1,2,3\n"),
        (["-s:", "2"], "1:2\n"),
        (["1.5"], None),
        (["1", "0", "3"], None),
        (["-f", "%g", "3"], None),
        (["-w", "01", "3"], None),
        (["-s", "\\n", "3"], None),
        (["6000"], None),
        ([], None),
    ],
)
def test_seq(words: list[str], made: str | None) -> None:
    assert printed("seq", *words) == made


@pytest.mark.parametrize(
    "name, words, made",
    [
        ("basename", ["a/b.sql"], "b.sql"),
        ("basename", ["a/b.sql", ".sql"], "b"),
        ("basename", ["a/.sql", ".sql"], ".sql"),
        ("basename", ["a/b/"], "b"),
        ("basename", ["/"], "/"),
        ("basename", ["-a", "b"], None),
        ("basename", [UNKNOWN], None),
        ("basename", [], None),
        ("dirname", ["a/b"], "a"),
        ("dirname", ["a/b/"], "a"),
        ("dirname", ["a"], "."),
        ("dirname", ["/a"], "/"),
        ("dirname", ["/"], "/"),
        ("dirname", [marked("0")], "/folder"),
        ("dirname", [UNKNOWN], None),
        ("dirname", ["a", "b"], None),
        ("pwd", [], "/folder"),
        ("pwd", ["-P"], None),
        ("expr", ["3", "+", "4"], "7"),
        ("expr", ["3", "*", "-4"], "-12"),
        ("expr", ["-7", "/", "2"], "-3"),
        ("expr", ["-7", "%", "2"], "-1"),
        ("expr", ["1", "/", "0"], None),
        ("expr", ["a", "+", "1"], None),
        ("expr", ["1", "=", "1"], None),
        ("expr", ["1"], None),
    ],
)
def test_names_and_numbers(name: str, words: list[str], made: str | None) -> None:
    assert printed(name, *words) == (None if made is None else f"{made}\n")


def test_cat_takes_its_input_away_from_what_follows() -> None:
    made = reader()
    made.stdin.text = "a\n"
    assert PRINTED["cat"](made, []) == "a\n"
    assert PRINTED["cat"](made, ["-"]) is None


def test_cat_joins_files_whose_text_is_known(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "b").write_text("2")
    made = reader(str(tmp_path))
    assert PRINTED["cat"](made, ["a", "b"]) == "1\n2"
    assert PRINTED["cat"](made, ["a", "nope"]) is None
    assert PRINTED["cat"](made, ["-n", "a"]) is None
    made.passed = True
    assert PRINTED["cat"](made, ["a"]) is None


def test_a_date_is_known_unless_the_script_has_a_zone_or_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dates, "printed", lambda words, now: " ".join(words))
    assert printed("date", "+%F") == "+%F"
    assert printed("date", f"+{MARK}x{MARK}") is None
    for change in ("known", "prefixed", "stale"):
        made = reader()
        if change == "stale":
            made.state.stale = True
        elif change == "known":
            made.state.known["TZ"] = "UTC"
        else:
            made.prefixed["TZ"] = "UTC"
        assert PRINTED["date"](made, ["+%F"]) is None


def test_of_a_directory_nobody_knows_pwd_is_not_known() -> None:
    made = reader()
    made.state.folder = None
    assert PRINTED["pwd"](made, []) is None
