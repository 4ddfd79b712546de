"""Failure records: what a worker says about an exception, as data.

A record is a JSON object: `type`, `message`, `traceback` (text, the chain of causes included), `phase` (where the task was),
`time_ns` (since the epoch; the earliest of a job is its root cause).
"""

import time
import traceback
from typing import Any, Dict, Optional


def record(error: BaseException, phase: str, text: Optional[str] = None) -> Dict[str, Any]:
    """A failure record of an exception.

    Args:
        error: the exception.
        phase: where the task was, in words: "while importing the script", "in main()", ...
        text: its formatted traceback, when it was trimmed already.
    """
    kind = type(error)
    name = kind.__name__ if kind.__module__ in ("builtins", "__main__") else kind.__module__ + "." + kind.__name__
    if text is None:
        text = "".join(traceback.format_exception(kind, error, error.__traceback__))
    try:
        message = str(error)
    except Exception as e:  # a broken __str__ must not hide the failure it belongs to
        message = "<its message cannot be printed: %s>" % type(e).__name__
    return {"type": name, "message": message, "traceback": text, "phase": phase, "time_ns": time.time_ns()}
