"""What both ends of the service in `control.proto` agree on besides its messages. Standard library; gRPC when it is asked for."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from akrunner.engines.flink.connections import SILENCE_SECONDS

#: of the messages; ends of different versions do not go on
VERSION = 1
METHOD = "/akrunner.flink.Control/Attend"
#: metadata: what one end has made up, and what shows that it, or the other, knows the job's token
NONCE, PROOF = "akrunner-nonce", "akrunner-proof"
AGENT_END, HOST_END = "agent", "host"
_PING_SECONDS = 5
_VERBOSITY = "GRPC_VERBOSITY"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """gRPC does not tell the terminal of every stranger's handshake. It looks at its variable when it is imported, or at its first server."""
    if _VERBOSITY in os.environ:
        yield
        return
    os.environ[_VERBOSITY] = "NONE"
    try:
        yield
    finally:
        os.environ.pop(_VERBOSITY, None)


def library() -> Any:
    """gRPC."""
    with quiet():
        import grpc
    return grpc


def keepalive() -> list[tuple[str, Any]]:
    """gRPC's options by which an end that has gone is noticed within `SILENCE_SECONDS`."""
    return [
        ("grpc.keepalive_time_ms", 1000 * _PING_SECONDS),
        ("grpc.keepalive_timeout_ms", 1000 * (SILENCE_SECONDS - _PING_SECONDS)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 1000),
        ("grpc.http2.max_ping_strikes", 0),
    ]
