"""docs/types.md: its table is written from `akrunner.column_types.TABLE`, what stands around it by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from akrunner.column_types import TABLE, ColumnType, Family, wider
from akrunner.wire.features import KINDS

PAGE = Path(__file__).parents[1] / "docs" / "types.md"
BEGIN, END = "<!-- written by scripts/gen-types -->\n", "<!-- to here -->\n"
HEAD = ("in a schema", "as many values", "Arrow", "in an Example", "as columns", "MaxCompute", "Alink's files", "Flink")


def lines() -> Iterator[str]:
    yield f"| {' | '.join(HEAD)} |"
    yield f"| {' | '.join('---' for _ in HEAD)} |"
    for row in TABLE:
        yield f"| {' | '.join(cells(row))} |"


def cells(row: ColumnType) -> Iterator[str]:
    """What stands in a row of the page. In brackets: the next type which holds these values, where there is none of its own."""
    yield ", ".join(f"`{word}`" for word in (row.name, *row.words)) if row.declared else f"({row.name})"
    yield ", ".join(f"`{word.upper()}`" for word in row.many) if row.many else f"`array<{row.name}>`" if row.declared else ""
    arrow = [str(one).partition("[")[0].partition("(")[0] for one in (row.arrow, *row.also)]
    # of how many bits there are, versions of Arrow differ
    yield ", ".join(arrow) if row.family is not Family.DECIMAL else "decimals"
    yield KINDS[row.feature].field
    yield row.dtype
    yield named(row, "maxcompute", row.maxcompute)
    yield named(row, "alink", row.alink[0] if row.alink else "")
    yield named(row, "flink", row.flink)


def named(row: ColumnType, system: str, own: str) -> str:
    """How another system calls the type."""
    if own:
        moment = row.family is Family.MOMENT and system == "maxcompute"
        return "`datetime` (to milliseconds), `timestamp`" if moment else f"`{own}`"
    instead = wider(row, lambda one: getattr(one, system))
    return f"(`{instead.name}`)" if instead is not None else ""


def page() -> str:
    """The page, with the table as it is now."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return before + BEGIN + "\n" + "\n".join(lines()) + "\n\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page())
