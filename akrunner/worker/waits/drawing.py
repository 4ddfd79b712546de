"""Tells which runs of a session draw from an iterator, and which are fed their input.

An initializer draws nothing, nor does a run that only reads a variable.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable

from akrunner.worker.waits import pipeline

#: how many operations are searched for one that draws; a larger graph is assumed to draw
_MOST = 20000
_DRAWS = ("IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional", "MultiDeviceIteratorGetNextFromShard")

#: operations that set a variable; if the new value is computed, the run may be a step
_SETS = ("Assign", "AssignVariableOp")


def is_fed(values: Iterable[Any]) -> bool:
    """Whether a run is fed its input. A checkpoint's name (restoring, saving) is not input, nor is an iterator's handle."""
    return any([not _is_name(one) for one in values])


def _is_name(value: Any) -> bool:
    if isinstance(value, (str, bytes)):
        return True
    # the names that TensorFlow itself feeds are arrays without dimensions
    return getattr(value, "shape", None) == () and getattr(getattr(value, "dtype", None), "kind", "") in ("S", "U", "O")


def begins(fetches: Any, feed: Any) -> bool:
    """Whether a run only initializes iterators or variables. Args: fetches, feed: those of the run."""
    if isinstance(fetches, (list, tuple)):
        return bool(fetches) and all([begins(one, feed) for one in fetches])
    operation = getattr(fetches, "op", fetches)
    kind = getattr(operation, "type", None)
    return kind == "MakeIterator" or (kind in _SETS and any([operation.inputs[1] is one for one in feed]))


def draws(known: Dict[str, Any], fetches: Any) -> bool:
    """Whether a run draws from an iterator.

    Args:
        known: name of an operation -> whether fetching it draws; the result is added to it.
        fetches: those of the run.
    """
    if isinstance(fetches, (list, tuple)):
        return not fetches or any([draws(known, one) for one in fetches])
    if isinstance(fetches, dict):
        return any([draws(known, one) for one in fetches.values()])
    name: Any = getattr(fetches, "name", None)
    found = known.get(name)
    if found is None:
        operation = getattr(fetches, "op", fetches)
        found = not hasattr(operation, "control_inputs") or _reaches(operation)
        if name is not None:
            known[name] = found
    return found


def _reaches(operation: Any) -> bool:
    """Whether an operation that draws must run before this operation can."""
    seen, waiting = {operation}, [operation]
    while waiting:
        one = waiting.pop()
        # a function may draw: its body is not searched
        if one.type in _DRAWS or one.type in pipeline.CALLS or len(seen) > _MOST:
            return True
        for other in [tensor.op for tensor in one.inputs] + list(one.control_inputs):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return False
