"""`python -m tests.chaos --seeds 1000`: many seeds, some at a time, and what they came to. See docs/reliability.md."""

from __future__ import annotations

import argparse
import collections
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List, Sequence

from tests.chaos.harness import Place, Report, run
from tests.chaos.plan import Plan

#: what can be wrong -> how its words begin
KINDS = {
    "hangs": "hang", "orphans": "orphans", "wrong successes": "wrong success", "leftovers": ("left over", "nothing but the next start"),
    "partial outputs": ("partial output", "the file that was there before"), "foreign words": ("a traceback", "exit code", "failed without"),
}  # fmt: skip


def many(seeds: Sequence[int], folder: Path, jobs: int, told: Any = None) -> List[Report]:
    """Run them. Args: jobs: at a time; told: called with each report as it comes."""
    place = Place(folder)

    def one(seed: int) -> Report:
        report = run(Plan.of(seed), place)
        if told is not None:
            told(report)
        return report

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, seeds))


def figures(reports: Sequence[Report]) -> Dict[str, Any]:
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
        "cleaned up by the next start": sum(report.next_start for report in reports),
        **counted,
        "seconds to the host's end": _shares([r.seconds for r in reports if r.seconds is not None]),
        "seconds to the last process's end": _shares([r.all_seconds for r in reports if r.all_seconds is not None]),
        "who": dict(pairs.most_common()),
        "modes": dict(collections.Counter(report.plan.mode for report in reports).most_common()),
    }


def _kind(target: str) -> str:
    return target.partition("-")[0]


def _shares(seconds: List[float]) -> str:
    if not seconds:
        return "-"
    ordered = sorted(seconds)
    return ", ".join(f"p{share} {ordered[min(len(ordered) - 1, len(ordered) * share // 100)]:.2f}" for share in (50, 90, 99))


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=3, help="at a time")
    parser.add_argument("--minutes", type=float, default=None, help="no further seed after so long")
    given = parser.parse_args()
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))

    def told(report: Report) -> None:
        if report.wrong:
            print(
                f"seed {report.plan.seed}: {report.plan}\n    code {report.code}\n    " + "\n    ".join(report.wrong),
                flush=True,
            )

    reports: List[Report] = []
    size = max(given.jobs * 10, 1)
    for at in range(given.first, given.first + given.seeds, size):
        if given.minutes is not None and time.monotonic() - began > given.minutes * 60:
            break
        part = folder / str(at)
        part.mkdir()
        reports += many(range(at, min(at + size, given.first + given.seeds)), part, given.jobs, told)
        print(
            f"{len(reports)} seeds, {time.monotonic() - began:.0f} s, {sum(bool(r.wrong) for r in reports)} wrong", flush=True
        )
    for name, value in figures(reports).items():
        print(f"{name}: {value}")
    if any(report.wrong for report in reports):
        print(f"what is there of them: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
