"""Finds whom to ask for tables: the task's broker; in a process that the script has forked or started, the broker's socket."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Optional, Union

from akrunner.worker.tables.errors import TableError

if TYPE_CHECKING:
    from akrunner.worker.tables.broker import Broker
    from akrunner.worker.tables.sharing import Remote

#: the environment variable with the path of the broker's socket
VARIABLE = "AKRUNNER_TABLES_SOCKET"

_known: Dict[str, Any] = {}


def serve(broker: Broker) -> None:
    """Make this broker the one that is asked in this process."""
    _known.update(broker=broker, pid=os.getpid())


def asker() -> Union[Broker, Remote]:
    """Return the broker, or in another process what asks it. Raises: TableError: the job has no tables, or there is no job."""
    if _known.get("pid") == os.getpid():
        own: Broker = _known["broker"]
        return own
    path = os.environ.get(VARIABLE)
    if not path:
        raise TableError("there are no tables here: run the script by akrunner pai, or by akrunner.run(..., tables=[...])")
    # imported only here, because most jobs have no such child processes
    from akrunner.worker.tables import sharing

    if _known.get("remote_pid") != os.getpid():
        _known.update(remote=sharing.Remote(path), remote_pid=os.getpid())
    remote: Remote = _known["remote"]
    return remote


def process() -> str:
    """Return a name of this process, "pid:random", that no other process of the task has, nor a later one with this pid."""
    if _known.get("named_pid") != os.getpid():
        _known.update(named_pid=os.getpid(), name="%d:%s" % (os.getpid(), os.urandom(8).hex()))
    name: str = _known["name"]
    return name


def broker() -> Optional[Broker]:
    """Return the broker if this is the task's process, otherwise None."""
    return _known["broker"] if _known.get("pid") == os.getpid() else None
