"""TensorFlow's own profiler for a few steps: on 1.15 and on 2.x it gives the same kind of trace."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from typing import Any, Callable, Dict, List, Optional

from akrunner.worker.waits import shown

_V1 = "tensorflow.python.pywrap_tensorflow"
_V2 = "tensorflow.python.profiler.internal._pywrap_profiler"
#: which of them have the one the script has started
_OWN = ("tensorflow.python.profiler.profiler_v2", "tensorflow.python.eager.profiler")
#: a longer trace is not read: that would take seconds
MOST_BYTES = 16 << 20
#: by number, as `tensorflow.profiler.TraceEvent` has them
_EVENT = (("resource_id", 2, 13), ("name", 3, 12), ("timestamp_ps", 9, 4), ("duration_ps", 10, 4))
_known: Dict[str, Any] = {}


class Event(object):
    """What one thread did for a while. Attributes: thread; name; path: of an iterator's node ("Model::Prefetch::Map"), else ""; began, took: ns."""

    __slots__ = ("began", "name", "path", "thread", "took")

    def __init__(self, thread: int, name: str, path: str, began: int, took: int) -> None:
        self.thread = thread
        self.name = name
        self.path = path
        self.began = began
        self.took = took


class Trace(object):
    """A running trace. There can be one in a process: the script's own goes first. Attributes: size: bytes of it, when it has been stopped."""

    size = 0

    def __init__(self) -> None:
        """Raises: RuntimeError or one of TensorFlow's: another profiler is running."""
        if any(getattr(sys.modules.get(name), "_profiler", None) is not None for name in _OWN):
            # asked before TensorFlow is, which would log a warning
            raise RuntimeError("the script's own profiler is running")
        self._session = _second() if _V2 in sys.modules else _first()

    def stop(self, most: Optional[int] = None) -> Optional[List[Event]]:
        """The events, None: too many. Args: most: bytes that are read."""
        raw = self._session()
        self.size = len(raw)
        return events(raw) if len(raw) <= (most or MOST_BYTES) else None


def _deaf() -> bool:
    """Whether TensorFlow 2's profiler does not do as it is told: from 2.20 on every
    option is answered by a warning, and ignored."""
    version = sys.modules["tensorflow"].__version__.split(".")
    return [int(part) for part in version[:2]] >= [2, 20]


def _second() -> Callable[..., Any]:
    """TensorFlow 2: starts; what is returned stops."""
    session = _known.get("session", sys.modules[_V2].ProfilerSession)()
    # no graphics card's counters: a look must be cheap
    options = {} if _deaf() else {"host_tracer_level": 2, "device_tracer_level": 0, "python_tracer_level": 0}
    try:
        session.start("", options)
    except TypeError:
        session.start("")
    stop: Callable[[], bytes] = session.stop
    return stop


def _first() -> Callable[..., Any]:
    """TensorFlow 1.15: the same."""
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


#: methods that start a server in this process, by module and class
_SERVERS = (
    ("tensorflow.python.training.server_lib", "Server", ("__init__",)),
    ("tensorflow.python.eager.context", "Context", ("set_server_def", "update_server_def", "enable_collective_ops")),
)


def give_way(call: Callable[[], Any], for_ever: Callable[[], Any]) -> None:
    """Have `call` called before the script starts a profiler of its own, and `for_ever` before a server starts: one that others ask for a
    profile, or one of TensorFlow's clusters, beside which the profiler ends processes."""
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
            # what goes wrong with ours is not the script's
            call()
        return real(*args, **kwargs)

    setattr(owner, name, made)


def events(raw: bytes) -> List[Event]:
    """What `Trace.stop` gives, from a serialized `tensorflow.profiler.Trace`."""
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
    """The class of a trace, made here: TensorFlow's own lies in another module in each version, and refuses names that are no UTF-8."""
    if "trace" in _known:
        return _known["trace"]
    # TensorFlow needs them itself
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
