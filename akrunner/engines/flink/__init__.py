"""The Flink engine: each task beside a subtask of an Apache Flink job, on this machine's mini-cluster or a cluster's machines.

::

    host (this process, if it is not detached)                 Flink
    Supervisor (akrunner.engines.supervisor), feeder, sink     one job, one subtask a task, all at once
    Hub  <--- words (gRPC) and rows (sockets), mutual TLS --->  agent in each subtask: the worker process, its pipes
    submit (a process with PyFlink and Java) --- job graph -->  JobManager

Rows go from the host to the worker's pipe as they are: no row passes through the JVM, nor through Flink's own Python calls.

A room for each process that its code runs in; what several of them need (the service, its keys, connections, rows as bytes) stands beside the rooms::

    host ------> program -------> taskmanager
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from akrunner.engines.flink.host.engine import FlinkEngine

__all__ = ["FlinkEngine"]


def __getattr__(name: str) -> Any:
    """Imported when first used: an agent's Python has nothing of the engine's own libraries."""
    if name != "FlinkEngine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from akrunner.engines.flink.host.engine import FlinkEngine

    return FlinkEngine
