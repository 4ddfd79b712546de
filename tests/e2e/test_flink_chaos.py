"""A few seeds of the chaos harness on the cluster that tests share; `scripts/chaos --engine flink` runs as many as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.engines.flink.host.cluster import Cluster
from tests.chaos.flink import Ground, many_on_flink
from tests.chaos.harness import Place
from tests.chaos.plan import Plan
from tests.conftest import FLINK

#: they leave the cluster as it was, have room beside what other tests keep there, and hit a pair each: each of those who may be hit, once
FEW = [Plan.on_flink(seed) for seed in (7, 70, 141)]


def test_everybody_is_hit() -> None:
    assert not any(plan.lonely for plan in FEW) and max(len(plan.tasks) for plan in FEW) < 4
    targets = sorted(kill.target for plan in FEW for kill in plan.kills)
    assert targets == ["agent", "agentguard", "chief-0", "client", "host", "java"]
    assert len({plan.mode for plan in FEW}) == len({plan.moment for plan in FEW}) == len(FEW)


@pytest.mark.slow
@pytest.mark.cold
@pytest.mark.timeout(600)
def test_a_few_seeds_on_flink(tmp_path: Path, flink_cluster: Cluster) -> None:
    reports = many_on_flink(FEW, Place(tmp_path), Ground(flink_cluster, str(FLINK)), jobs=2)
    wrong = [f"seed {report.plan.seed}: {report.wrong} {report.plan}" for report in reports if report.wrong]
    assert not wrong, "\n".join(wrong)
    # the second of a pair may come too late
    assert all(report.hit for report in reports), [
        (report.plan.seed, report.hit, report.code, report.said) for report in reports
    ]
