"""Keeps the runs of jobs (`akrunner.history`): what they are when they begin, and how a stream's ends."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import TypeVar

from akrunner.checks import check_path
from akrunner.engines.base import Engine, Outcome
from akrunner.errors import ConfigError
from akrunner.history.keeping import VARIABLE, Keeping, Page, wanted
from akrunner.launch.interpreters import Interpreter
from akrunner.prepare.job import Prepared
from akrunner.spec import JobSpec

Ended = TypeVar("Ended", bound=Outcome)


def page_of(report: str | os.PathLike[str] | None, keep_run: bool | None) -> Page | None:
    """Return what writes the page of a run when it has ended; None if none is wanted.

    Args: report, keep_run: what the caller of the job says of the page, and of whether its run is kept.
    Raises: ConfigError: there can be no such page.
    """
    if report is None:
        return None
    # few jobs have a page
    from akrunner.reports import page

    path = page.check_output(check_path("report", report), "report")
    if not wanted(keep_run):
        raise ConfigError(
            f"report: the page is made from what is kept of a run: leave keep_run=False (--no-keep-run, {VARIABLE}=0) out"
        )
    page.check_extra()
    # the directory may be another one when the job has ended
    whole = os.path.abspath(path)
    return lambda record, folder: page.write(record, folder, whole)


def begun(run: Keeping, prepared: Prepared, engine: Engine) -> Prepared:
    """Return a prepared job as one whose run is kept from now on, if it is to be kept."""
    job = kept_job(run, prepared.job, prepared.job.script.name, engine, prepared.interpreter)
    return dataclasses.replace(prepared, job=job)


def kept_job(run: Keeping, job: JobSpec, script: str, engine: Engine, interpreter: Interpreter | None) -> JobSpec:
    """Return a job as one whose run is kept from now on. Args: script: the name of its script, or model."""
    versions = {"python": job.python}
    if interpreter is not None:
        versions = {"python": f"{'.'.join(map(str, interpreter.python))} ({job.python})", "tensorflow": interpreter.tensorflow}
    told = run.begin(script, [task.name for task in job.cluster.tasks], engine.name, versions)
    return dataclasses.replace(job, kept=run.path, hparams=run.hparams, notes=(*job.notes, *told))


def kept_to_its_end(run: Keeping, job: Callable[[], Ended], output: str | os.PathLike[str] | None = None) -> Ended:
    """Run a stream's job, and keep how it ends. Returns: what the job returns. Raises: what it raises."""
    with run:
        outcome = job()
        run.succeed(outcome, os.fspath(output) if output is not None else None)
        return outcome
