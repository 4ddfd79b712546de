"""What a detached job's host and its subtasks say to each other, and to whoever asks later."""

from __future__ import annotations

import json

import pytest

from akrunner.detached.engine import addresses
from akrunner.engines.flink.host.control_server import ControlServer
from akrunner.engines.flink.host.issue import issued
from akrunner.engines.flink.keys import Door
from akrunner.engines.flink.taskmanager.detached_host import marked, reached, unmarked


def test_words_are_found_again_in_javas_exceptions() -> None:
    words = 'ScriptFailedError: [chief:0] raised\n  File "a.py", line 2\nValueError: x'
    trace = (
        f"java.lang.RuntimeException: Error received from SDK harness: Traceback\nJobFailed: {marked(words)}\n\tat org.apache"
    )
    assert unmarked(trace) == words
    assert unmarked("java.lang.RuntimeException: <<akrunner\nhalf of it") is None
    assert unmarked("java.lang.RuntimeException") is None


@pytest.mark.parametrize("tls", [True, False])
def test_the_first_address_that_answers_is_taken(tls: bool) -> None:
    keys = issued(tls)
    control = ControlServer("127.0.0.1", keys.host)
    # nobody listens on the first
    told = {"addresses": ["127.0.0.99", "127.0.0.1"], "port": control.port, "rows": control.rows, "machine": "m"}
    try:
        assert reached(json.dumps(told), keys.agents) == Door("127.0.0.1", control.port, control.rows, keys.agents)
        # a machine that has the same address in another network, where another job's host listens
        with pytest.raises(OSError, match="the job's host on m does not answer"):
            reached(json.dumps(told), issued(tls).agents)
    finally:
        control.close()
    with pytest.raises(OSError, match="the job's host on m does not answer"):
        reached(json.dumps(told), keys.agents)


def test_addresses_other_machines_reach_come_first() -> None:
    found = addresses()
    assert found[-1] == "127.0.0.1"
    assert sorted(found, key=lambda address: address.startswith("127.")) == found
