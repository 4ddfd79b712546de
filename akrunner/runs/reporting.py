"""Writes the report of a run that was kept."""

from __future__ import annotations

import os

from akrunner.checks import check_path
from akrunner.reports import page
from akrunner.runs.fetching import fetched
from akrunner.runs.looking import Run, get


def report(run: str | Run, output: str | os.PathLike[str] | None = None) -> str:
    """Write a page about a run: one HTML file that needs no network. It has why the run failed, the learning curves, what each task did
    when, rows, memory and processor over time, the input doctor's verdict, warnings and logs. Needs akrunner's extra `report`.

    Args:
        run: as for `akrunner.runs.get`; of one that still runs the page says how far it is; of a detached job it has what its
            cluster still knows, which is kept from then on.
        output: the file; an older page there is replaced, another file is not; None: report-r42.html in the current directory, for the run r42.
    Returns:
        the path of the file.
    Raises:
        ConfigError: there is no such run, the file cannot be written, or the extra is not installed.
    """
    found = fetched(get(run))
    path = page.check_output(check_path("output", output) if output is not None else f"report-{found.id}.html")
    page.write(found, found.path, path)
    return path
