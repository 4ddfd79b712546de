"""The rendezvous service over real sockets: tasks find each other, and hear of each other's end."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Iterator, List, Tuple

import pytest

from akrunner.cluster.rendezvous import RendezvousClient, RendezvousServer
from akrunner.errors import ConfigError, RendezvousError

pytestmark = pytest.mark.slow

TASKS = ["chief:0", "worker:0", "ps:0"]
TOKEN = "a-secret"


@pytest.fixture
def server() -> Iterator[RendezvousServer]:
    with RendezvousServer(TASKS, TOKEN, heartbeat_limit=2.0) as server:
        yield server


def until(there: Callable[[], Any], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def client(server: RendezvousServer, task: str, token: str = TOKEN, attempt: int = 0) -> RendezvousClient:
    return RendezvousClient(f"127.0.0.1:{server.port}", token, task, attempt)


def test_tasks_find_each_other(server: RendezvousServer) -> None:
    clients = [client(server, task) for task in TASKS]
    waiting = [one.registering(f"host{i}", 2000 + i) for i, one in enumerate(clients)]
    expected = {"chief:0": "host0:2000", "worker:0": "host1:2001", "ps:0": "host2:2002"}
    assert [outcome() for outcome in waiting] == [expected] * 3
    assert server.addresses == expected
    for one in clients:
        one.finished()
        one.close()


def test_who_is_missing_is_named(server: RendezvousServer) -> None:
    with client(server, "worker:0") as one:
        with pytest.raises(RendezvousError, match=r"\[worker:0\] 1 of 3 tasks are there after 0.5 s; missing: chief:0, ps:0"):
            one.register("h", 1, timeout=0.5)
    assert server.missing == ["chief:0", "ps:0"]


def test_a_wrong_token(server: RendezvousServer) -> None:
    with client(server, "worker:0", "guessed") as one:
        for call in (lambda: one.register("h", 1), one.beat, one.finished, lambda: list(one.watch())):
            with pytest.raises(RendezvousError, match="this is not the token of the job"):
                call()
    assert server.missing == TASKS


def test_a_task_of_an_earlier_attempt(server: RendezvousServer) -> None:
    server.restart(1)
    with client(server, "worker:0", attempt=0) as one, pytest.raises(RendezvousError, match="attempt 0, this is attempt 1"):
        one.register("h", 1)


def test_one_that_falls_silent_is_lost(server: RendezvousServer) -> None:
    stopped: List[str] = []
    alive = [client(server, task) for task in TASKS[:2]]
    silent = client(server, "ps:0")
    waiting = [one.registering("h", i) for i, one in enumerate([*alive, silent])]
    for outcome in waiting:
        outcome()
    for one in alive:
        one.keep_beating(0.2, stopped.append)
    events: List[Tuple[str, str, str]] = []
    for event in alive[0].watch():
        events.append(event)
        if event[0] == "lost":
            break
    assert events == [("complete", "", ""), ("lost", "ps:0", "has given no sign of life for 2 s")]
    until(lambda: len(stopped) == 2)
    assert stopped == ["[ps:0] has given no sign of life for 2 s"] * 2
    for one in [*alive, silent]:
        one.close()


def test_a_failure_ends_everybodys_waiting(server: RendezvousServer) -> None:
    first, second = client(server, "chief:0"), client(server, "worker:0")
    waiting = first.registering("h", 1)
    until(lambda: server.missing == ["worker:0", "ps:0"])
    second.failed("raised ValueError")
    with pytest.raises(RendezvousError, match=r"\[worker:0\] raised ValueError"):
        waiting()
    assert first.beat() == (True, "[worker:0] raised ValueError")
    first.close()
    second.close()


def test_the_end_is_told_to_who_watches(server: RendezvousServer) -> None:
    clients = [client(server, task) for task in TASKS]
    for outcome in [one.registering("h", i) for i, one in enumerate(clients)]:
        outcome()
    events: List[Tuple[str, str, str]] = []
    thread = threading.Thread(target=lambda: events.extend(clients[0].watch()))
    thread.start()
    for one in clients:
        one.finished()
    thread.join(60)
    assert events[-1] == ("over", "", "every task has finished")
    for one in clients:
        one.close()


def test_a_service_that_is_not_there() -> None:
    with RendezvousClient("127.0.0.1:1", TOKEN, "chief:0", patience=0.5) as one:
        with pytest.raises(RendezvousError, match="service at 127.0.0.1:1 does not answer"):
            one.register("h", 1, timeout=0.5)


def test_an_address_that_is_not_ours() -> None:
    with pytest.raises(ConfigError, match=r"rendezvous: cannot listen on 192.0.2.1:0"):
        RendezvousServer(TASKS, TOKEN, host="192.0.2.1")


def test_a_thousand_tasks() -> None:
    """All hear of each other; the one that falls silent afterwards is named. How fast: scripts/bench."""
    tasks = ["chief:0", *(f"worker:{i}" for i in range(999))]
    now = 0.0
    with RendezvousServer(tasks, TOKEN, heartbeat_limit=3.0, clock=lambda: now) as server:
        clients = [client(server, task) for task in tasks]
        waiting = [one.registering("h", i) for i, one in enumerate(clients)]
        addresses = [outcome() for outcome in waiting]
        assert all(len(found) == 1000 for found in addresses)
        now = 2.0
        for one in clients[:-1]:
            one.beat()
        assert server.failed == []
        now = 4.0
        until(lambda: server.failed)
        assert server.failed == [("worker:998", "has given no sign of life for 3 s")]
        for one in clients:
            one.close()
