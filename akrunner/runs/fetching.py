"""Fetches what the cluster of a detached job knows of it, so that its run has what any other run has."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil

from akrunner.errors import ConfigError, JobManagerLostError
from akrunner.history import record, series
from akrunner.history.logs import FOLDER, LogCopy
from akrunner.history.record import Record
from akrunner.history.reported import latest
from akrunner.runs.looking import Run

#: fields of a record that the host of the job knows
_FIELDS = ("ended", "stats", "results", "metrics", "warnings", "failure", "others")


def fetched(run: Run) -> Run:
    """Return a run as it is, that of a detached job with what its cluster still has of it: logs, curves, the course of the tasks.

    It is kept with the run. A cluster that is gone, and a disk that is full, change nothing.
    """
    if run.detached is None:
        return run
    from akrunner.detached import kept
    from akrunner.detached.lines import whole

    try:
        told = kept.apart(whole(run.detached["master"], run.detached["job"], False))
    except (ConfigError, JobManagerLostError):
        return run
    known = {name: told.record[name] for name in _FIELDS if name in told.record}
    # what was fetched before stays where there is nothing to put in its place
    with contextlib.suppress(OSError):
        if told.logs:
            shutil.rmtree(os.path.join(run.path, FOLDER), ignore_errors=True)
        for task, lines in told.logs.items():
            copy = LogCopy(run.path, task)
            copy.write("".join(f"{line}\n" for line in lines).encode())
            copy.close()
        for name, lines in told.files.items():
            series.put(run.path, name, lines)
        run = dataclasses.replace(run, **{"metrics": latest(run.reports), **known})
        if told.record:
            record.write(run.path, Record(**{one.name: getattr(run, one.name) for one in dataclasses.fields(Record)}))
    return run
