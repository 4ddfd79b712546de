"""`akrunner flink start | stop`: a Flink session cluster on this machine, for trying things out."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

import typer

import akrunner
from akrunner import leftovers
from akrunner.cli.given import flag
from akrunner.cli.guarded import emit, telling
from akrunner.cli.stderr import say

if TYPE_CHECKING:
    from akrunner.engines.flink.host.cluster import Cluster

app = typer.Typer(help="Start and stop a Flink session cluster on this machine, to try things out.", no_args_is_help=True)
JSON = flag("as_json")
#: the folder in the state directory, which only this user may read
_FOLDER = "flink"


def running_cluster() -> Cluster | None:
    """Return the cluster that `akrunner flink start` has started, None if none runs."""
    from akrunner.engines.flink.host import cluster

    folder = leftovers.state_dir(_FOLDER, make=False)
    return cluster.running(folder) if folder is not None else None


@app.command("start")
def start(
    taskmanagers: int = typer.Option(2, min=1, help="TaskManager processes."),
    slots: int = typer.Option(2, min=1, help="Task slots of each: a job needs one for every task."),
    port: int = typer.Option(8081, min=0, max=65535, help="Port of the web address; 0 for any free one."),
    python: str | None = typer.Option(None, help="Interpreter with PyFlink. Default: the one that runs akrunner."),
    as_json: bool = JSON,
) -> None:
    """Start the cluster and print its web address; it stays until `akrunner flink stop`."""
    from akrunner.engines.flink.host import cluster

    if not python and os.environ.get("AKRUNNER_FLINK_PYTHON"):
        say(
            "akrunner: AKRUNNER_FLINK_PYTHON is not read: akrunner has no variable for this option; give --python on the command line"
        )
    folder = leftovers.state_dir(_FOLDER)
    if folder is None:
        raise akrunner.ConfigError("no directory can be made for the cluster: XDG_STATE_HOME must name one that can be written")
    started = cluster.start(folder, os.path.abspath(python) if python else sys.executable, taskmanagers, slots, port)
    with telling(f"the cluster runs: {started.address} (akrunner flink stop ends it)"):
        if as_json:
            there = {"address": started.address, "taskmanagers": taskmanagers, "slots": taskmanagers * slots}
            emit({"ok": True, "exit_code": 0, **there})
            return
        typer.echo(f"http://{started.address}   {taskmanagers} TaskManagers, {taskmanagers * slots} slots")
        # the interpreter that submits needs PyFlink, too
        with_python = f" --flink-python {shlex.quote(os.path.abspath(python))}" if python else ""
        typer.echo(f"akrunner run SCRIPT --engine flink --flink-master {started.address}{with_python} ...")


@app.command("stop")
def stop(
    port: int | None = typer.Option(
        None, min=1, max=65535, help="Port of its web address, to end no cluster at another one. Default: any."
    ),
    as_json: bool = JSON,
) -> None:
    """End the cluster, and everything it has started."""
    found = running_cluster()
    if found is not None and port is not None and not found.address.endswith(f":{port}"):
        raise akrunner.ConfigError(
            f"port={port} (--port): the cluster that `akrunner flink start` has started is at {found.address}; leave --port out to end it"
        )
    if found is not None:
        found.stop()
    with telling("the cluster was stopped" if found is not None else "no cluster was running"):
        if as_json:
            emit({"ok": True, "exit_code": 0, "stopped": found.address if found is not None else None})
            return
        typer.echo("stopped" if found is not None else "no cluster is running")
