"""`akrunner.predict` and `akrunner.predict_stream`.

::

    table -> chunks -> feed ----- engine, a stream of columns ----> outputs
               \\-> kept columns, waiting --------------------------/ side by side again, in the table's order
"""

from __future__ import annotations

import inspect
import os
import threading
from collections import deque
from dataclasses import replace
from typing import Any, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import pyarrow as pa

from akrunner import codec
from akrunner.api import Result, check_observer, committed, engine_of, lines_source, table_of
from akrunner.checks import check_count, check_environment, check_names, check_path, check_seconds, check_text, shown
from akrunner.engines.base import Engine, Observer, RowSink, RowSource, StoppableSource
from akrunner.errors import ConfigError, InputLostError, ModelError, PythonEnvError, ScriptFailedError, SinkError, SourceError
from akrunner.foreign import ours
from akrunner.io.partition import rechunk
from akrunner.io.paths import check_apart, check_format
from akrunner.io.sinks import MemorySink
from akrunner.io.table import TableSource
from akrunner.launch import capacity
from akrunner.model import Model
from akrunner.prepare import (
    PathLike,
    SchemaLike,
    check_output,
    check_select,
    interpreter_for,
    named_files,
    schema_of,
)
from akrunner.serving.plan import Plan
from akrunner.serving.watching import Watch, Watcher, WatchLike
from akrunner.signature import signature_of
from akrunner.spec import CHIEF, ClusterSpec, JobSpec, ScriptSpec, SupervisionSpec, TaskSpec
from akrunner.stream_job import StreamJob
from akrunner.tables.opening import file_sink, open_source

ModelLike = Union[Model, PathLike, pa.Table]

#: about so many rows and bytes are sent at a time, in whole batches of the model's
_CHUNK_ROWS = 8192
_CHUNK_BYTES = 4 << 20
_FIRST = TaskSpec(CHIEF, 0)


def predict(
    model: ModelLike,
    source: Any,
    *,
    selected_cols: Optional[Sequence[str]] = None,
    input_signature_defs: Optional[Sequence[str]] = None,
    output_signature_defs: Optional[Sequence[str]] = None,
    signature_def_key: str = "serving_default",
    graph_def_tag: str = "serve",
    output_schema: Optional[SchemaLike] = None,
    reserved_cols: Optional[Sequence[str]] = None,
    batch_size: int = 1024,
    num_workers: int = 1,
    output: Optional[PathLike] = None,
    output_format: Optional[str] = None,
    overwrite: bool = False,
    python_env: Optional[PathLike] = None,
    select: Optional[str] = None,
    input_schema: Optional[SchemaLike] = None,
    input_format: Optional[str] = None,
    env: Optional[Mapping[str, str]] = None,
    timeout: Optional[float] = None,
    start_timeout: float = 60.0,
    engine: Union[str, Engine] = "local",
    observer: Optional[Observer] = None,
) -> Result:
    """Run a SavedModel over a table. The model runs in worker processes; the order of the rows is kept.

    Args:
        model: a `Model`, a SavedModel's directory or zip, local or a URL, or a model table.
        source: the table, as for `run`.
        selected_cols: columns that feed the model, in the order of `input_signature_defs`; None: those named as the inputs. For a
            model of one input several columns are laid side by side: [rows, columns].
        input_signature_defs: the signature's inputs, in the order of the columns; None: named as the columns.
        output_signature_defs: the signature's outputs, in the order of `output_schema`; None: named as its columns.
        signature_def_key: which signature; graph_def_tag: which graph (tags, separated by commas).
        output_schema: columns the outputs become, "p double, embedding FLOAT_TENSOR"; an output of any rank is laid out row-major.
            None: every output, of its own type.
        reserved_cols: columns of the table to keep; None: all. An output named as one of them takes its place.
        batch_size: rows the model is given at a time, at most.
        num_workers: processes that share the rows.
        output, output_format, overwrite, python_env, select, input_schema, input_format, env, timeout, start_timeout, engine,
            observer: as for `run`.
    A PyFlink Table's rows stay where Flink has them, and come in no order of their own.

    Returns: the result.
    Raises:
        ConfigError: an argument is wrong, or the table does not fit the model's signature; nothing was started.
        DataError: a value does not fit what the model takes.
        JobError: the job failed.
    """
    chosen = engine_of(engine)
    check_observer(observer)
    check_output(output, output_format, overwrite, None)
    prepared = Prediction.prepare(
        model, table_of(source, chosen), selected_cols, input_signature_defs, output_signature_defs, signature_def_key,
        graph_def_tag, output_schema, reserved_cols, batch_size, num_workers, python_env, select, input_schema, input_format, env,
        timeout, start_timeout, chosen,
    )  # fmt: skip
    schema = prepared.plan.result
    if output is None:
        memory = MemorySink(schema)
        outcome = prepared.run(chosen, memory, observer)
        return Result(memory.table(), None, outcome.tasks, outcome.stats, outcome.work_dir)
    if prepared.table.read_from is not None:
        check_apart(prepared.table.read_from, output)
    with ours(SinkError, f"output: {output}"):
        sink = file_sink(os.fspath(output), schema, codec.write_examples, output_format, overwrite)
    outcome = committed(sink, lambda: prepared.run(chosen, sink, observer))
    return Result(None, sink.path, outcome.tasks, outcome.stats, outcome.work_dir)


def predict_stream(
    model: ModelLike,
    source: Any,
    *,
    selected_cols: Optional[Sequence[str]] = None,
    input_signature_defs: Optional[Sequence[str]] = None,
    output_signature_defs: Optional[Sequence[str]] = None,
    signature_def_key: str = "serving_default",
    graph_def_tag: str = "serve",
    output_schema: Optional[SchemaLike] = None,
    reserved_cols: Optional[Sequence[str]] = None,
    batch_size: int = 1024,
    num_workers: int = 1,
    python_env: Optional[PathLike] = None,
    select: Optional[str] = None,
    input_schema: Optional[SchemaLike] = None,
    input_format: Optional[str] = None,
    follow: bool = False,
    flush_seconds: float = 0.02,
    env: Optional[Mapping[str, str]] = None,
    timeout: Optional[float] = None,
    start_timeout: float = 60.0,
    engine: Union[str, Engine] = "local",
    observer: Optional[Observer] = None,
    watch: Optional[WatchLike] = None,
    watch_seconds: float = 10.0,
) -> StreamJob:
    """Run a SavedModel over rows as they arrive, possibly for ever. Returns at once.

    Args:
        source, follow, flush_seconds: as for `stream`; the others: as for `predict`.
        watch: where new models come while the stream runs: a model that is replaced (a directory, a zip, an .ak file), a directory that
            gets more of them, or a model stream of Alink's. The newest is loaded beside the one in use, and predicts the rows that come
            after that. One that does not fit or cannot be loaded is not taken, with a warning.
        watch_seconds: between two looks.
    Returns: the running job: iterate it for RecordBatches of kept columns and outputs, in the order the rows came.
    Raises: ConfigError: an argument is wrong, or the rows do not fit the model's signature; nothing was started.
    """
    chosen = engine_of(engine)
    check_observer(observer)
    watched = None if watch is None else Watch.of(watch, watch_seconds)
    if watched is not None and chosen.name != "local":
        raise ConfigError(
            "watch: new models are taken by streams of engine='local'; on Flink start the stream anew with the new model"
        )
    source, input_format, input_schema = lines_source(source, input_format, input_schema, follow)
    prepared = Prediction.prepare(
        model, source, selected_cols, input_signature_defs, output_signature_defs, signature_def_key, graph_def_tag,
        output_schema, reserved_cols, batch_size, num_workers, python_env, select, input_schema, input_format, env, timeout,
        start_timeout, chosen, flush_seconds,
    )  # fmt: skip
    return StreamJob(lambda sink, cancel: prepared.run(chosen, sink, observer, cancel, watched), prepared.plan.result)


def checked(model: ModelLike, source: Any, **options: Any) -> "Prediction":
    """What `predict` would run, of the same arguments. Raises: ConfigError: as it does."""
    bound = inspect.signature(predict).bind(model, source, **options)
    bound.apply_defaults()
    given = {**bound.arguments, "engine": engine_of(bound.arguments["engine"])}
    prepared = Prediction.prepare(
        **{name: given[name] for name in inspect.signature(Prediction.prepare).parameters if name in given}
    )
    check_output(given["output"], given["output_format"], given["overwrite"], prepared.plan.result)
    return prepared


def check_model(model: Any) -> None:
    """As far as it can be told without opening it. Raises: ModelError: it is no model."""
    if isinstance(model, (str, bytes, os.PathLike)):
        check_path("model", model, ModelError)
    elif not isinstance(model, (Model, pa.Table)):
        raise ModelError(f"model must be a Model, a path or a model table, not {shown(model)}")


def open_model(model: ModelLike) -> Model:
    """A model from whatever stands for one. Raises: ModelError: it is none."""
    check_model(model)
    if isinstance(model, Model):
        return model
    with ours(ModelError, "model: it cannot be read"):
        if isinstance(model, pa.Table):
            return Model.from_table(model)
        return Model.from_saved_model(model)


def check_signature_names(signature_def_key: Any, graph_def_tag: Any) -> None:
    """Raises: ModelError: they are no text."""
    check_text("signature_def_key", signature_def_key, ModelError)
    check_text("graph_def_tag", graph_def_tag, ModelError)


def job_for(
    model: Model,
    plan: Plan,
    signature_def_key: str,
    graph_def_tag: str,
    batch_size: int,
    answer_errors: bool = False,
    **options: Any,
) -> JobSpec:
    """The job that runs a model: a stream of columns into a module of the bundle. options: of `JobSpec`."""
    batch_size = check_count("batch_size", batch_size, 1)
    params = {
        "tags": [tag.strip() for tag in graph_def_tag.split(",")],
        "signature": signature_def_key,
        "batch_size": batch_size,
        "answer_errors": answer_errors,
        **plan.params(),
    }
    return JobSpec(
        script=ScriptSpec(real="akrunner.predict", path="", module="akrunner.worker.predict"),
        schema=plan.feed,
        output_schema=plan.output_schema,
        user_params=params,
        model=os.path.abspath(model.path),
        mode="stream",
        data_format="columns",
        chunk_rows=max(1, _CHUNK_ROWS // batch_size) * batch_size,
        # what is sent was cut to size already: a chunk must stay one
        chunk_bytes=1 << 40,
        **options,
    )


class Prediction:
    """A prediction whose arguments are all checked."""

    def __init__(self, model: Model, plan: Plan, job: JobSpec, table: TableSource, arriving: bool) -> None:
        self.model = model  # a temporary one goes with its last reference
        self.plan = plan
        self.job = job
        self.table = table
        self.arriving = arriving

    @classmethod
    def prepare(
        cls,
        model: ModelLike,
        source: Any,
        selected_cols: Optional[Sequence[str]],
        input_signature_defs: Optional[Sequence[str]],
        output_signature_defs: Optional[Sequence[str]],
        signature_def_key: str,
        graph_def_tag: str,
        output_schema: Optional[SchemaLike],
        reserved_cols: Optional[Sequence[str]],
        batch_size: int,
        num_workers: int,
        python_env: Optional[PathLike],
        select: Optional[str],
        input_schema: Optional[SchemaLike],
        input_format: Optional[str],
        env: Optional[Mapping[str, str]],
        timeout: Optional[float],
        start_timeout: float,
        engine: Engine,
        flush_seconds: Optional[float] = None,
    ) -> "Prediction":
        check_model(model)
        out_schema, in_schema = schema_of(output_schema, "output_schema"), schema_of(input_schema, "input_schema")
        if engine.name == "local":
            capacity.check_fits(num_workers=num_workers)
        cluster = ClusterSpec(num_workers, 0)
        batch_size = check_count("batch_size", batch_size, 1)
        values: Dict[str, Any] = dict(
            cluster=cluster,
            env=check_environment("env", env if env is not None else {}),
            supervision=SupervisionSpec(timeout=timeout, start_timeout=start_timeout),
            flush_seconds=check_seconds("flush_seconds", flush_seconds if flush_seconds is not None else 0.02),
        )
        # what is given as an iterator can be gone through once
        selected, inputs, outputs, reserved = (
            check_names("selected_cols", selected_cols),
            check_names("input_signature_defs", input_signature_defs),
            check_names("output_signature_defs", output_signature_defs),
            check_names("reserved_cols", reserved_cols),
        )
        check_signature_names(signature_def_key, graph_def_tag)
        select, input_format = check_select(select), check_format(input_format, "input_format")

        def read() -> TableSource:
            with ours(SourceError, "source: it cannot be read"):
                return open_source(
                    source,
                    read_examples=codec.read_examples,
                    input_schema=in_schema,
                    input_format=input_format,
                    select=select,
                    select_seconds=timeout,
                    flush_seconds=flush_seconds,
                )

        # no model is downloaded for a table that is not there; the first rows of an iterable come once
        found = read() if named_files(source) else None
        opened = open_model(model)
        signature = signature_of(opened.path, signature_def_key, graph_def_tag)
        with ours(PythonEnvError, "python_env: it cannot be used"):
            python = interpreter_for(python_env, engine)
        table = found or read()
        plan = Plan.make(signature, table.schema, selected, inputs, outputs, out_schema, reserved)
        job = job_for(opened, plan, signature_def_key, graph_def_tag, batch_size, python=python, **values)
        return cls(opened, plan, job, table, arriving=flush_seconds is not None)

    def attach(self, engine: Any, observer: Optional[Observer], restarts: int = 0) -> Any:
        """Of a PyFlink table: an `akrunner.engines.flink.attached.Attached`."""
        job = engine.attach(self.job, self.table, observer, restarts, self.plan.result, self.plan)
        # a temporary model goes with its last reference
        job.holds = self.model
        return job

    def run(
        self,
        engine: Engine,
        sink: RowSink,
        observer: Optional[Observer],
        cancel: Optional[threading.Event] = None,
        watch: Optional[Watch] = None,
    ) -> Any:
        """Args: watch: where new models come meanwhile. Returns: the outcome."""
        if watch is not None:
            with Watcher(watch, self._check_new) as watcher:
                params = {**self.job.user_params, "watch": watcher.folder}
                again = Prediction(self.model, self.plan, replace(self.job, user_params=params), self.table, self.arriving)
                return again.run(engine, sink, observer, cancel)
        if self.table.elsewhere:
            job = self.attach(engine, observer)
            for batch in job.collect().to_batches():
                sink.write(_FIRST, batch)
            return job.wait()
        pairing = Pairing(self.plan, self.table, self.job, sink, self.arriving)
        try:
            outcome = engine.run(self.job, pairing, pairing, observer, cancel)
        except ScriptFailedError as e:
            where = pairing.where(e.failure.task if e.failure is not None else "")
            if where is None:
                raise
            raise ScriptFailedError(
                f"{e.args[0]}; it had {where}", failure=e.failure, others=e.others, work_dir=e.work_dir
            ) from None
        if pairing.pending:
            raise InputLostError(f"{pairing.pending} chunks of rows were sent to the model and never answered")
        return outcome

    def _check_new(self, model: Model) -> None:
        """Raises: ModelError: it cannot take the place of the model."""
        params = self.job.user_params
        signature = signature_of(model.path, params["signature"], ",".join(params["tags"]))
        mine = signature_of(self.model.path, params["signature"], ",".join(params["tags"]))
        for one in self.plan.inputs:
            found = signature.inputs.get(one.spec.name)
            if found is None or (found.dtype, found.shape) != (one.spec.dtype, one.spec.shape):
                raise ModelError(f"its signature is {signature}, and the stream's model has {mine}")
        if set(signature.inputs) != set(mine.inputs):
            raise ModelError(f"its signature is {signature}, and the stream's model has {mine}")
        for _, name in self.plan.outputs:
            if name not in signature.outputs or signature.outputs[name].dtype != mine.outputs[name].dtype:
                raise ModelError(f"its signature is {signature}, and the stream's model has {mine}")


class Pairing:
    """The source and the sink of a prediction's job: what is kept of a chunk waits here for its outputs.

    Chunk k goes to worker k modulo their number (`akrunner.engines.feeder.StreamFeeder`), and a worker answers in order.
    """

    replayable = False

    def __init__(self, plan: Plan, source: RowSource, job: JobSpec, sink: RowSink, arriving: bool) -> None:
        self._plan = plan
        self._source = source
        self._job = job
        self._sink = sink
        self._arriving = arriving
        self._tasks = {task: i for i, task in enumerate(job.cluster.fed)}
        self._waiting: List[Deque[Tuple[int, int, pa.RecordBatch]]] = [deque() for _ in self._tasks]
        self._done: Dict[int, pa.RecordBatch] = {}
        self._next = 0

    @property
    def pending(self) -> int:
        """Chunks without an answer."""
        return sum(map(len, self._waiting))

    def where(self, task: str) -> Optional[str]:
        """The rows a task is at, in words."""
        index = next((i for t, i in self._tasks.items() if t.name == task), None)
        if index is None or not self._waiting[index]:
            return None
        _, first, batch = self._waiting[index][0]
        return f"rows {first} to {first + batch.num_rows - 1} of the table"

    def stop(self) -> None:
        """End a read another thread is in (`StoppableSource`)."""
        if isinstance(self._source, StoppableSource):
            self._source.stop()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What travels (`RowSource`)."""
        turn = first = 0
        for chunk in self._chunks():
            fed = self._plan.fed(chunk, first)
            self._waiting[turn % len(self._tasks)].append((turn, first, chunk))
            yield fed
            turn += 1
            first += chunk.num_rows

    def _chunks(self) -> Iterator[pa.RecordBatch]:
        rows = self._job.chunk_rows
        if not self._arriving:
            yield from rechunk(self._source.batches(), rows, _CHUNK_BYTES)
            return
        for batch in self._source.batches():
            # what has come is not held back for more
            yield from rechunk([batch], rows, _CHUNK_BYTES)

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        """A worker's answer (`RowSink`)."""
        turn, _, chunk = self._waiting[self._tasks[task]].popleft()
        self._done[turn] = self._plan.joined(chunk, batch)
        while self._next in self._done:
            self._sink.write(_FIRST, self._done.pop(self._next))
            self._next += 1
