"""`LocalPredictor`: a model that is kept loaded in one worker process, for rows that come one at a time.

::

    predict()          rows -> a request -> queue ... engine, a stream of columns ... -> its answer -> the caller
    predictor thread   runs the job; if the worker dies, runs it once more with the requests that were not answered
"""

from __future__ import annotations

import itertools
import threading
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from akrunner.arrays import decoded
from akrunner.checks import check_seconds, shown
from akrunner.column_types import NUMBERS, family_of
from akrunner.engines.base import Engine
from akrunner.engines.causes import gist
from akrunner.engines.registry import engine_of
from akrunner.errors import ConfigError, DataError, ModelError, ScriptFailedError, TaskDiedError, TaskFailure, noting
from akrunner.foreign import in_words, ours
from akrunner.io.frames import from_pandas, to_pandas
from akrunner.io.pairing import as_input
from akrunner.io.values import as_type
from akrunner.options.told import told
from akrunner.prepare.arguments import PathLike, SchemaLike
from akrunner.schema import Field, Schema
from akrunner.sequences import SequenceNotStr
from akrunner.serving.arguments import ModelLike, PredictArguments
from akrunner.serving.job import Settings, interpreter_of, job_for, open_model
from akrunner.serving.plan import ARROW
from akrunner.signature import Signature, signature_of
from akrunner.spec import TaskSpec
from akrunner.wire.near import nearest

_TICK = 0.1
#: how many columns `repr` shows
_SHOWN = 8
#: exceptions of Arrow, numpy and Python for a value of another type
_MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)


class LocalPredictor:
    """A model that is kept loaded in a worker process of its own.

    >>> with akrunner.LocalPredictor("model.zip") as predictor:
    ...     predictor.predict({"x": 1.0})
    {'y': 2.0}

    Several threads may use it at the same time. If the worker process dies, it is started once more, with a warning, and the
    requests that it had not answered are sent again. If it dies again before it has answered anything, all waiting callers get
    the error, and the predictor is closed.

    Attributes:
        input_schema: schema of the rows that it takes.
        output_schema: schema of the rows that it returns.
    """

    # options: written by scripts/gen-options
    @told("LocalPredictor")
    def __init__(
        self,
        model: ModelLike,
        *,
        selected_cols: SequenceNotStr[str] | None = None,
        input_signature_defs: SequenceNotStr[str] | None = None,
        output_signature_defs: SequenceNotStr[str] | None = None,
        signature_def_key: str = "serving_default",
        graph_def_tag: str = "serve",
        reserved_cols: SequenceNotStr[str] | None = (),
        batch_size: int = 1024,
        input_schema: SchemaLike | None = None,
        output_schema: SchemaLike | None = None,
        engine: str | Engine = "local",
        python_env: PathLike | None = None,
        requirements: PathLike | None = None,
        keras: Literal["legacy"] | None = None,
        env: Mapping[str, str] | None = None,
        gpus_per_worker: int | None = None,
        cpus_per_worker: int | None = None,
        intra_op_parallelism: int | None = None,
        start_timeout: float = 60.0,
    ) -> None:
        """Start the worker process and load the model; returns when both are done.

        Args:
            model: a `Model`, a SavedModel's directory or zip, local or a URL, or a model table.
            selected_cols: columns that feed the model, in the order of `input_signature_defs`; None: those named as the inputs, or
                the only column for the only input. For a model of one input several columns are laid side by side: [rows, columns].
            input_signature_defs: the signature's inputs, in the order of the columns; None: named as the columns.
            output_signature_defs: the signature's outputs, in the order of `output_schema`; None: named as its columns.
            signature_def_key: which signature.
            graph_def_tag: which graph (tags, separated by commas).
            reserved_cols: columns of the row to give back, none by default; None: all.
            batch_size: rows that the model gets at a time, at most.
            input_schema: columns of the rows, "x double, image FLOAT_TENSOR"; None: one column for every input of the signature,
                named as it.
            output_schema: columns the outputs become, "p double, embedding FLOAT_TENSOR"; an output of any rank is laid out
                row-major. None: every output, of its own type.
            engine: "local", "flink", one that a package adds, or an engine (`akrunner.engines.flink.FlinkEngine`).
            python_env: the environment with TensorFlow: an interpreter, a venv or conda directory, a packed environment
                (conda-pack; local or a URL), or tf1.15, tf2.3, tf2, which `akrunner env` finds and creates; None: this interpreter.
            requirements: requirements.txt to install beside `python_env`, once; packages that `python_env` has already win.
            keras: "legacy" for Keras 2 (tf-keras), which multi-worker `fit` needs on TensorFlow 2.16 and later.
            env: environment variables for the tasks.
            gpus_per_worker: graphics cards of its own for each worker, none for the others; None: all see all.
            cpus_per_worker: cores of its own for each worker; None: all share all, with as many threads in total as there are
                cores.
            intra_op_parallelism: threads TensorFlow uses inside one operation; None: its share of the cores.
            start_timeout: seconds a worker process may take to start.
        Raises:
            ConfigError: an argument is wrong.
            JobError: the worker did not start, or cannot load the model.
        """
        self._start(
            PredictArguments(
                model=model,
                selected_cols=selected_cols,
                input_signature_defs=input_signature_defs,
                output_signature_defs=output_signature_defs,
                signature_def_key=signature_def_key,
                graph_def_tag=graph_def_tag,
                reserved_cols=reserved_cols,
                batch_size=batch_size,
                input_schema=input_schema,
                output_schema=output_schema,
                engine=engine,
                python_env=python_env,
                requirements=requirements,
                keras=keras,
                env=env,
                gpus_per_worker=gpus_per_worker,
                cpus_per_worker=cpus_per_worker,
                intra_op_parallelism=intra_op_parallelism,
                start_timeout=start_timeout,
            ),
        )

    # end of what scripts/gen-options writes

    def _start(self, given: PredictArguments) -> None:
        self._engine = engine_of(given.engine)
        settings = Settings.of(given)
        self._model = open_model(given.model)
        signature = signature_of(self._model.path, given.signature_def_key, given.graph_def_tag)
        rows = settings.input_schema
        if rows is None:
            rows = _row_schema(signature, settings.input_signature_defs, settings.selected_cols)
        self.input_schema = rows
        self._plan = settings.plan(signature, self.input_schema.arrow)
        self.output_schema = self._plan.result
        python, requirements = interpreter_of(given, self._engine)
        self._job = job_for(self._model, self._plan, given, settings, python, requirements, answer_errors=True)
        self._requests = _Requests(pa.RecordBatch.from_pylist([], schema=self._plan.feed.arrow))
        self._cancel, self._over = threading.Event(), threading.Event()
        threading.Thread(target=self._run, name="akrunner-predictor", daemon=True).start()
        self._requests.wait_until_warm()

    @noting
    def predict(self, rows: Any) -> Any:
        """Predict one row, or many.

        Args:
            rows: a dict, or a sequence of values in the order of `input_schema`; a list of either; a pyarrow Table; or a frame
                of pandas or polars.
        Returns:
            for a dict a dict, for a sequence a tuple, for a list a list of them, for a Table a Table, for a frame a frame (a
            pandas frame keeps its index).
        Raises:
            DataError: a row lacks a column, or a value does not fit.
            ScriptFailedError: the model raised an exception for these rows.
            JobError: the worker process died twice.
            ConfigError: the predictor is closed.
        """
        if isinstance(rows, pa.Table):
            return self._predict_table(rows)
        if type(rows).__name__ == "DataFrame" and type(rows).__module__.partition(".")[0] in ("pandas", "polars"):
            return self._predict_frame(rows)
        many = isinstance(rows, list) and (not rows or isinstance(rows[0], (Mapping, list, tuple)))
        asked: Sequence[Any] = rows if many else [rows]
        if not asked:
            return []
        table = pa.Table.from_batches([_batch(self.input_schema, asked)])
        answered = self._predict_table(table)
        named = isinstance(asked[0], Mapping)
        columns = [_plain(column) for column in answered.columns]
        found = [dict(zip(answered.column_names, row)) if named else row for row in zip(*columns)]
        return found if many else found[0]

    def _predict_frame(self, frame: Any) -> Any:
        if type(frame).__module__.partition(".")[0] == "polars":
            import polars

            return polars.from_arrow(self._predict_table(_typed(self.input_schema, frame.to_arrow())))
        with ours(DataError, "the rows are a frame that is no table"):
            table = from_pandas(frame.reset_index(drop=True))
        answered = to_pandas(self._predict_table(_typed(self.input_schema, table)))
        answered.index = frame.index
        return answered

    def __repr__(self) -> str:
        closed = " (closed)" if self._requests.is_over else ""
        return f"<LocalPredictor: {_in_words(self.input_schema)} -> {_in_words(Schema.from_arrow(self.output_schema))}{closed}>"

    def _predict_table(self, table: pa.Table) -> pa.Table:
        asked = []
        for name in self.input_schema.names:
            if name not in table.column_names:
                raise DataError(f"the rows have no column {name!r}{nearest(name, table.column_names)}", column=name)
        first = 0
        for chunk in table.to_batches(max_chunksize=self._job.chunk_rows):
            if chunk.num_rows:
                try:
                    fed = self._plan.model_inputs(chunk, first)
                except DataError as e:
                    # the rest of the message tells how to change a table with select=, which is no use here
                    raise DataError(e.args[0].partition("; ")[0], row=e.row, column=e.column) from None
                asked.append((chunk, self._requests.ask(fed)))
                first += chunk.num_rows
        batches = [self._plan.joined(chunk, request.answer()) for chunk, request in asked]
        return pa.Table.from_batches(batches, schema=self.output_schema)

    def close(self, timeout: float = 30.0) -> None:
        """End the worker process, and wait until it is gone. Closing twice is fine.

        Args:
            timeout: seconds in which requests that were sent already may be answered. Callers that still wait then get a
                JobCancelledError, and the worker process is ended, whatever it is doing.
        """
        seconds = check_seconds("timeout", timeout, zero=True)
        self._requests.close()
        try:
            self._over.wait(seconds)
        finally:
            self._cancel.set()
            self._over.wait()

    def __enter__(self) -> LocalPredictor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # a user who interrupts the block must not wait for a row that is stuck
        self.close(30.0 if error is None or isinstance(error, Exception) else 0.0)

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._over.set()

    def _work(self) -> None:
        requests = self._requests
        while True:
            error: BaseException = _closed()
            try:
                self._engine.run(self._job, requests, requests, None, self._cancel)
            except BaseException as e:
                error = e
            if not (isinstance(error, TaskDiedError) and requests.start_again()):
                requests.end(error)
                return
            warnings.warn(
                f"the model's worker process died and was started again: {error.args[0]}", RuntimeWarning, stacklevel=2
            )


class _Request:
    """Rows on their way to the model, and their outputs on the way back."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.outputs: pa.RecordBatch | None = None
        self.error: BaseException | None = None
        self._done = threading.Event()

    def answered(self, outputs: pa.RecordBatch | None, error: BaseException | None) -> None:
        self.outputs, self.error = outputs, error
        self._done.set()

    def answer(self) -> pa.RecordBatch:
        """Wait for the answer and return it. Raises: the error, if the request failed."""
        self._done.wait()
        if self.error is not None:
            raise self.error
        assert self.outputs is not None
        return self.outputs


class _Requests:
    """The queue between the callers and the job: the job's source and its sink (`akrunner.engines.base.AnswerSink`)."""

    replayable = False

    def __init__(self, nothing: pa.RecordBatch) -> None:
        self._nothing = nothing
        self._changed = threading.Condition()
        self._new: deque[_Request] = deque()
        self._asked: deque[_Request] = deque()
        self._job = 0
        self._warm = threading.Event()
        self._closed = False
        self._ended: BaseException | None = None
        self._may_start_again = True

    @property
    def is_over(self) -> bool:
        """Whether no more requests are taken."""
        return self._closed or self._ended is not None

    def wait_until_warm(self) -> None:
        """Wait until the model is loaded. Raises: the error, if it could not be loaded."""
        self._warm.wait()
        if self._ended is not None:
            raise self._ended

    def ask(self, batch: pa.RecordBatch) -> _Request:
        request = _Request(batch)
        with self._changed:
            if self._ended is not None:
                raise self._ended
            if self._closed:
                raise _closed()
            self._new.append(request)
            self._changed.notify()
        return request

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the job's input, one batch for each request. The engine starts to read it when the model is loaded."""
        self._warm.set()
        mine = self._job
        while True:
            with self._changed:
                if not self._new and not self._closed:
                    self._changed.wait(_TICK)
                if self._job != mine or (self._closed and not self._new):
                    return
                request = self._new.popleft() if self._new else None
                if request is not None:
                    self._asked.append(request)
            # yield an empty batch now and then, so that the engine can check whether its job still runs
            yield self._nothing if request is None else request.batch

    def write(self, task: TaskSpec, batch: pa.RecordBatch) -> None:
        """Take the outputs for a request: requests are answered in the order in which they were sent."""
        self._answered().answered(batch, None)

    def refused(self, task: TaskSpec, record: Mapping[str, Any]) -> None:
        """Take the error for a request: the model raised for its rows, and is ready for others."""
        what = f"raised {record['type']}: {gist(str(record['message']))}"
        failure = TaskFailure(task.name, what, traceback=str(record["traceback"]), time_ns=int(record["time_ns"]))
        self._answered().answered(None, ScriptFailedError(f"the model {what}", failure=failure))

    def _answered(self) -> _Request:
        with self._changed:
            self._may_start_again = True
            return self._asked.popleft()

    def start_again(self) -> bool:
        """Prepare a new worker after one has died: the requests that were not answered are sent first.

        Returns: whether to start a new worker.
        """
        with self._changed:
            if not self._may_start_again or self._closed or not self._warm.is_set():
                return False
            self._may_start_again = False
            self._new.extendleft(reversed(self._asked))
            self._asked.clear()
            self._job += 1
            return True

    def end(self, error: BaseException) -> None:
        """End all requests: the job has ended, and all waiting callers get the error."""
        with self._changed:
            self._ended = error
            self._job += 1
            waiting = [*self._asked, *self._new]
        for request in waiting:
            request.answered(None, error)
        self._warm.set()

    def close(self) -> None:
        """Take no more requests; the ones that were sent are answered first."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _closed() -> ConfigError:
    return ConfigError("the predictor is closed")


def _row_schema(signature: Signature, names: Sequence[str] | None, selected: Sequence[str] | None) -> Schema:
    """Return the schema of rows for a model if the user gave none: a column for each input."""
    inputs = list(names) if names is not None else list(signature.inputs)
    columns = list(selected) if selected is not None and len(selected) == len(inputs) else inputs
    if selected is not None and len(selected) != len(inputs):
        raise ConfigError("selected_cols of another number than the model's inputs: give input_schema= too")
    fields = []
    for column, name in zip(columns, inputs):
        spec = signature.inputs.get(name)
        if spec is None or spec.dtype not in ARROW:
            known = ", ".join(map(str, signature.inputs.values()))
            raise ModelError(
                f"input_signature_defs: the model has no input {name!r} that a column could feed; it takes {known}"
            )
        kind = ARROW[spec.dtype]
        row = spec.row_shape
        if row is None or not row:
            fields.append(Field(column, kind))
        elif None in row:
            fields.append(Field(column, pa.list_(kind)))
        else:
            fields.append(Field(column, pa.list_(kind, int(np.prod([size for size in row if size is not None])))))
    return Schema(tuple(fields))


def _batch(schema: Schema, rows: Sequence[Any]) -> pa.RecordBatch:
    """Return rows as a batch.

    Raises: DataError: a row lacks a column or has an unknown one, or a value does not fit its type.
    """
    names = schema.names
    columns: list[list[Any]] = []
    for at, row in enumerate(rows):
        if isinstance(row, Mapping):
            unknown = [name for name in row if name not in names]
            missing = [name for name in names if name not in row]
            if missing or unknown:
                what = f"lacks {missing[0]!r}" if missing else f"has {unknown[0]!r}, which is not among the columns"
                raise DataError(f"row {at} {what}; the predictor takes {', '.join(names)}", row=at)
        elif not isinstance(row, (list, tuple)) or len(row) != len(names):
            raise DataError(f"row {at} must be a dict, or {len(names)} values: {', '.join(names)}; it is {shown(row)}", row=at)
    for i, name in enumerate(names):
        columns.append([row[name] if isinstance(row, Mapping) else row[i] for row in rows])
    arrays = []
    for field, values in zip(schema, columns):
        try:
            arrays.append(_as_column(field, values))
        except _MISFITS as e:
            at = next((at for at, value in enumerate(values) if not _fits(field, value)), 0)
            raise DataError(
                f"row {at}, column {field.name!r}: its value does not fit {field.type}: {in_words(e)}",
                row=at,
                column=field.name,
            ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema.arrow)


def _in_words(schema: Schema) -> str:
    """Return the columns in words; of many columns only the first."""
    shown = [f"{field.name} {field.type}" for field in itertools.islice(schema, _SHOWN)]
    return ", ".join([*shown, *([f"{len(schema) - _SHOWN} more"] if len(schema) > _SHOWN else [])])


def _typed(schema: Schema, table: pa.Table) -> pa.Table:
    """Return a table with the columns and types of a schema.

    Raises: DataError: the table lacks a column, or a value does not fit its type.
    """
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            raise DataError(
                f"the rows have no column {field.name!r}{nearest(field.name, table.column_names)}", column=field.name
            )
        column = table.column(field.name)
        if column.type != field.type:
            with ours(DataError, f"column {field.name!r} of the rows, which is {column.type}, does not fit {field.type}"):
                whole = decoded(column.combine_chunks())
                column = as_input(pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole, field.type)
        columns.append(column)
    return pa.table(columns, schema=schema.arrow)


def _as_column(field: Field, values: list[Any]) -> pa.Array:
    if field.is_list:
        text = next((one for one in values if isinstance(one, (str, bytes))), None)
        if text is not None and family_of(field.type.value_type) in NUMBERS:
            # numpy makes a list of one text of it, and Arrow would say that its length is wrong
            raise TypeError(f"it is the text {shown(text)}, and no list of numbers")
        values = [None if value is None else np.asarray(value).reshape(-1) for value in values]
    return as_type(values, field.type)


def _fits(field: Field, value: Any) -> bool:
    try:
        _as_column(field, [value])
    except _MISFITS:
        return False
    return True


def _plain(column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values
