"""A plan as HTML for notebooks, made of the lines of its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from akrunner import markup
from akrunner.planning.text import INDENT

_WARNING = "warning: "
#: of so many lines below a name, the first is shown, and the others are folded
_LONG = 12


def plan(lines: Sequence[str], tables: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """Return the HTML of a plan.

    Args:
        lines: the lines of its text.
        tables: name of a line -> the table that stands in place of the lines below it, its headings first.
    """
    told: list[tuple[str, list[str]]] = []
    for one in lines[1:]:
        if one.startswith(INDENT) and told:
            told[-1][1].append(one[len(INDENT) :])
        elif not one.startswith(_WARNING):
            told.append((one[: len(INDENT)].rstrip(": "), [one[len(INDENT) :]]))
    title, _, words = lines[0].partition(";")
    return markup.block(
        markup.head(title, words.strip()),
        markup.warned([one.removeprefix(_WARNING) for one in lines if one.startswith(_WARNING)]),
        markup.facts({name: _entry(words, tables.get(name, ())) for name, words in told}),
    )


def _entry(words: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    first, below = markup.text(words[0]), words[1:]
    if rows:
        title = f"{len(rows) - 1:,} columns" if len(rows) != 2 else "1 column"
        # what the text says below its table
        more = "".join(markup.line(markup.text(line)) for line in below[len(rows) :])
        return first + markup.folded(title, markup.table(rows[0], rows[1:]) + more, is_open=len(rows) <= _LONG)
    boxed = markup.lines("\n".join(below))
    return first + (markup.folded(f"{len(below):,} more lines", boxed) if len(below) > _LONG else boxed)
