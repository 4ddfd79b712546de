"""Who takes the rows of a job as its last part."""

from __future__ import annotations

import pytest

from akrunner.engines.base import Stats
from akrunner.errors import WriteError
from akrunner.running.handing import hand_over, handed_over
from akrunner.running.result import Result

RESULT = Result(None, None, (), Stats(1.0, 0.5, 0.1, 0.2, 1, 2, 3, 4, 0.0, 0.0, 0.0, "unknown", (1,)), None)


def test_rows_go_to_the_command_around_the_job_alone() -> None:
    came: list[Result] = []
    hand_over(RESULT)
    with handed_over(came.append):
        with handed_over(None):
            hand_over(RESULT)
        assert came == []
        hand_over(RESULT)
    hand_over(RESULT)
    assert came == [RESULT]


def test_a_command_that_cannot_take_them_fails_the_job() -> None:
    def full(result: Result) -> None:
        raise WriteError("the disk is full")

    with pytest.raises(WriteError, match="the disk is full"), handed_over(full):
        hand_over(RESULT)
