"""What a place of a detached job does when its host has gone: the host's own subtask, which knows why, is heard first."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from akrunner.engines.flink import taskmanager
from akrunner.engines.flink.keys import Door, Keys
from akrunner.engines.flink.taskmanager import agent, detached_host


@pytest.fixture
def function(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, without PyFlink."""
    datastream = types.ModuleType("pyflink.datastream")
    vars(datastream).update(ProcessFunction=object, RuntimeContext=object)
    monkeypatch.setitem(sys.modules, "pyflink", types.ModuleType("pyflink"))
    monkeypatch.setitem(sys.modules, "pyflink.datastream", datastream)
    name = "akrunner.engines.flink.taskmanager.function"
    assert name not in sys.modules
    yield importlib.import_module(name)
    # elsewhere there is no PyFlink, and it is to be missed
    del sys.modules[name], taskmanager.function


def detached(function: Any) -> Any:
    made = function.DetachedSubtask({"token": "token"})
    made.open(types.SimpleNamespace(get_index_of_this_subtask=lambda: 3, get_attempt_number=lambda: 0))
    return made


@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (agent.HostGone("the job's host has gone"), True),
        (ConnectionResetError(104, "Connection reset by peer"), True),
        (BrokenPipeError(32, "Broken pipe"), True),
        (agent.JobFailed("in the host's own words"), False),
    ],
)
def test_the_hosts_subtask_is_heard_before_a_place_that_has_lost_it(
    function: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, waits: bool
) -> None:
    slept: list[float] = []

    door = Door("127.0.0.1", 1, 2, Keys("token"))

    def lost(*given: object, **who: object) -> None:
        assert given == (door,) and who == {"subtask": 3, "attempt": 0}
        raise error

    monkeypatch.setattr(detached_host, "reached", lambda told, keys: door if keys == Keys("token") else None)
    monkeypatch.setattr(agent, "work", lost)
    monkeypatch.setattr(function, "time", types.SimpleNamespace(sleep=slept.append))
    with pytest.raises(type(error)) as caught:
        detached(function).process_element("where it is", None)
    assert caught.value is error
    assert slept == ([function._HOST_SECONDS] if waits else [])


def test_so_is_it_before_a_place_that_never_reaches_the_host(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def gone(told: str, keys: Keys) -> None:
        raise OSError("the job's host does not answer")

    monkeypatch.setattr(detached_host, "reached", gone)
    monkeypatch.setattr(function, "time", types.SimpleNamespace(sleep=slept.append))
    with pytest.raises(OSError, match="does not answer"):
        detached(function).process_element("where it was", None)
    assert slept == [function._HOST_SECONDS]
