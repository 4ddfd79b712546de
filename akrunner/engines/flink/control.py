"""The constants and settings, besides the messages, that both ends of the service in `control.proto` share. Standard
library only; gRPC is imported when `library` is called."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from akrunner.engines.flink.connections import SILENCE_SECONDS

#: the version of the messages; two ends with different versions refuse each other
VERSION = 4
METHOD = "/akrunner.flink.Control/Attend"
#: names of the metadata: a random text that one end has made up, and a proof that this end, or the other, knows the job's
#: token
NONCE, PROOF = "akrunner-nonce", "akrunner-proof"
AGENT_END, HOST_END = "agent", "host"
#: the most bytes of an agent's message, which the host checks; and of the host's, which the agent checks: that one has a task's
#: environment, and every block that the task reads
AGENT_MESSAGE_LIMIT, HOST_MESSAGE_LIMIT = 4 << 20, 256 << 20
_PING_SECONDS = 5
_VERBOSITY = "GRPC_VERBOSITY"


def rows_pass(order: Any, with_rows: bool) -> bool:
    """Whether an agent passes the rows that its task writes to a file or to Flink, and not to the host.

    Args:
        order: the task's `Order`.
        with_rows: whether Flink brings the task's rows to the subtask.
    """
    # a task without rows beside the tasks of a PyFlink table sends its rows to the host
    return bool(order.HasField("output") and (order.output.part or with_rows))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep gRPC from reporting every stranger's handshake on the terminal. gRPC reads its variable when it is imported,
    or with its first server."""
    if _VERBOSITY in os.environ:
        yield
        return
    os.environ[_VERBOSITY] = "NONE"
    try:
        yield
    finally:
        os.environ.pop(_VERBOSITY, None)


def library() -> Any:
    """Import and return gRPC."""
    with quiet():
        import grpc
    return grpc


def keepalive() -> list[tuple[str, Any]]:
    """Return gRPC's options by which it notices within `SILENCE_SECONDS` that the other end is gone."""
    return [
        ("grpc.keepalive_time_ms", 1000 * _PING_SECONDS),
        ("grpc.keepalive_timeout_ms", 1000 * (SILENCE_SECONDS - _PING_SECONDS)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
        ("grpc.http2.max_ping_strikes", 0),
    ]
