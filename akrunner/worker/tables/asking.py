"""Who is asked for tables: the task's broker, or from a process that the script has forked or started, the broker's socket."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Optional, Union

from akrunner.worker.tables.errors import TableError

if TYPE_CHECKING:
    from akrunner.worker.tables.broker import Broker
    from akrunner.worker.tables.sharing import Remote

#: path of the socket
VARIABLE = "AKRUNNER_TABLES_SOCKET"

_known: Dict[str, Any] = {}


def serve(broker: Broker) -> None:
    """From now on the broker is asked, in this process."""
    _known.update(broker=broker, pid=os.getpid())


def asker() -> Union[Broker, Remote]:
    """Whoever answers here. Raises: TableError: the job has no tables, or this process is none of a job."""
    if _known.get("pid") == os.getpid():
        own: Broker = _known["broker"]
        return own
    path = os.environ.get(VARIABLE)
    if not path:
        raise TableError("there are no tables here: run the script by akrunner pai, or by akrunner.run(..., tables=[...])")
    # not before it is asked for: most jobs have no such children
    from akrunner.worker.tables import sharing

    if _known.get("remote_pid") != os.getpid():
        _known.update(remote=sharing.Remote(path), remote_pid=os.getpid())
    remote: Remote = _known["remote"]
    return remote


def process() -> str:
    """This process, as no other of the task is called, also one that has its number later: "pid:random"."""
    if _known.get("named_pid") != os.getpid():
        _known.update(named_pid=os.getpid(), name="%d:%s" % (os.getpid(), os.urandom(8).hex()))
    name: str = _known["name"]
    return name


def broker() -> Optional[Broker]:
    """The broker, if this process is the task's, else None."""
    return _known["broker"] if _known.get("pid") == os.getpid() else None
