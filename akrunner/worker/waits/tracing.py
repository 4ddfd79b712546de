"""Runs TensorFlow's own profiler for a few steps. It gives the same kind of trace in 1.15 and in 2.x."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from typing import Any, Callable, Dict, List, Optional

from akrunner.worker.waits import shown

_V1 = "tensorflow.python.pywrap_tensorflow"
_V2 = "tensorflow.python.profiler.internal._pywrap_profiler"
#: modules that hold the profiler that the script itself has started
_OWN = ("tensorflow.python.profiler.profiler_v2", "tensorflow.python.eager.profiler")
#: a longer trace is not read, because that would take seconds
MOST_BYTES = 16 << 20
#: fields of `tensorflow.profiler.TraceEvent`: name, number, type
_EVENT = (("resource_id", 2, 13), ("name", 3, 12), ("timestamp_ps", 9, 4), ("duration_ps", 10, 4))
_known: Dict[str, Any] = {}


class Event(object):
    """Something that one thread did for a while.

    Attributes:
        thread: the thread's number.
        name: the event's name.
        path: the path of an iterator's node ("Model::Prefetch::Map"), "" for any other event.
        began, took: when it began and how long it took, in ns.
    """

    __slots__ = ("began", "name", "path", "thread", "took")

    def __init__(self, thread: int, name: str, path: str, began: int, took: int) -> None:
        self.thread = thread
        self.name = name
        self.path = path
        self.began = began
        self.took = took


class Trace(object):
    """A running trace. A process can have only one, and the script's own has priority.

    Attributes:
        size: the trace's bytes, once it has been stopped.
    """

    size = 0

    def __init__(self) -> None:
        """Start the trace. Raises: RuntimeError, or an error of TensorFlow: another profiler is running."""
        if any(getattr(sys.modules.get(name), "_profiler", None) is not None for name in _OWN):
            # checked first, because TensorFlow would log a warning
            raise RuntimeError("the script's own profiler is running")
        self._session = _second() if _V2 in sys.modules else _first()

    def stop(self, most: Optional[int] = None) -> Optional[List[Event]]:
        """Stop the trace, and return its events; None if it is too long.

        Args:
            most: how many bytes are read, None for MOST_BYTES.
        """
        raw = self._session()
        self.size = len(raw)
        return events(raw) if len(raw) <= (most or MOST_BYTES) else None


def _deaf() -> bool:
    """Whether TensorFlow 2's profiler ignores its options: from 2.20 on, it ignores each of them with a warning."""
    version = sys.modules["tensorflow"].__version__.split(".")
    return [int(part) for part in version[:2]] >= [2, 20]


def _second() -> Callable[..., Any]:
    """Start TensorFlow 2's profiler. Return a function that stops it and returns the serialized trace."""
    session = _known.get("session", sys.modules[_V2].ProfilerSession)()
    # without the counters of graphics cards, as a look must be cheap
    options = {} if _deaf() else {"host_tracer_level": 2, "device_tracer_level": 0, "python_tracer_level": 0}
    try:
        session.start("", options)
    except TypeError:
        session.start("")
    stop: Callable[[], bytes] = session.stop
    return stop


def _first() -> Callable[..., Any]:
    """Start TensorFlow 1.15's profiler. Return a function that stops it and returns the serialized trace."""
    pywrap = sys.modules[_V1]
    from tensorflow.python.framework import c_api_util

    profiler = _known.get("session", pywrap.TFE_NewProfiler)()
    if not pywrap.TFE_ProfilerIsOk(profiler):
        pywrap.TFE_DeleteProfiler(profiler)
        raise RuntimeError("another profiler is running")

    def stop() -> bytes:
        try:
            with c_api_util.tf_buffer() as buffer:
                pywrap.TFE_ProfilerSerializeToString(profiler, buffer)
                found: bytes = pywrap.TF_GetBuffer(buffer)
                return found
        finally:
            pywrap.TFE_DeleteProfiler(profiler)

    return stop


#: (module, class, methods) of methods that start a server in this process
_SERVERS = (
    ("tensorflow.python.training.server_lib", "Server", ("__init__",)),
    ("tensorflow.python.eager.context", "Context", ("set_server_def", "update_server_def", "enable_collective_ops")),
)


def give_way(call: Callable[[], Any], for_ever: Callable[[], Any]) -> None:
    """Have `call` called before the script starts a profiler of its own, and `for_ever` before a server starts in this process.

    The server is one that others can ask for a profile; or one of a TensorFlow cluster, beside which the profiler can crash the
    process.
    """
    module, name = (sys.modules[_V2], "ProfilerSession") if _V2 in sys.modules else (sys.modules[_V1], "TFE_NewProfiler")
    _known["session"] = getattr(module, name)
    _first_call(module, name, call)
    for name in ("start_server", "TFE_StartProfilerServer"):
        if hasattr(module, name):
            _first_call(module, name, for_ever)
    for name, kind, methods in _SERVERS:
        for method in methods:
            owner = getattr(sys.modules.get(name), kind, None)
            if hasattr(owner, method):
                _first_call(owner, method, for_ever)


def _first_call(owner: Any, name: str, call: Callable[[], Any]) -> None:
    real = getattr(owner, name)

    @functools.wraps(real)
    @shown.named
    def made(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(Exception):
            # an error of akrunner's call must not reach the script
            call()
        return real(*args, **kwargs)

    setattr(owner, name, made)


def events(raw: bytes) -> List[Event]:
    """Return the events in a serialized `tensorflow.profiler.Trace`."""
    made = _messages()()
    made.ParseFromString(raw)
    found = []
    for event in made.trace_events:
        name = event.name.decode("utf-8", "replace")
        path = name[len("Iterator::") :] if name.startswith("Iterator::") else ""
        for arg in event.args:
            # "long name" on 1.15
            if arg.key in (b"long_name", b"long name") and arg.value.startswith(b"Iterator::"):
                path = arg.value.decode("utf-8", "replace")[len("Iterator::") :]
        found.append(Event(event.resource_id, name, path, event.timestamp_ps // 1000, event.duration_ps // 1000))
    return found


def _messages() -> Any:
    """Return the protobuf class of a trace.

    It is made here, because TensorFlow's own is in another module in each version, and refuses names that are not UTF-8.
    """
    if "trace" in _known:
        return _known["trace"]
    # these modules are there: TensorFlow itself needs them
    descriptor_pb2, descriptor_pool, message_factory = (
        importlib.import_module("google.protobuf." + name) for name in ("descriptor_pb2", "descriptor_pool", "message_factory")
    )
    kinds = descriptor_pb2.FieldDescriptorProto
    made = descriptor_pb2.FileDescriptorProto(name="akrunner/trace.proto", package="akrunner", syntax="proto3")
    trace = made.message_type.add(name="Trace")
    trace.field.add(
        name="trace_events", number=4, label=kinds.LABEL_REPEATED, type=kinds.TYPE_MESSAGE, type_name=".akrunner.Event"
    )
    event = made.message_type.add(name="Event")
    for name, number, kind in _EVENT:
        event.field.add(name=name, number=number, label=kinds.LABEL_OPTIONAL, type=kind)
    event.field.add(name="args", number=11, label=kinds.LABEL_REPEATED, type=kinds.TYPE_MESSAGE, type_name=".akrunner.Arg")
    arg = made.message_type.add(name="Arg")
    for name, number in (("key", 1), ("value", 2)):
        arg.field.add(name=name, number=number, label=kinds.LABEL_OPTIONAL, type=kinds.TYPE_BYTES)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(made)
    found = pool.FindMessageTypeByName("akrunner.Trace")
    if hasattr(message_factory, "GetMessageClass"):
        _known["trace"] = message_factory.GetMessageClass(found)
    else:
        _known["trace"] = message_factory.MessageFactory(pool).GetPrototype(found)
    return _known["trace"]
