"""`akrunner status | logs | cancel`: commands for detached jobs on a Flink cluster (`akrunner run --detach`)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

import akrunner
from akrunner.cli import variables
from akrunner.cli.engines import MASTER
from akrunner.cli.flink import running_cluster
from akrunner.cli.given import flag
from akrunner.cli.guarded import EXIT_FAILED, EXIT_TERMINATED, emit, telling

if TYPE_CHECKING:
    from akrunner.detached import Status

JSON = flag("as_json")
MASTER_HELP = (
    f"Flink's REST address, HOST:PORT or a URL. Default: ${MASTER}, else the cluster `akrunner flink start` has brought up."
)
EPILOG = "Exit codes: 0; 1 the job failed, why is on stderr; 2 no cluster there, or no such job; 143 it was cancelled."


def master(given: str | None) -> str:
    """Return the address of the cluster: the given one, the environment's, or the one of `akrunner flink start`.

    Raises: ConfigError: there is none of these.
    """
    variables.tell("status")
    if given or os.environ.get(MASTER):
        return given or os.environ[MASTER]
    started = running_cluster()
    if started is None:
        raise akrunner.ConfigError(f"which cluster? give --flink-master HOST:PORT, or set {MASTER}")
    return started.address


def check_detach(options: Mapping[str, Any], wanted: bool) -> None:
    """Check `--detach`. Raises: ConfigError: the job is to run detached, and its engine has no cluster that keeps it."""
    from akrunner.engines.registry import engine_of

    if wanted and not engine_of(options["engine"]).capabilities.detaches:
        raise akrunner.ConfigError("--detach is for a Flink cluster that stays: --engine flink --flink-master HOST:PORT")


def detach(script: str, source: Any, mode: str, options: dict[str, Any], as_json: bool, quiet: bool) -> None:
    """Submit a detached job, and print its id.

    Args: options: the options of the command line.
    Raises: the exceptions of `akrunner.detached.submit`.
    """
    check_detach(options, True)
    engine = options.pop("engine")
    from akrunner.cli import lines
    from akrunner.detached import submit

    lines.check_not_stdout(options.get("output"))
    submitted(submit(script, source, engine=engine, mode=mode, **options), as_json, quiet)


def submitted(job: Any, as_json: bool, quiet: bool) -> None:
    """Print the result of `run --detach`: the job's id on stdout, the commands for it on stderr."""
    with telling(f"the job was submitted, and runs: {job.id} on {job.master}"):
        if as_json:
            emit({"ok": True, "exit_code": 0, "job": job.id, "master": job.master, "name": job.name})
            return
        typer.echo(job.id)
    if not quiet:
        for command in ("status", "logs", "cancel"):
            typer.echo(f"akrunner {command} {job.id[:8]} --flink-master {job.master}", err=True)


def status(
    job: str | None = typer.Argument(None, help="The id `run --detach` printed, or its beginning. Default: all jobs."),
    flink_master: str | None = typer.Option(None, help=MASTER_HELP),
    wait: bool = typer.Option(
        False, "--wait", help="Return when the job has ended: 0 when it has succeeded, 143 when it was cancelled, else 1."
    ),
    as_json: bool = typer.Option(False, "--json", help="JSON on stdout, for machines."),
) -> None:
    """Show a detached job, or every akrunner job of a Flink cluster, and why a job failed, with the script's traceback."""
    from akrunner import detached

    where = master(flink_master)
    if wait and not job:
        raise akrunner.ConfigError("--wait is for one job: give its id")
    if job:
        jobs = [detached.wait(where, job) if wait else detached.status(where, job)]
    else:
        jobs = detached.listed(where)
    failed = bool(job and (jobs[0].error or jobs[0].state == "FAILED" or (wait and jobs[0].state != "FINISHED")))
    code = (EXIT_TERMINATED if jobs[0].state == "CANCELED" else EXIT_FAILED) if failed else 0
    if as_json:
        found = [dataclasses.asdict(one) for one in jobs]
        head = {"ok": not failed, "exit_code": code}
        emit({**head, **found[0]} if job else {**head, "jobs": found})
    else:
        _show(jobs)
    if failed:
        if not as_json:
            why = "Flink does not say why" if jobs[0].state == "FAILED" else f"the job is {jobs[0].state}"
            typer.echo(f"akrunner: {jobs[0].error or why}", err=True)
        raise typer.Exit(code)


def logs(
    job: str = typer.Argument(..., help="The id `run --detach` printed, or its beginning."),
    flink_master: str | None = typer.Option(None, help=MASTER_HELP),
    follow: bool = typer.Option(False, "--follow", "-f", help="Go on until the job has ended."),
    as_json: bool = typer.Option(
        False, "--json", help="One JSON object on stdout, for machines: all lines, with --follow when the job has ended."
    ),
) -> None:
    """Show what a detached job's tasks have printed so far, and how far the job is, from the TaskManagers' logs."""
    from akrunner import detached

    if as_json:
        emit({"ok": True, "exit_code": 0, "lines": list(detached.logs(master(flink_master), job, follow))})
        return
    for line in detached.logs(master(flink_master), job, follow):
        typer.echo(line)


def cancel(
    job: str = typer.Argument(..., help="The id `run --detach` printed, or its beginning."),
    flink_master: str | None = typer.Option(None, help=MASTER_HELP),
    as_json: bool = JSON,
) -> None:
    """End a detached job and all its processes."""
    from akrunner import detached

    ended = detached.cancel(master(flink_master), job)
    with telling(f"the job was ended: {ended.id} {ended.state}"):
        if as_json:
            emit({"ok": True, "exit_code": 0, **dataclasses.asdict(ended)})
            return
        typer.echo(f"{ended.id} {ended.state}")


def _show(jobs: list[Status]) -> None:
    """Print a line for each job, never cut to the terminal's width, so that a shell can split it into fields."""
    for one in jobs:
        typer.echo(f"{one.id}  {one.state:<9}  {one.seconds:7.0f} s  {one.running} of {one.tasks} subtasks run  {one.name}")
