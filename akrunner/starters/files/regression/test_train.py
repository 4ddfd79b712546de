"""Run the job once, as `job.toml` says, and ask how far its model is off for flats that it has not seen."""

from pathlib import Path

import akrunner

JOB = Path(__file__).parent / "job.toml"


def test_it_is_much_nearer_than_a_guess(tmp_path):
    result = akrunner.train(JOB, model_out=tmp_path / "model.zip")
    told = result.stats.reports[-1]
    # euros a month, for a guess that is the same for every flat, and for the model
    assert told["test_error"] < 0.4 * told["error_of_the_mean"]
