"""Turns errors of DuckDB and sqlglot into our own words, without their names and without the text they were given."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from akrunner.column_types import TABLE, Family
from akrunner.errors import AkrunnerError, ConfigError
from akrunner.foreign import ours
from akrunner.tables.types import DUCKDB

#: DuckDB's names of types -> MaxCompute's
_TYPES = {
    # numpy's names of integers, which DuckDB's errors use
    **{row.dtype.upper(): row.maxcompute.upper() for row in TABLE if row.sql and row.family is Family.WHOLE},
    **{duckdbs: words.upper() for words, duckdbs in DUCKDB.items()},
}
#: how many columns are named when a query names one that does not exist
_SHOWN = 50
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@contextlib.contextmanager
def told(columns: Sequence[str] = ()) -> Iterator[None]:
    """Turn the exceptions of a `with` block into ours.

    Args:
        columns: the columns of all tables of the query, if it can name no others; () if it can.
    Raises:
        ConfigError: DuckDB or Arrow refused the query, or could not compute a value.
    """
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise
    except duckdb.Error as e:
        raise ConfigError(f"sql: {plain(str(e), columns)}") from None
    except (pa.ArrowException, OSError) as e:
        if isinstance(e, AkrunnerError):
            raise
        with ours(ConfigError, "sql"):
            raise


def plain(said: str, columns: Sequence[str] = ()) -> str:
    """Return DuckDB's message about a query in our words, without its own names and without the text it was given."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("LINE") and line.strip(" ^")]
    words = re.sub(r"^[A-Z]\w*( [A-Z]\w*)* (Error|Exception): ", "", " ".join(" ".join(lines[:3]).split()))
    words = re.sub(r"(?i)\bodps_", "", words)
    words = re.sub(r" when casting from source column c\d+", "", words)
    words = re.sub(rf"\b({'|'.join(_TYPES)})\b", lambda found: _TYPES[found[0]], words)
    unknown = re.match(r"\w+ Function with name (\w+) does not exist", words)
    if unknown is not None:
        return f"there is no function {unknown[1]} here"
    lacks = re.match(
        r'Referenced column "(.+?)" not found|(?:Values list|Table) ".+?" does not have a column named "(.+?)"', words
    )
    if lacks is not None and columns:
        there = ", ".join(f'"{one}"' for one in columns[:_SHOWN])
        more = f" and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else ""
        return f"there is no {lacks[1] or lacks[2]}; there {'are' if len(columns) > 1 else 'is'} {there}{more}"
    column = re.match(r"""Referenced (?:column|table) "(.+?)" not found(?: in FROM clause)?!(?: Candidate \w+: (.*))?""", words)
    if column is not None:
        return f"there is no {column[1]}" + (f"; there is {column[2]}" if column[2] else "")
    for pattern in (r"No function matches the given name and argument types '(.*?)'\. ", r'for the function call "(.*?)"\. '):
        takes = re.search(pattern, words)
        if takes is not None:
            return f"no function takes this: {takes[1]}; CAST what it is given"
    return re.sub(r" Use TRY.*", "", words)


def unparsed(error: Any) -> str:
    said = (error.errors or [{}])[0] if hasattr(error, "errors") else {}
    if said.get("description"):
        words = re.sub(r"Required keyword: '\w+' missing for <class '[\w.]*?(\w+)'>", _missing, said["description"])
        return f"{words} (line {said.get('line')}, column {said.get('col')})"
    lines = _ANSI.sub("", str(error)).splitlines()
    return lines[0] if lines else "it cannot be parsed"


def _missing(found: re.Match[str]) -> str:
    return f"something is missing in {found[1].upper()}"


__all__ = ["told", "unparsed"]
