"""The exceptions of readers and writers of tables."""

from __future__ import annotations

import sys
from typing import Any, List, Type

END = "End of table reached!"


class OutOfRangeException(Exception):
    """There are no more rows. If TensorFlow is imported, the exception is a `tf.errors.OutOfRangeError`, too."""


class TableError(RuntimeError):
    """A table cannot be read or written. The message is the host's."""


class NoSuchTable(TableError, ValueError):
    """The table is not one of the job's, or does not exist, or has no such column."""


class TableUseError(TableError, ValueError):
    """The table is used wrongly: another task writes the slice, or the name is not valid."""


class NoSuchColumn(TableError, ValueError):
    """The table has no such column."""


class OnlyOnPai(RuntimeError):
    """The script uses something that only PAI's own TensorFlow has."""


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
    """Return the exception for an error of the host, or of this machine. Args: kind: the name of the exception's type there."""
    if kind == "OSError":
        return OSError(message)
    return _KINDS.get(kind, TableError)(message)


def out_of_range() -> OutOfRangeException:
    """Return the exception for the end of a table: the script can catch it by PAI's name, or by TensorFlow's."""
    tensorflow = sys.modules.get("tensorflow")
    errors: Any = getattr(tensorflow, "errors", None)
    if errors is None or not hasattr(errors, "OutOfRangeError"):
        return OutOfRangeException(END)
    if not _both:

        class OutOfRange(OutOfRangeException, errors.OutOfRangeError):
            """There are no more rows."""

            def __init__(self) -> None:
                errors.OutOfRangeError.__init__(self, None, None, END)

            def __str__(self) -> str:
                return END

            def __reduce__(self) -> Any:
                return out_of_range, ()

        OutOfRange.__name__ = OutOfRange.__qualname__ = "OutOfRangeException"
        _both.append(OutOfRange)
    return _both[0]()
