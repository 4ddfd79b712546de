"""`akrunner.pai`: runs PAI's commands, and the statements around them, one after the other.

::

    text, words, file -> Statements (texts) -> each SQL statement      akrunner.tables.statements
                                               each PAI -name ...      Command (words) -> Plan -> JobSpec -> engine -> Result
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

from akrunner.checks import check_arguments, check_choice, check_count, check_environment, check_path, check_text
from akrunner.engines.base import Engine, Observer
from akrunner.engines.registry import engine_of
from akrunner.errors import AkrunnerError, ConfigError, WriteError
from akrunner.foreign import ours
from akrunner.history.keeping import Keeping
from akrunner.io.limits import deadline, in_time, waited
from akrunner.io.table import TableSource
from akrunner.launch.environments import RECIPES
from akrunner.launch.fetch import fetch
from akrunner.options import paths_of
from akrunner.pai_mode import pais, scripts, texts, words
from akrunner.pai_mode.arguments import PaiArguments
from akrunner.pai_mode.places import Places
from akrunner.pai_mode.plan import Plan, Wishes, planned, seconds_of
from akrunner.pai_mode.words import Command
from akrunner.prepare.arguments import Arguments, PathLike
from akrunner.prepare.job import prepare
from akrunner.running.kept import kept_job
from akrunner.running.observer import check_observer
from akrunner.running.result import Result
from akrunner.sequences import SequenceNotStr
from akrunner.spec import STALL_ACTIONS, TablesSpec
from akrunner.tables import foreseen, statements
from akrunner.tables.buckets import Buckets
from akrunner.tables.chosen import store_for, told_of
from akrunner.tables.names import TableName, project_of
from akrunner.tables.statements import Statement, StatementResult
from akrunner.tables.store import SqlStore, TableStore
from akrunner.telling.listeners import Telling

#: a statement that makes a file a resource of the project
_ADD = re.compile(r"add\s+(?:file|py|archive|jar)\s+(\S+)(?:\s+as\s+(\S+))?(?:\s+-f)?\Z", re.IGNORECASE)
#: notes ("... is not run: ...") about programs of a script that may make files, but no tables
_FILES_ONLY = re.compile(
    r" is not run: (\S*/)?(tar|zip|unzip|gzip|gunzip|rm|mv|cp|ln|mkdir|rmdir|touch|chmod|ls|cat|tee|head|tail|sort|sed|awk|grep|find|wc|sleep|"
    r"wget|curl|ossutil(64)?|osscmd|git|md5sum|du|df)( |$)"
)
_USE = re.compile(r"use\s+([A-Za-z_]\w*)\Z", re.IGNORECASE)
#: how many of a script's notes an error shows
_NOTES = 5
#: the result of one statement: a job's, or a SQL statement's
Done = Result | StatementResult


@dataclass(frozen=True)
class Step:
    """A statement of a plan.

    Attributes:
        statement: None if the command came as words.
        plan: the plan of a PAI command; None for another statement, and for a command with a problem.
        problem: the error with which the statement would be refused, None if none is known.
        unchecked: what of the statement could not be checked, and why; "" if nothing.
    """

    statement: Statement | None
    plan: Plan | None = None
    problem: AkrunnerError | None = None
    unchecked: str = ""


def run_pai(
    given: PaiArguments,
    command: str | Sequence[str] | None,
    file: PathLike | None,
    arguments: SequenceNotStr[str],
    observer: Observer | None,
) -> Result | list[Done]:
    """Do what `akrunner.pai` does; its docstring describes the arguments, the result and the errors."""
    runner = Runner(given, observer)
    script = runner.script(command, file, arguments)
    if script is not None:
        if observer is not None:
            raise ConfigError("observer: a shell script's calls are processes of their own, whose jobs this one cannot watch")
        return runner.run_script(script)
    statements = runner.read(command, file)
    done = runner.run(statements)
    return done[0] if statements.single and isinstance(done[0], Result) else done


class Runner:
    """Runs or plans commands with the arguments of `pai`.

    Args:
        given: those arguments.
        observer: receives the progress of each job.
        say: receives sentences about what happens beside the job.
        begun: is called with the plan of each job that begins.
    Raises:
        ConfigError: one of the arguments is wrong.
    """

    def __init__(
        self,
        given: PaiArguments,
        observer: Observer | None = None,
        say: Callable[[str], None] = lambda text: None,
        begun: Callable[[Plan], None] = lambda plan: None,
    ) -> None:
        # this machine can always be one, and most calls of a script's client have no command that needs it
        if not isinstance(given.engine, str) or given.engine != "local":
            self._engine = engine_of(given.engine)
        check_observer(observer)
        self._observer = observer
        self._given = given
        self._say = say
        self._begun = begun
        for name, least in (("num_workers", 1), ("num_ps", 0)):
            if getattr(given, name) is not None:
                check_count(name, getattr(given, name), least)
        if given.stall_action is not None:
            check_choice("stall_action", given.stall_action, STALL_ACTIONS)
        self._variables = check_environment("variables", given.variables if given.variables is not None else {})
        self._project = project_of(check_text("project", given.project) if given.project is not None else None)
        self._root = check_path("tables_root", given.tables_root) if given.tables_root is not None else None
        roots = check_environment("oss_roots", given.oss_roots if given.oss_roots is not None else {})
        self._roots = {bucket.lower(): path for bucket, path in roots.items()}
        self._told: set[str] = set()
        self._folder = ""
        self._shown = False
        #: whole tables that the commands planned so far write
        self._earlier: set[TableName] = set()
        self._resources: dict[str, str] = {}

    @functools.cached_property
    def _engine(self) -> Engine:
        return engine_of(self._given.engine)

    def read(
        self, command: str | Sequence[str] | None, file: PathLike | None, arguments: SequenceNotStr[str] = ()
    ) -> texts.Statements:
        """Return the statements of a text, of words or of a file.

        Args:
            arguments: a shell script's arguments, for a dry run.
        Raises:
            ConfigError: they cannot be read, or a directory of oss_roots does not exist.
        """
        numbered = {str(number): one for number, one in enumerate(arguments, 1)}
        variables = {**self._variables, **numbered}
        found = texts.given(command, check_path("file", file) if file is not None else None, variables)
        for bucket, path in self._roots.items():
            if not os.path.isdir(os.path.expanduser(path)):
                raise ConfigError(f"oss_roots (--oss-root): {bucket}={path}: there is no such directory")
        return found

    def parts(self, parts: Sequence[tuple[str, str]], folder: str, first: int = 1) -> texts.Statements:
        """Return the statements of a call of MaxCompute's client.

        Args:
            parts: ("text", statements) or ("file", path), in their order.
            folder: where a file is looked for if it is not found by its path.
            first: the number, from 1, of the first statement to run.
        Raises:
            ConfigError: they cannot be read, or there are fewer statements than `first`.
        """
        return texts.of_parts(parts, self._variables, folder, first)

    def script(
        self, command: str | Sequence[str] | None, file: PathLike | None, arguments: SequenceNotStr[str] = ()
    ) -> scripts.ShellScript | None:
        """Return the file as a shell script, or None if it is not one.

        Raises:
            ConfigError: the script cannot be run; or there are arguments, but no script that could take them.
        """
        path = check_path("file", file) if file is not None else None
        words = check_arguments("arguments", arguments)
        text = texts.shell_text(path) if path is not None else None
        if path is None or text is None:
            if words:
                raise ConfigError(
                    "arguments (those behind -f FILE) are for a shell script: a file of statements takes --var NAME=VALUE"
                )
            return None
        if command is not None:
            raise ConfigError("give PAI's command, or file= (-f) with a file of statements")
        # $0 is the path as the caller wrote it; for a URL, the path of the downloaded file
        here = os.path.expanduser(path)
        here = here if not here.startswith("-") else f"./{here}"
        return scripts.prepared(here if os.path.exists(here) else fetch(path, "file").path, text, words, self._variables)

    def run_script(self, script: scripts.ShellScript) -> list[Done]:
        """Run a shell script, and return the results of the statements it has handed over.

        Raises:
            JobError: the script's exit code is not 0.
        """
        outcome = self.called(script)
        if outcome.code:
            raise scripts.failure(script, outcome)
        return [done for call in outcome.calls for done in call.done]

    def called(self, script: scripts.ShellScript, output: int | IO[Any] | None = None, quiet: bool = False) -> scripts.Outcome:
        """Run a shell script, and return its exit code and calls.

        Args:
            output: where its stdout goes, as in `scripts.run`.
            quiet: whether its calls are run quietly.
        Raises:
            ConfigError: bash cannot be started.
        """
        for note in script.notes:
            self._say(note)
        given = self._given.by_name()
        options = {
            **given,
            "quiet": quiet,
            "project": self._project,
            # the script may change its directory
            "oss_roots": {bucket: _absolute(path) for bucket, path in self._roots.items()},
            **{name: _absolute(given[name]) for name in _PATHS if given[name] is not None},
        }
        with ours(ConfigError, f"file: {script.path}", script.path):
            return scripts.run(script, options, self._variables, output, self._say)

    def plans(self, given: texts.Statements) -> list[Plan]:
        """Return the plan of each PAI command. Nothing is started, and no statement is run.

        Raises:
            ConfigError: a command is wrong.
        """
        self._shown, self._folder = False, given.folder
        self._earlier.clear()
        if given.command is not None:
            return [self._planned(given.command, dry=True)]
        project, found = self._project, []
        for one, begins in given.called:
            if begins is not None:
                self._project = begins or project
            if one.kind == "pai":
                with _located(one, given):
                    found.append(self._planned(words.parsed(one.text, one.line), dry=True, tables=not given.others))
            else:
                self._heed(one)
        self._project = project
        return found

    def steps(self, given: texts.Statements) -> list[Step]:
        """Return the steps that `running` would take, in order, as far as they can be known.

        Nothing is started, and no statement is run. Environments and tables need not exist.

        Raises:
            ConfigError: there is only one command, and it is wrong in itself. Of several, a wrong one is a step with a problem.
        """
        self._shown, self._folder = True, given.folder
        self._earlier.clear()
        if given.command is not None:
            return [Step(None, self._planned(given.command, dry=True))]
        project, found = self._project, []
        blind = not all(_FILES_ONLY.search(note) for note in given.notes)
        # a shell script may make files; for its rm there is not even a note
        files = bool(given.notes or given.clients)
        rehearsal = foreseen.Rehearsal(self._store, project, given.folder, files, blind)
        for one, begins in given.called:
            if begins is not None:
                self._project = begins or project
                rehearsal.client(self._project)
            if one.kind == "pai":
                try:
                    with _located(one, given):
                        found.append(Step(one, self._rehearsed(one, rehearsal, blind, bool(given.others))))
                except ConfigError as e:
                    if given.single:
                        raise
                    found.append(Step(one, None, e))
                continue
            self._heed(one)
            problem = rehearsal.problem(one) if _ADD.match(one.text) is None else None
            if problem is not None:
                told = str(problem)
                problem = type(problem)(told if told.startswith("line ") else f"line {one.line}: {told}")
            found.append(Step(one, None, problem, rehearsal.unchecked if problem is None else ""))
        self._project = project
        return found

    def _heed(self, one: Statement) -> None:
        """Remember what a statement sets for the statements after it: a resource, or the project."""
        added, used = _ADD.match(one.text), _USE.match(one.text)
        if added is not None:
            self._resources[added[2] or os.path.basename(added[1])] = added[1]
        elif used is not None:
            self._project = used[1]

    def _rehearsed(self, one: Statement, rehearsal: foreseen.Rehearsal, blind: bool, others: bool) -> Plan:
        """Return the plan of a command among other statements.

        Args:
            blind: whether programs of the script may make tables.
            others: whether there are statements that are not PAI commands.
        """
        remote = bool(self._project) and isinstance(self._store(str(self._project)), SqlStore)
        # in MaxCompute, tables are seen as they are now, not as the statements before the command will leave them
        tables = not blind and not (remote and others)
        plan = self._planned(words.parsed(one.text, one.line), True, None, tables, rehearsal.store)
        rehearsal.job([table.text for table in plan.outputs], self._project)
        return plan

    def run(self, given: texts.Statements) -> list[Done]:
        """Run every statement, and return the results. Raises: as `running`."""
        return list(self.running(given))

    def running(self, given: texts.Statements) -> Iterator[Done]:
        """Run the statements one after the other, and yield the result of each.

        Everything that can be known beforehand is checked before the first statement runs.

        Raises:
            ConfigError: a check failed; nothing was changed.
            AkrunnerError: as a statement, or a job, raises it; the statements before it have been run. If there are several
                statements, the error has the number of its statement.
        """
        self.plans(given)
        if given.command is not None:
            yield self._job(given.command)
        project, session = self._project, statements.Session(self._store, self._project, given.folder)
        for number, (one, begins) in enumerate(given.called, 1):
            if begins is not None:
                session = statements.Session(self._store, begins or project, given.folder, session.changed)
            try:
                with _located(one, given):
                    done = self._done(one, session)
                session.changed = session.changed or one.kind == "pai"
            except AkrunnerError as e:
                if given.single:
                    raise
                error = statements.located(e, one, number - 1, session.changed)
                error.statement = number
                if error is e:
                    raise
                raise error from e
            yield done

    def _done(self, one: Statement, session: statements.Session) -> Done:
        """Run one statement, and return its result."""
        if one.kind == "pai":
            self._project = session.project
            return self._job(words.parsed(one.text, one.line))
        if _ADD.match(one.text):
            return StatementResult(one, "a resource is a file here: it stays where it is")
        return session.run(one)

    def _store(self, project: str) -> Any:
        """Return the store with a project's tables. If they are not on this machine, tell the user once where they are."""
        store = store_for(project, self._root)
        sentence = told_of(project, store)
        if store.kind != "local" and project and sentence not in self._told:
            self._told.add(sentence)
            self._say(sentence)
        return store

    def _buckets(self, command: Command, dry: bool = False) -> Buckets:
        say = _nothing if dry else self._say
        return Buckets(self._roots, command.parameters.get("ossHost") or None, self._root, say)

    def _planned(
        self,
        command: Command,
        dry: bool,
        buckets: Buckets | None = None,
        tables: bool = True,
        store: Callable[[str], TableStore] | None = None,
    ) -> Plan:
        given = self._given
        wishes = Wishes(
            store=store or self._store,
            project=self._project,
            python_env=check_path("python_env", given.python_env) if given.python_env is not None else None,
            local=self._engine.capabilities.here,
            shown=self._shown,
            earlier=frozenset(self._earlier if dry else ()),
            **{name: getattr(given, name) for name in _WISHED},
        )
        if buckets is not None:
            return planned(command, wishes, Places(buckets, dry, self._folder, self._root, self._resources), tables)
        with self._buckets(command, dry) as opened:
            plan = planned(command, wishes, Places(opened, dry, self._folder, self._root, self._resources), tables)
        self._earlier |= {TableName.parse(table.text, self._project).whole for table in plan.outputs}
        return plan

    def _job(self, command: Command) -> Result:
        done: Result | None = None
        try:
            with self._buckets(command) as buckets, in_time(seconds_of(command.parameters, self._given.timeout)):
                done = self._run(self._planned_in_time(command, buckets))
            return done
        except WriteError as e:
            if done is None:
                raise
            written = f", and {done.output} {'are' if ',' in done.output else 'is'} written" if done.output else ""
            raise WriteError(f"{e}. The job itself has succeeded{written}") from e

    def _planned_in_time(self, command: Command, buckets: Buckets) -> Plan:
        """Return the plan of a job, whose files and tables may be elsewhere. Raises: JobTimeoutError: the job's time is over."""
        if deadline() is None:
            return self._planned(command, False, buckets)
        context = contextvars.copy_context()
        what = "its files in OSS, and what MaxCompute says of its tables"
        return waited(lambda: context.run(self._planned, command, False, buckets), None, what)

    def _run(self, plan: Plan) -> Result:
        """Run the job of a plan, and keep its run."""
        beside = {"name": plan.command.name, "parameters": plan.command.parameters, "script_args": list(plan.flags)}
        kept = Keeping("pai", self._given.by_name(), self._given.keep_run, beside)
        with Telling("pai", plan.script.name, self._given, self._observer) as told, kept as run:
            result = self._ran(plan, run, told)
            result = dataclasses.replace(result, run=run.succeed(result, result.output))
            return told.succeed(result, result.output)

    def _ran(self, plan: Plan, run: Keeping, told: Telling) -> Result:
        given = self._given
        for folder in plan.buckets:
            with ours(ConfigError, f"buckets: cannot make {folder}", folder):
                os.makedirs(folder, exist_ok=True)
        prepared = prepare(
            "batch",
            Arguments(
                script=plan.script,
                source=_NO_ROWS,
                script_args=plan.flags,
                num_workers=plan.cluster.num_workers,
                num_ps=plan.cluster.num_ps,
                evaluator=plan.cluster.evaluator,
                python_env=plan.interpreter.path,
                checkpoint_dir=plan.checkpoint_dir,
                engine=self._engine,
                **plan.settings,
                **{name: getattr(given, name) for name in _PASSED},
            ),
        )
        job = dataclasses.replace(prepared.job, cluster=plan.cluster, tables=self._tables(plan), notes=plan.warnings)
        job = kept_job(run, job, plan.script.name, self._engine, plan.interpreter)
        told.begun(run)
        self._begun(plan)
        with pais.telling(pais.names(plan.cluster)):
            outcome = self._engine.run(job, prepared.table, None, told.observer)
        written = ", ".join(one.text for one in plan.outputs)
        return Result(None, written or None, outcome.tasks, outcome.stats, outcome.work_dir)

    def _tables(self, plan: Plan) -> TablesSpec:
        """Return the job's tables. Raises: ConfigError: they are in several stores, such as MaxCompute and this machine."""
        inputs, outputs = (tuple(one.text for one in many) for many in (plan.inputs, plan.outputs))
        projects = dict.fromkeys(TableName.parse(one, self._project).project for one in [*inputs, *outputs])
        stores = [self._store(project) for project in projects] or [self._store(self._project or "")]
        if len({(store.kind, store.place) for store in stores}) > 1:
            raise ConfigError("-Dtables, -Doutputs: a job's tables must all be in one place, and these are in several")
        return TablesSpec(inputs, outputs, stores[0], self._project)


def _absolute(path: PathLike) -> str:
    """Return the absolute path. An environment's name, a program on PATH and a URL stay as they are."""
    text = os.path.expanduser(os.fspath(path))
    named = text in RECIPES or (os.sep not in text and shutil.which(text) is not None)
    return text if "://" in text or named else os.path.abspath(text)


def _nothing(text: str) -> None:
    """Say nothing: if a job is only planned, the caller that shows the plan says what there is to say."""


@contextlib.contextmanager
def _located(one: Statement, given: texts.Statements) -> Iterator[None]:
    """Put the statement's line in front of a `ConfigError` that the block raises, if there are several statements."""
    try:
        yield
    except ConfigError as e:
        if given.single or str(e).startswith("line "):
            raise
        raise type(e)(f"line {one.line}: {e}{_perhaps_made(str(e), given)}") from e


def _perhaps_made(error: str, given: texts.Statements) -> str:
    """Return a sentence with the programs of a script that were not run if the error says that a table is missing; else ""."""
    if not given.notes or not re.search(r"there is no table|does not exist", error):
        return ""
    more = f"; and {len(given.notes) - _NOTES} more" if len(given.notes) > _NOTES else ""
    return f". What of this script was not run may make it: {'; '.join(given.notes[:_NOTES])}{more}"


#: an empty input: the host sends the tasks no rows, they ask for tables themselves
_NO_ROWS = TableSource(pa.schema([]), lambda: iter(()), "the job's tables", replayable=True)
_OURS = frozenset(one.name for one in dataclasses.fields(PaiArguments))
#: arguments of `pai` that override what a command says
_WISHED = _OURS & {one.name for one in dataclasses.fields(Wishes)} - {"project", "python_env"}
#: arguments that no command overrides: handed on as they are, without those that the plan or the runner has already replaced
_PASSED = _OURS & {one.name for one in dataclasses.fields(Arguments)} - _WISHED - {"project", "python_env", "engine"}
#: arguments that are paths: a shell script's calls get them as absolute paths
_PATHS = tuple(name for name in paths_of("pai") if name in _OURS)
