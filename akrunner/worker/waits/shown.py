"""What the script's tracebacks show of us, where a call went through our clocks: one line, which says why it is there."""

from __future__ import annotations

import os
import re
import types
from typing import Any, Callable

#: in place of the path of our file
NAME = "<akrunner: how long the script waits for its input (docs/doctor.md)>"
_PARTS = (
    "argcount", "kwonlyargcount", "nlocals", "stacksize", "flags", "code", "consts", "names", "varnames", "filename", "name", "firstlineno",
    "lnotab", "freevars", "cellvars",
)  # fmt: skip


def named(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; tracebacks show NAME for its file."""
    code = function.__code__
    if hasattr(code, "replace"):
        function.__code__ = code.replace(co_filename=NAME)
    else:
        # Python 3.7
        parts: Any = [NAME if part == "filename" else getattr(code, "co_" + part) for part in _PARTS]
        function.__code__ = types.CodeType(*parts)
    return function


#: what the files of our code begin with, as tracebacks name them. It is no place: the host compiles them (`launch.bundle`)
OURS = os.path.dirname(os.path.dirname(os.path.dirname(named.__code__.co_filename))) + os.sep
#: our code's other file: what the bundle begins with when it is run
MAIN = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))), "__main__.py"
)
#: a line of a traceback within a text that is in one of our files, what it has of the source, and the empty line that stands between it and the next
_LINE = re.compile(
    r'^[ \t]*File "(?:%s|%s)[^"\n]*", line \d+, in .*\n(?:    .*\n)*(?:[ \t]*\n)?' % (re.escape(NAME), re.escape(OURS)),
    re.MULTILINE,
)


def left_out(text: str) -> str:
    """A text without our lines of the tracebacks it has: TensorFlow's errors have one in their message where a pipeline's Python raised."""
    return _LINE.sub("", text) if NAME in text or OURS in text else text


def cut(error: BaseException) -> BaseException:
    """The error, without the lines of ours that its traceback begins with: who raises it adds one again."""
    kept = error.__traceback__
    while kept is not None and kept.tb_frame.f_code.co_filename == NAME:
        kept = kept.tb_next
    # not the error's own: a script's class may have made another of it
    return BaseException.with_traceback(error, kept)
