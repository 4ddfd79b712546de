"""What systems with an ADBC driver share: a driver that may be missing, and queries that Ctrl-C and the job's end can
interrupt."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from akrunner.errors import AkrunnerError, ConfigError
from akrunner.foreign import ours
from akrunner.io.sql import heard


def driver(name: str, extra: str) -> Any:
    """Return a driver's DB-API module.

    Args:
        name: the name of its package.
        extra: the extra of akrunner that installs it.
    Raises:
        ConfigError: it is not installed.
    """
    try:
        return importlib.import_module(f"{name}.dbapi")
    except ImportError as e:
        raise ConfigError(
            f"databases are read and written by {name.replace('_', '-')}, which is missing ({e}): pip install "
            f"'akrunner[{extra}]'"
        ) from None


def asked(cursor: Any, call: Callable[[], Any]) -> Any:
    """Return what `call`, which may take long in a database, returns; Ctrl-C ends it in the database.

    Args:
        cursor: the cursor that `call` uses.
    Raises:
        BaseException: whatever `call` raises.
    """

    def cancel() -> None:
        # not every driver can, and its error would take the place of Ctrl-C's
        with contextlib.suppress(Exception):
            cursor.adbc_cancel()

    return heard(call, cancel)


class Drawn:
    """The batches of a query, and their connection, which is closed when the batches end or are stopped.

    Args:
        connect: opens the connection.
        start: runs the query with a cursor and returns its rows.
        kind: as in `akrunner.foreign.ours`.
        what: as in `akrunner.foreign.ours`.
    """

    def __init__(
        self, connect: Callable[[], Any], start: Callable[[Any], pa.RecordBatchReader], kind: type[AkrunnerError], what: str
    ) -> None:
        self._connect, self._start = connect, start
        self._kind, self._what = kind, what
        self._cursor: Any = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        with ours(self._kind, self._what), contextlib.closing(self._connect()) as connection:
            with contextlib.closing(connection.cursor()) as cursor:
                self._cursor = cursor
                try:
                    yield from self._start(cursor)
                finally:
                    self._cursor = None
                    # a query that has not ended would keep the connection busy
                    with contextlib.suppress(Exception):
                        cursor.adbc_cancel()

    def stop(self) -> None:
        """End the query early, from another thread."""
        cursor = self._cursor
        if cursor is not None:
            with contextlib.suppress(Exception):
                cursor.adbc_cancel()
