"""`akrunner pai`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

import typer

import akrunner
from akrunner.cli import engines, given, show, statements, values
from akrunner.cli.guarded import EPILOG, EXIT_USAGE, emit, failure
from akrunner.foreign import redacted

if TYPE_CHECKING:
    from akrunner.pai_mode.job import Done, Runner
    from akrunner.pai_mode.texts import Statements

HELP = """
Run a script of PAI-TensorFlow by its command, over local tables (`akrunner tables`) or MaxCompute's: as one text, as words, or a file of statements
(-f; .sql as odpscmd takes it; .sh: bash runs it, and its odpscmd is akrunner). The script and its command stay as they are.

[bold]Examples[/bold]

  akrunner pai "PAI -name tensorflow1150 -Dscript=file:///work/iris.py -Dtables=odps://p/tables/iris -Doutputs=odps://p/tables/out;"

  akrunner pai -name tensorflow1150 -Dscript=train.tar.gz -DentryFile=main.py -Dtables=odps://p/tables/iris --dry-run

  akrunner pai -f job.sql --var bizdate=20260101 --oss-root bucket=./data

  akrunner pai -f run.sh 20260101 --num-workers 1

Of this command's own options the names begin with two dashes, but for -f, -e and -q; PAI's begin with one.
"""
#: own options with one dash, and whether they take a value
_OWN = {"-f": True, "-e": True, "-q": False, "-h": False}
#: PAI's that take the next word, when it is none of PAI's itself
_WITH_VALUE = ("-name", "-project", "-lineage", "-jobname", "-priority", "-settings")

#: characters of a statement that a plan shows
_LONG = 100
_CLUSTER = "Cluster"
_TROUBLE = "When something goes wrong"


def divided(given: Sequence[str]) -> Tuple[List[str], List[str]]:
    """(this command's own words, PAI's): Click would take -name for -n -a -m -e."""
    own: List[str] = []
    theirs: List[str] = []
    rest = list(reversed(given))
    while rest:
        word = rest.pop()
        if word == "--":
            own += [word, *reversed(rest)]
            rest = []
        elif word.startswith("-D") or word in _WITH_VALUE:
            theirs.append(word)
            bare = word in ("-D", *_WITH_VALUE) or "=" not in word or word.endswith("=")
            if bare and rest and (rest[-1].startswith("=") or not rest[-1].startswith("-")):
                theirs.append(rest.pop())
        elif word.startswith("-") and not word.startswith("--") and word not in _OWN and len(word) > 1:
            theirs.append(word)
        elif word == ";" or (word.lower() == "pai" and not own and not theirs):
            continue
        else:
            own.append(word)
            if _OWN.get(word) and rest:
                own.append(rest.pop())
    return own, theirs


def pai(
    ctx: typer.Context,
    command: Optional[List[str]] = typer.Argument(
        None,
        help="PAI's command, and other statements, in quotes; or its words. Behind -f run.sh: the script's own arguments, those with a dash behind --.",
    ),
    file: Optional[str] = typer.Option(
        None,
        "-f",
        "--file",
        help="File of statements, as for odpscmd -f; or a shell script, which bash runs, and whose arguments follow.",
    ),
    execute: Optional[str] = typer.Option(None, "-e", "--execute", help="Statements, as for odpscmd -e."),
    config: Optional[str] = typer.Option(
        None, hidden=True, help="Of odpscmd, in whose place this command may stand; not read."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only print what would be done: nothing is started or made."),
    project: Optional[str] = typer.Option(None, help="Project of tables named without one. Default: $AKRUNNER_PROJECT."),
    tables_root: Optional[str] = typer.Option(None, help="Directory of local tables. Default: $AKRUNNER_TABLES."),
    oss_root: List[str] = typer.Option([], help="BUCKET=DIRECTORY that oss://BUCKET stands for. Repeatable."),
    var: List[str] = typer.Option([], help="NAME=VALUE for ${NAME}, also in a shell script's environment. Repeatable."),
    python_env: Optional[str] = typer.Option(
        None, help="Interpreter, venv or conda directory, packed environment, or tf1.15, tf2.3, tf2. Default: what -name says."
    ),
    requirements: Optional[str] = typer.Option(None, help=given.help_of("requirements")),
    keras: Optional[str] = typer.Option(None, help=given.help_of("keras")),
    tensorboard: Optional[str] = typer.Option(None, help=given.help_of("tensorboard")),
    env: List[str] = typer.Option([], "--env", help=given.help_of("env")),
    env_file: List[str] = typer.Option(
        [], metavar="FILE", help="File of KEY=VALUE lines for the tasks' environment. --env wins over it."
    ),
    num_workers: Optional[int] = typer.Option(None, help="In place of the command's.", rich_help_panel=_CLUSTER),
    num_ps: Optional[int] = typer.Option(None, help="In place of the command's.", rich_help_panel=_CLUSTER),
    gpus_per_worker: Optional[int] = typer.Option(None, help="In place of the command's.", rich_help_panel=_CLUSTER),
    cpus_per_worker: Optional[int] = typer.Option(None, help="In place of the command's.", rich_help_panel=_CLUSTER),
    intra_op_parallelism: Optional[int] = typer.Option(
        None, help=given.help_of("intra_op_parallelism"), rich_help_panel=_CLUSTER
    ),
    bind_host: str = typer.Option("127.0.0.1", help=given.help_of("bind_host"), rich_help_panel=_CLUSTER),
    advertised_host: Optional[str] = typer.Option(None, help=given.help_of("advertised_host"), rich_help_panel=_CLUSTER),
    engine: str = typer.Option("local", help=given.help_of("engine"), rich_help_panel=_CLUSTER),
    flink_master: str = typer.Option(
        "local",
        help="Flink's REST address, HOST:PORT or a URL; local: a cluster that comes and goes with the job.",
        rich_help_panel=_CLUSTER,
    ),
    flink_python: Optional[str] = typer.Option(
        None, help="Interpreter with PyFlink. Default: this one.", rich_help_panel=_CLUSTER
    ),
    flink_worker_python: Optional[str] = typer.Option(
        None, help="Interpreter with PyFlink on the TaskManagers. Default: as --flink-python.", rich_help_panel=_CLUSTER
    ),
    flink_option: List[str] = typer.Option(
        [], help="KEY=VALUE of Flink's own configuration. Repeatable.", rich_help_panel=_CLUSTER
    ),
    flink_host: Optional[str] = typer.Option(None, help=given.FLINK_HOST, rich_help_panel=_CLUSTER),
    flink_port: Optional[int] = typer.Option(None, help=given.FLINK_PORT, rich_help_panel=_CLUSTER),
    flink_no_tls: bool = typer.Option(False, "--flink-no-tls", help=given.FLINK_NO_TLS, rich_help_panel=_CLUSTER),
    work_dir: Optional[str] = typer.Option(None, help="New directory to keep logs and files in."),
    debug: bool = typer.Option(False, "--debug", help=given.help_of("debug")),
    max_restarts: Optional[int] = typer.Option(
        None, help="In place of what enableDynamicCluster means (3).", rich_help_panel=_TROUBLE
    ),
    timeout: Optional[float] = typer.Option(None, help="Seconds, in place of maxTrainingTimeInHour.", rich_help_panel=_TROUBLE),
    start_timeout: float = typer.Option(60.0, help=given.help_of("start_timeout"), rich_help_panel=_TROUBLE),
    stall_timeout: Optional[float] = typer.Option(
        None,
        help="Seconds nothing may move until it is told who waits for whom, in place of maxHungTimeBeforeGCInSeconds. Default: 600.",
        rich_help_panel=_TROUBLE,
    ),
    stall_action: Optional[str] = typer.Option(None, help=given.help_of("stall_action"), rich_help_panel=_TROUBLE),
    evaluator_timeout: float = typer.Option(60.0, help=given.help_of("evaluator_timeout"), rich_help_panel=_TROUBLE),
    profile_input: Optional[int] = typer.Option(None, help=given.help_of("profile_input"), rich_help_panel=_TROUBLE, min=1),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout, for machines."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no closing line."),
) -> None:
    flink = {
        "flink_master": flink_master,
        "flink_python": flink_python,
        "flink_worker_python": flink_worker_python,
        "flink_option": flink_option,
        "flink_host": flink_host,
        "flink_port": flink_port,
        "flink_no_tls": flink_no_tls,
    }
    options: Dict[str, Any] = dict(
        variables=values.pairs(var, "--var"),
        project=project,
        tables_root=tables_root,
        oss_roots=values.pairs(oss_root, "--oss-root"),
        python_env=python_env,
        num_workers=num_workers,
        num_ps=num_ps,
        requirements=requirements,
        keras=keras,
        tensorboard=tensorboard,
        env=values.environment(env, env_file),
        timeout=timeout,
        start_timeout=start_timeout,
        stall_timeout=stall_timeout,
        stall_action=stall_action,
        evaluator_timeout=evaluator_timeout,
        profile_input=profile_input,
        max_restarts=max_restarts,
        gpus_per_worker=gpus_per_worker,
        cpus_per_worker=cpus_per_worker,
        intra_op_parallelism=intra_op_parallelism,
        bind_host=bind_host,
        advertised_host=advertised_host,
        work_dir=work_dir,
        debug=debug,
        engine=engines.chosen(engine, flink),
    )
    from akrunner.pai_mode import scripts

    called = statements.inside("pai", options)
    done: List["Done"] = []
    with statements.telling(called, done):
        options = called.options if called is not None else options
        quiet = quiet or bool(options.get("quiet"))
        screen = show.Screen(as_json=as_json, quiet=quiet, log=bool(options["debug"]))
        job = statements.Statements(options, screen, as_json, quiet, done)
        text, words = command or [], ctx.obj or []
        if file is not None and words and scripts.is_shell(file, ""):
            raise akrunner.ConfigError(
                f"{words[0]!r} begins with a dash: put the arguments of {file} behind --, akrunner's own before it: akrunner pai -f {file} -- {words[0]} ..."
            )
        if file is not None and not words:
            # what stands behind the name of a shell script is its own
            script = job.runner.script(execute, file, text)
            if script is not None and not dry_run:
                statements.ended(job.run_script(script))
                return
            given = job.runner.read(execute, file, text)
        else:
            given = job.runner.read(_command(text, words, execute), file)
        if dry_run:
            _plan(job.runner, given, as_json)
        else:
            job.run(given)


def _command(text: List[str], words: List[str], execute: Optional[str]) -> "Optional[str | List[str]]":
    """What stands on the command line. Raises: ConfigError: two things do."""
    if execute is not None:
        text = [execute, *text]
    if words:
        if text:
            raise akrunner.ConfigError(f"{text[0]!r}: no option, and no value of one; quote values with blanks: -Dname='a b'")
        return words
    if len(text) > 1:
        raise akrunner.ConfigError(
            "quote PAI's command as a whole, or give its words: akrunner pai -name tensorflow1150 -Dscript=..."
        )
    return text[0] if text else None


def _plan(runner: "Runner", given: "Statements", as_json: bool) -> None:
    """What would be done, each statement in its place."""
    from akrunner.pai_mode import plan

    steps = runner.steps(given)
    plans = [step.plan for step in steps if step.plan is not None]
    refused = [step.problem for step in steps if step.problem is not None]
    problem = next(iter([*refused, *(problem for one in plans for problem in one.problems)]), None)
    code = EXIT_USAGE if problem is not None else 0
    if as_json:
        failed = failure(problem, EXIT_USAGE) if problem is not None else {"ok": True, "exit_code": 0}
        problems = [str(one) for one in refused]
        unchecked = [*(step.unchecked for step in steps if step.unchecked), *([given.untold] if given.untold else [])]
        found = {"plans": [plan.as_json(one) for one in plans], "notes": list(given.notes)}
        emit({**failed, **found, "problems": problems, "unchecked": unchecked})
        _ended(code)
        return
    for note in given.notes:
        typer.echo(f"warning: {note}")
    apart = bool(given.notes)
    for number, step in enumerate(steps):
        # a plan has lines of its own
        if apart or (number and step.plan is not None):
            typer.echo("")
        apart = step.plan is not None
        if step.statement is not None and len(steps) > 1:
            typer.echo(f"line {step.statement.line}: {_short(redacted(step.statement.text))}")
        elif step.statement is not None and step.plan is None:
            typer.echo(_short(redacted(step.statement.text)))
        if step.plan is not None:
            typer.echo(plan.as_text(step.plan))
        if step.problem is not None:
            typer.echo(f"problem: {step.problem}")
        if step.unchecked:
            typer.echo(f"not checked: {step.unchecked}")
    if given.untold:
        typer.echo(f"{chr(10) if apart else ''}not checked: {given.untold}")
    _ended(code)


def _short(statement: str) -> str:
    text = " ".join(statement.split())
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."


def _ended(code: int) -> None:
    if code:
        raise typer.Exit(code)


__all__ = ["EPILOG", "HELP", "divided", "pai"]
