"""Jobs inside a PyFlink program: which options they take."""

from __future__ import annotations

import pytest

from akrunner import flink
from akrunner.errors import ConfigError


@pytest.mark.parametrize("name", ["tables", "output_tables", "project", "output", "select", "input_schema", "follow"])
def test_an_option_that_means_nothing_in_a_program_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{name}= means nothing here: .*akrunner\.stream$"):
        flink.stream("score.py", None, output_schema="a bigint", **{name: None})


def test_a_misspelt_option_is_told_the_right_one() -> None:
    with pytest.raises(ConfigError, match="there is no option 'num_worker' for run; did you mean 'num_workers'"):
        flink.run("score.py", None, output_schema="a bigint", num_worker=2)
    # of akrunner.train
    with pytest.raises(ConfigError, match="model_out= means nothing for run: it is an option of train"):
        flink.run("score.py", None, output_schema="a bigint", model_out="m.zip")


def test_what_is_an_option_goes_on_to_the_table() -> None:
    with pytest.raises(ConfigError, match="source must be a PyFlink Table or DataStream, not NoneType"):
        flink.run("score.py", None, output_schema="a bigint", num_workers=2, user_params={"a": 1}, stall_timeout=5)
