"""Run the job once, as `job.toml` says, and ask how far its model is off for ratings that it has not seen."""

from pathlib import Path

import akrunner

JOB = Path(__file__).parent / "job.toml"


def test_it_is_much_nearer_than_a_guess(tmp_path):
    result = akrunner.train(JOB, model_out=tmp_path / "model.zip")
    # in stars; whoever guesses the mean is off by 1.03
    assert result.stats.reports[-1]["test_error"] < 0.7
