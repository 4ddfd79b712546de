"""`python -m tests.chaos --seeds 1000`: many seeds, some at a time, and what they came to. See docs/reliability.md."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import List

from tests.chaos.figures import figures, many
from tests.chaos.harness import Place, Report
from tests.chaos.plan import Plan


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
    size = given.jobs * 40
    place = Place(folder)
    for at in range(given.first, given.first + given.seeds, size):
        if given.minutes is not None and time.monotonic() - began > given.minutes * 60:
            break
        seeds = range(at, min(at + size, given.first + given.seeds))
        reports += many([Plan.of(seed) for seed in seeds], place, given.jobs, told)
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
