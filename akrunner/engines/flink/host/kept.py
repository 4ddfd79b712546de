"""Keeps what submits to Flink (`client.Client`) between the jobs of this process, while it keeps warm workers: the next job that wants the same
starts neither Python nor Java.

::

    engine -- start(...) --> one that is kept, if nothing of what it was started with has changed; else a new one
           -- over(client) --> kept until a job takes it, the last pool of warm workers is closed, or nobody has come for IDLE_SECONDS
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from akrunner.engines.flink.host.client import Client
from akrunner.engines.flink.rest import Address
from akrunner.spares import registry
from akrunner.spares.starts import OFF
from akrunner.spares.wanted import early, surroundings

#: seconds after which one that no job has taken ends: with Java it takes some 200 MB
IDLE_SECONDS = 300.0
#: how many are kept at most
_MOST = 2
#: variables that only akrunner itself reads, and it does not read them there
_UNREAD = ("XDG_STATE_HOME", "XDG_CACHE_HOME")


@dataclass(frozen=True)
class _Wanted:
    """What one is started with, and cannot be changed afterwards."""

    python: str
    java: str
    cluster: Address
    environ: Mapping[str, str]
    around: Mapping[str, str]

    @classmethod
    def now(cls, python: str, java: str, cluster: Address) -> _Wanted:
        environ = {name: value for name, value in early(os.environ).items() if name not in _UNREAD}
        return cls(python, java, cluster, environ, surroundings())


@dataclass
class _Kept:
    client: Client
    wanted: _Wanted
    timer: threading.Timer


_lock = threading.Lock()
_kept: list[_Kept] = []
#: what those were started with that jobs have now
_given: dict[Client, _Wanted] = {}


def start(python: str, java: str, cluster: Address | None) -> Client:
    """Return a process that submits to a cluster: one that is kept, or a new one. Who gets it gives it back with `over`, or closes it.

    Args, Raises: as `Client`.
    """
    if cluster is None or not _keeps():
        return Client(python, java, cluster)
    wanted = _Wanted.now(python, java, cluster)
    client = _taken(wanted) or Client(python, java, cluster)
    with _lock:
        for ended in [one for one in _given if not one.alive]:
            del _given[ended]
        _given[client] = wanted
    return client


def over(client: Client) -> None:
    """Keep a process whose jobs have ended for a job to come; close it where none is kept."""
    with _lock:
        wanted = _given.pop(client, None)
    if wanted is None or not _keeps() or not client.idle:
        client.close()
        return
    one = _Kept(client, wanted, threading.Timer(IDLE_SECONDS, _close, [client]))
    one.timer.daemon = True
    with _lock:
        _kept.append(one)
        more = _kept[:-_MOST]
    one.timer.start()
    for other in more:
        _close(other.client)


def waiting() -> int:
    """Return how many wait for a job."""
    return len(_kept)


def close() -> None:
    """End all that wait."""
    for one in list(_kept):
        _close(one.client)


def _keeps() -> bool:
    return os.environ.get(OFF) != "0" and (bool(registry.pools()) or registry.in_notebook())


def _taken(wanted: _Wanted) -> Client | None:
    while True:
        with _lock:
            # the last one, so that of several those end that are not needed
            found = next((one for one in reversed(_kept) if one.wanted == wanted), None)
            if found is None:
                return None
            _kept.remove(found)
        found.timer.cancel()
        if found.client.is_well():
            return found.client
        found.client.close()


def _close(client: Client) -> None:
    """Close one, unless a job has taken it."""
    with _lock:
        found = [one for one in _kept if one.client is client]
        for one in found:
            _kept.remove(one)
    for one in found:
        one.timer.cancel()
        client.close()


def _forked() -> None:
    global _lock
    # a thread that had it is not in this child, which was made by fork
    _lock = threading.Lock()
    # they belong to its parent, and are not to be taken for children that have ended
    _parents.extend([*(one.client for one in _kept), *_given])
    _kept.clear()
    _given.clear()


_parents: list[Client] = []
os.register_at_fork(after_in_child=_forked)
atexit.register(close)
registry.beside(waiting, close)
