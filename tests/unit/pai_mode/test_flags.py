"""Flags of the script, from a file or from one text: edges of both, and errors that show no secret."""

from __future__ import annotations

import pytest

from akrunner.errors import ConfigError
from akrunner.pai_mode import flags


@pytest.mark.parametrize(
    "text, found",
    [
        ("", []),
        ("\n\n# a=1\n  // b=2\n", []),
        ("--lr=1\n-momentum=2\nsteps=3", ["--lr=1", "--momentum=2", "--steps=3"]),
        ("a.b-c_d=1", ["--a.b-c_d=1"]),
        ("a=b=c", ["--a=b=c"]),
        ("a=b#c", ["--a=b#c"]),
        ("a=1 ;,", ["--a=1"]),
        ("a=''", ["--a="]),
        ("a='", ["--a='"]),
        ("a=\"b'", ["--a=\"b'"]),
        ('a="x y"', ["--a=x y"]),
        ("\u540d=1", None),
        ("a=\u4e2d\u6587", ["--a=\u4e2d\u6587"]),
        ("=1", None),
        ("a b=1", None),
        ("9=1", None),
        ("a", None),
    ],
)
def test_a_line_of_a_file_is_a_flag(text: str, found: list[str] | None) -> None:
    if found is None:
        with pytest.raises(ConfigError, match="^hyperParameters: line 1 of h.txt must be key=value, not "):
            flags.from_file(text, "h.txt")
        return
    assert flags.from_file(text, "h.txt") == found


def test_empty_lines_count_and_a_secret_is_not_shown() -> None:
    with pytest.raises(ConfigError, match="line 3 of h.txt") as raised:
        flags.from_file("a=1\n\nuse oss://b/?access_key_secret=hunter2", "h.txt")
    assert "hunter2" not in str(raised.value)
    with pytest.raises(ConfigError, match="userDefinedParameters: no closing quotation") as raised:
        flags.from_text("--x='oss://b/?access_key_secret=hunter2")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "text, found",
    [
        ("  ", []),
        ("--a=1 \\  \n --b=2 \\", ["--a=1", "--b=2"]),
        ("--a='1\n2'", ["--a=1\n2"]),
        ("--a='' b", ["--a=", "b"]),
        (r"--a=x\ y", ["--a=x y"]),
        ("--a=#1 # 2", ["--a=#1", "#", "2"]),
    ],
)
def test_words_are_divided_as_by_a_shell(text: str, found: list[str]) -> None:
    assert flags.from_text(text) == found


@pytest.mark.parametrize(
    "flag, made",
    [
        ("--m=oss://b/x", "--m=<oss://b/x>"),
        ("--m=OSS://b/x", "--m=<OSS://b/x>"),
        ("--m=oss://b/a,oss://c/b;x", "--m=<oss://b/a>,<oss://c/b>;x"),
        ('{"a":["oss://b/x"],"b":1}', '{"a":["<oss://b/x>"],"b":1}'),
        ("(oss://b/x)|y", "(<oss://b/x>)|y"),
        ("--m=oss://b/x y", "--m=<oss://b/x> y"),
        ("--m=oss:/b/x", "--m=oss:/b/x"),
        ("", ""),
    ],
)
def test_an_address_ends_where_the_text_around_it_goes_on(flag: str, made: str) -> None:
    assert flags.localised([flag], lambda uri: f"<{uri}>")[0] == [made]


def test_what_stands_behind_a_question_mark_is_not_told() -> None:
    found, replaced = flags.localised(["--a=oss://b/x?role_arn=acs:ram::1", "--b=1"], lambda uri: "/x")
    assert found == ["--a=/x", "--b=1"] and replaced == [("oss://b/x", "/x")]
    assert flags.localised([], lambda uri: uri) == ([], [])
