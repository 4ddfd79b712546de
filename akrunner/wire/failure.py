"""Failure records: exceptions of a worker process, as data.

A record is a JSON object: `type`, `message`, `traceback` (text, with the chain of causes), `phase` (what the task was doing),
`time_ns` (since the epoch; a job's earliest record is its root cause).
"""

import time
import traceback
from typing import Optional

from akrunner.wire.messages import Failure
from akrunner.wire.shapes import escaped

#: by these words of a record, the host tells a lack of disk space for rows from an error of the script: the phase of a task that
#: receives its rows, and the first words of the error if the disk does not take the rows of a table that the script asked for
RECEIVING, SPOOL_FAILED = "while receiving rows", "cannot spool a table's rows: "
#: characters that are kept of the beginning, and of the end, of a message or traceback
_MOST_CHARACTERS = 128 << 10


def record(error: BaseException, phase: str, text: Optional[str] = None) -> Failure:
    """Return the failure record of an exception.

    Args:
        error: the exception.
        phase: what the task was doing, in words: "while importing the script", "in main()", ...
        text: its formatted traceback, if the caller has trimmed it; None: the whole one is formatted here.
    """
    kind = type(error)
    name = kind.__name__ if kind.__module__ in ("builtins", "__main__", None) else kind.__module__ + "." + kind.__name__
    if text is None:
        text = "".join(traceback.format_exception(kind, error, error.__traceback__))
    try:
        message = str(error)
    except Exception as e:  # a broken __str__ must not hide the failure it belongs to
        message = "<its message cannot be printed: %s>" % type(e).__name__
    return Failure(type=_shown(name), message=_shown(message), traceback=_shown(text), phase=phase, time_ns=time.time_ns())


def _shown(text: str) -> str:
    """Return a text that can be printed anywhere: without lone surrogates, and if very long only its beginning and end."""
    if len(text) > 2 * _MOST_CHARACTERS:
        text = (
            text[:_MOST_CHARACTERS]
            + "\n... %d characters ...\n" % (len(text) - 2 * _MOST_CHARACTERS)
            + text[-_MOST_CHARACTERS:]
        )
    told: str = escaped(text)
    return told
