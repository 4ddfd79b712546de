"""`akrunner warm start | status | stop`: warm workers for the jobs of this user's commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import typer

import akrunner
from akrunner import leftovers
from akrunner.cli import given
from akrunner.cli.guarded import emit
from akrunner.cli.stderr import say
from akrunner.outcomes import EXIT_FAILED, failure

HELP = """
Keep worker processes that have imported TensorFlow: `akrunner run` (and `akrunner.run` in any program of yours) takes one and begins in a tenth \
of a second, not in three.

A small process of your own keeps them, reachable by nobody else; it ends by itself when no job has come for --idle-timeout. A job that needs \
another environment (a variable that is read when TensorFlow is imported, another interpreter) starts cold and says why in its \
stats (`--json`: stats.starts), and the next workers are made as that job wanted them. With AKRUNNER_WARM=0 a job starts cold.

[bold]Examples[/bold]

  akrunner warm start

  akrunner run train.py -i iris.csv        (and again)

  akrunner warm start --python-env tf2.3 --workers 4 --idle-timeout 600

  akrunner warm status

  akrunner warm stop
"""

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, rich_markup_mode="rich")
JSON = given.flag("as_json")
#: options that are paths
_PATHS = ("python_env", "requirements")
#: how many seconds `--wait` gives the warm workers until all of them wait for a job
_STARTING = 60.0


def start(ctx: typer.Context, words: Mapping[str, Any]) -> None:
    from akrunner.warming import in_words, kept_status

    wait = words["wait"]
    already = kept_status()
    if already is None:
        options = {**given.options("warm", words), "python_env": words["python_env"], "workers": words["workers"]}
        # absolute paths, as the process that keeps the workers has another working directory
        here = {name: os.path.abspath(options[name]) for name in _PATHS if options[name] and os.path.exists(options[name])}
        _start({**options, **here})
    deadline = time.monotonic() + _STARTING
    status = kept_status()
    while wait and status is not None and status["waiting"] < status["workers"] and time.monotonic() < deadline:
        time.sleep(0.1)
        status = kept_status(hurry=True)
    if wait and (status is None or status["waiting"] < status["workers"]):
        told = in_words(status) if status is not None else "the process that keeps them has ended"
        more = "; those there are are kept (`akrunner warm status`)" if status is not None else ""
        raise akrunner.StartError(f"--wait: not all of them wait for a job after {_STARTING:g} s: {told}{more}")
    _show(status, words["as_json"], "they are kept already; `akrunner warm stop` first for others" if already else "")


app.command(
    "start",
    help="Keep warm workers from now on, with the environment of this shell. The command returns when they have been "
    "started; they go on importing TensorFlow.",
)(given.command("warm start", start))


@app.command(
    "status", help="Show the warm workers, their memory, how many jobs took one, and why there are fewer than there should be."
)
def status(as_json: bool = JSON) -> None:
    from akrunner.warming import keeper, kept_status

    try:
        _show(kept_status(), as_json, "")
    except akrunner.StartError as e:
        if not as_json:
            raise
        emit({**failure(e), "running": True, "pid": keeper()})
        raise typer.Exit(EXIT_FAILED) from None


@app.command("stop", help="End all warm workers that wait for a job. Those that jobs have taken go on with their jobs.")
def stop(as_json: bool = JSON) -> None:
    from akrunner.warming import stop_kept

    before = stop_kept()
    if as_json:
        emit({"ok": True, "exit_code": 0, "stopped": before is not None, "pid": before["pid"] if before is not None else None})
    elif before is None:
        typer.echo("no warm workers are kept")
    elif "waiting" not in before:
        typer.echo(
            f"stopped: the process that kept the warm workers (pid {before['pid']}) did not answer, and was ended with them"
        )
    else:
        jobs = f"; {before['jobs']} that jobs have taken go on" if before["jobs"] else ""
        typer.echo(f"stopped: {before['waiting'] + before['importing']} warm workers ended{jobs}")


@app.command("serve", hidden=True)
def serve() -> None:
    """Run the process that `start` starts: read options as JSON from stdin, and print a line of JSON once it listens or
    fails.
    """
    from akrunner.warming import keep

    options = json.loads(sys.stdin.read())

    def listens(error: str = "") -> None:
        print(json.dumps({"error": error}), flush=True)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)

    try:
        keep(options, listens)
    except akrunner.AkrunnerError as e:
        listens(str(e))


def _start(options: dict[str, Any]) -> None:
    """Start the process that keeps the warm workers. Raises: ConfigError: the process reports an error, or ends."""
    folder = leftovers.state_dir("warm")
    if folder is None:
        raise akrunner.ConfigError(
            "no directory can be made for the warm workers: XDG_STATE_HOME must name one that can be written"
        )
    with open(os.path.join(folder, "log.txt"), "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "akrunner", "warm", "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            cwd="/",
            text=True,
        )
    assert process.stdin is not None and process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write(json.dumps(options))
        process.stdin.close()
        said = process.stdout.readline()
    # the process outlives this command, so Popen must not warn that it still runs
    process.returncode = 0
    error = json.loads(said)["error"] if said else f"the process that was to keep them ended; see {log.name}"
    if error:
        raise akrunner.ConfigError(error)


def _show(status: dict[str, Any] | None, as_json: bool, note: str) -> None:
    from akrunner.warming import in_words

    if as_json:
        emit({"ok": True, "exit_code": 0, "running": status is not None, **(status or {})})
        return
    if status is None:
        typer.echo("no warm workers are kept; `akrunner warm start` keeps some")
        return
    if note:
        say(note)
    typer.echo(in_words(status))
    for state, kept in (("is forked for each", status["templates"]), ("waits", status["spares"])):
        for one in kept:
            typer.echo(
                f"  pid {one['pid']}  {state if one['waiting'] else 'imports TensorFlow'}  {one['memory'] >> 20} MiB  "
                f"{one['python']}"
            )
    if status["alone"]:
        typer.echo(f"  each imports TensorFlow for itself: {status['alone']}")
    typer.echo(
        f"kept by pid {status['pid']}; it ends when no job has come for {status['options']['idle_timeout']:g} s, or by "
        "`akrunner warm stop`"
    )
