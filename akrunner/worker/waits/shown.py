"""Makes the script's tracebacks show a single line for akrunner's clocks, which says why it is there."""

from __future__ import annotations

import os
import re
import types
from typing import Any, Callable

#: the file name that tracebacks show in place of the path of akrunner's file
NAME = "<akrunner: how long the script waits for its input (docs/doctor.md)>"
_PARTS = (
    "argcount", "kwonlyargcount", "nlocals", "stacksize", "flags", "code", "consts", "names", "varnames", "filename", "name", "firstlineno",
    "lnotab", "freevars", "cellvars",
)  # fmt: skip


def named(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, changed so that tracebacks show NAME for its file."""
    code = function.__code__
    if hasattr(code, "replace"):
        function.__code__ = code.replace(co_filename=NAME)
    else:
        # Python 3.7
        parts: Any = [NAME if part == "filename" else getattr(code, "co_" + part) for part in _PARTS]
        function.__code__ = types.CodeType(*parts)
    return function


#: the beginning of the paths of akrunner's files in tracebacks. It need not exist: the host has compiled the files
#: (`launch.bundle`)
OURS = os.path.dirname(os.path.dirname(os.path.dirname(named.__code__.co_filename))) + os.sep
#: the one file of akrunner that does not begin so: the bundle's `__main__.py`
MAIN = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))), "__main__.py"
)
#: a traceback's entry for one of akrunner's files within a text: its line, the source below it, and the empty line after it
_LINE = r'(?m)^[ \t]*File "(?:%s|%s)[^"\n]*", line \d+, in .*\n(?:    .*\n)*(?:[ \t]*\n)?' % (re.escape(NAME), re.escape(OURS))


def left_out(text: str) -> str:
    """Return a text without akrunner's lines in the tracebacks it contains.

    The message of a TensorFlow error contains a traceback if Python code of a pipeline has raised.
    """
    return re.sub(_LINE, "", text) if NAME in text or OURS in text else text


def cut(error: BaseException) -> BaseException:
    """Return the error without akrunner's lines at the beginning of its traceback.

    The caller that raises it adds one line again.
    """
    kept = error.__traceback__
    while kept is not None and kept.tb_frame.f_code.co_filename == NAME:
        kept = kept.tb_next
    # not the error's own `with_traceback`: a class of the script may have redefined it
    return BaseException.with_traceback(error, kept)
