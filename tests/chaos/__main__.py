"""`python -m tests.chaos --seeds 1000`: many seeds, some at a time, and what they came to. See docs/reliability.md."""

from __future__ import annotations

import argparse
import contextlib
import functools
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.chaos.figures import Told, figures, many
from tests.chaos.flink import many_on_flink, own_cluster, swept
from tests.chaos.harness import Place, Report, Trial
from tests.chaos.plan import Plan

#: some plans -> what they came to
Runs = Callable[[Sequence[Plan]], list[Report]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__)
    parser.add_argument(
        "--engine", choices=("local", "flink"), default="local", help="flink: one cluster, started for all seeds"
    )
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=None, help="busy at a time; 3, on Flink 2")
    parser.add_argument("--verbose", action="store_true", help="say what each came to")
    parser.add_argument("--minutes", type=float, default=None, help="no further seed after so long")
    given = parser.parse_args()
    # what is started here goes with it
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    local = given.engine == "local"
    jobs = given.jobs or (3 if local else 2)
    size = jobs * 40
    reports: list[Report] = []
    say = all_told if given.verbose else told
    with _on_this_machine(folder, jobs, say) if local else _on_flink(folder, jobs, say) as run:
        for at in range(given.first, given.first + given.seeds, size):
            if given.minutes is not None and time.monotonic() - began > given.minutes * 60:
                break
            seeds = range(at, min(at + size, given.first + given.seeds))
            reports += run([Plan.of(seed) if local else Plan.on_flink(seed) for seed in seeds])
            wrong = sum(bool(report.wrong) for report in reports)
            print(f"{len(reports)} seeds, {time.monotonic() - began:.0f} s, {wrong} wrong", flush=True)
    for name, value in figures(reports).items():
        print(f"{name}: {value}")
    if any(report.wrong for report in reports):
        print(f"what is there of them: {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


@contextlib.contextmanager
def _on_this_machine(folder: Path, jobs: int, say: Told) -> Iterator[Runs]:
    trial = functools.partial(Trial, Place(folder))
    yield lambda plans: many(plans, trial, jobs, say)


@contextlib.contextmanager
def _on_flink(folder: Path, jobs: int, say: Told) -> Iterator[Runs]:
    place = Place(folder)
    with own_cluster(folder) as ground:
        yield lambda plans: swept(many_on_flink(plans, place, ground, jobs, say), place, ground)


def told(report: Report) -> None:
    """Say what was wrong, as soon as it is known."""
    if report.wrong:
        print(f"seed {report.plan.seed}: {report.plan}\n    code {report.code}\n    " + "\n    ".join(report.wrong), flush=True)


def all_told(report: Report) -> None:
    """Say what was done, and what it came to."""
    kills = ", ".join(f"{kill.signal} to {kill.target}" for kill in report.plan.kills)
    hit = f"{report.hit} of {len(report.plan.kills)} hit, exit code {report.code}"
    print(f"seed {report.plan.seed}: {report.plan.mode}, {report.plan.moment}: {kills}: {hit}", flush=True)
    if report.code and not report.hit:
        print("    failed by itself: " + report.said, flush=True)
    told(report)


if __name__ == "__main__":
    sys.exit(main())
