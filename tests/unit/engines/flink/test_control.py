"""What both ends of a job's service agree on besides its messages: gRPC without a word on the terminal, and when an end counts as gone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

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


def test_users_are_told_how_long_a_message_may_be() -> None:
    page = (Path(__file__).parents[4] / "docs" / "security.md").read_text()
    agents, hosts = control.AGENT_MESSAGE_LIMIT >> 20, control.HOST_MESSAGE_LIMIT >> 20
    assert f"| Flink: a message of an agent; of its host | {agents} MiB; {hosts} MiB (" in page


def test_names_of_metadata_are_such_that_grpc_takes_them() -> None:
    for name in (control.NONCE, control.PROOF):
        assert name == name.lower() and not name.endswith("-bin") and not name.startswith("grpc-")
    assert control.NONCE != control.PROOF and control.AGENT_END != control.HOST_END


def _of_proto(text: str) -> set[tuple[str, str, int]]:
    """Return (message or enum, field, number) of each line of a .proto that declares one."""
    within: list[str] = []
    found = set()
    for line in (line.partition("//")[0].strip() for line in text.splitlines()):
        if line.endswith("{"):
            kind, name = line.split()[:2]
            within.append("" if kind == "oneof" else name)
        elif line == "}":
            within.pop()
        elif field := re.fullmatch(r".*?(\w+) = (\d+);", line):
            found.add((".".join(filter(None, within)), field[1], int(field[2])))
    return found


def _of_code(messages: Iterable[Any], enums: Iterable[Any], above: str = "") -> Iterator[tuple[str, str, int]]:
    """Yield the same of what scripts/gen-proto has written."""
    for enum in enums:
        yield from ((above + enum.name, value.name, value.number) for value in enum.values)
    for message in messages:
        # the type of a map is a message of protobuf's own
        if not message.GetOptions().map_entry:
            yield from ((above + message.name, field.name, field.number) for field in message.fields)
            yield from _of_code(message.nested_types, message.enum_types, f"{above}{message.name}.")


def test_the_messages_are_those_of_the_proto() -> None:
    file = pb.DESCRIPTOR
    found = set(_of_code(file.message_types_by_name.values(), file.enum_types_by_name.values()))
    folder = Path(control.__file__).parent
    assert found == _of_proto((folder / "control.proto").read_text()), "run scripts/gen-proto"
    for _, name, _ in found:
        assert re.search(rf"\b{name}\b", (folder / "control_pb2.pyi").read_text()), "run scripts/gen-proto"
    assert f"/{file.services_by_name['Control'].full_name}/{file.services_by_name['Control'].methods[0].name}" == control.METHOD
