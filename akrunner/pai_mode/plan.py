"""A PAI command -> the plan of its job, and the plan as text or JSON. Nothing is started.

::

    Command --> Plan        interpreter, script, flags, roles, tables, directories: all of them checked
    Plan    --> JobSpec     (akrunner.pai_mode.job)
            --> text, JSON  what `akrunner pai --dry-run` prints
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from akrunner.checks import shown
from akrunner.errors import ConfigError, PythonEnvError, SinkError, SourceError
from akrunner.foreign import redacted
from akrunner.launch import capacity, devices, interpreters
from akrunner.launch.files import read_local_text
from akrunner.pai_mode import flags as flag_words
from akrunner.pai_mode.algorithms import environment_of
from akrunner.pai_mode.clusters import Tasks, tasks_of
from akrunner.pai_mode.parameters import known, number, truth
from akrunner.pai_mode.places import Places, checkpoints, directories, program_of
from akrunner.pai_mode.words import Command
from akrunner.spec import ClusterSpec, ScriptSpec, TaskSpec
from akrunner.tables import types
from akrunner.tables.names import TableName
from akrunner.tables.rehearsed import RehearsedTables, Unforeseen
from akrunner.tables.sqltext import quoted_text
from akrunner.tables.store import TableStore, check_readable, check_writable

#: how often a job with enableDynamicCluster is restarted
DYNAMIC_RESTARTS = 3
#: seconds in an hour
_SECONDS = 3600
#: processes per core above which the user is warned: fewer would be as quick
_CROWD = 4


@dataclass(frozen=True)
class TablePlan:
    """A table of the command.

    Attributes:
        text: the table's name as it is spelt in the command.
        columns: for example `a bigint, b string`; "" if the table does not exist (yet).
        rows: the number of rows; None if it is unknown, or if the name is a partition that does not exist.
        made: whether a statement before the command makes the table.
    """

    text: str
    columns: str = ""
    rows: int | None = None
    made: bool = False


@dataclass(frozen=True)
class Plan:
    """The plan of a command's job.

    Attributes:
        command: the command.
        environment: the Python environment, as python_env= takes it.
        interpreter: the interpreter of that environment.
        script: the program to run.
        flags: the flags in the `sys.argv` of every task, without those that describe the cluster.
        tasks: the tasks that the command asks for.
        cluster: the tasks of the job.
        inputs, outputs: the tables, in the order of the command.
        directories: (what the command names, local path) of the buckets, the checkpoints, and the script's own flags.
        buckets: local paths of the buckets' directories; a directory that does not exist is made.
        checkpoint_dir: local path of the directory for checkpoints, None if the command names none.
        settings: settings of the job, by their names in `akrunner.run`.
        job_name, tags: as given in the command.
        warnings: what is different from PAI.
        problems: errors about an environment, or a table, that does not exist; only if the plan is only shown.
    """

    command: Command
    environment: str
    interpreter: interpreters.Interpreter
    script: ScriptSpec
    flags: tuple[str, ...]
    tasks: Tasks
    cluster: ClusterSpec
    inputs: tuple[TablePlan, ...]
    outputs: tuple[TablePlan, ...]
    directories: tuple[tuple[str, str], ...]
    buckets: tuple[str, ...]
    checkpoint_dir: str | None
    settings: Mapping[str, Any]
    job_name: str = ""
    tags: str = ""
    warnings: tuple[str, ...] = field(default_factory=tuple)
    problems: tuple[ConfigError, ...] = ()


@dataclass(frozen=True)
class Wishes:
    """The caller's arguments, which win over what the command says.

    Attributes:
        store: project -> the store of its tables.
        project: the project of tables that are named without one.
        python_env, num_workers, num_ps, gpus_per_worker, cpus_per_worker, timeout, max_restarts, stall_timeout, stall_action:
            as for `akrunner.run`; None if the command decides.
        local: whether the tasks run on this machine.
        shown: whether the plan is only shown; then the environment and the tables need not exist.
        earlier: whole tables that commands before this one write; they may have further partitions when this command runs.
    """

    store: Callable[[str], TableStore]
    project: str | None = None
    python_env: str | None = None
    num_workers: int | None = None
    num_ps: int | None = None
    gpus_per_worker: int | None = None
    cpus_per_worker: int | None = None
    timeout: float | None = None
    max_restarts: int | None = None
    stall_timeout: float | None = None
    stall_action: str | None = None
    local: bool = True
    shown: bool = False
    earlier: frozenset[TableName] = frozenset()


def planned(command: Command, wishes: Wishes, places: Places, tables: bool = True) -> Plan:
    """Return the plan of a command. Cheap checks are made before expensive ones.

    Args:
        command: the command.
        wishes: the caller's arguments.
        places: finds the local paths of what the command names.
        tables: whether the tables must exist; False if statements before the command may make them.
    Raises:
        ConfigError: a parameter is wrong.
        SourceError: an input table does not exist, or cannot be read.
        SinkError: an output table does not exist, or cannot be written.
        ScriptError: the script is wrong.
    """
    environment, notes = environment_of(command.name)
    parameters, warnings = known(command)
    warnings = notes + warnings if wishes.python_env is None else warnings
    tasks = tasks_of(parameters)
    inputs, outputs = (_names(parameters.get(name, ""), wishes.project, name) for name in ("tables", "outputs"))
    read, unmade, written, problems = _tables(inputs, outputs, wishes, tables, places.dry)
    settings, more = _settings(parameters, tasks, wishes)
    script, told = program_of(parameters, places)
    interpreter, problem = _interpreter(wishes.python_env or environment, wishes.shown)
    buckets = directories(parameters.get("buckets", ""), places)
    kept = checkpoints(parameters.get("checkpointDir", ""), places)
    user, replaced = flag_words.localised(_user_flags(parameters, places), places.either)
    given = {
        "tables": ",".join(inputs),
        "outputs": ",".join(outputs),
        "buckets": ",".join(path for _, path in buckets),
        "checkpointDir": kept[1] if kept else "",
    }
    return Plan(
        command,
        wishes.python_env or environment,
        interpreter,
        script,
        tuple([*(f"--{name}={value}" for name, value in given.items() if value), *user]),
        tasks,
        _cluster(tasks, wishes, interpreter),
        tuple(read),
        tuple(written),
        tuple(dict.fromkeys([*buckets, *([kept] if kept else []), *replaced])),
        tuple(path for _, path in buckets),
        kept[1] if kept else None,
        settings,
        parameters.get("jobName", ""),
        parameters.get("tags", ""),
        tuple([*warnings, *unmade, *told, *more]),
        tuple([*problem, *problems]),
    )


def _tables(
    inputs: Sequence[str], outputs: Sequence[str], wishes: Wishes, tables: bool, dry: bool
) -> tuple[list[TablePlan], list[str], list[TablePlan], list[ConfigError]]:
    """Check the tables of a command.

    Returns:
        The inputs, warnings about the outputs, the outputs, and the errors. Errors are raised unless the plan is only shown.
    """
    problems: list[ConfigError] = []
    told: list[str] = []
    needed = tables and not wishes.shown
    if tables:
        checks: list[tuple[str, Callable[[], object]]] = [
            ("tables", functools.partial(_check_input, one, wishes)) for one in inputs
        ]
        checks += [("outputs", functools.partial(_check_output, one, wishes, dry, told)) for one in outputs]
        for parameter, check in checks:
            try:
                check()
            except (SourceError, SinkError) as e:
                named = type(e)(f"-D{parameter}: {str(e).removeprefix('source: ').removeprefix('output: ')}")
                if not wishes.shown:
                    raise named from e
                problems.append(named)
            except Unforeseen:
                continue  # only the statements before the command can show it, when they are run
    return [_table(one, wishes, needed) for one in inputs], told, [_table(one, wishes, needed) for one in outputs], problems


def _interpreter(environment: str, shown: bool) -> tuple[interpreters.Interpreter, list[ConfigError]]:
    """Return the environment's interpreter, and an error if there is none (raised, unless the plan is only shown)."""
    try:
        return interpreters.resolve(environment), []
    except PythonEnvError as e:
        if not shown:
            raise
        # the environment does not exist: its name is all there is to know TensorFlow's version by
        return interpreters.Interpreter("", (), environment.removeprefix("tf"), ""), [e]


def _names(text: str, project: str | None, parameter: str) -> list[str]:
    """Return the table names in a parameter as they are spelt, without quotes around a name.

    Raises:
        ConfigError: a name is not valid.
    """
    found = [one.strip().strip("'\"") for one in text.split(",")] if text else []
    found = [one for one in found if one]
    for one in found:
        try:
            TableName.parse(one, project)
        except ConfigError as e:
            raise ConfigError(f"-D{parameter}: {e}") from None
    return found


def _check_input(text: str, wishes: Wishes) -> None:
    """Check that an input table exists.

    Raises:
        SourceError: the table, or its partition, does not exist, or a table cannot have that name.
    """
    name = TableName.parse(text, wishes.project)
    store = wishes.store(name.project)
    if name.whole in wishes.earlier:
        # a command before this one may make the partition
        name = name.whole
    check_readable(store, name)


def _check_output(text: str, wishes: Wishes, dry: bool, told: list[str]) -> None:
    """Check that an output table can be written.

    A partition that does not exist is not an error, but gives a warning: users' scripts rely on partitions being made, and
    EasyRec's scripts make them themselves.

    Args:
        dry: whether the job is only planned: then the check opens nothing for writing.
        told: a list to which the warning is added.
    Raises:
        SinkError: the table does not exist; the error says how to make it.
    """
    name = TableName.parse(text, wishes.project)
    store = wishes.store(name.project)
    (store.check_output if dry else functools.partial(check_writable, store))(name)
    if not store.exists(name):
        spec = ", ".join(f"{key}={quoted_text(value)}" for key, value in name.partition)
        told.append(
            f"-Doutputs: the partition {text} is not there: here it is made when the script writes to it, and PAI wants it "
            f"before the job: ALTER TABLE {name.sql} ADD IF NOT EXISTS PARTITION ({spec});"
        )


def _table(text: str, wishes: Wishes, needed: bool) -> TablePlan:
    """Describe a table.

    Args:
        needed: whether the table must exist.
    Raises:
        SourceError, SinkError: the table must exist, and does not, or its name is not possible there.
    """
    name = TableName.parse(text, wishes.project)
    store = wishes.store(name.project)
    try:
        info = store.describe(name)
        made = isinstance(store, RehearsedTables) and store.is_made(name)
        columns = ", ".join(f"{one.name} {types.words_of(one)}" for one in info.columns)
        columns += "".join(f", {one.name} {types.words_of(one)} (partition)" for one in info.keys)
        return TablePlan(text, columns, _rows(store, name), made)
    except Unforeseen:
        return TablePlan(text)
    except (SourceError, SinkError):
        if needed:
            raise
        return TablePlan(text)


def _rows(store: TableStore, name: TableName) -> int | None:
    """Return the number of rows of a table, or of the part that `?start=` and `end=` in its name select; None if unknown."""
    try:
        first, end = name.rows(store.count(name)) if store.exists(name) else (0, None)
    except Unforeseen:
        return None
    return end - first if end is not None else None


def _user_flags(parameters: Mapping[str, str], places: Places) -> list[str]:
    """Return the flags of hyperParameters, then those of userDefinedParameters, which win because they come last."""
    found: list[str] = []
    if parameters.get("hyperParameters"):
        path = places.found(parameters["hyperParameters"], "hyperParameters")
        found += flag_words.from_file(read_local_text(path, "hyperParameters"), path)
    return found + flag_words.from_text(parameters.get("userDefinedParameters", ""))


def _cluster(tasks: Tasks, wishes: Wishes, interpreter: interpreters.Interpreter) -> ClusterSpec:
    workers = wishes.num_workers if wishes.num_workers is not None else tasks.num_workers
    servers = wishes.num_ps if wishes.num_ps is not None else tasks.num_ps
    # TensorFlow 2 waits for every task in its cluster, so it is not told of an evaluator; TensorFlow 1, which PAI has, is told
    told = interpreter.tensorflow.startswith("1.")
    flags = tasks.given or workers > 1 or servers > 0
    return ClusterSpec(workers, servers, tasks.evaluator, flags=flags, evaluator_told=told)


def _settings(parameters: Mapping[str, str], tasks: Tasks, wishes: Wishes) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of the job, and warnings about those that cannot be as the command asks."""
    notes: list[str] = []
    hung = parameters.get("maxHungTimeBeforeGCInSeconds", "")
    dynamic = truth("enableDynamicCluster", parameters.get("enableDynamicCluster", ""))
    seconds = number("maxHungTimeBeforeGCInSeconds", hung) if hung else None
    settings: dict[str, Any] = {
        "timeout": seconds_of(parameters, wishes.timeout),
        "max_restarts": wishes.max_restarts if wishes.max_restarts is not None else DYNAMIC_RESTARTS * dynamic,
        "stall_timeout": wishes.stall_timeout if wishes.stall_timeout is not None else float(seconds or 600),
        "stall_action": wishes.stall_action or ("warn" if seconds == 0 else "fail"),
    }
    workers = wishes.num_workers if wishes.num_workers is not None else tasks.num_workers
    servers = wishes.num_ps if wishes.num_ps is not None else tasks.num_ps
    if wishes.local:
        capacity.check_fits(num_workers=workers, num_ps=servers)
        if workers + servers > _CROWD * len(devices.cpus()):
            notes.append(
                f"{workers + servers} processes are many for {len(devices.cpus())} cores; num_workers= and num_ps= "
                "(--num-workers, --num-ps) take fewer"
            )
    for name, each, there, what in (
        ("gpus_per_worker", tasks.gpus, devices.gpus, "graphics card"),
        ("cpus_per_worker", tasks.cpus, devices.cpus, "core"),
    ):
        own = getattr(wishes, name)
        settings[name] = own
        if own is not None or each is None or not wishes.local:
            continue
        have = len(there())
        if each * workers <= have:
            settings[name] = each
        elif have:
            notes.append(
                f"{workers * each} {what}s are asked for, and this machine has {have}: the tasks share "
                f"{'it' if have == 1 else 'them'}"
            )
        else:
            notes.append(
                f"{workers * each} {what}{'s' * (workers * each > 1)} asked for, and this machine has none: it runs on the "
                "processor"
            )
    return settings, notes


def seconds_of(parameters: Mapping[str, str], given: float | None) -> float | None:
    """Return how many seconds a command's job may take; None: as many as it likes.

    Args: parameters: the command's; given: `timeout=`, which wins.
    Raises: ConfigError: `maxTrainingTimeInHour` is no number of hours.
    """
    hours = parameters.get("maxTrainingTimeInHour", "")
    return given if given is not None else _hours(hours) if hours else None


def _hours(text: str) -> float | None:
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not 0 <= hours < 1e5:
        raise ConfigError(f"-DmaxTrainingTimeInHour={shown(text)} must be a number of hours")
    return hours * _SECONDS or None


def task_flags(plan: Plan, task: TaskSpec) -> list[str]:
    """Return the flags that tell a task of the other tasks, as it will get them, with HOST:PORT in place of each address."""
    workers = [one for one in plan.cluster.tasks if one.role in ("chief", "worker")]
    servers = [one for one in plan.cluster.tasks if one.role == "ps"]
    role, index = ("worker", workers.index(task)) if task in workers else (task.role, task.index)
    hosts = {"ps": ["HOST:PORT" for _ in servers], "worker": ["HOST:PORT" for _ in workers]}
    return [
        f"--job_name={role}",
        f"--task_index={index}",
        f"--ps_hosts={','.join(hosts['ps'])}",
        f"--worker_hosts={','.join(hosts['worker'])}",
    ]


def as_text(plan: Plan) -> str:
    """Return the plan as text, for people."""
    found = plan.interpreter
    lines = [
        f"{plan.command.name}{f', job {plan.job_name}' if plan.job_name else ''}{f', tags {plan.tags}' if plan.tags else ''}",
        f"environment  {plan.environment}: {_found(found) if found.path else 'cannot be used'}",
        f"script       {plan.script.real}, run as __main__ in "
        f"{'the unpacked archive' if plan.script.archives else 'a directory of its own'}",
    ]
    lines += _listed("flags", [redacted(flag) for flag in plan.flags])
    lines += _listed("tasks", [_task(plan, task) for task in plan.cluster.tasks])
    lines += _listed("reads", [_described(one) for one in plan.inputs])
    lines += _listed("writes", [_described(one) for one in plan.outputs])
    lines += _listed(
        "directories",
        [
            f"{uri} is {path}{' (not there yet)' if os.path.isabs(path) and not os.path.isdir(path) else ''}"
            for uri, path in plan.directories
        ],
    )
    lines += _listed(
        "settings",
        [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in plan.settings.items()
            if value
        ],
    )
    lines += [f"warning: {one}" for one in plan.warnings]
    lines += [f"problem: {one}" for one in plan.problems]
    return "\n".join(lines)


def as_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as a dict of JSON values, for programs."""
    found = plan.interpreter
    return {
        "name": plan.command.name,
        "job_name": plan.job_name,
        "tags": plan.tags,
        "environment": plan.environment,
        "python": found.path or None,
        "tensorflow": found.tensorflow if found.path else None,
        "script": plan.script.real,
        "flags": list(plan.flags),
        "tasks": {task.name: task_flags(plan, task) if plan.cluster.flags else [] for task in plan.cluster.tasks},
        "tables": [_table_json(one) for one in plan.inputs],
        "outputs": [_table_json(one) for one in plan.outputs],
        "directories": dict(plan.directories),
        "settings": dict(plan.settings),
        "warnings": list(plan.warnings),
        "problem": "\n".join(map(str, plan.problems)) or None,
    }


def _found(interpreter: interpreters.Interpreter) -> str:
    return f"TensorFlow {interpreter.tensorflow}, Python {'.'.join(map(str, interpreter.python))}, {interpreter.path}"


def _table_json(one: TablePlan) -> dict[str, Any]:
    return {"table": one.text, "there": bool(one.columns) and not one.made, "columns": one.columns, "rows": one.rows}


def _task(plan: Plan, task: TaskSpec) -> str:
    return f"{task.name}  {' '.join(task_flags(plan, task))}" if plan.cluster.flags else task.name


def _described(one: TablePlan) -> str:
    rows = "" if one.rows is None else f"  {one.rows:,} row{'s' * (one.rows != 1)}"
    return f"{one.text}{rows}  ({one.columns or 'not there yet'}{'; made by a statement before it' if one.made else ''})"


def _listed(title: str, things: Sequence[str]) -> list[str]:
    return [f"{title if not number else '':<13}{thing}" for number, thing in enumerate(things)]
