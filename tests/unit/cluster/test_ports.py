"""Ports that are held for a job are nobody else's, and its tasks can serve at them."""

from __future__ import annotations

import socket
import threading
from types import SimpleNamespace

import pytest

from akrunner.cluster import ports
from akrunner.cluster.ports import PortHold
from akrunner.errors import ConfigError


def test_no_two_jobs_have_the_same_while_they_are_held() -> None:
    """Four threads take turns of five hundred jobs each; a few are always held at the same time."""
    held: set[int] = set()
    twice: list[int] = []
    lock = threading.Lock()

    def jobs() -> None:
        last: list[PortHold] = []
        for _ in range(500):
            hold = PortHold(3)
            with lock:
                twice.extend(held.intersection(hold.ports))
                held.update(hold.ports)
            last.append(hold)
            if len(last) == 5:
                give_back(last.pop(0))
        for hold in last:
            give_back(hold)

    def give_back(hold: PortHold) -> None:
        with lock:
            held.difference_update(hold.ports)
        hold.close()

    threads = [threading.Thread(target=jobs) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not twice and not held


def test_a_task_serves_at_a_port_that_is_held() -> None:
    """As TensorFlow's server does it."""
    hold = PortHold(50)
    assert len(set(hold.ports)) == 50
    for port in hold.ports:
        with socket.socket() as task, socket.socket() as other:
            task.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            task.bind(("127.0.0.1", port))
            task.listen()
            other.connect(("127.0.0.1", port))
    hold.close()
    hold.close()


@pytest.mark.parametrize(("platform", "held"), [("linux", 2), ("darwin", 0)])
def test_ports_give_way_where_tasks_could_not_bind_them_otherwise(
    platform: str, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "sys", SimpleNamespace(platform=platform))
    hold = PortHold(2)
    hold.give_way()
    assert len(hold._sockets) == held and len(hold.addresses) == 2
    hold.close()


def test_addresses() -> None:
    hold = PortHold(1, "127.0.0.1", "this-machine")
    assert hold.addresses == [f"this-machine:{hold.ports[0]}"]
    hold.close()
    for advertised in ("fd00::5", "[fd00::5]"):
        hold = PortHold(1, "127.0.0.1", advertised)
        assert hold.addresses == [f"[fd00::5]:{hold.ports[0]}"]
        hold.close()
    hold.close()
    with pytest.raises(ConfigError, match="bind_host='192.0.2.1': cannot bind a port there"):
        PortHold(1, "192.0.2.1")
