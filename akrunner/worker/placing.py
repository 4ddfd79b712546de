"""Places the operations that read rows on the script's own task of the cluster, unless the script has placed them itself.

TensorFlow places an operation without a device on any task, mostly the first. But a Python function exists in one process only,
and a task's rows are on its own machine. So before a session of a cluster runs a graph, every operation in it that reads gets
the device of this process's server. A task that the script has named stays, and so does '/cpu:0', which is added to the task.

TensorFlow numbers Python functions from 0 in each process. Here each task has its own range of numbers, so that a task that is
asked for another task's function raises an error, and does not call its own function of that number.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import weakref
from typing import Any, Dict, Iterator, MutableMapping, Optional, Set, Tuple

from akrunner.wire.context import Role

#: operations that call a function of this process
_PYTHON = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
_QUEUES = ("FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue")
#: operations that count how often `tf.train.string_input_producer` has given out its names; each task counts its own
_EPOCHS = ("CountUpTo", "ResourceCountUpTo")
#: a role's position here determines the numbers of its functions: they are the same in every run, and begin at 0 in a lone task
_ROLES = ("chief", "worker", "ps", "evaluator")
#: how many numbers each task has for its Python functions
_FUNCTIONS = 1 << 40
_here = {"reads": False}
#: target of a session -> (job's name, task's index), for the servers of this process
_servers: Dict[bytes, Tuple[str, int]] = {}
_lock = threading.Lock()
#: graph -> (its version when it was last looked at, the number of its operations then)
_looked: MutableMapping[Any, Tuple[Any, int]] = weakref.WeakKeyDictionary()
#: graph -> the names of its operations that belong to one of akrunner's readers
_belong: MutableMapping[Any, Set[str]] = weakref.WeakKeyDictionary()


def reads() -> None:
    """Note that akrunner gives the script rows in a graph: from now on its datasets, iterators and queues are placed, too."""
    if not _here["reads"]:
        _here["reads"] = True
        _looked.clear()


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Make all operations created in this block belong to one of akrunner's readers, so that a loop does not span tasks."""
    reads()
    graph = sys.modules["tensorflow"].compat.v1.get_default_graph()
    before = len(graph.get_operations())
    yield
    _belong.setdefault(graph, set()).update(op.name for op in graph.get_operations()[before:])


def install(task: Role) -> None:
    """Number this process's Python functions and watch for its servers; called when TensorFlow has been imported.

    Args:
        task: this task's role in the cluster.
    """
    _number(task["type"], task["index"])
    module = sys.modules.get("tensorflow.python.training.server_lib")
    server = getattr(module, "Server", None)
    session = getattr(sys.modules.get("tensorflow.python.client.session"), "BaseSession", None)
    if server is None or not hasattr(session, "_extend_graph"):
        return
    real = server.__init__

    @functools.wraps(real)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs)
        if not _servers:
            _watch(session)
        told = self.server_def
        _servers[self.target.encode("utf-8")] = told.job_name, told.task_index

    server.__init__ = init


def _number(role: str, index: int) -> None:
    """Make TensorFlow give this process's functions numbers that no other task has: it finds a function by its number alone."""
    registry: Any = getattr(sys.modules.get("tensorflow.python.ops.script_ops"), "_py_funcs", None)
    if role in _ROLES and isinstance(getattr(registry, "_unique_id", None), int):
        registry._unique_id += (index * len(_ROLES) + _ROLES.index(role)) * _FUNCTIONS


def _watch(session: Any) -> None:
    """Make sessions place the operations that read before they take new operations of their graph."""
    real = session._extend_graph

    @functools.wraps(real)
    def extend(self: Any) -> Any:
        if self._target:
            task = _task_of(self._target)
            if task is not None:
                place(self.graph, *task)
        return real(self)

    session._extend_graph = extend


def _task_of(target: bytes) -> Optional[Tuple[str, int]]:
    """Return this process's (job, index) in the cluster of a session, or None if it cannot be determined."""
    found = _servers.get(target)
    # else the server of another task in the same cluster runs the graph
    return found or (next(iter(_servers.values())) if len(_servers) == 1 else None)


def place(graph: Any, job: str, index: int) -> None:
    """Place the operations of a graph that read on a task, unless they are already on one. Looks only at new operations."""
    version = graph.version
    if _looked.get(graph, (None, 0))[0] == version:
        return
    with _lock:
        known = _looked.get(graph, (None, 0))[1]
        operations = graph.get_operations()
        belong = _belong.get(graph, ())
        for op in operations[known:]:
            if op.type in _PYTHON or (_here["reads"] and (_is_reading(op) or (op.name in belong and not _has_resource(op)))):
                _pin(op, job, index)
            elif op.type in _EPOCHS and _here["reads"]:
                _pin(op.inputs[0].op, job, index)
        _looked[graph] = version, len(operations)


def _is_reading(op: Any) -> bool:
    kind = op.type
    if "Dataset" in kind or "Iterator" in kind or kind.startswith("Optional"):
        return True
    # a queue with a shared name is meant for several tasks
    return kind.startswith(_QUEUES) and not op.get_attr("shared_name")


def _has_resource(op: Any) -> bool:
    """Whether an operation uses a resource, such as a queue or a variable, and so must be where that is."""
    return any(one.dtype._is_ref_dtype or one.dtype.base_dtype.name == "resource" for one in op.inputs)


def _pin(op: Any, job: str, index: int) -> None:
    said = [part for part in op.device.split("/") if part]
    if any(part.startswith("task:") or (part.startswith("job:") and part != "job:" + job) for part in said):
        return
    kept = [part for part in said if not part.startswith(("job:", "replica:"))]
    op._set_device("/" + "/".join(["job:%s" % job, "replica:0", "task:%d" % index] + kept))
