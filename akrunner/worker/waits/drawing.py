"""Which runs of a session draw from an iterator: an initializer does not, nor what only reads a variable. And which are fed what they compute with."""

from __future__ import annotations

from typing import Any, Dict, Iterable

from akrunner.worker.waits import pipeline

#: operations that are looked through for one that is fetched; a larger graph is taken to draw
_MOST = 20000
_DRAWS = ("IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional", "MultiDeviceIteratorGetNextFromShard")

#: operations that set a variable; one whose new value is computed may be a step
_SETS = ("Assign", "AssignVariableOp")


def fed(values: Iterable[Any]) -> bool:
    """Whether a run is fed what it computes with: the name of a checkpoint (restoring, saving) is none, nor an iterator's handle."""
    return any([not _is_name(one) for one in values])


def _is_name(value: Any) -> bool:
    if isinstance(value, (str, bytes)):
        return True
    # TensorFlow's own are arrays without a length
    return getattr(value, "shape", None) == () and getattr(getattr(value, "dtype", None), "kind", "") in ("S", "U", "O")


def begins(fetches: Any, feed: Any) -> bool:
    """Whether a run only gives iterators or variables what they are to begin with. Args: feed: what it is fed."""
    if isinstance(fetches, (list, tuple)):
        return bool(fetches) and all([begins(one, feed) for one in fetches])
    operation = getattr(fetches, "op", fetches)
    kind = getattr(operation, "type", None)
    return kind == "MakeIterator" or (kind in _SETS and any([operation.inputs[1] is one for one in feed]))


def draws(known: Dict[str, Any], fetches: Any) -> bool:
    """Whether a run that fetches this draws. Args: known: operation's name -> whether it does; what is asked for is added."""
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
    """Whether what draws must run before an operation does."""
    seen, waiting = {operation}, [operation]
    while waiting:
        one = waiting.pop()
        # a function may draw: nobody looks into it
        if one.type in _DRAWS or one.type in pipeline.CALLS or len(seen) > _MOST:
            return True
        for other in [tensor.op for tensor in one.inputs] + list(one.control_inputs):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return False
