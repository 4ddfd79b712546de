"""Batch sources and sinks: random numbers, memory, and CSV, Parquet, text and TFRecord files."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from akrunner import codec
from akrunner.alink.environment import current
from akrunner.alink.operator import BatchOperator
from akrunner.alink.params import Param
from akrunner.alink.randoms import names_for, random_table
from akrunner.alink.tables import arrow_schema, from_arrow, in_memory, kept, rows_of
from akrunner.checks import check_names
from akrunner.errors import ConfigError, SourceError, WriteError
from akrunner.foreign import ours, underway
from akrunner.io import packed, paths
from akrunner.io.commits import committed
from akrunner.io.destinations import file_destination
from akrunner.io.dialects import Dialect, csv_batches
from akrunner.io.formats.base import Reading
from akrunner.io.sinks import FileSink
from akrunner.io.table import TableSource
from akrunner.prepare.schemas import schema_of
from akrunner.spec import CHIEF, TaskSpec
from akrunner.tables.opening import open_input

FILE_PATH = Param("filePath", "text", "The file: a path, a glob, a directory or a URL.", required=True)
SCHEMA = Param("schemaStr", "schema", "Names and types of the columns.", aliases=("schema", "tableSchema"))
DELIMITER = Param("fieldDelimiter", "text", "What stands between two values.", ",")
FIRST_LINE = Param("ignoreFirstLine", "flag", "Whether the first line is names, not values.", False)
QUOTE = Param("quoteChar", "text", "What values that hold a delimiter stand between.", '"')
OVERWRITE = Param("overwriteSink", "flag", "Replace a file that is there.", False)
NUM_ROWS = Param("numRows", "whole", "How many rows.", required=True)
NUM_COLS = Param("numCols", "whole", "How many columns, where outputCols does not name them.", required=True)
ID_COL = Param("idCol", "text", "Name of a column that numbers the rows from 0; none without it.", aliases=("idColName",))
OUTPUT_COLS = Param("outputCols", "texts", "Names of the columns; col0, col1, ... without it.", aliases=("outputColNames",))
CONFS = Param(
    "outputColConfs", "text", "What columns are drawn from, `col0: gauss(0, 4); col1: poisson(3, nullper=0.1)`: uniform(a, b), "
    "uniform_open(a, b), gauss(mean, variance), weight_set(value, weight, ...), poisson(lambda); uniform(0, 1) without it.",
)  # fmt: skip
SEED = Param("seed", "whole", "Of the random numbers: the same seed, the same table.", 0)
TEXT_COL = Param("textCol", "text", "Name of the column of lines.", "text")


class SourceOp(BatchOperator):
    """Base class of batch sources: operators without inputs, which are read once however many operators use them."""

    INPUTS = (0, 0)
    _KEEP = True

    def _open(self) -> TableSource:
        raise NotImplementedError

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        self._check_required()
        source = self._open()
        if dry:
            return from_arrow(source.schema.empty_table())
        # a reader can be read only once, so its rows go into a table of DuckDB's, which spills to disk if memory is short
        failed: list[Exception] = []

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                yield from source.batches()
            except Exception as e:
                failed.append(e)
                raise

        try:
            return kept(self, from_arrow(pa.RecordBatchReader.from_batches(source.schema, batches())))
        except Exception as e:
            # the source's own error: DuckDB's has the traceback in its message
            error = failed[0] if failed else e
        raise error


class RandomTableSourceBatchOp(SourceOp):
    """Gives a table of random numbers: between 0 and 1, or from the distributions that outputColConfs names."""

    TAKES = (NUM_ROWS, NUM_COLS, ID_COL, OUTPUT_COLS, CONFS, SEED)

    def _open(self) -> TableSource:
        names = names_for(self._get("numCols"), self._get("outputCols"))
        return random_table(self._get("numRows"), names, self._get("outputColConfs"), self._get("idCol"), 0, self._get("seed"))


class FlinkSourceBatchOp(BatchOperator):
    """Gives the rows of a PyFlink Table or DataStream, which stay in Flink."""

    INPUTS = (0, 0)

    def __init__(self, table: Any) -> None:
        super().__init__()
        flink = current().flink
        if flink is None:
            raise ConfigError(
                "fromTable: for a PyFlink table, call useRemoteEnv(...) or useLocalEnv(..., engine='flink') first"
            )
        self._given_table = flink.of(table)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return self._given_table


class TableSourceBatchOp(SourceOp):
    """Gives a table in memory: pyarrow, pandas, polars, DuckDB, a dict of columns, or any other source of `akrunner.run`."""

    def __init__(self, table: Any, schemaStr: str | None = None) -> None:
        """Set the table; its rows are read later.

        Args:
            table: the table.
            schemaStr: names and types for its columns, in their order; None: those of the table.
        """
        super().__init__()
        with ours(SourceError, "table: it cannot be read"):
            self._source = open_input(table, read_examples=codec.read_examples)
        self._wanted = schema_of(schemaStr, "schemaStr")

    def _open(self) -> TableSource:
        if self._wanted is None:
            return self._source
        found, wanted = self._source.schema, self._wanted.arrow
        if len(found) != len(wanted):
            raise ConfigError(f"schemaStr: {len(wanted)} columns, and the table has {len(found)} ({', '.join(found.names)})")

        def batches() -> Any:
            for batch in self._source.batches():
                try:
                    yield pa.RecordBatch.from_arrays([c.cast(t) for c, t in zip(batch.columns, wanted.types)], schema=wanted)
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as e:
                    raise ConfigError(f"schemaStr: {e}") from None

        return TableSource(wanted, batches, self._source.name, self._source.replayable)


class MemSourceBatchOp(SourceOp):
    """Gives rows that are passed as a list of tuples, with a schema or names for their columns."""

    def __init__(self, rows: Sequence[Any], schemaStr: Any) -> None:
        """Set the rows and their columns.

        Args:
            rows: tuples, one for each row.
            schemaStr: a schema such as "id bigint, x double", or a list of column names.
        """
        super().__init__()
        with ours(SourceError, "rows: they are no rows"):
            self._source = memory_source(rows, schemaStr)

    def _open(self) -> TableSource:
        return self._source


def memory_source(rows: Sequence[Any], schema: Any) -> TableSource:
    """Return rows in memory as a source.

    Args: schema: schema text, a list of column names, or the name of the only column.
    Raises: SourceError: a row does not have a value for each column; ConfigError: the schema does not say what columns there are.
    """
    rows = [row if isinstance(row, (list, tuple)) else (row,) for row in rows]
    names = list(schema) if isinstance(schema, (list, tuple)) else [schema] if _is_name(schema) else None
    if names is not None:
        names = check_names("schemaStr", names) or []
        for number, row in enumerate(rows):
            if len(row) != len(names):
                raise SourceError(f"rows: row {number} does not fit the columns ({', '.join(names)}): it has {len(row)} values")
        return open_input([dict(zip(names, row)) for row in rows], read_examples=codec.read_examples)
    parsed = schema_of(schema, "schemaStr")
    table = open_input(rows, read_examples=codec.read_examples, input_schema=parsed)
    return open_input(pa.Table.from_batches(list(table.batches()), table.schema), read_examples=codec.read_examples)


def _is_name(schema: Any) -> bool:
    return isinstance(schema, str) and schema.strip().isidentifier()


class CsvSourceBatchOp(SourceOp):
    """Reads a CSV file. Without `ignoreFirstLine` its first line holds values; the columns are those of `schemaStr`."""

    TAKES = (FILE_PATH, SCHEMA.must(), DELIMITER, FIRST_LINE, QUOTE)

    def _open(self) -> TableSource:
        return csv_source(self)


def csv_source(operator: Any) -> TableSource:
    """Return the table source that a CSV operator's parameters describe."""
    wanted = schema_of(operator._get("schemaStr"), "schemaStr")
    assert wanted is not None
    files = paths.expand(operator._get("filePath"), "csv")
    dialect = Dialect(operator._get("fieldDelimiter"), operator._get("quoteChar") or None)
    skip_first = bool(operator._get("ignoreFirstLine"))

    def batches() -> Any:
        for path in files.paths:
            with ours(SourceError, f"filePath: cannot read {path}"):
                yield from csv_batches(files, path, wanted.arrow, dialect, skip_first)

    return TableSource(wanted.arrow, batches, os.fspath(operator._get("filePath")), True)


class ParquetSourceBatchOp(SourceOp):
    """Reads one or more Parquet files."""

    TAKES = (FILE_PATH,)
    _FORMAT = "parquet"

    def _open(self) -> TableSource:
        return open_input(self._get("filePath"), read_examples=codec.read_examples, input_format=self._FORMAT)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        path = self._get("filePath")
        if dry or "://" in path or current().flink is not None:
            return super()._compute(inputs, dry)
        # in a directory that `akrunner pack` has written, only the data files count
        of_pack = packed.find(path)
        if of_pack is not None and of_pack.files.format != self._FORMAT:
            return super()._compute(inputs, dry)
        files = of_pack.files if of_pack is not None else paths.expand(path, self._FORMAT)
        # DuckDB reads only those parts of the files that a query needs
        with ours(SourceError, f"filePath: cannot read {path}"):
            return current().connection.read_parquet(files.paths)


class TFRecordSourceBatchOp(SourceOp):
    """Reads one or more TFRecord files of Examples."""

    TAKES = (FILE_PATH, SCHEMA.must())

    def _open(self) -> TableSource:
        schema = schema_of(self._get("schemaStr"), "schemaStr")
        return open_input(
            self._get("filePath"), read_examples=codec.read_examples, input_format="tfrecord", input_schema=schema
        )


class TextSourceBatchOp(SourceOp):
    """Reads the lines of one or more text files."""

    TAKES = (FILE_PATH, TEXT_COL)

    def _open(self) -> TableSource:
        files = paths.expand(self._get("filePath"), "csv")
        schema = pa.schema([(self._get("textCol"), pa.string())])

        def batches() -> Any:
            for path in files.paths:
                with io.TextIOWrapper(Reading(files, None).stream(path), encoding="utf-8") as stream:
                    while True:
                        lines = [line.rstrip("\r\n") for line in stream.readlines(1 << 22)]
                        if not lines:
                            break
                        yield pa.RecordBatch.from_arrays([pa.array(lines, pa.string())], schema=schema)

        return TableSource(schema, batches, files.paths[0], True)


class SinkOp(BatchOperator):
    """Base class of batch sinks, which write their input to a file when the program executes.

    The file appears only once it is complete.
    """

    _FORMAT = ""

    def _linked(self) -> None:
        super()._linked()
        self._check_required()
        current().pending.append(self._write)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return inputs[0]

    def _write(self) -> None:
        relation = self._inputs[0]._relation()
        write_file(self._get("filePath"), self._FORMAT, relation, self._get("overwriteSink"))


def write_file(path: str, form: str, relation: Any, overwrite: bool) -> None:
    """Write all rows of a relation to a file.

    Args: form: name of the file's format; overwrite: whether an existing file may be replaced.
    """
    sink = FileSink(path, arrow_schema(relation), codec.write_examples, form, overwrite)
    with committed(sink, underway(WriteError, f"filePath: cannot write {path}")):
        for batch in rows_of(relation):
            with underway(WriteError, f"filePath: cannot write {path}"):
                sink.write(TaskSpec(CHIEF, 0), batch)


class CsvSinkBatchOp(SinkOp):
    """Writes a CSV file without a header line, as `CsvSourceBatchOp` reads it."""

    TAKES = (FILE_PATH, DELIMITER, OVERWRITE)

    def _write(self) -> None:
        relation = self._inputs[0]._relation()
        write_csv(self._get("filePath"), relation, self._get("fieldDelimiter"), self._get("overwriteSink"))


def write_csv(path: str, relation: Any, delimiter: str, overwrite: bool) -> None:
    """Write all rows of a relation to a CSV file without a header line; the file appears only once it is complete.

    Raises: ConfigError: the file exists and `overwrite` is false, or the path is not local; WriteError: it cannot be written.
    """
    if os.path.exists(path) and not overwrite:
        raise ConfigError(f"filePath: {path} exists; setOverwriteSink(True) replaces it")
    place = file_destination(path, overwrite)
    if place.at is None:
        raise ConfigError(f"filePath: {path} must be a local file")
    with ours(WriteError, f"filePath: cannot write {path}", place.at), committed(place):
        place.open()
        in_memory(relation).write_csv(place.at, header=False, sep=delimiter, use_tmp_file=False)


class ParquetSinkBatchOp(SinkOp):
    """Writes a Parquet file."""

    TAKES = (FILE_PATH, OVERWRITE)
    _FORMAT = "parquet"


class TFRecordSinkBatchOp(SinkOp):
    """Writes a TFRecord file of Examples."""

    TAKES = (FILE_PATH, OVERWRITE)
    _FORMAT = "tfrecord"
