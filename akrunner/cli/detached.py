"""`akrunner status | logs | cancel`: commands for detached jobs on a Flink cluster (`akrunner run --detach`); `logs` also for runs of
this machine."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import typer

import akrunner
from akrunner.cli import variables
from akrunner.cli.engines import MASTER
from akrunner.cli.flink import running_cluster
from akrunner.cli.given import flag
from akrunner.cli.guarded import emit, exit_codes, looking, telling
from akrunner.cli.stderr import say
from akrunner.codes import code_of, with_code
from akrunner.folders.words import harmless, printable
from akrunner.outcomes import EXIT_FAILED, EXIT_TERMINATED

if TYPE_CHECKING:
    from akrunner.detached import Status
    from akrunner.detached.jobs import DetachedMode
    from akrunner.runs import Run

JSON = flag("as_json")
MASTER_HELP = (
    f"Flink's REST address, HOST:PORT or a URL. Default: ${MASTER}, else the cluster `akrunner flink start` has brought up."
)
_REFUSED, _UNTOLD = "2 no cluster answers, or it has no such job", "4 stdout could not be written"
#: command -> its exit codes
EPILOGS = {
    "status": exit_codes(
        "0 the job has not failed as far as Flink knows (with --wait: it has succeeded), or JOB is left out; 1 the job failed, and stderr "
        f"has the reason, or the JobManager is gone; {_REFUSED}, or with --wait, it is no detached job; {_UNTOLD}",
        "with --wait, the job was cancelled",
    ),
    "logs": exit_codes(
        "0 the lines were printed (with --follow: and the job has succeeded); 1 with --follow, the job failed, and stderr has the "
        f"reason, or the JobManager is gone; {_REFUSED}, or there is no such run; {_UNTOLD}",
        "with --follow, the run was stopped, or the job was cancelled",
    ),
    "cancel": exit_codes(
        "0 the job has ended, and stdout says whether it was cancelled or had ended before; 1 it has not ended within a minute, or the "
        f"JobManager is gone; {_REFUSED}; {_UNTOLD}",
    ),
}
#: state of a run -> why nothing of its tasks, or of one, was printed
_WHY_NONE = {
    **dict.fromkeys(("running", "submitted"), " so far: {} printed nothing yet"),
    "succeeded": ": {} printed nothing",
    "failed": ": it failed before {} printed anything",
    **{state: f": it was {state} before {{}} printed anything" for state in ("stopped", "lost")},
}


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


def detach(script: str, source: Any, mode: DetachedMode, options: dict[str, Any], as_json: bool, quiet: bool) -> None:
    """Submit a detached job, and print its id.

    Args: options: the options of the command line.
    Raises: the exceptions of `akrunner.detached.submit`.
    """
    check_detach(options, True)
    engine = options.pop("engine")
    from akrunner.cli import lines
    from akrunner.detached import submit

    lines.check_not_stdout(options.get("output"))
    job = submit(script, source, engine=engine, mode=mode, **options)
    if (screen := options.get("observer")) is not None:
        screen.ends_display()
    submitted(job, as_json, quiet)


def submitted(job: Any, as_json: bool, quiet: bool) -> None:
    """Print the result of `run --detach`: the job's id on stdout, the commands for it on stderr."""
    with telling(f"the job was submitted, and runs: {job.id} on {job.master}"):
        if as_json:
            emit({"ok": True, "exit_code": 0, "job": job.id, "master": job.master, "name": job.name, "run": job.run})
            return
        typer.echo(job.id)
    if not quiet:
        for command in ("status", "logs", "cancel"):
            say(f"akrunner {command} {job.id[:8]} --flink-master {job.master}")
        if job.run is not None:
            say(f"run: {job.run}   (akrunner show {job.run})")


def _run_of(job: str, flink_master: str | None) -> Run | None:
    """Return the run that is meant: by its name, or, if no cluster is named, by the number of one that is kept; None: a job of Flink is.

    Raises: ConfigError: there is no such run.
    """
    from akrunner import runs
    from akrunner.runs.looking import is_number

    return runs.get(job) if runs.is_name(job) or (flink_master is None and is_number(job)) else None


def _place(job: str, flink_master: str | None) -> tuple[str, str]:
    """Return the cluster and the id of a job that is named by its id there, or by the run that is kept of it.

    Raises: ConfigError: the run is none of a detached job, or there is no such run.
    """
    found = _run_of(job, flink_master)
    if found is None:
        return master(flink_master), job
    if found.detached is None:
        raise akrunner.ConfigError(
            f"{found.id} is no detached job: `akrunner show {found.id}` shows it; who started it can end it (Ctrl-C)"
        )
    return flink_master or found.detached["master"], found.detached["job"]


def status(
    job: str | None = typer.Argument(
        None, help="The id `run --detach` printed, or its beginning; or its run (r42, last). Default: all jobs."
    ),
    flink_master: str | None = typer.Option(None, help=MASTER_HELP),
    wait: bool = typer.Option(
        False, "--wait", help="Return when the job has ended: 0 when it has succeeded, 143 when it was cancelled, else 1."
    ),
    as_json: bool = typer.Option(False, "--json", help="JSON on stdout, for machines."),
) -> None:
    """Show a detached job, or every akrunner job of a Flink cluster, and why a job failed, with the script's traceback."""
    from akrunner import detached

    if wait and job is None:
        raise akrunner.ConfigError("--wait is for one job: give its id")
    given = job
    where, job = _place(job, flink_master) if job is not None else (master(flink_master), None)
    # an empty id, as of a variable of a shell that was never set, is none
    if job is not None:
        with looking(_goes_on(given, flink_master) if wait else ""):
            jobs = [detached.wait(where, job) if wait else detached.status(where, job)]
    else:
        with looking(""):
            jobs = detached.listed(where)
    code = _code(jobs[0], wait) if job is not None else 0
    if as_json:
        found = [dataclasses.asdict(one) for one in jobs]
        # of a job that is not detached nobody but its submitter can say that it is well
        unknown = job is not None and code == 0 and jobs[0].tag is None
        head = {"ok": None if unknown else code == 0, "exit_code": code}
        emit({**head, **found[0]} if job is not None else {**head, "jobs": found})
    else:
        _show(jobs)
        if job is not None and jobs[0].ended and jobs[0].succeeded is None:
            say("akrunner: the job has ended; only its submitter knows how, as it was not submitted with --detach")
    if code:
        _end(jobs[0], code, as_json)


def _goes_on(job: str | None, flink_master: str | None) -> str:
    """Return what is said behind a signal by a command that waits for a job. Args: as the command line has them."""
    return f"the job goes on (akrunner cancel {job}{_at(flink_master)})"


def _at(flink_master: str | None) -> str:
    """Return how a command that is proposed names the cluster. Args: flink_master: the option as it was given."""
    return f" --flink-master {flink_master}" if flink_master else ""


def _code(job: Status, waited: bool) -> int:
    """Return the exit code that a job's state is. Args: waited: whether the caller has waited for the job to succeed."""
    if not (job.error or job.state == "FAILED" or (waited and job.state != "FINISHED")):
        return 0
    return EXIT_TERMINATED if job.state == "CANCELED" else EXIT_FAILED


def _end(job: Status, code: int, as_json: bool) -> None:
    """End the command, and say on stderr why the job has not succeeded. Raises: typer.Exit: always."""
    if not as_json:
        why = "Flink does not say why" if job.state == "FAILED" else f"the job is {job.state}"
        said = job.error or why
        # the class stands in front of the words, as they come from another process
        kind, _, words = said.partition("\n")[0].partition(": ")
        say(harmless(f"akrunner: {with_code(said, code_of([kind], words))}"))
    raise typer.Exit(code)


def logs(
    job: str = typer.Argument(
        ..., metavar="RUN", help="A run that was kept (r42, last), or the id `run --detach` printed, or its beginning."
    ),
    task: str | None = typer.Option(None, help="Only the lines of this task: worker:0."),
    flink_master: str | None = typer.Option(None, help=f"Of a job that is no run of this machine: {MASTER_HELP}"),
    follow: bool = typer.Option(
        False, "--follow", "-f", help="Go on until the job has ended; the exit code then says whether it has succeeded."
    ),
    as_json: bool = typer.Option(
        False, "--json", help="One JSON object on stdout, for machines: all lines, with --follow when the job has ended."
    ),
) -> None:
    """Show what the tasks of a run have printed so far, whether it runs, has ended, or is a detached job on Flink.

    Of a detached job these are the lines in the TaskManagers' logs, which also tell how far it is.
    """
    from akrunner.runs.looking import check_task

    known = _run_of(job, flink_master)
    if known is not None and known.detached is None:
        with looking(""):
            _of_run(known, task, follow, as_json)
        return
    if known is not None:
        check_task(known, task)
    where, found = _place(job, flink_master)
    with looking(_goes_on(job, flink_master) if follow else ""):
        _of_job(where, found, task, follow, as_json)


def _of_run(run: Run, task: str | None, follow: bool, as_json: bool) -> None:
    """Print the lines of a run, and, if they were followed, how it ended. Raises: typer.Exit: it has not succeeded."""
    from akrunner import runs

    printed = iter(runs.logs(run, task, follow))
    first = [line for line in [next(printed, None)] if line is not None]
    lines = _printed(itertools.chain(first, printed), as_json)
    last = runs.get(run) if follow else run
    if not first and not as_json and not follow:
        say(f"akrunner: {run.id} has no logs{_WHY_NONE[run.state].format(task or 'its tasks')} (akrunner show {run.id})")
    code = 0 if not follow or last.state == "succeeded" else EXIT_TERMINATED if last.state == "stopped" else EXIT_FAILED
    if as_json:
        emit({"ok": code == 0, "exit_code": code, "run": run.id, "state": last.state, "lines": lines})
    elif code:
        say(
            harmless(
                f"akrunner: {run.id} {last.state}: {with_code(last.message or last.error, last.short_code) or 'its process is gone'}"
            )
        )
    if code:
        raise typer.Exit(code)


def _printed(lines: Iterable[str], as_json: bool) -> list[str]:
    """Print lines as they come. Returns: them, if they are for JSON instead."""
    kept = []
    for line in lines:
        if as_json:
            kept.append(line)
        else:
            typer.echo(harmless(line))
    return kept


def _of_job(where: str, job: str, task: str | None, follow: bool, as_json: bool) -> None:
    """Print the lines of a detached job, and, if they were followed, how it ended. Raises: typer.Exit: it has not succeeded."""
    from akrunner import detached

    lines: list[str] = []
    begin = f"[{task}] " if task is not None else ""
    # by its whole id from now on: another job's may begin in the same way
    found = detached.status(where, job) if follow else None
    try:
        for line in detached.logs(where, found or job, follow):
            if not line.startswith(begin):
                continue
            lines += _printed([line.removeprefix(begin)], as_json)
        # the lines end when the job has ended; how it ended is asked for
        last = detached.wait(where, found) if found is not None else None
    except akrunner.JobManagerLostError as e:
        e.lines = lines
        raise
    code = _code(last, True) if last is not None else 0
    if as_json:
        emit({"ok": code == 0, "exit_code": code, **(dataclasses.asdict(last) if last is not None else {}), "lines": lines})
    if last is not None and code:
        _end(last, code, as_json)


def cancel(
    job: str = typer.Argument(..., help="The id `run --detach` printed, or its beginning; or its run (r42, last)."),
    flink_master: str | None = typer.Option(None, help=MASTER_HELP),
    as_json: bool = JSON,
) -> None:
    """End a detached job and all its processes, and wait until it has ended."""
    from akrunner import detached

    where, found = _place(job, flink_master)
    with looking(f"`akrunner status {job}{_at(flink_master)}` says whether the job has ended"):
        ended = detached.cancel(where, found)
    with telling(f"the job was ended: {ended.id} {ended.state}"):
        if as_json:
            emit({"ok": True, "exit_code": 0, **dataclasses.asdict(ended)})
            return
        typer.echo(f"{ended.id} {ended.state}")


def _show(jobs: list[Status]) -> None:
    """Print a line for each job, never cut to the terminal's width, so that a shell can split it into fields."""
    for one in jobs:
        typer.echo(
            f"{one.id}  {one.state:<9}  {one.seconds:7.0f} s  {one.running} of {one.tasks} subtasks run  {printable(one.name)}"
        )
