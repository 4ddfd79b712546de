"""The jobs of `akrunner.predict` and `akrunner.predict_stream`.

::

    table -> chunks -> feed batches ----- engine, a stream of columns ----> outputs
               \\-> kept columns, waiting ----------------------------------/ joined again, in the table's order
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from akrunner import codec
from akrunner.checks import (
    check_count,
    check_environment,
    check_names,
    check_path,
    check_replaces_nothing,
    check_seconds,
    check_text,
    shown,
)
from akrunner.engines.base import (
    Engine,
    MarkedSink,
    MarkedSource,
    Observer,
    RowSink,
    RowSource,
    StoppableSource,
    bad_rows_of,
    extent_of,
)
from akrunner.engines.registry import engine_of
from akrunner.errors import ConfigError, InputLostError, ModelError, PythonEnvError, ScriptFailedError, SinkError
from akrunner.foreign import ours, redacted
from akrunner.history.keeping import Keeping
from akrunner.io.bad_rows import kept
from akrunner.io.layouts import Layout
from akrunner.io.limits import in_time, narrowed
from akrunner.io.partitioner import rechunk
from akrunner.io.paths import check_apart
from akrunner.io.sinks import MemorySink
from akrunner.io.streams.arriving import Arriving
from akrunner.io.table import TableSource
from akrunner.launch import capacity, environments
from akrunner.model import Model
from akrunner.prepare.job import check_bad_rows_apart, check_output, check_prepared, named_files, read_twice
from akrunner.prepare.layouts import layout_of
from akrunner.prepare.places import check_directories, directory
from akrunner.prepare.python import check_requirements, interpreter_for
from akrunner.prepare.reading import Reading
from akrunner.prepare.schemas import schema_of
from akrunner.prepare.written import check_written
from akrunner.running.handing import hand_over
from akrunner.running.inputs import arriving_source, table_of
from akrunner.running.kept import kept_job, kept_to_its_end, page_of
from akrunner.running.observer import check_observer
from akrunner.running.outputs import keeping, run_into
from akrunner.running.result import Result
from akrunner.schema import Schema
from akrunner.serving.arguments import ModelLike, PredictArguments
from akrunner.serving.plan import Plan
from akrunner.serving.watching import Watch, Watcher, WatchLike
from akrunner.signature import Signature, signature_of
from akrunner.spec import CHIEF, ClusterSpec, JobSpec, ResourceSpec, ScriptSpec, SupervisionSpec, TaskSpec
from akrunner.stream_job import StreamJob
from akrunner.tables.opening import open_sink
from akrunner.telling.listeners import Telling

#: about how many rows and bytes are sent at a time, as a whole number of the model's batches
_CHUNK_ROWS = 8192
_CHUNK_BYTES = 4 << 20
_FIRST = TaskSpec(CHIEF, 0)


def run_predict(given: PredictArguments, observer: Observer | None) -> Result:
    """Run a prediction, as `akrunner.predict` says. Raises: the exceptions of `akrunner.predict`."""
    check_observer(observer)
    with Telling("predict", given.model, given, observer) as told:
        engine = engine_of(given.engine)
        layout = layout_of(given)
        check_output(given.output, given.output_format, given.overwrite, None, layout)
        with Keeping("predict", vars(given), given.keep_run, page=page_of(given.report, given.keep_run)) as run:
            with in_time(given.timeout):
                prepared = Prediction.prepare(replace(given, source=table_of(given.source, engine)), engine)
                prepared.keep(run, given, engine)
                told.begun(run)
                result = _run(prepared, given, engine, told.observer, layout)
            result = replace(result, run=run.succeed(result, result.output))
        return told.succeed(result, result.output)


def _run(prepared: Prediction, given: PredictArguments, engine: Engine, observer: Observer | None, layout: Layout) -> Result:
    """Run a prepared prediction, and keep its rows in memory or write them to its output."""
    schema = prepared.plan.result
    if given.output is None:
        memory = MemorySink(schema)
        with kept(prepared.table.bad):
            outcome = keeping(prepared.table.bad, lambda: prepared.run(engine, memory, observer))
            result = Result(memory.table(), None, outcome.tasks, outcome.stats, outcome.work_dir)
            hand_over(result)
        return result
    if prepared.table.read_from is not None:
        check_apart(prepared.table.read_from, given.output)
    _check_replaces_nothing(given)
    with ours(SinkError, f"output: {given.output}"):
        path = os.fspath(given.output)
        sink = open_sink(path, schema, codec.write_examples, given.output_format, given.overwrite, layout)
    with kept(prepared.table.bad):
        outcome = run_into(
            sink,
            lambda: keeping(prepared.table.bad, lambda: prepared.run(engine, sink, observer)),
            prepared.job.supervision.waits,
        )
    return Result(None, sink.path, outcome.tasks, outcome.stats, outcome.work_dir)


def run_predict_stream(
    given: PredictArguments, follow: bool, observer: Observer | None, watch: WatchLike | None, watch_seconds: float
) -> StreamJob:
    """Start a stream of predictions, as `akrunner.predict_stream` says. Raises: the exceptions of `akrunner.predict_stream`."""
    check_observer(observer)
    with Telling("predict_stream", given.model, given, observer) as told:
        engine = engine_of(given.engine)
        watched = None if watch is None else Watch.of(watch, watch_seconds)
        if watched is not None and not engine.capabilities.watches:
            raise ConfigError(
                f"watch: new models are taken by streams of engine='local'; on {engine.name} start the stream anew with the new "
                "model"
            )
        apart = {"follow": follow, "watch": watch, "watch_seconds": watch_seconds}
        page = page_of(given.report, given.keep_run)
        # until the thread of the job has started, which ends both
        with Keeping("predict_stream", {**vars(given), **apart}, given.keep_run, page=page) as run:
            with in_time(given.timeout):
                given = replace(given, **arriving_source(vars(given), follow, engine))
                prepared = Prediction.prepare(given, engine, arriving=True)
                prepared.keep(run, given, engine)
                told.begun(run)
                limits = narrowed(*prepared.job.supervision.waits)
            return StreamJob(
                lambda sink, cancel: keeping(
                    prepared.table.bad, lambda: prepared.run(engine, sink, told.observer, cancel, watched)
                ),
                prepared.plan.result,
                prepared.table.arriving,
                limits=limits,
                run=run.id,
                to_its_end=lambda job: told.to_its_end(lambda: kept_to_its_end(run, job)),
            )


def checked(given: PredictArguments, install: bool = True) -> Prediction:
    """Return the prediction that `predict` would run with these arguments.

    Args: install: install the requirements; False: only check them.
    Raises: ConfigError: an argument is wrong.
    """
    check_written(vars(given))
    prepared = Prediction.prepare(given, engine_of(given.engine), install=install)
    check_output(given.output, given.output_format, given.overwrite, prepared.plan.result, layout_of(given))
    _check_replaces_nothing(given)
    return prepared


def _check_replaces_nothing(given: PredictArguments) -> None:
    """Check that the output replaces no file of the job. Args: given: arguments that are checked otherwise.

    Raises: SinkError: rows would replace a file of the job.
    """
    if given.output is not None:
        model = given.model if isinstance(given.model, (str, os.PathLike)) else None
        others = [("the model", model), ("what requirements= names", given.requirements)]
        check_replaces_nothing("output", given.output, others, SinkError)


def check_model(model: Any) -> None:
    """Check a model without opening it. Raises: ModelError: the value cannot be a model."""
    if isinstance(model, (str, bytes, os.PathLike)):
        check_path("model", model, ModelError)
    elif not isinstance(model, (Model, pa.Table)):
        raise ModelError(f"model must be a Model, a path or a model table, not {shown(model)}")


def open_model(model: ModelLike) -> Model:
    """Open a model given as a `Model`, a path or a model table. Raises: ModelError: it is no model."""
    check_model(model)
    if isinstance(model, Model):
        return model
    with ours(ModelError, "model: it cannot be read"):
        if isinstance(model, pa.Table):
            return Model.from_table(model)
        return Model.from_saved_model(model)


def _called(model: ModelLike) -> str:
    """Return the path by which a user gave a model, without secrets; "" if it was not given by a path."""
    return redacted(os.fspath(model)) if isinstance(model, (str, os.PathLike)) else ""


@dataclass(frozen=True)
class Settings:
    """The checked values of a prediction's arguments about the job and its model.

    An argument that is an iterator can be read only once, so these are lists.

    Attributes: options: keyword arguments of `JobSpec`; the others: as for `akrunner.predict`.
    """

    options: Mapping[str, Any]
    input_schema: Schema | None
    output_schema: Schema | None
    selected_cols: list[str] | None
    input_signature_defs: list[str] | None
    output_signature_defs: list[str] | None
    reserved_cols: list[str] | None

    @classmethod
    def of(cls, given: PredictArguments) -> Settings:
        """Check the values of arguments. Raises: ConfigError: a value is wrong."""
        columns, outputs = schema_of(given.input_schema, "input_schema"), schema_of(given.output_schema, "output_schema")
        options: dict[str, Any] = dict(
            cluster=ClusterSpec(given.num_workers if given.num_workers is not None else 1, 0),
            env=check_environment("env", given.env if given.env is not None else {}),
            supervision=SupervisionSpec(
                timeout=given.timeout,
                start_timeout=given.start_timeout,
                stall_timeout=given.stall_timeout,
                stall_action=given.stall_action,
            ),
            resources=ResourceSpec(given.gpus_per_worker, given.cpus_per_worker, given.intra_op_parallelism),
            work_dir=directory("work_dir", given.work_dir),
            keep=given.work_dir is not None,
            flush_seconds=check_seconds("flush_seconds", given.flush_seconds),
            keras=given.keras,
        )
        check_count("batch_size", given.batch_size, 1)
        check_directories(options)
        check_text("signature_def_key", given.signature_def_key, ModelError)
        check_text("graph_def_tag", given.graph_def_tag, ModelError)
        return cls(
            options,
            columns,
            outputs,
            check_names("selected_cols", given.selected_cols),
            check_names("input_signature_defs", given.input_signature_defs),
            check_names("output_signature_defs", given.output_signature_defs),
            check_names("reserved_cols", given.reserved_cols),
        )

    def plan(self, signature: Signature, table: pa.Schema) -> Plan:
        """Match the model's signature with the table's columns. Raises: ConfigError: they do not fit."""
        return Plan.make(
            signature,
            table,
            self.selected_cols,
            self.input_signature_defs,
            self.output_signature_defs,
            self.output_schema,
            self.reserved_cols,
        )


def interpreter_of(given: PredictArguments, engine: Engine) -> tuple[str, str | None]:
    """Return the workers' interpreter, and the requirements to install beside it, None if there are none.

    Raises: ConfigError: the interpreter, or the requirements, cannot be used.
    """
    with ours(PythonEnvError, "python_env: it cannot be used"):
        python = interpreter_for(given.python_env, engine.capabilities, given.keras).path
    requirements = check_path("requirements", given.requirements) if given.requirements is not None else None
    if requirements is not None:
        check_requirements(requirements, python)
    return python, requirements


def job_for(
    model: Model,
    plan: Plan,
    given: PredictArguments,
    settings: Settings,
    python: str,
    requirements: str | None,
    answer_errors: bool = False,
    notes: Sequence[str] = (),
    marked: bool = False,
) -> JobSpec:
    """Make the job that runs a model: a stream of columns into a module of the bundle.

    Args: answer_errors: whether a worker answers rows for which the model raises with the error, and goes on; notes: warnings; marked:
        whether the table is told which of its rows are answered.
    """
    batch_size = given.batch_size
    params = {
        "tags": [tag.strip() for tag in given.graph_def_tag.split(",")],
        "signature": given.signature_def_key,
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
        # chunks are cut to size before they are sent, and must not be cut again
        chunk_bytes=1 << 40,
        python=python,
        overlay=environments.overlay(python, requirements) if requirements is not None else "",
        marked=marked,
        notes=(*plan.notes, *notes),
        **settings.options,
    )


class Prediction:
    """A prediction whose arguments are all checked: model, plan, job and table."""

    def __init__(self, model: Model, plan: Plan, job: JobSpec, table: TableSource, arriving: bool) -> None:
        self.model = model  # a temporary model is removed with its last reference
        self.plan = plan
        self.job = job
        self.table = table
        self.arriving = arriving

    @classmethod
    def prepare(cls, given: PredictArguments, engine: Engine, arriving: bool = False, install: bool = True) -> Prediction:
        """Check every argument, cheap checks before expensive ones.

        Args: arriving: whether the rows arrive as a stream; install: install the requirements; False: only check them.
        Raises: ConfigError: an argument is wrong; nothing was started. JobTimeoutError: as `check_prepared`.
        """
        check_model(given.model)
        if engine.capabilities.here:
            capacity.check_fits(num_workers=given.num_workers)
        settings = Settings.of(given)
        reading = Reading.of(given, arriving)

        # a table of files is opened before the model, so that no model is downloaded if the table does not exist; another table
        # after all other checks, as the first rows of an iterable come once
        found = reading.open(given.source) if named_files(given.source) else None
        opened = open_model(given.model)
        signature = signature_of(opened.path, given.signature_def_key, given.graph_def_tag, _called(given.model))
        python, requirements = interpreter_of(given, engine)
        table = found or reading.open(given.source)
        check_bad_rows_apart(table)
        plan = settings.plan(signature, table.schema)
        job = job_for(
            opened,
            plan,
            given,
            settings,
            python,
            requirements if install else None,
            notes=[*read_twice(table), *table.notes],
            marked=table.arriving is not None,
        )
        check_prepared()
        return cls(opened, plan, job, table, arriving)

    def keep(self, run: Keeping, given: PredictArguments, engine: Engine) -> None:
        """Have the run kept from now on, if it is to be kept. Args: given: the arguments of the prediction."""
        self.job = kept_job(run, self.job, _called(given.model) or self.model.path, engine, None)

    def attach(self, engine: Any, observer: Observer | None, restarts: int = 0) -> Any:
        """Attach the prediction to its PyFlink table. Returns: an `akrunner.engines.flink.host.attached.Attached`."""
        job = engine.attach(self.job, self.table, observer, restarts, self.plan.result, self.plan.pairing)
        # a temporary model is removed with its last reference
        job.holds = self.model
        return job

    def run(
        self,
        engine: Engine,
        sink: RowSink,
        observer: Observer | None,
        cancel: threading.Event | None = None,
        watch: Watch | None = None,
    ) -> Any:
        """Run the prediction.

        Args: watch: where new models appear while it runs, None: there are none. Returns: the outcome.
        """
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
            chunks = "1 chunk of rows was" if pairing.pending == 1 else f"{pairing.pending} chunks of rows were"
            raise InputLostError(f"{chunks} sent to the model and never answered")
        return outcome

    def _check_new(self, model: Model) -> None:
        """Check a new model. Raises: ModelError: it cannot replace the current model, as its signature is another one."""
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
    """The source and the sink of a prediction's job: the kept columns of each chunk wait here for the chunk's outputs.

    Chunk k goes to worker k modulo the number of workers (`akrunner.engines.feeder.StreamFeeder`), and a worker answers in
    order.
    """

    replayable = False

    def __init__(self, plan: Plan, source: RowSource, job: JobSpec, sink: RowSink, arriving: bool) -> None:
        self._plan = plan
        self._source = source
        self._job = job
        self._sink = sink
        self._arriving = arriving
        self._tasks = {task: i for i, task in enumerate(job.cluster.with_rows)}
        self._waiting: list[deque[tuple[int, int, pa.RecordBatch]]] = [deque() for _ in self._tasks]
        self._done: dict[int, tuple[TaskSpec, pa.RecordBatch]] = {}
        self._next = 0
        #: the last chunk that each task has answered, and the marks that wait until the results before them are written
        self._last = dict.fromkeys(self._tasks, -1)
        self._marks: list[tuple[int, TaskSpec, int]] = []
        self.bad = bad_rows_of(source)
        self.extent = extent_of(source)

    @property
    def pending(self) -> int:
        """Return the number of chunks without an answer."""
        return sum(map(len, self._waiting))

    def where(self, task: str) -> str | None:
        """Return the rows that a task is working on, in words; None if it has none."""
        index = next((i for t, i in self._tasks.items() if t.name == task), None)
        if index is None or not self._waiting[index]:
            return None
        _, first, batch = self._waiting[index][0]
        return f"rows {first} to {first + batch.num_rows - 1} of the table"

    @property
    def arriving(self) -> Arriving | None:
        """The table's `arriving` (`MarkedSource`)."""
        return self._source.arriving if isinstance(self._source, MarkedSource) else None

    def stop(self) -> None:
        """End a read that another thread is blocked in (`StoppableSource`)."""
        if isinstance(self._source, StoppableSource):
            self._source.stop()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the feed batches (`RowSource`)."""
        turn = first = 0
        for chunk in self._chunks():
            fed = self._plan.model_inputs(chunk, first)
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
            # rows that have come are not held back until more come
            yield from rechunk([batch], rows, _CHUNK_BYTES)

    def answered(self, task: TaskSpec, number: int) -> None:
        """Pass on that a worker has answered all chunks before a mark, once their results are written (`MarkedSink`)."""
        if isinstance(self._sink, MarkedSink):
            self._marks.append((self._last[task], task, number))
            self._pass_marks()

    def _pass_marks(self) -> None:
        waiting, self._marks = self._marks, []
        for behind, task, number in waiting:
            if behind < self._next and isinstance(self._sink, MarkedSink):
                self._sink.answered(task, number)
            else:
                self._marks.append((behind, task, number))

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        """Take a worker's answer (`RowSink`), and write the results that are next in order."""
        turn, _, chunk = self._waiting[self._tasks[task]].popleft()
        self._done[turn] = task, self._plan.joined(chunk, batch)
        self._last[task] = turn
        while self._next in self._done:
            task, batch = self._done.pop(self._next)
            # a sink of marks asks which task it was; to the others the rows are those of one table, in its order
            self._sink.write(task if isinstance(self._sink, MarkedSink) else _FIRST, batch)
            self._next += 1
            self._pass_marks()
