"""Says in words which exception a script raised, and what to do about it where that is known."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from akrunner.engines.mistakes import Columns, mistake
from akrunner.wire.near import nearest

#: messages of TensorFlow about a feature that a row does not have, and of `dataset()` when rows are columns
_MISSING = re.compile(r"Feature: (.+?) \(data type: (\w+)\) is required but could not be found")
_NULL = re.compile(r"column (?:'[^'\n]*'|\"[^\"\n]*\") has a null in row [^\n]*")
_KEY = re.compile(r"\A['\"](.*)['\"]\Z|KeyError: \\?['\"](.*?)\\?['\"]", re.DOTALL)
_MODULE = re.compile(r"\ANo module named '([^'.]+)")
#: messages of Python and of TensorFlow about a relative path
_NO_FILE = re.compile(r"No such file or directory: b?'([^/'\n][^'\n]*)'|(?:\A|: )([^/\s;:][^\s;:]*); No such file or directory")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACE = re.compile(r"\{\{function_node [^}\n]*\}\} ?|Error in user-defined function passed to [^\n]*?Iterator::\S*: ")
_RAISED = re.compile(r"[\w.]*(?:Error|Exception|Exit): ")
_NOT_TELLING = re.compile(r"<stack traces|File \"|Detected at node|\[\[\{\{node|(?:\w+: )?Exception encountered when calling ")
_AUTOGRAPH = re.compile(r"\A['\"]?in user code:")
#: what is looked up in user_params, and in what is found there: user_params["model"]["units"]
_LOOKED_UP = re.compile(r"user_params((?:\s*\[[^\[\]\n]*\])+)")
_SHOWN_COLUMNS = 20


def told(
    record: Mapping[str, Any],
    columns: Sequence[str],
    fields: Columns = MappingProxyType({}),
    params: Collection[str] = (),
) -> str:
    """Return one sentence, without its subject, about the failure that a worker sent (`akrunner.wire.failure`).

    Args:
        columns: the names of the table's columns.
        fields: the table's columns by name.
        params: the names of the job's params.
    """
    kind, phase, message = record["type"], record["phase"], record["message"]
    if kind == "SystemExit":
        return f"called sys.exit({message}) {phase}"
    raised = f"raised {kind} {phase}"
    known = _of_null(message, columns) or mistake(kind, plain(message), fields)
    if known is not None:
        return f"{known} ({raised})"
    # if the message is a traceback, the line taken from it names the exception once more
    said = gist(message).removeprefix(kind.rpartition(".")[2] + ": ")
    to_do = advice(message) or _of_key(record, columns, params)
    return raised + (f": {said}" if said else "") + (f" ({to_do})" if to_do else "")


def gist(message: str) -> str:
    """Return the line of an exception's message that says most.

    TensorFlow's messages begin with "Graph execution error:" and the like, Keras's with where the error was; AutoGraph's
    messages are tracebacks of their own.
    """
    lines = [line.strip() for line in plain(message).splitlines() if line.strip()]
    if lines and _AUTOGRAPH.match(lines[0]):
        raised = [at for at, line in enumerate(lines) if _RAISED.match(line)]
        lines = lines[raised[-1] if raised else 0 :]
    telling = [line for line in lines if not line.endswith(":") and not _NOT_TELLING.match(line)]
    return (telling or lines or [""])[0]


def plain(message: str) -> str:
    """Return a message without Keras's colours, and without the names that TensorFlow gives to the operation it was in."""
    return _PLACE.sub("", _COLOUR.sub("", message))


def advice(message: str) -> str:
    """Return what to do about an exception of the script; "" if only the script's author can know that."""
    module = _MODULE.search(message)
    if module is not None:
        return (
            f"user_files= brings a module of yours, requirements= installs the package {module[1]!r} is of, python_env= names "
            "an interpreter that has it"
        )
    file = _NO_FILE.search(plain(message))
    if file is not None and os.path.exists(file[1] or file[2]):
        return f"a task has a directory of its own: user_files= (--user-file) brings {file[1] or file[2]} there"
    return ""


def _of_key(record: Mapping[str, Any], columns: Sequence[str], params: Collection[str]) -> str:
    """Return which names there are, of the kind that a KeyError is about: params or columns; "" if it is about neither."""
    key = _KEY.search(record["message"]) if record["type"].rpartition(".")[2] == "KeyError" else None
    name = (key[1] or key[2] or "") if key is not None else ""
    # in the traceback, what stands behind the last of the places is the line that raised
    file, _, line = record["traceback"].rpartition('  File "')[2].partition('"')
    of_params = _asks_param(line, name)
    if key is None or name in params or (name in columns and of_params is False) or of_params is None:
        return ""
    if of_params and not params:
        return f"the job has no user_params: --param {name}=... (user_params=) gives it one"
    if of_params:
        return f"user_params (--param) has {_listed(list(params))}{nearest(name, params)}"
    if "os.environ" in line or os.path.basename(file) in ("os.py", "<frozen os>"):
        return f"if an environment variable was meant: --env {name}=... (env=) gives the tasks one"
    if _likeness(name, columns) >= _likeness(name, params):
        return f"if a column was meant: the table has {_listed(columns)}{nearest(name, list(columns))}"
    return f"if a param was meant: the job has {_listed(list(params))}{nearest(name, params)}"


def _asks_param(line: str, name: str) -> bool | None:
    """Whether a line of a script that raised a KeyError looked for that name in `user_params`; None if it did so in the value of a param."""
    if "user_params" not in line:
        return False
    chains = [re.findall(r"\[\s*([^\[\]]*?)\s*\]", found[1]) for found in _LOOKED_UP.finditer(line)]
    # what is no text in quotes may have any value
    places = [
        place
        for chain in chains
        for place, key in enumerate(chain)
        if key[1:-1] == name or not re.fullmatch(r"'[^']*'|\"[^\"]*\"", key)
    ]
    if not chains or 0 in places:
        return True
    return None if places else False


def _likeness(name: str, known: Iterable[str]) -> float:
    """Return how alike a name and the nearest of the known ones are, from 0 to 1."""
    return max((difflib.SequenceMatcher(None, name.lower(), one.lower()).ratio() for one in known), default=0.0)


def _of_null(message: str, columns: Sequence[str]) -> str | None:
    """Return words about a row without a value that `tf.data` must have; None if the exception is about something else."""
    own = _NULL.search(message)
    if own is not None:
        return own[0]
    missing = _MISSING.search(message)
    if missing is None:
        return None
    name, dtype = missing[1], missing[2]
    if name not in columns:
        return f"looked for a feature {name!r}, and the table has no such column: it has {_listed(columns)}{nearest(name, list(columns))}"
    return (
        f"column {name!r} has a null, and {dtype} has no value for it: give dataset() defaults={{{name!r}: ...}}, or "
        "columns=[...] without it where the script does not need it; or COALESCE in select= (--select) gives nulls a value"
    )


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns[:_SHOWN_COLUMNS]) + (
        f" and {len(columns) - _SHOWN_COLUMNS} more" if len(columns) > _SHOWN_COLUMNS else ""
    )
