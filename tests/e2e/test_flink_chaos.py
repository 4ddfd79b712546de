"""A few seeds of the chaos harness on the cluster that tests share; `scripts/chaos --engine flink` runs as many as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.engines.flink.cluster import Cluster
from tests.chaos.figures import figures
from tests.chaos.flink import Ground, many_on_flink
from tests.chaos.harness import Place
from tests.chaos.plan import Plan
from tests.conftest import FLINK

#: of those that leave the cluster as it was, and have room beside what other tests keep there, the first for each victim
FITTING = [plan for plan in map(Plan.on_flink, range(200)) if not plan.lonely and len(plan.tasks) < 4]
FEW = [
    next(plan for plan in FITTING if plan.kills[0].target == target)
    for target in ("host", "client", "java", "agent", "chief-0", "agentguard")
]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_few_seeds_on_flink(tmp_path: Path, flink_cluster: Cluster) -> None:
    reports = many_on_flink(FEW, Place(tmp_path), Ground(flink_cluster, str(FLINK)), jobs=2)
    wrong = [f"seed {report.plan.seed}: {report.wrong} {report.plan}" for report in reports if report.wrong]
    assert not wrong, "\n".join(wrong)
    assert figures(reports)["kills that reached somebody"] >= len(FEW) / 3
