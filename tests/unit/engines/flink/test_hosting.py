"""What a detached job's host and its places say to each other, and to whoever asks later."""

from __future__ import annotations

import json
import socket

import pytest

from akrunner.engines.flink.hosted import addresses
from akrunner.engines.flink.hosting import marked, reached, unmarked


def test_words_are_found_again_in_javas_exceptions() -> None:
    words = 'ScriptFailedError: [chief:0] raised\n  File "a.py", line 2\nValueError: x'
    trace = (
        f"java.lang.RuntimeException: Error received from SDK harness: Traceback\nJobFailed: {marked(words)}\n\tat org.apache"
    )
    assert unmarked(trace) == words
    assert unmarked("java.lang.RuntimeException: <<akrunner\nhalf of it") is None
    assert unmarked("java.lang.RuntimeException") is None


def test_the_first_address_that_answers_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        # nobody listens on the first
        told = {"addresses": ["127.0.0.99", "127.0.0.1"], "port": port, "token": "t", "machine": "m"}
        assert reached(json.dumps(told)) == (("127.0.0.1", port), "t")
    with pytest.raises(OSError, match="the job's host on m does not answer"):
        reached(json.dumps(told))


def test_addresses_other_machines_reach_come_first() -> None:
    found = addresses()
    assert found[-1] == "127.0.0.1"
    assert sorted(found, key=lambda address: address.startswith("127.")) == found
