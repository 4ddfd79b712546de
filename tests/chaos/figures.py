"""Many seeds, some at a time, and what they came to."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.chaos.harness import Report, Trial
from tests.chaos.plan import Plan

#: what can be wrong -> how its words begin
KINDS = {
    "hangs": "hang", "orphans": "orphans", "wrong successes": "wrong success", "leftovers": ("left over", "nothing but the next start"),
    "Flink jobs left running": "Flink runs", "TaskManagers lost": "the cluster has lost",
    "partial outputs": ("partial output", "the file that was there before"), "foreign words": ("a traceback", "exit code", "failed without"),
}  # fmt: skip
Told = Callable[[Report], None] | None
#: who runs a plan, in its turn
Made = Callable[[Plan, threading.Semaphore], Trial]


def many(plans: Sequence[Plan], trial: Made, jobs: int, told: Told = None, waiting: int = 4) -> list[Report]:
    """Run them. Args: jobs: that may be busy at a time; waiting: how many there may be for each of these, but for it waiting for their ends; told:
    called with each report as it comes."""
    turns = threading.Semaphore(jobs)

    def one(plan: Plan) -> Report:
        report = trial(plan, turns).run()
        if told is not None:
            told(report)
        return report

    with ThreadPoolExecutor(jobs * waiting) as pool:
        return list(pool.map(one, plans))


def figures(reports: Sequence[Report]) -> dict[str, Any]:
    """What docs/reliability.md says."""
    wrong = [words for report in reports for words in report.wrong]
    counted = {name: sum(words.startswith(starts) for words in wrong) for name, starts in KINDS.items()}
    assert sum(counted.values()) == len(wrong), wrong
    pairs = collections.Counter("+".join(sorted(_kind(kill.target) for kill in r.plan.kills)) for r in reports)
    return {
        "seeds": len(reports),
        "kills tried": sum(len(report.plan.kills) for report in reports),
        "kills that reached somebody": sum(report.hit for report in reports),
        "jobs that succeeded nevertheless": sum(report.code == 0 for report in reports),
        "jobs that failed though nobody was hit": sum(report.code not in (0, None) and not report.hit for report in reports),
        "cleaned up by the next start": sum(report.next_start for report in reports),
        **counted,
        "seconds to the host's end": _shares([r.seconds for r in reports if r.seconds is not None]),
        "seconds to the last process's end": _shares([r.all_seconds for r in reports if r.all_seconds is not None]),
        "who": dict(pairs.most_common()),
        "modes": dict(collections.Counter(report.plan.mode for report in reports).most_common()),
    }


def _kind(target: str) -> str:
    return target.partition("-")[0]


def _shares(seconds: list[float]) -> str:
    if not seconds:
        return "-"
    ordered = sorted(seconds)
    return ", ".join(f"p{share} {ordered[min(len(ordered) - 1, len(ordered) * share // 100)]:.2f}" for share in (50, 90, 99))
