"""The result of a job, and a table's first rows, as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from akrunner import markup
from akrunner.engines import shown
from akrunner.foreign import redacted

if TYPE_CHECKING:
    from akrunner.running.result import Result

#: how many rows and columns are shown, how many values of a list, and how many characters of a value
_ROWS, _COLUMNS, _VALUES, _CHARACTERS = 10, 20, 6, 80
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)


def result(told: Result) -> str:
    """Return the HTML of a job's result: its first rows, where things are, and what the tasks printed."""
    stats = told.stats
    count = f"{stats.rows_out:,} row{'s' * (stats.rows_out != 1)} in {stats.seconds:.1f} s"
    run = f"{told.run}: <code>akrunner.runs.get({told.run!r})</code> has its logs and numbers" if told.run is not None else ""
    return markup.block(
        markup.head("Result", count),
        markup.warned(stats.warnings),
        rows(told.table, "result.table, result.to_pandas()") if told.table is not None else "",
        markup.facts(
            {
                "output": _place(told.output),
                "model": _place(told.model.path if told.model is not None else None),
                "run": run,
                "work dir": _place(told.work_dir),
            }
        ),
        shown.printed(list(told.tasks)),
        markup.folded("numbers", shown.numbers(stats)),
    )


def _place(place: str | None) -> str:
    return markup.text(redacted(place)) if place is not None else ""


def rows(table: pa.Table, how: str) -> str:
    """Return the HTML of a table's first rows. Args: how: how to get the others, in words."""
    first = table.slice(0, _ROWS).select(list(range(min(table.num_columns, _COLUMNS))))
    heads = [f"{field.name} {field.type}" for field in first.schema]
    more = [f"{table.num_rows - _ROWS:,} more rows"] if table.num_rows > _ROWS else []
    more += [f"{table.num_columns - _COLUMNS:,} more columns"] if table.num_columns > _COLUMNS else []
    cells: Sequence[Any] = [[_cell(value) for value in column] for column in first.columns]
    note = f"{' and '.join(more)}: {how}" if more else ""
    return markup.table(heads, zip(*cells)) + markup.line(markup.text(note), small=True)


def _cell(value: pa.Scalar) -> str:
    """Return a value as a short text: of a long list its first values, as there may be millions of them."""
    if not value.is_valid:
        return "null"
    try:
        if isinstance(value, pa.ExtensionScalar):
            value = value.value
        if isinstance(value, pa.ListScalar):
            told = ", ".join(_cell(one) for one in value.values[:_VALUES])
            return f"[{told}{', ...' if len(value.values) > _VALUES else ''}]"
        if any(is_it(value.type) for is_it in _BYTES):
            return f"{len(value.as_py()):,} bytes"
        plain = value.as_py()
        words = f"{plain:.6g}" if isinstance(plain, float) else str(plain)
    except (OverflowError, ValueError):
        # a timestamp outside of the range of Python's datetime
        return "?"
    return words if len(words) <= _CHARACTERS else words[: _CHARACTERS - 3] + "..."
