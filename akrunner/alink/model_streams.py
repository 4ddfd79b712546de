"""Models in files, and model streams: directories into which new models are put while a prediction over a stream runs.

This module has the parameters of the predictors that read models, and the operator that puts models into a model stream:

::

    AppendModelStreamFileSinkBatchOp --> ROOT/conf/<id>/0, ROOT/conf/<id>.log --> ROOT/<id>      modelStreamFilePath=ROOT
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from akrunner import leftovers
from akrunner.alink.environment import current
from akrunner.alink.flow import StreamOperator
from akrunner.alink.operator import BatchOperator
from akrunner.alink.params import Param, WithParams
from akrunner.alink.tables import arrow_table
from akrunner.checks import check_count
from akrunner.errors import ConfigError, WriteError
from akrunner.foreign import underway
from akrunner.io.ak import AkWriter, ak_source
from akrunner.io.ak_rows import check_types
from akrunner.io.paths import local_path
from akrunner.model import Model
from akrunner.serving.watching import Watch, look, time_of

MODEL_FILE = Param("modelFilePath", "text", "The model: an .ak file of its table.")
MODEL_STREAM = Param(
    "modelStreamFilePath",
    "text",
    "Where new models come while the stream runs: the root of a model stream, a directory, or a model that is replaced.",
)
SCAN = Param("modelStreamScanInterval", "number", "Seconds between two looks for a new model.", 10.0)
START = Param(
    "modelStreamStartTime", "text", "Models from this time on, 2026-01-31 12:00:00; from the start of the stream without it."
)
#: parameters of the operators that predict over streams, and of stages of pipelines
STREAM_MODEL = (MODEL_FILE, MODEL_STREAM, SCAN, START)
OVERWRITE_MODEL = Param("overwriteSink", "flag", "Replace the file at modelFilePath when the pipeline is saved.", False)
STAGE_MODEL = (*STREAM_MODEL, OVERWRITE_MODEL)

ROOT = Param("filePath", "text", "The root of the model stream.", required=True)
NUM_FILES = Param("numFiles", "whole", "Into how many files.", 1)
KEEP = Param("numKeepModel", "whole", "So many models are kept, the latest; all without it.", 2147483647)
MODEL_TIME = Param("modelTime", "text", "The time the model is of, 2026-01-31 12:00:00; now without it.")
SOURCE_SCAN = Param("scanInterval", "number", "Seconds between two looks.", 10.0)
SOURCE_START = Param(
    "startTime", "text", "Models from this time on, 2026-01-31 12:00:00; from the start of the stream without it."
)
SCHEMA = Param("schemaStr", "text", "Taken as Alink takes it: a model's files say their columns themselves.")


def table_of(path: str) -> pa.Table:
    """Return the rows of a model table that is stored in .ak files."""
    source = ak_source(path)
    return pa.Table.from_batches(list(source.batches()), source.schema)


def model_of(path: str) -> Model:
    """Open a model: a SavedModel's zip if the path ends with ".zip", else an .ak file of a model table."""
    return Model.from_saved_model(path) if path.endswith(".zip") else Model.from_table(table_of(path))


def watch_of(
    operator: WithParams, source: ModelStreamFileSourceStreamOp | None, from_table: Callable[[pa.Table], Model]
) -> Watch | None:
    """Return where an operator looks for new models; None: nowhere.

    Args:
        operator: the operator, whose parameters may name a model stream.
        source: the model stream that the operator was linked from, or None; it takes precedence over the parameters.
        from_table: function that makes a model from a model table.
    """
    path, seconds, since = (operator._get(one.name) for one in (MODEL_STREAM, SCAN, START))
    name = MODEL_STREAM.name
    if source is not None:
        path, seconds, since = source._get("filePath"), source._get("scanInterval"), source._get("startTime")
        name = "filePath"
        if since is not None:
            time_of(since, "startTime")
    return None if path is None else Watch(local_path(path, name), seconds, since, from_table)


class ModelStreamFileSourceStreamOp(StreamOperator):
    """Gives the models that arrive in a model stream, to operators that predict over streams: `linkFrom(rows, models)`."""

    INPUTS = (0, 0)
    TAKES = (ROOT, SOURCE_SCAN, SOURCE_START, SCHEMA)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        raise ConfigError(
            "ModelStreamFileSourceStreamOp has models, not rows: link a predictor of a stream from the rows and from it, "
            "predictor.linkFrom(rows, models)"
        )


class AppendModelStreamFileSinkBatchOp(BatchOperator):
    """Puts a model into a model stream, from which running predictions take it."""

    TAKES = (ROOT, MODEL_TIME, NUM_FILES, KEEP)

    def _linked(self) -> None:
        super()._linked()
        self._check_required()
        check_count("numFiles", self._get("numFiles"), 1)
        check_count("numKeepModel", self._get("numKeepModel"), 1)
        self._time()
        current().pending.append(self._write)

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return inputs[0]

    def _write(self) -> None:
        root = local_path(self._get("filePath"), "filePath")
        table = arrow_table(self._inputs[0]._relation())
        with underway(WriteError, f"filePath: cannot write {root}"):
            append(root, table, self._time(), self._get("numFiles"))
            keep(root, self._get("numKeepModel"))

    def _time(self) -> datetime.datetime:
        told = self._get("modelTime")
        return datetime.datetime.now() if told is None else time_of(told, "modelTime")


def append(root: str, table: pa.Table, at: datetime.datetime, files: int = 1) -> str:
    """Put a model into a model stream, where it appears once it is complete.

    Args:
        root: root directory of the model stream.
        table: the model table.
        at: time of the model, from which its directory gets its name.
        files: how many files the table is written to.
    Returns:
        The model's directory.
    Raises:
        ConfigError: the model stream has a model of this time already.
        SinkError: the table has values that cannot be written.
    """
    check_types(table.schema, "filePath")
    name = at.strftime("%Y%m%d%H%M%S") + (f"{at.microsecond:06d}".rstrip("0") or "0")
    if os.path.exists(os.path.join(root, name)):
        raise ConfigError(f"modelTime: {root} has a model of {at} already")
    conf = os.path.join(root, "conf")
    folder = os.path.join(conf, name)
    os.makedirs(conf, exist_ok=True)
    leftovers.register(folder)
    os.makedirs(folder)
    try:
        each = -(-table.num_rows // files) or 1
        for number in range(files):
            with open(os.path.join(folder, str(number)), "wb") as stream:
                writer = AkWriter(stream, table.schema)
                try:
                    for batch in table.slice(number * each, each).to_batches():
                        writer.write(batch)
                    writer.close()
                except BaseException:
                    writer.abort()
                    raise
        with open(folder + ".log.partial", "w") as f:
            json.dump({"count": table.num_rows, "numFiles": files}, f)
        os.rename(folder + ".log.partial", folder + ".log")
        os.rename(folder, os.path.join(root, name))
        leftovers.forget(folder)
    except BaseException:
        leftovers.drop(folder)
        raise
    return os.path.join(root, name)


def keep(root: str, most: int) -> None:
    """Remove all models of a model stream but the latest `most`."""
    found = look(Watch(root)) if os.path.isdir(os.path.join(root, "conf")) else []
    for one in found[: max(0, len(found) - most)]:
        shutil.rmtree(one.path)
        os.remove(os.path.join(root, "conf", os.path.basename(one.path) + ".log"))
