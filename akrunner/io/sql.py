"""SQL over a table that is still to be read, with DuckDB."""

from __future__ import annotations

import dataclasses
import re
import tempfile
from typing import Any, Iterator, List, Tuple

import pyarrow as pa

from akrunner.errors import AkrunnerError, SourceError
from akrunner.io.table import BATCH_ROWS, TableSource, opened_once

_STATEMENT = re.compile(r"\s*(select|with|from|values)\b", re.IGNORECASE)


def selected(table: TableSource, select: str) -> TableSource:
    """The result of a query, read as it is drawn.

    Args:
        table: in the query it is called `input`.
        select: a query, or only the expressions between SELECT and FROM.
    Raises: SourceError: DuckDB refuses it; its own words and caret are in the message.
    """
    opened = _opened(table, select)
    batches = opened_once(opened[1], lambda: _opened(table, select)[1])
    return dataclasses.replace(table, schema=opened[0], open=batches, files=None)


def _opened(table: TableSource, select: str) -> Tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import duckdb

    query = select if _STATEMENT.match(select) else f"SELECT {select} FROM input"
    connection = duckdb.connect(config={"temp_directory": tempfile.gettempdir()})
    failed: List[AkrunnerError] = []
    reader = pa.RecordBatchReader.from_batches(table.schema, _kept(table.batches(), failed))
    connection.register("input", reader)
    try:
        result = connection.sql(query)
        if result is None:
            raise SourceError(f"select: {select!r} is not a query that returns rows")
        rows = duckdb_reader(result)
    except duckdb.Error as e:
        connection.close()
        if failed:
            raise failed[0] from None
        raise SourceError(f"select: {e}\n(the table is called `input`; its columns: {', '.join(table.schema.names)})") from None

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from rows
        except (duckdb.Error, pa.ArrowException, OSError) as e:
            raise failed[0] if failed else SourceError(f"select: {e}") from None
        finally:
            connection.close()

    return rows.schema, batches()


def _kept(batches: Iterator[pa.RecordBatch], failed: List[AkrunnerError]) -> Iterator[pa.RecordBatch]:
    """The batches; why there are no more is kept: DuckDB would say so as its own error."""
    try:
        yield from batches
    except AkrunnerError as e:
        failed.append(e)
        raise


def duckdb_reader(relation: Any) -> pa.RecordBatchReader:
    """A DuckDB relation's rows as they are computed, under whichever name this DuckDB has for it."""
    if hasattr(relation, "to_arrow_reader"):
        return relation.to_arrow_reader(BATCH_ROWS)
    return relation.fetch_record_batch(BATCH_ROWS)
