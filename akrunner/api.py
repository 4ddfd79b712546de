"""`akrunner.run`, `train` and `stream` once their arguments are gathered: a JobSpec, its engine, the result."""

from __future__ import annotations

import dataclasses
import os

from akrunner import codec, leftovers
from akrunner.checks import check_flag, check_path
from akrunner.engines.base import Engine, Observer
from akrunner.engines.registry import engine_of
from akrunner.errors import ConfigError, ModelError, WriteError
from akrunner.foreign import ours, underway
from akrunner.history.keeping import Keeping
from akrunner.io.bad_rows import kept
from akrunner.io.layouts import PLAIN, Layout
from akrunner.io.limits import in_time, narrowed, under
from akrunner.io.sinks import FirstBatchSink, MemorySink
from akrunner.model import Model, check_target, new_folder, remove_checkpoints
from akrunner.prepare.arguments import Arguments, PathLike
from akrunner.prepare.job import Prepared, prepare
from akrunner.prepare.layouts import layout_of
from akrunner.running.handing import hand_over
from akrunner.running.inputs import arriving_source, table_of
from akrunner.running.kept import begun, kept_to_its_end, page_of
from akrunner.running.observer import check_observer
from akrunner.running.outputs import keeping, run_into
from akrunner.running.result import Result
from akrunner.stream_job import StreamJob
from akrunner.tables.opening import OutputSink, open_sink, opened_later
from akrunner.telling.listeners import Telling


def run_batch(given: Arguments, observer: Observer | None) -> Result:
    """Run a batch job, as `akrunner.run` says. Raises: the exceptions of `akrunner.run`."""
    check_observer(observer)
    with (
        Telling("run", given.script, given, observer) as told,
        Keeping("run", vars(given), given.keep_run, page=page_of(given.report, given.keep_run)) as run,
    ):
        given, engine = _with_engine(given)
        with in_time(given.timeout):
            prepared = begun(run, prepare("batch", given), engine)
            told.begun(run)
            result = _run(prepared, engine, told.observer, given.output, given.output_format, given.overwrite, layout_of(given))
        result = dataclasses.replace(result, run=run.succeed(result, result.output))
        return told.succeed(result, result.output)


def run_train(
    given: Arguments,
    model_out: PathLike | None,
    remove_checkpoint_before_training: bool,
    observer: Observer | None,
) -> Result:
    """Run a train job, as `akrunner.train` says. Raises: the exceptions of `akrunner.train`."""
    apart = {"model_out": model_out, "remove_checkpoint_before_training": remove_checkpoint_before_training}
    check_observer(observer)
    kept = {**vars(given), **apart}
    with (
        Telling("train", given.script, given, observer, model_out=model_out) as told,
        Keeping("train", kept, given.keep_run, page=page_of(given.report, given.keep_run)) as run,
    ):
        result = _train(run, told, given, model_out, remove_checkpoint_before_training)
        result = dataclasses.replace(result, run=run.succeed(result, result.output))
        return told.succeed(result, result.output)


def _train(
    run: Keeping,
    told: Telling,
    given: Arguments,
    model_out: PathLike | None,
    remove_checkpoint_before_training: bool,
) -> Result:
    """Run a train job. Args: run: keeps it; told: tells of it; the others: as for `run_train`."""
    given, engine = _with_engine(given)
    check_flag("overwrite", given.overwrite)
    if model_out is not None:
        model_out = check_path("model_out", model_out, ModelError)
        with ours(ModelError, f"model_out: cannot open {model_out}"):
            check_target(model_out, given.overwrite)
    if check_flag("remove_checkpoint_before_training", remove_checkpoint_before_training) and given.checkpoint_dir is None:
        raise ConfigError("remove_checkpoint_before_training= needs checkpoint_dir=")
    if remove_checkpoint_before_training and given.resume is True:
        raise ConfigError("resume= goes on with what remove_checkpoint_before_training= removes: give one of them")
    with in_time(given.timeout):
        prepared = begun(run, prepare("train", given), engine)
        told.begun(run)
        limits = narrowed(*prepared.job.supervision.waits)
    if prepared.job.checkpoint_dir is not None and remove_checkpoint_before_training:
        with ours(ConfigError, f"checkpoint_dir: cannot empty {prepared.job.checkpoint_dir}"):
            remove_checkpoints(prepared.job.checkpoint_dir)
    folder = new_folder()
    try:
        job = dataclasses.replace(prepared.job, model_dir=folder)
        with kept(prepared.table.bad):
            with under(limits):
                result = _run(Prepared(job, prepared.table), engine, told.observer, None, None, False)
            model_dir = os.path.join(folder, "model")
            if all(task.only_asked for task in result.tasks) and not (os.path.isdir(model_dir) and os.listdir(model_dir)):
                leftovers.drop(folder)
                return result
            checkpoint = os.path.join(folder, "checkpoint") if given.save_latest_checkpoint else None
            model = Model(model_dir, checkpoint, temporary=folder)
            saved = None
            if model_out is not None:
                with underway(WriteError, "model_out"):
                    saved = model.save(model_out, given.overwrite)
    except BaseException:
        leftovers.drop(folder)
        raise
    return dataclasses.replace(result, model=model, output=saved)


def run_stream(given: Arguments, follow: bool, observer: Observer | None) -> StreamJob:
    """Start a stream job, as `akrunner.stream` says. Raises: the exceptions of `akrunner.stream`."""
    check_observer(observer)
    with Telling("stream", given.script, given, observer) as told:
        page = page_of(given.report, given.keep_run)
        # until the thread of the job has started, which ends both
        with Keeping("stream", {**vars(given), "follow": follow}, given.keep_run, page=page) as run:
            given, engine = _with_engine(given)
            with in_time(given.timeout):
                given = dataclasses.replace(given, **arriving_source(vars(given), follow, engine))
                prepared = begun(run, prepare("stream", given), engine)
                told.begun(run)
                limits = narrowed(*prepared.job.supervision.waits)
            schema = prepared.job.output_schema
            table = prepared.table
            return StreamJob(
                lambda sink, cancel: keeping(table.bad, lambda: engine.run(prepared.job, table, sink, told.observer, cancel)),
                schema.arrow if schema else None,
                table.arriving,
                prepared.job.supervision.max_restarts,
                prepared.job.resume,
                limits,
                run.id,
                lambda job: told.to_its_end(lambda: kept_to_its_end(run, job)),
            )


def _with_engine(given: Arguments) -> tuple[Arguments, Engine]:
    """Open the engine, and wrap the source if it is a PyFlink table (`table_of`).

    Returns: the arguments with both in them, and the engine.
    Raises: ConfigError: the engine is wrong, or the engine cannot reach the table.
    """
    engine = engine_of(given.engine)
    return dataclasses.replace(given, engine=engine, source=table_of(given.source, engine)), engine


def _run(
    prepared: Prepared,
    engine: Engine,
    observer: Observer | None,
    output: PathLike | None,
    output_format: str | None,
    overwrite: bool,
    layout: Layout = PLAIN,
) -> Result:
    """Run a prepared job, and keep its rows in memory or write them to `output`."""
    job, schema = prepared.job, prepared.job.output_schema
    if output is None or (schema is None and not job.output_inferred):
        memory = MemorySink(schema.arrow if schema is not None else None)
        with kept(prepared.table.bad):
            outcome = keeping(prepared.table.bad, lambda: engine.run(job, prepared.table, memory, observer))
            result = Result(memory.table(), None, outcome.tasks, outcome.stats, outcome.work_dir)
            hand_over(result)
        return result
    path = os.fspath(output)
    sink: OutputSink | FirstBatchSink
    if schema is not None:
        sink = open_sink(path, schema.arrow, codec.write_examples, output_format, overwrite, layout)
    else:
        # the output is no table by name: `prepare` makes sure that such an output has an output schema
        sink = FirstBatchSink(path, opened_later(path, codec.write_examples, output_format, overwrite, layout))
    with kept(prepared.table.bad):
        outcome = run_into(
            sink,
            lambda: keeping(prepared.table.bad, lambda: engine.run(job, prepared.table, sink, observer)),
            job.supervision.waits,
        )
    return Result(None, None if outcome.only_asked else sink.path, outcome.tasks, outcome.stats, outcome.work_dir)
