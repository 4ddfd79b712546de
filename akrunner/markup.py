"""HTML for notebooks: short, escaped, and readable on light and on dark pages.

What scripts print, and names in tables, may be anything, so every text goes through `text`. Styles stand at the elements, as a sheet of styles
would reach other cells, and JupyterLab and VS Code take it away where a notebook is not trusted. The letters have the page's own colour; what
has another one is no letter.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence

#: what colours a text in a terminal, moves its cursor, or names its window
_TERMINAL = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-_])")
#: characters that end an element, or an attribute; control characters, and those that turn the direction of a text, so that it reads otherwise
_ESCAPED: dict[int, str] = {
    **dict.fromkeys([*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd"),
    **str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}),
}
#: a grey that is seen on white and on black
_GREY = "rgba(128,128,128,.35)"
_BLUE, _GREEN, _RED, _AMBER = "#3b82f6", "#22a559", "#e5484d", "#d9a100"
#: a state in which a job may be -> the colour of its dot
_COLOURS = {"running": _BLUE, "succeeded": _GREEN, "failed": _RED, "lost": _RED, "stopped": _AMBER}
#: JupyterLab sets the text of tables to the right, in small letters
_CELL = "text-align:left;vertical-align:top;padding:1px 12px 1px 0;background:none"


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def text(value: object) -> str:
    """Return a text as HTML. Of a line that writes over itself, as a bar of progress does, the end stays, as on a terminal."""
    plain = str(value)
    if "\x1b" in plain or "\r" in plain or "\b" in plain:
        lines = _TERMINAL.sub("", plain).replace("\b", "").split("\n")
        plain = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
    return plain.translate(_ESCAPED)


def block(*parts: str) -> str:
    """Return the form of one object, made of parts that are HTML; empty ones are left out."""
    return f'<div style="line-height:1.5;max-width:72em">{"".join(parts)}</div>'


def line(html: str, small: bool = False) -> str:
    """Return a line; "" of none. Args: html: its HTML; small: whether it matters less than others."""
    style = ' style="font-size:90%;opacity:.75"' if small else ""
    return f"<div{style}>{html}</div>" if html else ""


def head(title: str, words: str, state: str = "") -> str:
    """Return the first line: a dot in the colour of a state, a title, and words behind it. Args: state: "": no dot."""
    dot = f'<span style="color:{_COLOURS.get(state, _GREY)}">&#9679;</span> ' if state else ""
    return line(f"{dot}<b>{text(title)}</b> {text(words)}")


def warned(warnings: Sequence[object], most: int = 10) -> str:
    """Return a line for each warning. Args: most: how many have one; of more, the last."""
    told = [f"and {len(warnings) - most:,} more warnings before", *warnings[-most:]] if len(warnings) > most else warnings
    return "".join(
        f'<div style="border-left:3px solid {_AMBER};padding-left:8px;margin:2px 0">{text(one)}</div>' for one in told
    )


def facts(pairs: Mapping[str, str]) -> str:
    """Return a table of names and what belongs to them; "" of none. Args: pairs: name -> HTML; "": it is left out."""
    rows = "".join(
        f'<tr style="background:none"><td style="{_CELL};opacity:.75;white-space:nowrap">{text(name)}</td>'
        f'<td style="{_CELL}">{html}</td></tr>'
        for name, html in pairs.items()
        if html
    )
    return f'<table style="border:none;margin:4px 0"><tbody>{rows}</tbody></table>' if rows else ""


def table(names: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of texts. Args: names: the columns' headings."""
    heads = "".join(f'<th style="{_CELL};font-weight:bold">{text(name)}</th>' for name in names)
    body = "".join(
        f'<tr style="background:none;border-top:1px solid {_GREY}">'
        + "".join(f'<td style="{_CELL}">{text(cell)}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    made = f'<thead><tr style="background:none">{heads}</tr></thead><tbody>{body}</tbody>'
    return f'<div style="overflow-x:auto"><table style="border:none;margin:4px 0;border-collapse:collapse">{made}</table></div>'


def lines(printed: str) -> str:
    """Return lines as they were printed, in a box that is not high; "" of none."""
    style = f"max-height:24em;overflow:auto;white-space:pre-wrap;margin:2px 0;padding:4px 8px;border:1px solid {_GREY};background:none"
    return f'<pre style="{style}">{text(printed)}</pre>' if printed.strip() else ""


def folded(title: str, html: str, is_open: bool = False) -> str:
    """Return HTML that is unfolded by a click on its title; "" of none."""
    opened = " open" if is_open else ""
    return f'<details{opened}><summary style="cursor:pointer">{text(title)}</summary>{html}</details>' if html else ""


def bar(share: float) -> str:
    """Return a bar. Args: share: how much of it is full, 0 to 1."""
    full = f'<div style="width:{100 * min(max(share, 0.0), 1.0):.1f}%;height:100%;border-radius:3px;background:{_BLUE}"></div>'
    return f'<div style="height:6px;max-width:40em;border-radius:3px;margin:4px 0;background:{_GREY}">{full}</div>'
