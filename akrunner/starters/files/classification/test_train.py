"""Run the job once, as `job.toml` says, and ask how good its model is at flowers that it has not seen."""

from pathlib import Path

import akrunner

JOB = Path(__file__).parent / "job.toml"


def test_it_knows_flowers_that_it_has_not_seen(tmp_path):
    result = akrunner.train(JOB, model_out=tmp_path / "model.zip")
    # whoever guesses is right in one of three
    assert result.stats.reports[-1]["test_accuracy"] > 0.85
