"""HTML for notebooks: whatever a text holds, it stays a text."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from akrunner import markup

#: what scripts and names of columns may be
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&lt;\x1b]0;title\x07\x00\u202e"


class Elements(HTMLParser):
    """What a browser would make of it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs)}
        self.open += [tag] if tag != "br" else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


#: all elements and attributes that there may be
KNOWN = {
    "div",
    "span",
    "b",
    "br",
    "code",
    "pre",
    "table",
    "thead",
    "tbody",
    "tr",
    "td",
    "th",
    "details",
    "summary",
    "style",
    "open",
}


def read(html: str) -> str:
    """What HTML says, which is whole and has no element that does something. Returns: its text."""
    elements = Elements()
    elements.feed(html)
    elements.close()
    assert not elements.open and elements.found <= KNOWN, (elements.open, elements.found)
    return elements.text


@pytest.mark.parametrize(
    "made",
    [
        markup.block(markup.head(HOSTILE, HOSTILE, HOSTILE), markup.line(markup.text(HOSTILE), small=True)),
        markup.warned([HOSTILE]),
        markup.facts({HOSTILE: markup.text(HOSTILE)}),
        markup.table([HOSTILE], [[HOSTILE]]),
        markup.folded(HOSTILE, markup.lines(HOSTILE), is_open=True),
    ],
)
def test_a_text_stays_a_text(made: str) -> None:
    text = read(made)
    assert "<script>alert(1)</script>" in text and not {"\x00", "\x1b", "\u202e"} & set(text) and "title" not in text


@pytest.mark.parametrize(
    ("printed", "told"),
    [("\x1b[1;31mred\x1b[0m", "red"), ("10%\r50%\r100%\nnext\r\n", "100%\nnext\n"), ("a\tb", "a\tb"), (7, "7")],
)
def test_what_was_meant_for_a_terminal(printed: object, told: str) -> None:
    assert markup.text(printed) == told


def test_what_is_empty_is_left_out() -> None:
    assert markup.facts({"output": ""}) == markup.folded("x", "") == markup.lines(" \n") == markup.line("") == ""


def test_of_many_warnings_the_last_are_shown() -> None:
    assert read(markup.warned(["a", "b", "c"], most=2)) == "and 1 more warnings beforebc"


@pytest.mark.parametrize(("share", "width"), [(0.255, "25.5%"), (7.0, "100.0%"), (-1, "0.0%")])
def test_a_bar_is_as_wide_as_it_can_be(share: float, width: str) -> None:
    assert f"width:{width}" in markup.bar(share)


def test_a_terminal_of_ipython_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not markup.in_notebook()
    for shell, notebook in ((SimpleNamespace(kernel=1), True), (SimpleNamespace(), False), (None, False)):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert markup.in_notebook() is notebook
