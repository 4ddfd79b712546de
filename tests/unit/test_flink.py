"""Jobs inside a PyFlink program: which options they take."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner import flink
from akrunner.errors import ConfigError


@pytest.mark.parametrize("name", ["tables", "output_tables", "project", "output", "select", "input_schema", "follow"])
def test_an_option_that_means_nothing_in_a_program_is_refused(name: str) -> None:
    wrong: Any = {name: None}
    with pytest.raises(
        TypeError, match=rf"^akrunner.flink.stream: {name}= means nothing for flink.stream: rows come from a Table"
    ):
        flink.stream("score.py", None, output_schema="a bigint", **wrong)


def test_a_misspelt_option_is_told_the_right_one() -> None:
    for wrong, words in (
        ({"num_worker": 2}, "there is no option 'num_worker' for flink.run; did you mean 'num_workers'"),
        ({"model_out": "m.zip"}, "model_out= means nothing for flink.run: it is an option of train"),
        (
            {"max_restarts": 1},
            "max_restarts= means nothing for flink.run: it is an option of run, train, stream, flink.stream, flink.predict, pai",
        ),
    ):
        options: Any = {"output_schema": "a bigint", **wrong}
        with pytest.raises(TypeError, match=words):
            flink.run("score.py", None, **options)


def test_what_is_an_option_goes_on_to_the_table() -> None:
    with pytest.raises(ConfigError, match="source must be a PyFlink Table or DataStream, not NoneType"):
        flink.run("score.py", None, output_schema="a bigint", num_workers=2, user_params={"a": 1}, stall_timeout=5)
