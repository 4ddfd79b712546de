"""What both ends of a job's service agree on besides its messages: gRPC without a word on the terminal, and when an end counts as gone."""

from __future__ import annotations

import os

import pytest

from akrunner.engines.flink import control
from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.connections import SILENCE_SECONDS


def test_grpc_is_quiet_within_the_block_and_what_it_was_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRPC_VERBOSITY", raising=False)
    with control.quiet():
        assert os.environ["GRPC_VERBOSITY"] == "NONE"
    assert "GRPC_VERBOSITY" not in os.environ


def test_it_is_what_it_was_after_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRPC_VERBOSITY", raising=False)
    with pytest.raises(ValueError, match="no such port"), control.quiet():
        raise ValueError("no such port")
    assert "GRPC_VERBOSITY" not in os.environ


@pytest.mark.parametrize("said", ["DEBUG", ""])
def test_a_user_who_wants_to_hear_grpc_does(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRPC_VERBOSITY", said)
    with control.quiet():
        assert os.environ["GRPC_VERBOSITY"] == said
    assert os.environ["GRPC_VERBOSITY"] == said


def test_the_variable_may_be_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRPC_VERBOSITY", raising=False)
    with control.quiet():
        del os.environ["GRPC_VERBOSITY"]
    assert "GRPC_VERBOSITY" not in os.environ


def test_the_library_is_grpc_imported_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRPC_VERBOSITY", raising=False)
    assert control.library().__name__ == "grpc" and "GRPC_VERBOSITY" not in os.environ


def test_a_silent_end_counts_as_gone_within_the_seconds_of_a_connection() -> None:
    options = dict(control.keepalive())
    assert len(options) == len(control.keepalive())
    waits = options["grpc.keepalive_time_ms"] + options["grpc.keepalive_timeout_ms"]
    assert waits == 1000 * SILENCE_SECONDS and options["grpc.keepalive_timeout_ms"] > 0
    # a stream on which nobody says anything for hours goes on
    assert options["grpc.keepalive_permit_without_calls"] == 1 and options["grpc.http2.max_pings_without_data"] == 0
    assert options["grpc.http2.min_recv_ping_interval_without_data_ms"] < options["grpc.keepalive_time_ms"]


def test_the_method_is_the_one_that_is_declared() -> None:
    service = pb.DESCRIPTOR.services_by_name["Control"]
    (method,) = service.methods
    assert control.METHOD == f"/{service.full_name}/{method.name}"
    assert (method.input_type.name, method.output_type.name) == ("Said", "Told")


def test_names_of_metadata_are_such_that_grpc_takes_them() -> None:
    for name in (control.NONCE, control.PROOF):
        assert name == name.lower() and not name.endswith("-bin") and not name.startswith("grpc-")
    assert control.NONCE != control.PROOF and control.AGENT_END != control.HOST_END
