"""Run the job once, as `job.toml` says, and ask whether it has learned from the rows, and has noticed that the machine changed."""

from pathlib import Path

import akrunner

JOB = Path(__file__).parent / "job.toml"


def test_it_learns_and_notices_a_change():
    with akrunner.stream(JOB) as job:
        alarms = [row["id"] for batch in job for row in batch.to_pylist()]
    losses = [report["loss"] for report in job.stats.reports]
    # the mean square of what it is off by, in the first ten batches and in the last ten
    assert sum(losses[-10:]) < 0.05 * sum(losses[:10])
    # from row 3000 on, the machine takes more power
    assert alarms and 3000 <= min(alarms) and max(alarms) < 3500
