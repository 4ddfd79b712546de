"""A hundred seeds of the harness; `scripts/chaos` runs as many as one likes."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from tests.chaos.figures import figures, many
from tests.chaos.harness import Place, Report, Trial
from tests.chaos.plan import FLINK as ON_FLINK
from tests.chaos.plan import MODES, SHARED, Plan

SEEDS = range(100)


#: seeds of one test; its time is well below that after which pytest prints every thread's stack
PART = 20


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", SEEDS[::PART])
def test_a_hundred_seeds(tmp_path: Path, first: int) -> None:
    reports: list[Report] = many(
        [Plan.of(seed) for seed in SEEDS[first : first + PART]], functools.partial(Trial, Place(tmp_path)), jobs=3
    )
    wrong = [f"seed {report.plan.seed}: {report.wrong} {report.plan}" for report in reports if report.wrong]
    assert not wrong, "\n".join(wrong)
    told = figures(reports)
    assert told["kills that reached somebody"] > PART / 3


def test_seeds_are_plans_of_all_kinds() -> None:
    plans = [Plan.of(seed) for seed in SEEDS]
    assert plans == [Plan.of(seed) for seed in SEEDS]
    assert {plan.mode for plan in plans} == set(MODES)
    assert {plan.moment for plan in plans} == {"start", "spawn", "main", "done"}
    targets = {kill.target.partition("-")[0] for plan in plans for kill in plan.kills}
    assert targets == {"host", "guard", "chief", "worker", "ps", "evaluator"}
    assert {kill.signal for plan in plans for kill in plan.kills} == {"KILL", "TERM", "STOP", "SEGV"}
    pairs = {frozenset(kill.target.partition("-")[0] for kill in plan.kills) for plan in plans if len(plan.kills) == 2}
    assert {frozenset(("host", "guard")), frozenset(("host", "chief")), frozenset(("guard", "chief"))} <= pairs


def test_seeds_on_flink_are_plans_of_all_kinds() -> None:
    plans = [Plan.on_flink(seed) for seed in SEEDS]
    assert plans == [Plan.on_flink(seed) for seed in SEEDS]
    assert {plan.mode for plan in plans} == set(MODES)
    targets = {kill.target.partition("-")[0] for plan in plans for kill in plan.kills}
    assert targets >= {*ON_FLINK, "chief", "worker", "ps"}
    assert {target for plan in plans if plan.lonely for kill in plan.kills for target in [kill.target]} >= set(SHARED)
