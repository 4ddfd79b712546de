"""The fields that the JSON of each message must have. The receiver checks a message here before it uses a field.

Further fields are ignored: the other end may send more.
"""

from typing import Any, Dict, Mapping

from akrunner.wire import frames
from akrunner.wire.frames import WireError


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and -(1 << 63) <= value < 1 << 63)


def _text(value: Any) -> bool:
    # a lone surrogate cannot be printed
    return isinstance(value, str) and value.encode("utf-8", "replace").decode("utf-8") == value


def _metrics(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_number, value.values()))


def _record(value: Any) -> bool:
    return isinstance(value, dict)


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_count, value))


def _table(value: Any) -> bool:
    return isinstance(value, list) and all(map(_counts, value))


def _step(value: Any) -> bool:
    return value is None or (type(value) is int and _number(value))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _name(value: Any) -> bool:
    """Whether it can be a file's name: unlike a text it may stand for any bytes, as the file system allows."""
    return isinstance(value, str)


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_name, value))


def _environment(value: Any) -> bool:
    """Whether it maps names of environment variables to their values, or to null for a variable to be removed."""
    return isinstance(value, dict) and all(one is None or isinstance(one, str) for one in value.values())


def _truth(value: Any) -> bool:
    return value is True or value is False


def _maybe_truth(value: Any) -> bool:
    return value is None or _truth(value)


def _some(value: Any) -> bool:
    return value is None or _count(value)


def _positive(value: Any) -> bool:
    return _count(value) and value > 0


def _maybe_text(value: Any) -> bool:
    return value is None or _text(value)


def _amount(value: Any) -> bool:
    """Whether it is a finite number that is not negative, such as seconds."""
    return _number(value) and 0 <= value < float("inf")


def _amounts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_amount, value.values()))


def _nodes(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) and _fit(one, _NODE) and _some(one.get("of")) for one in value)


def _windows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, list) and len(one) == 4 and all(map(_amount, one)) for one in value)


def _fact(value: Any) -> bool:
    return _truth(value) or _text(value) or _number(value)


def _chain(value: Any) -> bool:
    """Whether it is the nodes of a pipeline: each has a name, a line of the script, and any further facts."""
    return isinstance(value, list) and all(
        isinstance(node, dict) and _fit(node, {"node": _text, "at": _text}) and all(map(_fact, node.values())) for node in value
    )


def _pipelines(value: Any) -> bool:
    fields = {"nodes": _chain, "passes": _count}
    return isinstance(value, list) and all(isinstance(one, dict) and _fit(one, fields) for one in value)


def _lines(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict) and _fit(one, _LINE) and _amount(one.get("computes", 0)) for one in value
    )


def _maybe_amount(value: Any) -> bool:
    return value is None or _amount(value)


def _fit(body: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    return all(field in body and fits(body[field]) for field, fits in fields.items())


#: a column of a table: its name, its type in the store, its type on the wire, whether it is a partition column, whether it may
#: be null
_COLUMN = {"name": _text, "type": _text, "dtype": _text, "partition": _truth, "nullable": _truth}


def _table_columns(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) and _fit(one, _COLUMN) for one in value)


#: fields of one node of an input's trace, of one line of Python, and of the measurements of a task's input
#: (`akrunner.worker.waits.meter.Meter.record`)
_NODE = {"path": _text, "own": _amount, "calls": _count}
_LINE = {"main": _truth, "at": _text, "in": _text, "share": _amount}
INPUT = {
    "asked": _count, "main": _amount, "lines": _lines, "looks": _count, "busy": _maybe_amount, "cores": _count, "idle": _maybe_amount,
    "by": _text, "batches": _count, "rows": _some, "wait": _amount, "between": _amount, "outside": _amount, "first": _amount, "looked": _count,
    "known": _truth, "hidden": _truth, "elsewhere": _truth, "unlooked": _amount, "look": _amount, "spent": _amounts,
    "nodes": _nodes, "windows": _windows, "pipelines": _pipelines,
}  # fmt: skip
#: further fields of those measurements; some depend on the system
INPUT_MAY_HAVE = {
    **{name: _amounts for name in ("calls", "python", "times", "early", "early_times", "within")},
    **{name: _truth for name in ("keeps", "served", "tensorflow", "tunes")},
    **{name: _maybe_amount for name in ("used", "watched")},
    **{name: _some for name in ("disk", "given")},
    **{name: _text for name in ("hindered", "version")},
    "cards": _maybe_truth,
}
#: fields of a failure record (`akrunner.wire.failure`)
FAILURE = {"type": _text, "message": _text, "traceback": _text, "phase": _text, "time_ns": _count}
#: kind of frame -> {field: the function that says whether its value fits}
FIELDS: Mapping[int, Mapping[str, Any]] = {
    frames.END: {"rows": _count, "total_rows": _count, "shares": _counts, "splits": _table},
    frames.HELLO: {"version": _count, "pid": _count, "python": _text, "executable": _text},
    frames.READY: {"rows": _count, "waited_ns": _count},
    frames.REPORT: {"metrics": _metrics, "step": _step, "time_ns": _count},
    frames.REFUSED: FAILURE,
    frames.CLOSED: {
        "ok": _truth, "rows": _count, "rows_read": _count, "main_ns": _count, "output_blocked_ns": _count,
        "rows_dropped": _count, "rows_padded": _count, "notes": _texts,
    },
    frames.LEFT: {"notes": _texts},
    frames.SPARE: {"env": _environment, "cpus": _counts, "overlay": _name, "preload": _texts, "began_ns": _count, "temp": _name},
    frames.OFFER: {"names": _names},
    frames.ORDER: {"env": _environment, "cwd": _name, "bundle": _name},
    frames.WAITING: {"seconds": _number, "alone": _text},
    frames.ANSWER: {"why": _text, "stale": _truth},
    frames.LOOK_TABLE: {"request": _count, "table": _text},
    frames.READ_TABLE: {
        "request": _count, "table": _text, "columns": _texts, "start": _count, "stop": _count, "credits": _positive,
    },
    frames.WRITE_TABLE: {"request": _count, "table": _text, "slice": _count, "process": _text},
    frames.CLOSE_TABLE: {"request": _count, "rows": _count, "whole": _truth},
    frames.TAKE_WORK: {
        "request": _count, "queue": _text, "works": _texts, "digest": _text, "epochs": _some, "shuffle": _truth, "seed": _step,
        "slices": _some,
    },
    frames.TABLE_OPENED: {
        "request": _count, "columns": _table_columns, "start": _count, "rows": _count, "credits": _count, "replaces": _counts,
    },
    frames.TABLE_DONE: {"request": _count, "rows": _count},
    frames.TABLE_FAILED: {"request": _count, "type": _text, "message": _text},
    frames.WORK: {"request": _count, "work": _maybe_text},
    frames.READ_MORE: {"request": _count, "chunks": _positive},
    frames.WRITE_MORE: {"request": _count, "chunks": _positive},
    frames.FORK: {"mark": _text},
    frames.FORKED: {"mark": _text, "pid": _count, "why": _text},
    frames.ENDED: {"mark": _text, "status": _count, "peak_rss": _count, "cpu_seconds": _number},
}  # fmt: skip


#: further fields that a message may have, which are checked if they are there: kind of frame -> {field: the same function}
MAY_HAVE: Mapping[int, Mapping[str, Any]] = {
    frames.CLOSED: {"failure": _record, "input": _record, "unasked": _texts, "asked": _truth},
    frames.PASSED: {"rows": _count, "bytes": _count, "lost": _text, "error": _text, "broken": _text},
}


def read(frame: frames.Frame) -> Dict[str, Any]:
    """Return a message's body, checked to have every field it must have. Raises: WireError: a field is missing or wrong."""
    body = frame.json()
    kind = frame.kind
    name = frames.NAMES[kind]
    _check(name, body, FIELDS.get(kind, {}))
    if kind == frames.CLOSED and not body["ok"] and not _record(body.get("failure")):
        raise WireError("a closed message does not say what failed")
    if kind == frames.PASSED and not {"lost", "error", "broken"}.intersection(body):
        _check(name, body, {"rows": _count, "bytes": _count})
    _check_what_is_there(name, body, MAY_HAVE.get(kind, {}))
    if kind == frames.CLOSED and not body["ok"]:
        _check(name, body["failure"], FAILURE)
    if kind == frames.CLOSED and "input" in body:
        _check(name, body["input"], INPUT)
        _check_what_is_there(name, body["input"], INPUT_MAY_HAVE)
    return body


def _check_what_is_there(name: str, body: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    _check(name, body, {field: fits for field, fits in fields.items() if field in body})


def _check(name: str, body: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    for field, fits in fields.items():
        if field not in body:
            raise WireError("a %s message has no %r" % (name, field))
        if not fits(body[field]):
            raise WireError("a %s message has the %r %.100r" % (name, field, body[field]))
