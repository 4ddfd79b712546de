"""A job's arguments, as a person gives them -> a `JobSpec` and its table. Everything that can be known before a process starts
is checked here."""

from __future__ import annotations

import dataclasses
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from akrunner import codec, dtypes
from akrunner.checks import check_flag, check_path, check_paths, check_text, holds_no_files, nearest_file, of_type
from akrunner.errors import ConfigError, PythonEnvError, SchemaError, ScriptError, SinkError, SourceError, UserFilesError
from akrunner.foreign import ours, redacted
from akrunner.io.formats import check_format, format_of
from akrunner.io.paths import check_apart, local_path
from akrunner.io.splits import check_split, check_table
from akrunner.io.table import TableSource, no_rows
from akrunner.io.taken import check_columns, check_defaults
from akrunner.launch import archives, capacity, environments, fetch, files, functions, interpreters
from akrunner.model.saving import SAVED_MODEL
from akrunner.schema import BY_SELECT, Schema
from akrunner.sequences import SequenceNotStr
from akrunner.spec import Capabilities, ClusterSpec, JobSpec, ResourceSpec, ScriptSpec, SupervisionSpec
from akrunner.tables.asked import names_of, tables_spec
from akrunner.tables.names import is_table
from akrunner.tables.opening import check_other, open_source, sink_to

PathLike = str | os.PathLike[str]
#: a path or URL; or a function that takes the task config
ScriptLike = PathLike | Callable[[Any], Any]


class ArrowSchema(Protocol):
    """pyarrow's, which has no types of its own: type checkers would let anything pass for it."""

    def __arrow_c_schema__(self) -> object: ...


class Dtypes(Protocol):
    """pandas' `frame.dtypes`, also where its types are not installed."""

    @property
    def dtypes(self) -> Any: ...

    def items(self) -> Iterable[tuple[Any, Any]]: ...


#: text, a schema, or columns and their types: a mapping, pandas' `frame.dtypes`, a structured dtype of numpy's
SchemaLike = str | ArrowSchema | Schema | Mapping[str, Any] | Dtypes | np.dtype[Any]

#: names of splits and their shares
SplitLike = str | Mapping[str, float]

#: what works where a URL was given for a directory
_INSTEAD = {
    "checkpoint_dir": "name one that every task reaches (a disk, NFS), or hand the URL to the script as a parameter: what its "
    "TensorFlow opens, it may write",
    "tensorboard": "name one, and copy it afterwards",
    "work_dir": "name one, and copy what is kept afterwards",
}


@dataclass(frozen=True)
class Arguments:
    """What `akrunner.run`, `train` and `stream` take in common, by the names they take it, and what each adds.

    Attributes: script: a path, a function, or a script that was looked at already (`files.collect_program`).
    """

    # options: written by scripts/gen-options
    script: ScriptLike | ScriptSpec
    source: Any = None
    user_params: Mapping[str, Any] | None = field(default=None, repr=False)
    user_files: SequenceNotStr[PathLike] = ()
    script_args: SequenceNotStr[str] = field(default=(), repr=False)
    save_latest_checkpoint: bool = False
    tables: SequenceNotStr[str] = ()
    project: str | None = None
    select: str | None = None
    columns: SequenceNotStr[str] | None = None
    defaults: Mapping[str, Any] | None = None
    split: SplitLike | None = None
    split_by: str | None = None
    split_seed: int = 0
    input_schema: SchemaLike | None = None
    input_format: str | None = None
    flush_seconds: float = 0.02
    data_format: str = "examples"
    output_tables: SequenceNotStr[str] = ()
    output_schema: SchemaLike | None = None
    output: PathLike | None = None
    output_format: str | None = None
    overwrite: bool = False
    num_workers: int | None = None
    num_ps: int | None = None
    parallelism: int | None = None
    evaluator: bool = False
    coordinator: bool = False
    chief: bool | None = None
    bind_host: str = "127.0.0.1"
    advertised_host: str | None = None
    engine: Any = "local"
    python_env: PathLike | None = None
    requirements: PathLike | None = None
    keras: str | None = None
    env: Mapping[str, str] | None = field(default=None, repr=False)
    gpus_per_worker: int | None = None
    cpus_per_worker: int | None = None
    intra_op_parallelism: int | None = None
    timeout: float | None = None
    start_timeout: float = 60.0
    stall_timeout: float = 600.0
    stall_action: str = "fail"
    evaluator_timeout: float = 60.0
    profile_input: int | None = None
    max_restarts: int = 0
    tensorboard: PathLike | None = None
    work_dir: PathLike | None = None
    checkpoint_dir: PathLike | None = None
    debug: bool = False
    # end of what scripts/gen-options writes


@dataclass(frozen=True)
class Prepared:
    """A job whose arguments are all checked, its table, and the interpreter it runs under, None: the model's own says it."""

    job: JobSpec
    table: TableSource
    interpreter: interpreters.Interpreter | None = None


#: what runs a model
_PREDICT = "akrunner.predict (akrunner predict)"
#: bytes at the beginning of a script that are looked at
_HEAD = 4096
#: a package as pip takes it, with its version if it has one; several of them
_PACKAGE = r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[\w,. -]*\])?(\s*[~=!<>]=?=?\s*[\w.*+!-]+(\s*,\s*[~=!<>]=?=?\s*[\w.*+!-]+)*)?"
_PACKAGES = re.compile(rf"{_PACKAGE}([\s,]+{_PACKAGE})*")
#: endings of files that list packages
_LISTS = (".txt", ".in", ".pip", ".toml", ".cfg", ".lock", ".yml", ".yaml")
#: of a job whose script is not looked at yet
_NO_SCRIPT = ScriptSpec("", "")


def prepare(mode: str, given: Arguments) -> Prepared:
    """Check every argument, the cheap before the dear: values; where rows go; files and tables that are paths; what is downloaded;
    interpreters, which are run; rows of an iterable, which come once. Last, what is made: an overlay, the directory for checkpoints.

    Returns: the job and its table; where a train job's model goes is for the caller to say (`model_dir`).
    Raises: ConfigError: an argument is wrong; nothing was started, and nothing made.
    """
    prepared, requirements = checked(mode, given)
    job = prepared.job
    overlay = environments.overlay(job.python, requirements) if requirements is not None else ""
    return Prepared(
        dataclasses.replace(job, overlay=overlay, checkpoint_dir=_made(job.checkpoint_dir)),
        prepared.table,
        prepared.interpreter,
    )


def checked(mode: str, given: Arguments) -> tuple[Prepared, str | None]:
    """As `prepare`, and nothing is made. Returns: the job without its overlay; the requirements it is made of, None: there are none."""
    job = _settings(mode, given)
    looked_at = given.script if isinstance(given.script, ScriptSpec) else None
    with ours(ScriptError, "script"):
        function = functions.written(given.script) if looked_at is None and callable(given.script) else None
    script_path = function.path if function is not None else ""
    if looked_at is None and function is None:
        _check_order(given.script, given.source)
        script_path = check_path("script", given.script, ScriptError)
        _check_script(script_path)
    user_files = check_paths("user_files", given.user_files, UserFilesError)
    in_schema = schema_of(given.input_schema, "input_schema")
    python_env, requirements = _text("python_env", given.python_env), _text("requirements", given.requirements)
    select, form = check_select(given.select), check_format(given.input_format, "input_format")
    columns, defaults = check_columns(given.columns), check_defaults(given.defaults)
    _check_sink(given, job)
    check_directories(vars(job))

    reads, writes = names_of("tables", given.tables), names_of("output_tables", given.output_tables)
    if given.project is not None and not (reads or writes):
        raise ConfigError(
            "project= (--project) is of names in tables= and output_tables= (--tables, --output-tables), and there are none; source= and output= name "
            "theirs: odps://PROJECT/tables/T"
        )
    asked = tables_spec(reads, writes, given.project) if reads or writes else None
    if asked is not None:
        check_other(given.output, asked.outputs, asked.project)

    def opened() -> TableSource:
        if given.source is None and asked is not None:
            return no_rows()
        with ours(SourceError, "source: it cannot be read"):
            return open_source(
                given.source,
                read_examples=codec.read_examples,
                input_schema=in_schema,
                input_format=form,
                select=select,
                select_seconds=given.timeout,
                columns=columns,
                defaults=defaults,
                flush_seconds=given.flush_seconds if mode == "stream" else None,
            )

    # nothing is downloaded for a table that is not there
    table = opened() if named_files(given.source) else None
    with ours(UserFilesError, "user_files: they cannot be read"):
        script = looked_at or files.collect(script_path, user_files)
    if function is not None:
        # whatever its argument is called
        script = dataclasses.replace(script, program=False, context_entry="", shown=function.shown)
    if not (script.program and job.asks_about):
        _check_output(script, job)
    with ours(PythonEnvError, "python_env: it cannot be used"):
        interpreter = interpreter_for(python_env, given.engine.capabilities, given.keras)
    if requirements is not None:
        check_requirements(requirements, interpreter.path)
    # the first rows of an iterable come once: taken when all else is right
    table = table or opened()
    if job.split is not None:
        check_table(job.split, table)
        # the host says which rows are whose, by their numbers, and machines that read files themselves do not know them
        table = dataclasses.replace(table, files=None, each=None)
    if given.output is not None and table.read_from is not None:
        check_apart(table.read_from, given.output)
    job.check_restarts(table.replayable, table.name)
    schema = Schema.from_arrow(table.schema)
    codec.check_units(schema, job.output_schema)
    job = dataclasses.replace(
        job, script=script, schema=schema, python=interpreter.path, tables=asked, notes=(*job.notes, *read_twice(table))
    )
    return Prepared(job, table, interpreter), requirements


def _settings(mode: str, given: Arguments) -> JobSpec:
    """The job as far as its values say it, without its script, table and interpreter. Raises: ConfigError."""
    parallelism = given.parallelism
    if parallelism is None and given.num_workers is None and given.num_ps is None:
        parallelism = given.engine.capabilities.parallelism
    if given.engine.capabilities.here:
        capacity.check_fits(num_workers=given.num_workers, num_ps=given.num_ps, parallelism=parallelism)
    cluster = ClusterSpec.of(given.num_workers, given.num_ps, parallelism, given.evaluator, given.coordinator, given.chief)
    for name in ("debug", "save_latest_checkpoint", "overwrite"):
        check_flag(name, getattr(given, name))
    return JobSpec(
        script=_NO_SCRIPT,
        schema=Schema(()),
        python="",
        cluster=cluster,
        output_schema=schema_of(given.output_schema, "output_schema"),
        # rows of a stream leave as they come, for whoever was told their columns before
        output_inferred=given.output_schema is None and mode != "stream",
        user_params=given.user_params if given.user_params is not None else {},
        # which is checked there
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
        ),
        resources=ResourceSpec(given.gpus_per_worker, given.cpus_per_worker, given.intra_op_parallelism),
        bind_host=given.bind_host,
        advertised_host=given.advertised_host,
        work_dir=directory("work_dir", given.work_dir),
        keep=given.debug or given.work_dir is not None,
        checkpoint_dir=directory("checkpoint_dir", given.checkpoint_dir),
        model_dir="" if mode == "train" else None,
        save_latest_checkpoint=given.save_latest_checkpoint,
        profile_input=given.profile_input,
        split=check_split(given.split, given.split_by, given.split_seed),
        flush_seconds=given.flush_seconds,
    )


def named_files(source: Any) -> bool:
    """Whether a source is a path, or paths, and could be files. Raises: SourceError: no file system could have them."""
    if isinstance(source, (str, os.PathLike)):
        check_path("source", source, SourceError)
        return True
    if isinstance(source, (list, tuple)) and source and all(isinstance(one, (str, os.PathLike)) for one in source):
        check_paths("source", source, SourceError)
        return True
    return False


def check_select(given: Any) -> str | None:
    """Raises: ConfigError: it is no text."""
    return check_text("select", given) if given is not None else None


def check_output(output: Any, output_format: Any, overwrite: Any, schema: pa.Schema | None) -> None:
    """Look at the place rows are to go to, as far as that makes nothing. Raises: ConfigError."""
    check_flag("overwrite", overwrite)
    check_format(output_format, "output_format", SinkError)
    if output is not None:
        path = check_path("output", output, SinkError)
        if schema is not None:
            with ours(SinkError, f"output: {path}"):
                sink_to(path, schema, codec.write_examples, output_format, overwrite)


def _check_sink(given: Arguments, job: JobSpec) -> None:
    if given.output is not None and job.output_schema is None and (not job.output_inferred or is_table(given.output)):
        raise ConfigError("output= needs output_schema= (--output-schema): the columns the script writes")
    # which columns there are is known later, and looked at then
    schema = job.output_schema.arrow if job.output_schema is not None else pa.schema([])
    check_output(given.output, given.output_format, given.overwrite, schema)


def read_twice(table: TableSource) -> list[str]:
    """What a job warns of a table that has a file more than once: it may not be meant."""
    paths = table.read_from.paths if table.read_from is not None else []
    if len(set(paths)) == len(paths):
        return []
    (path, times), *others = [one for one in Counter(paths).most_common() if one[1] > 1]
    more = f", and {len(others)} more files are" if len(others) > 1 else ", and one more file is" if others else ""
    often = "twice" if times == 2 else f"{times} times"
    return [f"source: {redacted(path)} is given {often}{more}, so its rows are read {often}: name each file once (--input)"]


def check_directories(settings: Mapping[str, Any]) -> None:
    """Args: settings: of a `JobSpec`. Raises: ConfigError: `work_dir`, `checkpoint_dir` or `tensorboard` cannot be made, or written to."""
    for name in ("work_dir", "checkpoint_dir", "tensorboard"):
        given = settings.get(name)
        if given is None:
            continue
        if os.path.exists(given) and not os.path.isdir(given):
            raise ConfigError(f"{name}: {given} is a file; name a directory")
        there = given
        while not os.path.exists(there) and there != os.path.dirname(there):
            there = os.path.dirname(there)
        if not os.path.isdir(there):
            raise ConfigError(f"{name}: cannot make {given}: {there} is a file")
        if holds_no_files(given):
            raise ConfigError(f"{name}: {given} is the system's own, and keeps no files; name another directory")
        if not os.access(there, os.W_OK | os.X_OK):
            raise ConfigError(f"{name}: nothing may be written in {there}")
        if name == "work_dir" and there == given and os.listdir(given):
            raise ConfigError(f"work_dir: {given} is not empty; name a new directory")


def check_requirements(requirements: str, python: str) -> None:
    """Raises: ConfigError: they cannot be installed for this interpreter; UserFilesError: they are not there."""
    if environments.is_packed(python) or not os.path.exists(python):
        raise ConfigError(
            f"requirements= are installed for an interpreter of this machine, and {python} is on the cluster's: pack them with it"
        )
    if not fetch.is_url(requirements) and not os.path.isfile(os.path.expanduser(requirements)):
        raise UserFilesError(
            f"requirements: there is no {requirements}{nearest_file(requirements) or _meant_package(requirements)}"
        )
    if not fetch.is_url(requirements):
        environments.check_listed(os.path.expanduser(requirements))


def _meant_package(requirements: str) -> str:
    """What is said where packages stand in place of a file of them. Args: requirements: a file that is not there; one of a job file has its directory."""
    words = os.path.basename(requirements)
    if not _PACKAGES.fullmatch(words) or words.lower().endswith(_LISTS):
        return ""
    return f": it takes a requirements.txt; write `{words}` into one and name it"


def schema_of(given: SchemaLike | None, parameter: str) -> Schema | None:
    """A schema from whatever stands for one. Raises: SchemaError; ConfigError: something else."""
    try:
        return _schema_of(given, parameter)
    except SchemaError as e:
        what, sign, _ = str(e).partition(BY_SELECT)
        if not sign or parameter != "output_schema":
            raise
        # which is over the input
        raise SchemaError(
            f"output_schema: {what}; declare it as a type that one can, and write such values: 'double' for a decimal, 'string' for text of any kind"
        ) from None


def _schema_of(given: SchemaLike | None, parameter: str) -> Schema | None:
    if given is None or isinstance(given, Schema):
        return given
    if isinstance(given, pa.Schema):
        return Schema.from_arrow(given)
    if isinstance(given, str):
        with ours(SchemaError, parameter):
            return Schema.parse(given, parameter)
    with ours(SchemaError, parameter):
        items = dtypes.items_of(given)
        if items is not None:
            return dtypes.schema_of_items(items, parameter)
    raise ConfigError(
        f"{parameter} must be text like 'id bigint, p double', a dict of columns and types, or a schema of pyarrow's, not {type(given).__name__}"
    )


def _check_order(script: Any, source: Any) -> None:
    """Raises: ScriptError: the table stands where the script is to be."""
    try:
        names = [os.fspath(one) if isinstance(one, (str, os.PathLike)) else "" for one in (script, source)]
    except Exception:
        # whoever takes it as a path says what is wrong with it
        return
    if (callable(source) or names[1].endswith(".py")) and not names[0].endswith(".py"):
        given = repr(names[0]) if names[0] else of_type(script)
        raise ScriptError(
            f"script: the script comes first, then the table: (script, source); here {given} comes first, and behind it what looks like a script"
        )


def _check_script(path: str) -> None:
    """Raises: ScriptError: a file, or directory, is plainly no script: a model, an archive, a table. What is behind a URL is looked at by its name."""
    real = os.path.expanduser(path)
    if any(os.path.exists(os.path.join(real, name)) for name in SAVED_MODEL):
        raise ScriptError(f"script: {path} is a SavedModel, not a script: {_PREDICT} runs it over a table")
    is_url = fetch.is_url(path)
    if not (is_url or os.path.isfile(real)):
        return
    if archives.is_archive(path.partition("#")[0] if is_url else real):
        raise ScriptError(
            f"script: {redacted(path)} is an archive, not a script: {_PREDICT} runs a SavedModel; of an archive of code name the script in it, and the archive "
            "in user_files= (--user-file)"
        )
    if is_url:
        return
    # a script may be called anything
    form = format_of(real) if not real.endswith(".py") else None
    if form is not None:
        raise ScriptError(
            f"script: {path} is a table by its name ({form}): the script comes first, and the table behind it (--input)"
        )
    with ours(ScriptError, f"script: {path}"), open(real, "rb") as stream:
        if b"\0" in stream.read(_HEAD):
            raise ScriptError(f"script: {path} has NUL bytes in it, as no script in UTF-8 has; name the Python file")


def _check_output(script: ScriptSpec, job: JobSpec) -> None:
    if job.output_schema is not None or job.output_inferred:
        return
    line = files.writes_output(files.read_script(script))
    if line is not None:
        raise ScriptError(
            "the script writes rows, but there is no output_schema= (--output-schema), and a stream needs it; give for instance "
            f"'id bigint, p double'\n  File \"{script.name}\", line {line}"
        )


def interpreter_for(python_env: PathLike | None, engine: Capabilities, keras: str | None = None) -> interpreters.Interpreter:
    """The tasks' interpreter. On a cluster's machines, one that is only there is looked at there, and a packed environment is
    unpacked there: nothing is known of these but the path. Raises: PythonEnvError."""
    named = _text("python_env", python_env)
    if named is not None and not engine.here:
        if os.path.isabs(named) and not os.path.exists(named):
            return interpreters.Interpreter(named, (), "", "")
        if environments.is_packed(named) and engine.unpacks:
            path = named if fetch.is_url(named) else os.path.abspath(os.path.expanduser(named))
            return interpreters.Interpreter(path, (), "", "")
    return interpreters.resolve(named, keras)


def environment_of(name: str) -> interpreters.Interpreter:
    """The interpreter of a named environment. Raises: PythonEnvError: there is none; it gives the command to create one."""
    return interpreters.named(environments.recipe_of(name))


def instead_of(name: str, other: str) -> interpreters.Interpreter | None:
    """Which interpreter may be taken if there is no environment of a name, None: there is one.

    Args: name, other: named environments. Raises: PythonEnvError: the environment variable of the first names something else, which is not
        to be passed over; or there is neither.
    """
    wanted = environments.RECIPES[name]
    try:
        interpreters.named(wanted)
        return None
    except PythonEnvError as e:
        said = os.environ.get(wanted.variable) if wanted.variable else None
        if said:
            raise PythonEnvError(
                f"{wanted.variable}={said} is no environment with TensorFlow {wanted.tensorflow}*: {e}"
            ) from None
        try:
            return interpreters.named(environments.RECIPES[other])
        except PythonEnvError:
            raise e from None


def _made(directory: str | None) -> str | None:
    if directory is not None:
        with ours(ConfigError, f"checkpoint_dir: cannot make {directory}", directory):
            os.makedirs(directory, exist_ok=True)
    return directory


def directory(name: str, given: PathLike | None) -> str | None:
    """Its absolute path. Raises: ConfigError: it is none of this machine's."""
    return local_path(check_path(name, given), name, _INSTEAD[name]) if given is not None else None


def _text(name: str, path: PathLike | None) -> str | None:
    return check_path(name, path) if path is not None else None
