"""The Flink engine: it runs each task beside a subtask of an Apache Flink job, on this machine's mini-cluster or on a
cluster's machines.

::

    host (this process, if the job is not detached)            Flink
    Supervisor (akrunner.engines.supervisor), feeder, sink     one job with one subtask for each task, all at the same time
    ControlServer  <--- words (gRPC) and rows (sockets), mutual TLS --->  agent in each subtask: the worker process, its pipes
    submit (a process with PyFlink and Java) --- job graph -->  JobManager

Rows go from the host to the worker's pipe as they are: no row passes through the JVM, nor through Flink's own Python calls.

There is a room for each process that the code runs in. What several of them need (the service, its keys, connections,
rows as bytes) is beside the rooms, in this package. Imports go this way::

    host ------> program -------> taskmanager
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from akrunner.engines.flink.host.engine import FlinkEngine

__all__ = ["FlinkEngine"]


def __getattr__(name: str) -> Any:
    """Import `FlinkEngine` when it is first used: an agent's Python lacks the libraries that the engine needs."""
    if name != "FlinkEngine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from akrunner.engines.flink.host.engine import FlinkEngine

    return FlinkEngine
