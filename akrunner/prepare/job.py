"""From arguments to a job and its table; each argument is checked, cheap checks before expensive ones."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from akrunner import codec
from akrunner.checks import check_count, check_flag, check_path, check_paths, check_replaces_nothing
from akrunner.errors import ConfigError, PythonEnvError, ScriptError, SinkError, SourceError, UserFilesError
from akrunner.foreign import ours, redacted
from akrunner.io.formats import check_output_format
from akrunner.io.layouts import PLAIN, Layout
from akrunner.io.limits import check_time
from akrunner.io.paths import check_apart
from akrunner.io.splits import check_split, check_table
from akrunner.io.streams.counted import counted
from akrunner.io.table import TableSource, no_rows
from akrunner.launch import capacity, environments, files, imported, interpreters
from akrunner.prepare.arguments import Arguments, PathLike
from akrunner.prepare.layouts import layout_of
from akrunner.prepare.places import check_directories, directory, made
from akrunner.prepare.python import check_requirements, interpreter_for, optional_path
from akrunner.prepare.reading import Reading
from akrunner.prepare.schemas import schema_of
from akrunner.prepare.scripts import check_order, check_saves, check_script, check_writes
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, Mode, ResourceSpec, ScriptSpec, SupervisionSpec, check_advertised
from akrunner.tables.asked import names_of, tables_spec
from akrunner.tables.names import is_table
from akrunner.tables.opening import check_other, open_sink

if TYPE_CHECKING:
    from akrunner.launch.functions.writing import Written


@dataclass(frozen=True)
class Prepared:
    """A job whose arguments are all checked, its table, and the interpreter of its tasks.

    If `interpreter` is None, only its path is known: `job.python`.
    """

    job: JobSpec
    table: TableSource
    interpreter: interpreters.Interpreter | None = None


#: the script of a job until its script is examined
_NO_SCRIPT = ScriptSpec("", "")


def prepare(mode: Mode, given: Arguments) -> Prepared:
    """Check every argument, and make the overlay and the directory for checkpoints.

    Cheap checks come before expensive ones: values; the output; files and tables that are paths; files to download;
    interpreters, which are run; rows of an iterable, which come once.
    Returns: the job and its table; the caller sets `model_dir` of a train job.
    Raises: ConfigError: an argument is wrong; nothing was started, and nothing was made. JobTimeoutError: as `check_prepared`.
    """
    prepared, requirements = checked(mode, given)
    job = prepared.job
    overlay = environments.overlay(job.python, requirements) if requirements is not None else ""
    check_prepared()
    return Prepared(
        dataclasses.replace(job, overlay=overlay, checkpoint_dir=made(job.checkpoint_dir)),
        prepared.table,
        prepared.interpreter,
    )


def _written(function: Callable[..., Any]) -> Written:
    """Return what a function that is given in place of a script is written as."""
    # what reads functions, which most jobs do without
    from akrunner.launch.functions import writing

    return writing.written(function)


def check_prepared() -> None:
    """Check, before a job's tasks are started, that its time is not over. Raises: JobTimeoutError: it is."""
    check_time("its preparation (packages of requirements=, downloads, interpreters, tables)")


def checked(mode: Mode, given: Arguments) -> tuple[Prepared, str | None]:
    """Check every argument as `prepare` does, but make nothing.

    Returns: the job without its overlay, and the requirements that the overlay is made of, None if there are none.
    """
    job = _settings(mode, given)
    looked_at = given.script if isinstance(given.script, ScriptSpec) else None
    with ours(ScriptError, "script"):
        function = _written(given.script) if looked_at is None and callable(given.script) else None
    script_path = function.path if function is not None else ""
    if looked_at is None and function is None:
        check_order(given.script, given.source)
        script_path = check_path("script", given.script, ScriptError)
        check_script(script_path)
    user_files = check_paths("user_files", given.user_files, UserFilesError)
    python_env, requirements = optional_path("python_env", given.python_env), optional_path("requirements", given.requirements)
    reading = Reading.of(given, mode == "stream", given.columns)
    _check_sink(given, job)
    check_directories(vars(job))

    reads, writes = names_of("tables", given.tables), names_of("output_tables", given.output_tables)
    if given.project is not None and not (reads or writes):
        raise ConfigError(
            "project= (--project) is of names in tables= and output_tables= (--tables, --output-tables), and there are none; "
            "source= and output= name theirs: odps://PROJECT/tables/T"
        )
    asked = tables_spec(reads, writes, given.project) if reads or writes else None
    if asked is not None:
        check_other(given.output, asked.outputs, asked.project)

    def opened() -> TableSource:
        if given.source is None and asked is not None:
            return no_rows()
        return reading.open(given.source)

    # open the table before user files are downloaded, so that nothing is downloaded if the table does not exist
    table = opened() if named_files(given.source) else None
    with ours(UserFilesError, "user_files: they cannot be read"):
        script = looked_at or files.collect(script_path, user_files)
    if function is not None:
        # a function is always called with the task config, whatever the name of its argument
        script = dataclasses.replace(script, program=False, context_entry="", shown=function.shown)
    if given.output is not None:
        _check_replaces_nothing(given.output, script, requirements, function.shown if function is not None else None)
    if not (script.program and job.asks_about):
        check_writes(script, job)
    with ours(PythonEnvError, "python_env: it cannot be used"):
        interpreter = interpreter_for(python_env, given.engine.capabilities, given.keras)
    if requirements is not None:
        check_requirements(requirements, interpreter.path)
    elif function is not None:
        imported.check_own(dataclasses.replace(job, script=script, python=interpreter.path), files.read_script(script))
    # an iterable's first rows come once, so they are taken after all other checks
    table = table or opened()
    if job.split is not None:
        check_table(job.split, table)
        # rows are assigned by their numbers, which only the host knows, so that no machine may read the files itself
        table = dataclasses.replace(table, files=None, held=None, each=None)
    if given.output is not None and table.read_from is not None:
        check_apart(table.read_from, given.output)
    check_bad_rows_apart(table)
    read_as = reading.read_as
    if table.read_from is not None:
        # whether its name or the user has told it
        read_as["input_format"] = table.read_from.format
    if mode == "stream" and table.replayable and (job.resume or job.supervision.max_restarts):
        again = table
        table = counted(table, table.name, lambda: again, read_as)
    schema = Schema.from_arrow(table.schema)
    codec.check_units(schema, job.output_schema)
    job = dataclasses.replace(
        job,
        script=script,
        schema=schema,
        python=interpreter.path,
        tables=asked,
        notes=(*job.notes, *read_twice(table), *table.notes),
        marked=table.arriving is not None,
        read_as=read_as,
    )
    job.check_restarts(table.replayable, table.name)
    if not (script.program and job.asks_about):
        check_saves(script, job, table.name)
    return Prepared(job, table, interpreter), requirements


def _settings(mode: Mode, given: Arguments) -> JobSpec:
    """Make the job from plain values, without its script, table and interpreter. Raises: ConfigError: a value is wrong."""
    parallelism = given.parallelism
    if parallelism is None and given.num_workers is None and given.num_ps is None:
        parallelism = given.engine.capabilities.parallelism
    if given.engine.capabilities.here:
        capacity.check_fits(num_workers=given.num_workers, num_ps=given.num_ps, parallelism=parallelism)
        check_advertised(given.bind_host, given.advertised_host)
    cluster = ClusterSpec.of(given.num_workers, given.num_ps, parallelism, given.evaluator, given.coordinator, given.chief)
    again = check_flag("resume", given.resume) or check_count("max_restarts", given.max_restarts, 0) > 0
    if mode == "stream" and again and not given.engine.capabilities.marks:
        raise ConfigError(
            f"resume=, max_restarts= (--resume, --max-restarts): streams of engine='local' go on after an end; on {given.engine.name} "
            "let a PyFlink program's checkpoints do that (akrunner.flink.stream)"
        )
    for name in ("debug", "resume", "save_latest_checkpoint", "overwrite"):
        check_flag(name, getattr(given, name))
    return JobSpec(
        script=_NO_SCRIPT,
        schema=Schema(()),
        python="",
        cluster=cluster,
        output_schema=schema_of(given.output_schema, "output_schema"),
        # rows of a stream leave as they come, and the caller that reads them must know the columns before
        output_inferred=given.output_schema is None and mode != "stream",
        user_params=given.user_params if given.user_params is not None else {},
        # `JobSpec` checks it
        script_args=given.script_args if given.script_args is not None else (),  # type: ignore[arg-type]
        mode=mode,
        keras=given.keras,
        data_format=given.data_format,
        tensorboard=directory("tensorboard", given.tensorboard),
        env=given.env if given.env is not None else {},
        supervision=SupervisionSpec(
            timeout=given.timeout,
            start_timeout=given.start_timeout,
            evaluator_timeout=given.evaluator_timeout,
            stall_timeout=given.stall_timeout,
            stall_action=given.stall_action,
            max_restarts=given.max_restarts,
            restart_delay=given.restart_delay,
        ),
        resources=ResourceSpec(given.gpus_per_worker, given.cpus_per_worker, given.intra_op_parallelism),
        bind_host=given.bind_host,
        advertised_host=given.advertised_host,
        work_dir=directory("work_dir", given.work_dir),
        keep=given.debug or given.work_dir is not None,
        checkpoint_dir=directory("checkpoint_dir", given.checkpoint_dir),
        resume=given.resume,
        model_dir="" if mode == "train" else None,
        save_latest_checkpoint=given.save_latest_checkpoint,
        profile_input=given.profile_input,
        split=check_split(given.split, given.split_by, given.split_seed),
        flush_seconds=given.flush_seconds,
    )


def named_files(source: Any) -> bool:
    """Whether a source is a path, or a list of paths. Raises: SourceError: no file system can have such a path."""
    if isinstance(source, (str, os.PathLike)):
        check_path("source", source, SourceError)
        return True
    if isinstance(source, (list, tuple)) and source and all(isinstance(one, (str, os.PathLike)) for one in source):
        check_paths("source", source, SourceError)
        return True
    return False


def check_output(output: Any, output_format: Any, overwrite: Any, schema: pa.Schema | None, layout: Layout = PLAIN) -> None:
    """Check the destination of rows, without making anything. Raises: ConfigError: rows cannot be written there."""
    check_flag("overwrite", overwrite)
    check_output_format(output_format)
    if output is not None:
        path = check_path("output", output, SinkError)
        if schema is not None:
            with ours(SinkError, f"output: {path}"):
                open_sink(path, schema, codec.write_examples, output_format, overwrite, layout)


def _check_sink(given: Arguments, job: JobSpec) -> None:
    if given.output is not None and job.output_schema is None and (not job.output_inferred or is_table(given.output)):
        raise ConfigError("output= needs output_schema= (--output-schema): the columns the script writes")
    # without an output schema, the columns are known and checked later
    schema = job.output_schema.arrow if job.output_schema is not None else pa.schema([])
    check_output(given.output, given.output_format, given.overwrite, schema, layout_of(given))


def _check_replaces_nothing(output: PathLike, script: ScriptSpec, requirements: str | None, program: str | None) -> None:
    """Check that the output replaces no file of the job.

    Args: program: the program that a function given as the script comes from, None if there is no function.
    Raises: SinkError: rows would replace a file of the job.
    """
    sent = [place for place, _ in script.files if place != script.real] + [place for place, *_ in script.archives]
    others = [("the script", script.real), ("the function's program", program), ("what requirements= names", requirements)]
    check_replaces_nothing("output", output, [*others, *(("one of user_files=", place) for place in sent)], SinkError)


def check_bad_rows_apart(table: TableSource) -> None:
    """Check that the next run will not read the bad rows as input. Raises: SinkError: their directory is among the input."""
    if table.bad is not None and table.bad.directory is not None and table.read_from is not None:
        try:
            check_apart(table.read_from, os.path.join(table.bad.directory, "bad-rows.jsonl"))
        except SinkError as e:
            raise SinkError(f"bad_rows (--bad-rows): {str(e).removeprefix('output: ')}") from None


def read_twice(table: TableSource) -> list[str]:
    """Return a job's warning that its table has a file more than once, which may be a mistake; [] if it has none."""
    paths = table.read_from.paths if table.read_from is not None else []
    if len(set(paths)) == len(paths):
        return []
    (path, times), *others = [one for one in Counter(paths).most_common() if one[1] > 1]
    more = f", and {len(others)} more files are" if len(others) > 1 else ", and one more file is" if others else ""
    often = "twice" if times == 2 else f"{times} times"
    return [f"source: {redacted(path)} is given {often}{more}, so its rows are read {often}: name each file once (--input)"]
