"""Why a task cannot run there: each reason is known at both ends."""

from __future__ import annotations

import pyarrow as pa
import pytest

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink import reasons
from akrunner.errors import DataError, JobError, ReadError


def test_each_reason_has_its_exception() -> None:
    assert set(reasons._ERRORS) == set(pb.Reason.values())
    for reason, kind in reasons._ERRORS.items():
        made = reasons.error_of(reason, "no")
        assert type(made) is kind and str(made) == "no"


def test_a_reason_of_a_newer_agent_is_a_failed_job() -> None:
    assert type(reasons.error_of(99, "no")) is JobError


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DataError("no"), "no"),
        (ReadError("no"), "no"),
        (JobError("no"), "JobError: no"),
        (pa.ArrowInvalid("no"), "ArrowInvalid: no"),
    ],
)
def test_what_an_agent_refuses_is_the_same_error_in_the_host(error: Exception, words: str) -> None:
    said = reasons.refused(error, 100)
    made = reasons.error_of(said.reason, said.words)
    assert str(made) == words and type(made) is (type(error) if isinstance(error, (DataError, ReadError)) else JobError)
    assert len(reasons.refused(DataError("x" * 200), 100).words) == 100
