"""The list of runs, as a page."""

from __future__ import annotations

import datetime
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from akrunner.history.record import RUNNING, Record
from akrunner.history.words import number, ranked, took
from akrunner.reports import facts
from akrunner.reports.page import Report, rendered

#: characters of what stands last in a line
_MOST = 200


@dataclass(frozen=True)
class Row:
    """One run, as the list shows it."""

    id: str
    state: str
    began: str
    took: str
    what: str
    rows: str
    last: str


def listing(runs: Sequence[tuple[Record, tuple[int, int] | None]], failed: bool) -> Report:
    """Return the list.

    Args:
        runs: the runs, each with its rows in and out, None: not known.
        failed: whether only those are wanted that have not succeeded.
    """
    rows = [_row(run, counted) for run, counted in runs]
    body = rendered("runs.html", rows=rows, machine=socket.gethostname(), failed=failed)
    return Report("akrunner: runs", body, [], again=any(run.state == RUNNING for run, _ in runs))


def _row(run: Record, counted: tuple[int, int] | None) -> Row:
    return Row(
        run.id,
        run.state,
        f"{datetime.datetime.fromtimestamp(run.began):%Y-%m-%d %H:%M}",
        took(run.seconds),
        facts.name_of(run) + ("" if run.engine == "local" else f" ({run.engine})"),
        f"{counted[0]:,}" if counted is not None else "",
        _cut(_last(run)),
    )


def _cut(words: str) -> str:
    return words if len(words) <= _MOST else f"{words[: _MOST - 1]}…"


def _last(run: Record) -> str:
    """Return what says most about a run's end: why it failed, or the metrics that its first task reported last."""
    if run.error:
        return run.message.partition("\n")[0] or run.error
    told = next(iter(run.metrics.values()), {})
    return " ".join(f"{name}={number(told[name])}" for name in ranked(told))
