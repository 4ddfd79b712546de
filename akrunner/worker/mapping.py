"""The function a script gives as `map=`, or `interleave=`: what it is called with, and what is said of it if it does not fit."""

from __future__ import annotations

import builtins
import inspect
import re
import traceback
from typing import Any, Callable, List, Optional

from akrunner.worker.waits import shown

_RETURNED = re.compile(r"Unsupported return value|attr '?output_(?:types|shapes)'?|Could not build a `?TypeSpec")
_RAISED = re.compile(r"^\s*([\w.]*\w): (.*)", re.MULTILINE)
#: AutoGraph's lines on where it was, of TensorFlow 1 and 2
_PLACE = re.compile(r'^\s*(?:File "([^"\n]+)", line (\d+)|([^\s:][^:\n]*):(\d+)),?[^\n]*', re.MULTILINE)


def check_arguments(function: Callable[..., Any], label: Optional[str], weighted: bool) -> None:
    """Args: label: column that is given apart, None; weighted: rows have weights. Raises: TypeError: it cannot be called with a batch so."""
    _check_takes("map", function, ["columns"] if label is None else ["features", "label"] + ["weight"] * bool(weighted))


def check_row(function: Callable[..., Any]) -> None:
    """Raises: TypeError: what was given as `interleave=` cannot be called with a row."""
    _check_takes("interleave", function, ["row"])


def _check_takes(asked: str, function: Callable[..., Any], parts: List[str]) -> None:
    """Args: asked: the argument it was given as; parts: what it is called with."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # one written in C does not say
    try:
        signature.bind(*parts)
    except TypeError:
        raise TypeError(
            "%s=%s takes %s, and is called with (%s): write def %s(%s)"
            % (asked, _name(function), signature, ", ".join(parts), asked, ", ".join(parts))
        ) from None


def no_dataset(function: Callable[..., Any], returned: Any) -> TypeError:
    """What was given as `interleave=` has returned something else -> an exception that says what to write."""
    return TypeError(
        "interleave=%s returns %s: return a tf.data.Dataset, of the file that the row names, as a rule: "
        "return tf.data.TFRecordDataset(row['path'])"
        % (_name(function), "None" if returned is None else "what is of type %s" % type(returned).__name__)
    )


def refused(function: Callable[..., Any], error: BaseException, asked: str = "map") -> Exception:
    """What TensorFlow says when it cannot map with a function -> an exception that says what to write. Args: asked: what it was given as."""
    name, text = _name(function), str(error)
    if asked == "map" and _RETURNED.search(text):
        return TypeError(
            "map=%s returns None, or something else that TensorFlow cannot hold: return tensors, or a dict or tuple of them, as a rule "
            "the batch itself, changed" % name
        )
    raised = _RAISED.findall(text) if "in user code" in text or "in converted code" in text else []
    kind, words = raised[-1] if raised else (type(error).__name__, text)
    places = [(one or other, line or number) for one, line, other, number in _PLACE.findall(text)]
    if not places:
        # what AutoGraph could not translate runs as it is
        script = getattr(getattr(function, "__code__", None), "co_filename", None)
        places = [
            (frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__) if frame.filename == script
        ]
    at = [place for place in places if not place[0].startswith(shown.OURS)]
    where = " at line %s of %s" % (at[-1][1], at[-1][0]) if at else ""
    kept = getattr(builtins, type(error).__name__, None)
    made = kept if kept in (TypeError, ValueError, NameError, AttributeError) else ValueError
    return made("%s=%s raised %s%s: %s" % (asked, name, kind.rpartition(".")[2], where, words))


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__name__)[:100]
