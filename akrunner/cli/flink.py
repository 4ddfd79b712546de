"""`akrunner flink start | stop`: a session cluster of this machine, for trying things out."""

from __future__ import annotations

import os
import sys
from typing import Optional

import typer

import akrunner
from akrunner.cli.guarded import EXIT_USAGE
from akrunner.engines.flink import cluster
from akrunner.foreign import ours

app = typer.Typer(help="A Flink session cluster on this machine, for trying things out.", no_args_is_help=True)


def _folder() -> str:
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "akrunner", "flink")


def running_cluster() -> Optional[cluster.Cluster]:
    """The one `start` has brought up."""
    return cluster.running(_folder())


@app.command("start")
def start(
    taskmanagers: int = typer.Option(2, min=1, help="TaskManager processes."),
    slots: int = typer.Option(2, min=1, help="Task slots of each: a job needs one for every task."),
    port: int = typer.Option(8081, help="Of the web address."),
    python: Optional[str] = typer.Option(None, help="Interpreter with PyFlink. Default: this one."),
) -> None:
    """Bring it up and print its web address; it stays until `akrunner flink stop`."""
    try:
        with ours(akrunner.ConfigError, "no directory can be made for the cluster (XDG_STATE_HOME)"):
            os.makedirs(_folder(), mode=0o700, exist_ok=True)
        started = cluster.start(_folder(), os.path.abspath(python) if python else sys.executable, taskmanagers, slots, port)
    except akrunner.ConfigError as e:
        typer.echo(f"akrunner: {e}", err=True)
        raise typer.Exit(EXIT_USAGE) from None
    typer.echo(f"http://{started.address}   {taskmanagers} TaskManagers, {taskmanagers * slots} slots")
    typer.echo(f"akrunner run SCRIPT --engine flink --flink-master {started.address} ...")


@app.command("stop")
def stop() -> None:
    """End it, and everything it has started."""
    found = running_cluster()
    if found is None:
        typer.echo("no cluster is running")
        return
    found.stop()
    typer.echo("stopped")
