"""Runs that were kept: what ran, how it ended, what it printed; and to run it again.

    >>> akrunner.runs.listed(failed=True)
    >>> run = akrunner.runs.get("last")
    >>> run.state, run.metrics, run.arguments
    >>> print(*run.logs("worker:0"), sep="\\n")
    >>> akrunner.runs.rerun(run, num_workers=4)
    >>> akrunner.runs.report(run, "report.html")

`akrunner runs`, `show`, `report`, `logs` and `rerun` are the same on the command line.
"""

from typing import TYPE_CHECKING, Any

from akrunner.history.places import is_name
from akrunner.runs.comparing import Difference, diff
from akrunner.runs.looking import Run, get, listed, logs, prune
from akrunner.runs.reporting import report

if TYPE_CHECKING:
    from akrunner.runs.repeating import rerun

__all__ = ["Difference", "Run", "diff", "get", "is_name", "listed", "logs", "prune", "report", "rerun"]


def __getattr__(name: str) -> Any:
    """Import what runs jobs when it is first used: who only looks at runs needs none of it."""
    if name != "rerun":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from akrunner.runs.repeating import rerun

    return rerun
