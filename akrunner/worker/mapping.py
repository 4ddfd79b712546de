"""Checks of the function that a script gives as `map=` or `interleave=`, and the errors about it."""

from __future__ import annotations

import builtins
import inspect
import re
import traceback
from typing import Any, Callable, List, Optional

from akrunner.worker.waits import shown

# patterns of errors: they are compiled when there is one, not while each worker process starts
_RETURNED = r"Unsupported return value|attr '?output_(?:types|shapes)'?|Could not build a `?TypeSpec"
_RAISED = r"(?m)^\s*([\w.]*\w): (.*)"
#: the lines in which AutoGraph of TensorFlow 1 and 2 names a file and line
_PLACE = r'(?m)^\s*(?:File "([^"\n]+)", line (\d+)|([^\s:][^:\n]*):(\d+)),?[^\n]*'


def check_arguments(function: Callable[..., Any], label: Optional[str], weighted: bool) -> None:
    """Check that the function given as `map=` can be called with a batch.

    Args:
        label: the column that is separated from the features; None for none.
        weighted: whether rows have weights.
    Raises:
        TypeError: it takes other arguments.
    """
    _check_takes("map", function, ["columns"] if label is None else ["features", "label"] + ["weight"] * bool(weighted))


def check_row(function: Callable[..., Any]) -> None:
    """Check that the function given as `interleave=` can be called with a row. Raises: TypeError: it takes other arguments."""
    _check_takes("interleave", function, ["row"])


def _check_takes(asked: str, function: Callable[..., Any], parts: List[str]) -> None:
    """Check that a function can be called. Args: asked: "map" or "interleave"; parts: the names of its arguments.

    Raises: TypeError: it takes other arguments.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a function written in C may not tell its arguments
    try:
        signature.bind(*parts)
    except TypeError:
        raise TypeError(
            "%s=%s takes %s, and is called with (%s): write def %s(%s)"
            % (asked, _name(function), signature, ", ".join(parts), asked, ", ".join(parts))
        ) from None


def no_dataset(function: Callable[..., Any], returned: Any) -> TypeError:
    """Return the error for a function given as `interleave=` that has not returned a dataset; it says what to write."""
    return TypeError(
        "interleave=%s returns %s: return a tf.data.Dataset, of the file that the row names, as a rule: "
        "return tf.data.TFRecordDataset(row['path'])"
        % (_name(function), "None" if returned is None else "what is of type %s" % type(returned).__name__)
    )


def refused(function: Callable[..., Any], error: BaseException, asked: str = "map") -> Exception:
    """Return an error that says what to write, for TensorFlow's error when it cannot call the script's function.

    Args:
        function: the script's function.
        error: TensorFlow's error.
        asked: "map" or "interleave", the argument that the function was given as.
    """
    name, text = _name(function), str(error)
    if asked == "map" and re.search(_RETURNED, text):
        return TypeError(
            "map=%s returns None, or something else that TensorFlow cannot hold: return tensors, or a dict or tuple of them, "
            "as a rule the batch itself, changed" % name
        )
    raised = re.findall(_RAISED, text) if "in user code" in text or "in converted code" in text else []
    kind, words = raised[-1] if raised else (type(error).__name__, text)
    places = [(one or other, line or number) for one, line, other, number in re.findall(_PLACE, text)]
    if not places:
        # a function that AutoGraph could not translate runs untranslated
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
