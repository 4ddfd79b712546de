"""Operators that read and write Alink's own .ak files: `AkSourceBatchOp`, `AkSinkBatchOp`, and the same for streams."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from akrunner.alink.environment import current
from akrunner.alink.flow import Flow
from akrunner.alink.operator import BatchOperator
from akrunner.alink.params import Param
from akrunner.alink.sources import FILE_PATH, OVERWRITE, SourceOp
from akrunner.alink.streams import SinkStreamOp, SourceStreamOp
from akrunner.alink.tables import arrow_schema, rows_of
from akrunner.checks import check_count
from akrunner.errors import ConfigError, WriteError
from akrunner.foreign import underway
from akrunner.io.ak import AkSink, ak_source
from akrunner.io.commits import committed
from akrunner.io.table import TableSource

PARTITIONS = Param(
    "partitions", "text", "Which directories named column=value: SQL, \"day = '17'\", or day=17/hour=3; all without it."
)
NUM_FILES = Param("numFiles", "whole", "Into how many files; several are files 1, 2, ... of a directory.", 1)
PARTITION_COLS = Param(
    "partitionCols", "texts", "Columns whose values name directories, column=value; they are not in the files."
)


class AkSourceBatchOp(SourceOp):
    """Reads Alink's .ak files."""

    TAKES = (FILE_PATH, PARTITIONS)

    def _open(self) -> TableSource:
        return ak_source(self._get("filePath"), self._get("partitions"))


class AkSourceStreamOp(SourceStreamOp):
    """Reads Alink's .ak files as a stream."""

    TAKES = (FILE_PATH, PARTITIONS)

    def _source(self) -> TableSource:
        return ak_source(self._get("filePath"), self._get("partitions"))


class AkSinkBatchOp(BatchOperator):
    """Writes Alink's .ak files when the program executes its sinks; the files appear only once they are complete."""

    TAKES = (FILE_PATH, OVERWRITE, NUM_FILES, PARTITION_COLS)

    def _linked(self) -> None:
        super()._linked()
        self._check_required()
        check_count("numFiles", self._get("numFiles"), 1)
        current().pending.append(self._write)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return inputs[0]

    def _write(self) -> None:
        relation = self._inputs[0]._relation()
        write_ak(self._get("filePath"), relation, self._get("overwriteSink"), self._get("numFiles"), self._get("partitionCols"))


def _check_there(path: str, overwrite: bool) -> None:
    """Raise a ConfigError if `path` exists and `overwrite` is false."""
    if os.path.exists(os.path.expanduser(path)) and not overwrite:
        raise ConfigError(f"filePath: {path} exists; setOverwriteSink(True) replaces it")


def write_ak(path: str, relation: Any, overwrite: bool, files: int = 1, partitions: list[str] | None = None) -> None:
    """Write all rows of a relation to .ak files at `path`. Raises: ConfigError: `path` exists and `overwrite` is false."""
    _check_there(path, overwrite)
    sink = AkSink(path, arrow_schema(relation), overwrite, files, partitions)
    with underway(WriteError, f"filePath: cannot write {path}"), committed(sink):
        for batch in rows_of(relation):
            sink.write(batch)


class AkSinkStreamOp(SinkStreamOp):
    """Writes a stream into Alink's .ak files, which appear when the stream has ended."""

    TAKES = (FILE_PATH, OVERWRITE, NUM_FILES)
    _sink: AkSink | None = None

    def _start(self, flow: Flow) -> None:
        check_count("numFiles", self._get("numFiles"), 1)
        _check_there(self._get("filePath"), bool(self._get("overwriteSink")))
        self._sink = AkSink(
            self._get("filePath"), self._inputs[0]._schema(), bool(self._get("overwriteSink")), self._get("numFiles")
        )

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        assert self._sink is not None
        with underway(WriteError, f"filePath: cannot write {self._get('filePath')}"):
            self._sink.write(batch)

    def _end(self, flow: Flow) -> None:
        assert self._sink is not None
        with underway(WriteError, f"filePath: cannot write {self._get('filePath')}"):
            self._sink.commit()
        self._sink = None
        super()._end(flow)

    def _close(self) -> None:
        if self._sink is not None:
            self._sink.abort()
            self._sink = None
