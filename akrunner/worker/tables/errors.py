"""What readers and writers of tables raise."""

from __future__ import annotations

import sys
from typing import Any, List, Type

END = "End of table reached!"


class OutOfRangeException(Exception):
    """There are no more rows. Where TensorFlow is there, it is a `tf.errors.OutOfRangeError`, too."""


class TableError(RuntimeError):
    """A table cannot be read or written: the host's words."""


class NoSuchTable(TableError, ValueError):
    """It is not among the job's, or not there, or has no such column."""


class TableUseError(TableError, ValueError):
    """It is used in a way it cannot be: a slice that another task writes, a name that is none."""


class NoSuchColumn(TableError, ValueError):
    """The table has no such column."""


class OnlyOnPai(RuntimeError):
    """What PAI's own TensorFlow has, and no other."""


class TableWriteError(TableError, TypeError):
    """A table refuses a value."""


_KINDS = {
    "NoSuchTable": NoSuchTable,
    "NoSuchColumn": NoSuchColumn,
    "TableWriteError": TableWriteError,
    "TableUseError": TableUseError,
    "ConfigError": TableUseError,
    "SourceError": NoSuchTable,
    "SinkError": NoSuchTable,
    "SchemaError": NoSuchTable,
    "DataError": TableWriteError,
}
_both: List[Type[OutOfRangeException]] = []


def failed(kind: str, message: str) -> Exception:
    """The exception for what the host, or this machine, said. Args: kind: the name of the exception's type there."""
    if kind == "OSError":
        return OSError(message)
    return _KINDS.get(kind, TableError)(message)


def out_of_range() -> OutOfRangeException:
    """The exception that says that there are no more rows, whatever name of it the script catches."""
    tensorflow = sys.modules.get("tensorflow")
    errors: Any = getattr(tensorflow, "errors", None)
    if errors is None or not hasattr(errors, "OutOfRangeError"):
        return OutOfRangeException(END)
    if not _both:

        class OutOfRange(OutOfRangeException, errors.OutOfRangeError):
            """No more rows."""

            def __init__(self) -> None:
                errors.OutOfRangeError.__init__(self, None, None, END)

            def __str__(self) -> str:
                return END

            def __reduce__(self) -> Any:
                return out_of_range, ()

        OutOfRange.__name__ = OutOfRange.__qualname__ = "OutOfRangeException"
        _both.append(OutOfRange)
    return _both[0]()
