"""On which task of a cluster the operations run that read: on the script's own, where the script pins them to none.

TensorFlow places what is pinned to no task on any task's device, the first one's mostly. Python's functions are known to one process alone,
and a task's rows lie beside it; so before a session of a cluster runs a graph, whatever reads in it gets the device of this process's server.
What the script has said itself stays: a task it has named, and '/cpu:0' on top of the task. TensorFlow numbers Python's functions from 0 in
each process; here each task has numbers of its own, so that one that is asked for another's function says so, and does not call its own.
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
#: how often `tf.train.string_input_producer` has given its names: each task gives its own
_EPOCHS = ("CountUpTo", "ResourceCountUpTo")
#: a task's place among these is part of its numbers: the same ones in every run, and from 0 on in a task that is alone
_ROLES = ("chief", "worker", "ps", "evaluator")
#: how many Python functions a task may number before it is at the next one's
_FUNCTIONS = 1 << 40
_here = {"reads": False}
#: a session's target -> (job's name, index of the task) of the servers of this process
_servers: Dict[bytes, Tuple[str, int]] = {}
_lock = threading.Lock()
#: graph -> (its version when it was looked at, operations it had), and -> names of those that belong to a reader of ours
_looked: MutableMapping[Any, Tuple[Any, int]] = weakref.WeakKeyDictionary()
_belong: MutableMapping[Any, Set[str]] = weakref.WeakKeyDictionary()


def reads() -> None:
    """The script is given rows in a graph: from now on its datasets, iterators and queues have their place, too."""
    if not _here["reads"]:
        _here["reads"] = True
        _looked.clear()


@contextlib.contextmanager
def together() -> Iterator[None]:
    """All operations that are made within belong to a reader of ours, whatever they are: a loop does not go from task to task."""
    reads()
    graph = sys.modules["tensorflow"].compat.v1.get_default_graph()
    before = len(graph.get_operations())
    yield
    _belong.setdefault(graph, set()).update(op.name for op in graph.get_operations()[before:])


def install(task: Role) -> None:
    """TensorFlow has been imported: number this process's functions, learn of its servers. Args: task: its "type" and "index" in the cluster."""
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
    """Have TensorFlow number this process's functions as no other task's: TensorFlow finds them by their number alone."""
    registry: Any = getattr(sys.modules.get("tensorflow.python.ops.script_ops"), "_py_funcs", None)
    if role in _ROLES and isinstance(getattr(registry, "_unique_id", None), int):
        registry._unique_id += (index * len(_ROLES) + _ROLES.index(role)) * _FUNCTIONS


def _watch(session: Any) -> None:
    """Have a session place what reads before it takes operations of its graph."""
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
    """This process's task in the cluster of a session, None: nobody can tell."""
    found = _servers.get(target)
    # or another task's server runs the graph, in the same cluster
    return found or (next(iter(_servers.values())) if len(_servers) == 1 else None)


def place(graph: Any, job: str, index: int) -> None:
    """Pin what reads in a graph to a task, as far as it is pinned to none. Looks only at operations that it does not know yet."""
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
    # one with a name of its own is meant for several tasks
    return kind.startswith(_QUEUES) and not op.get_attr("shared_name")


def _has_resource(op: Any) -> bool:
    """Whether it must be where something else is: a queue, a variable."""
    return any(one.dtype._is_ref_dtype or one.dtype.base_dtype.name == "resource" for one in op.inputs)


def _pin(op: Any, job: str, index: int) -> None:
    said = [part for part in op.device.split("/") if part]
    if any(part.startswith("task:") or (part.startswith("job:") and part != "job:" + job) for part in said):
        return
    kept = [part for part in said if not part.startswith(("job:", "replica:"))]
    op._set_device("/" + "/".join(["job:%s" % job, "replica:0", "task:%d" % index] + kept))
