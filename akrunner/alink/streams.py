"""Stream operators that read rows, write rows, or run a job over the rows of a stream."""

from __future__ import annotations

import csv
import os
import queue
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, ClassVar

import numpy as np
import pyarrow as pa

from akrunner import verbs
from akrunner.alink.environment import current
from akrunner.alink.flow import Flow, Stopped, StreamOperator
from akrunner.alink.params import Param
from akrunner.alink.randoms import names_for, random_table
from akrunner.alink.scripts import OUTPUT_SCHEMA, SCRIPT, TF2, ScriptJob, chosen, written_schema
from akrunner.alink.sources import (
    CONFS,
    DELIMITER,
    FILE_PATH,
    FIRST_LINE,
    NUM_COLS,
    OUTPUT_COLS,
    OVERWRITE,
    QUOTE,
    SCHEMA,
    SEED,
    TableSourceBatchOp,
    csv_source,
    memory_source,
)
from akrunner.alink.tables import arrow_schema, in_one, shaped
from akrunner.errors import ConfigError, SinkError
from akrunner.foreign import ours
from akrunner.io.table import TableSource

MAX_ROWS = Param("maxRows", "whole", "How many rows.", required=True, aliases=("numRows",))
PAUSE = Param("timePerSample", "number", "Seconds between two rows; as fast as they are taken without it.")
ZONES = Param("timeZones", "numbers", "[least, most] seconds between two rows, where timePerSample does not say.")
NUMBER_COL = Param(
    "idCol", "text", "Name of the column that numbers the rows from 1; None: there is none.", "num", aliases=("idColName",)
)

_TICK = 0.1
_END = object()


class SourceStreamOp(StreamOperator):
    """Base class of stream sources: a thread reads the rows of a table source and gives them to the next operators."""

    INPUTS = (0, 0)

    def _source(self) -> TableSource:
        raise NotImplementedError

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        self._check_required()
        return current().connection.from_arrow(self._source().schema.empty_table())

    def _start(self, flow: Flow) -> None:
        def run() -> None:
            for batch in self._source().batches():
                flow.give(self, batch)
            flow.end(self)

        flow.thread(type(self).__name__, run)


class RandomTableSourceStreamOp(SourceStreamOp):
    """Gives rows of random numbers, numbered from 1, at intervals or as fast as they are taken."""

    TAKES = (MAX_ROWS, NUM_COLS, NUMBER_COL, OUTPUT_COLS, CONFS, SEED, PAUSE, ZONES)

    def _source(self) -> TableSource:
        pause, zones = self._get("timePerSample"), self._get("timeZones")
        seed = self._get("seed")
        names = names_for(self._get("numCols"), self._get("outputCols"))
        rows = random_table(self._get("maxRows"), names, self._get("outputColConfs"), self._get("idCol"), 1, seed, 1024)
        least, most = _zone(pause, zones)
        if not most:
            return rows
        random = np.random.default_rng(seed)

        def slowly() -> Iterator[pa.RecordBatch]:
            for batch in rows.batches():
                for i in range(batch.num_rows):
                    yield batch.slice(i, 1)
                    time.sleep(random.uniform(least, most))

        return TableSource(rows.schema, slowly, rows.name)


def _zone(pause: float | None, zones: Sequence[float] | None) -> tuple[float, float]:
    """Return (the shortest, the longest time between two rows), in seconds. Raises: ConfigError: they make no interval."""
    if pause is not None:
        zones = [pause, pause]
    least, most = (0.0, 0.0) if zones is None else (zones[0], zones[-1])
    if (zones is not None and len(zones) != 2) or not 0 <= least <= most:
        raise ConfigError(f"timePerSample is 0 or more, timeZones two numbers, [least, most]; not {zones}")
    return least, most


class CsvSourceStreamOp(SourceStreamOp):
    """Reads the rows of a CSV file."""

    TAKES = (FILE_PATH, SCHEMA.must(), DELIMITER, FIRST_LINE, QUOTE)

    def _source(self) -> TableSource:
        return csv_source(self)


class MemSourceStreamOp(SourceStreamOp):
    """Gives rows that are passed as a list of tuples, with a schema or names for their columns."""

    def __init__(self, rows: Sequence[Any], schemaStr: Any) -> None:
        """Set the rows; the stream starts when it is executed.

        Args:
            rows: tuples, one for each row.
            schemaStr: a schema such as "id bigint, x double", or a list of column names.
        """
        super().__init__()
        self._rows = memory_source(rows, schemaStr)

    def _source(self) -> TableSource:
        return self._rows


class TableStreamOp(SourceStreamOp):
    """Gives the rows of a table in memory; `StreamOperator.fromDataframe` returns one."""

    def __init__(self, table: Any, schemaStr: str | None) -> None:
        super().__init__()
        self._table = TableSourceBatchOp(table, schemaStr)

    def _source(self) -> TableSource:
        return self._table._open()


# -- sinks


class SinkStreamOp(StreamOperator):
    """Base class of stream sinks, which write the rows they are given."""

    def _linked(self) -> None:
        self._check_required()
        current().streams.append(self)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return inputs[0]


class CsvSinkStreamOp(SinkStreamOp):
    """Writes a CSV file without a header line; each batch is written as soon as it arrives."""

    TAKES = (FILE_PATH, DELIMITER, OVERWRITE)
    _file: IO[str] | None = None

    def _start(self, flow: Flow) -> None:
        path = self._get("filePath")
        if os.path.exists(path) and not self._get("overwriteSink"):
            raise ConfigError(f"filePath: {path} exists; setOverwriteSink(True) replaces it")
        delimiter = self._get("fieldDelimiter")
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise ConfigError(f"fieldDelimiter={delimiter!r}: one character is needed, and no quotation mark or end of a line")
        with ours(SinkError, f"filePath: cannot write {path}", path):
            self._file = file = open(path, "w", newline="")
        self._writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self._flush = file.flush

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        self._writer.writerows(zip(*(column.to_pylist() for column in batch.columns)))
        self._flush()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()


# -- jobs


class JobStreamOp(StreamOperator):
    """Base class of the operators that feed their rows to a running job, and give the rows that the job returns."""

    WAITS = True

    def _open_job(self, schema: pa.Schema, rows: Iterator[pa.RecordBatch]) -> tuple[Any, Callable[[], None]]:
        """Start the job. Returns: (the running job, a function to call when it has ended)."""
        raise NotImplementedError

    def _prepare(self) -> None:
        """Do what must be done before rows flow and needs DuckDB, which the operators of a flow share; by default nothing."""

    def _start(self, flow: Flow) -> None:
        self._queue: queue.Queue[Any] = queue.Queue(4)
        schema = self._input_schema()
        self._prepare()

        def rows() -> Iterator[pa.RecordBatch]:
            while not flow.stopped.is_set():
                try:
                    batch = self._queue.get(timeout=_TICK)
                except queue.Empty:
                    continue
                if batch is _END:
                    return
                yield batch

        def run() -> None:
            job, closed = self._open_job(schema, rows())
            try:
                with job:
                    for out in job:
                        flow.give(self, out)
            finally:
                closed()
            flow.end(self)

        flow.thread(type(self).__name__, run)

    def _input_schema(self) -> pa.Schema:
        return self._inputs[-1]._schema()

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        self._queue_up(flow, batch)

    def _end(self, flow: Flow) -> None:
        self._queue_up(flow, _END)

    def _queue_up(self, flow: Flow, item: Any) -> None:
        while True:
            if flow.stopped.is_set():
                raise Stopped
            try:
                self._queue.put(item, timeout=_TICK)
                return
            except queue.Full:
                continue


class ScriptStreamOp(JobStreamOp):
    """Base class of the operators that run a script over the rows of a stream as they arrive."""

    TAKES: ClassVar[tuple[Param, ...]] = (*SCRIPT, OUTPUT_SCHEMA)
    _ENV = TF2

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return current().connection.from_arrow(written_schema(self).empty_table())

    def _input_schema(self) -> pa.Schema:
        relation = chosen(self._inputs[0]._nothing(), self._get("selectedCols"))
        self._known = {name: shape for name, shape in self._inputs[0]._shapes().items() if name in relation.columns}
        return shaped(in_one(arrow_schema(relation).empty_table()), self._known).schema

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        columns = self._get("selectedCols")
        self._queue_up(flow, shaped(batch if columns is None else batch.select(columns), self._known))

    def _open_job(self, schema: pa.Schema, rows: Iterator[pa.RecordBatch]) -> tuple[Any, Callable[[], None]]:
        files = ScriptJob(self, schema)
        try:
            job = verbs.stream(
                self._get("mainScriptFile"),
                rows,
                input_schema=schema,
                output_schema=self._get("outputSchemaStr"),
                **files.arguments(),
            )
        except BaseException:
            files.close()
            raise
        return job, files.close


class TensorFlowStreamOp(ScriptStreamOp):
    """Runs a TensorFlow 1 script over a stream, and gives the rows that the script writes."""

    TAKES = ScriptStreamOp.TAKES
    _ENV = "tf1.15"


class TensorFlow2StreamOp(ScriptStreamOp):
    """Runs a TensorFlow 2 script over a stream, and gives the rows that the script writes."""

    TAKES = ScriptStreamOp.TAKES
