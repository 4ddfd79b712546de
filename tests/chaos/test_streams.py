"""A few kills of jobs that read and write streams; `python -m tests.chaos.streams` does as many as one likes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests import hosts
from tests.chaos.streams import Plan, run
from tests.conftest import NOT_RUN


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "plan",
    [Plan("kafka", exactly_once=True, kills=3, seed=1, seconds=12.0), Plan("files", kills=2, seed=2)],
    ids=["kafka, exactly once", "files"],
)
def test_no_message_is_lost(plan: Plan, tmp_path: Path) -> None:
    if importlib.util.find_spec("confluent_kafka") is None:
        pytest.skip(NOT_RUN + "Kafka: pip install confluent-kafka")
    # killed at moments of a job, which imports nothing of its host's
    report = run(plan, tmp_path, hosts)
    assert not report.ended and not report.lost and not report.left, report
    assert sum(report.killed.values()) >= plan.kills and report.written > 0
    assert not plan.exactly_once or not report.twice, report
