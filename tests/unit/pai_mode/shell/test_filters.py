"""What `tr`, `cut`, `head`, `sed`, ... make of a pipe, in the forms everybody writes; of any other form nobody knows it."""

from __future__ import annotations

import pytest

from akrunner.pai_mode.shell.filters import printed

_MADE: list[tuple[list[str], str, str]] = [
    (["tr", ",", " "], "a,b,c\n", "a b c\n"),
    (["tr", "abc", "xy"], "aabbcc\n", "xxyyyy\n"),
    (["tr", "a-z", "A-Z"], "a-b1\n", "A-B1\n"),
    (["tr", "[:lower:]", "[:upper:]"], "aBc\n", "ABC\n"),
    (["tr", "\\n", ","], "a\nb\n", "a,b,"),
    (["tr", "aa", "xy"], "a\n", "y\n"),
    (["tr", "-d", "0-9-"], "a1-b22\n", "ab\n"),
    (["tr", "-d", "[:space:]"], " a b\n", "ab"),
    (["tr", "-s", " "], "a   b c\n", "a b c\n"),
    (["cut", "-c1-4"], "20200101\nab\n", "2020\nab\n"),
    (["cut", "-c", "3"], "abcd\nab\n", "c\n\n"),
    (["cut", "-c5-"], "20200101\n", "0101\n"),
    (["cut", "-d,", "-f2"], "a,b,c\nnone\n", "b\nnone\n"),
    (["cut", "-d", ",", "-f", "3"], "a,b\n", "\n"),
    (["cut", "-f2", "-d:"], "a:b:c", "b\n"),
    (["cut", "-d", " ", "-f2"], "a b\n", "b\n"),
    (["head", "-1"], "a\nb\n", "a\n"),
    (["head", "-n", "2"], "a\nb\nc", "a\nb\n"),
    (["head", "-n0"], "a\n", ""),
    (["head"], "".join(f"{one}\n" for one in range(12)), "".join(f"{one}\n" for one in range(10))),
    (["tail", "-1"], "a\nb", "b"),
    (["tail", "-n", "2"], "a\nb\nc\n", "b\nc\n"),
    (["tail", "-n", "0"], "a\n", ""),
    (["wc", "-l"], "a\nb", "1\n"),
    (["wc", "-w"], " a b\nc ", "3\n"),
    (["wc", "-c"], "a b\n", "4\n"),
    (["sed", "s/a/b/"], "aa\nca\n", "ba\ncb\n"),
    (["sed", "s/a/b/g"], "aa\n", "bb\n"),
    (["sed", "-e", "s|^/x|/y|"], "/x/x\n/z\n", "/y/x\n/z\n"),
    (["sed", "s/,$//"], "a,b,\nc\n", "a,b\nc\n"),
    (["sed", "s/$/./"], "a\n\n", "a.\n.\n"),
    (["awk", "{print $2}"], " a  b\tc\n\nd\n", "b\n\n\n"),
    (["awk", "{ print $NF; }"], "a b\n", "b\n"),
    (["awk", "{print $0}"], " a b\n", " a b\n"),
    (["awk", "-F:", "{print $2}"], "a:b\nc\n", "b\n\n"),
    (["awk", "-F", "=", "{print $1}"], "a=b\n", "a\n"),
    (["sort"], "b\na\nb\n", "a\nb\nb\n"),
    (["sort", "-u"], "b\na\nb\n", "a\nb\n"),
    (["sort", "-r"], "b\nc\na\n", "c\nb\na\n"),
    (["sort", "-n"], "10\n9\n009\n", "009\n9\n10\n"),
    (["uniq"], "a\na\nb\na\n", "a\nb\na\n"),
]


@pytest.mark.parametrize("words, text, made", _MADE, ids=[" ".join(words) for words, _, _ in _MADE])
def test_what_comes_out_of_the_pipe(words: list[str], text: str, made: str) -> None:
    assert printed(words[0], words[1:], text) == made


@pytest.mark.parametrize(
    "words", [["cut", "-c1"], ["cut", "-d,", "-f1"], ["head", "-1"], ["tail", "-1"], ["awk", "{print $1}"], ["sort"], ["uniq"], ["tr", "a", "b"]]
)  # fmt: skip
def test_of_nothing_comes_nothing(words: list[str]) -> None:
    assert printed(words[0], words[1:], "") == ""


@pytest.mark.parametrize(
    "words",
    [
        ["grep", "a"],
        ["tr", "a"],
        ["tr", "-c", "a", "b"],
        ["tr", "a", "b", "-d"],
        ["tr", "[a]", "b"],
        ["tr", "a", ""],
        ["tr", "\\0", "b"],
        ["cut", "-c0"],
        ["cut", "-c3-1"],
        ["cut", "-c1,3"],
        ["cut", "-d,", "-f1,2"],
        ["cut", "-d,", "-f0"],
        ["cut", "-f1"],
        ["head", "-c", "1"],
        ["head", "-n", "-1"],
        ["head", "file"],
        ["tail", "-n", "+2"],
        ["tail", "-f"],
        ["wc"],
        ["wc", "-l", "file"],
        ["sed", "s/a.c/b/"],
        ["sed", "s/a/&/"],
        ["sed", "s/a/b/p"],
        ["sed", "s///"],
        ["sed", "-n", "1p"],
        ["sed", "s/a/b/", "file"],
        ["awk", "{print $1, $2}"],
        ["awk", "/a/{print $1}"],
        ["awk", "{print $1}", "file"],
        ["sort", "-k2"],
        ["uniq", "-c"],
    ],
)
def test_a_form_that_is_not_followed_is_not_guessed(words: list[str]) -> None:
    assert printed(words[0], words[1:], "a\nb\n") is None


@pytest.mark.parametrize("text", [None, "\u4e2d\u6587\n", "a\0b\0"])
def test_a_text_nobody_knows_or_of_other_letters_is_not_followed(text: str | None) -> None:
    assert printed("head", ["-1"], text) is None


def test_a_word_nobody_knows_is_not_followed() -> None:
    assert printed("tr", ["\0x\0", "b"], "a\n") is None


@pytest.mark.parametrize(
    "words, text", [(["sort"], "b\nA\n"), (["sort"], "a b\n"), (["sort", "-n"], "a\n"), (["sed", "s/a/b/"], "a")]
)
def test_what_hangs_on_the_machine_is_not_guessed(words: list[str], text: str) -> None:
    assert printed(words[0], words[1:], text) is None
