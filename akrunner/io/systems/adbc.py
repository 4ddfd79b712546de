"""What systems with an ADBC driver have in common: a driver that may be missing, and queries that Ctrl-C and the job's end reach."""

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
    """A driver's DB-API module. Args: name: of its package; extra: of akrunner, that brings it. Raises: ConfigError: it is not installed."""
    try:
        return importlib.import_module(f"{name}.dbapi")
    except ImportError as e:
        raise ConfigError(
            f"databases are read and written by {name.replace('_', '-')}, which is missing ({e}): pip install 'akrunner[{extra}]'"
        ) from None


def asked(cursor: Any, call: Callable[[], Any]) -> Any:
    """Do what may take long in a database, so that Ctrl-C ends it there. Args: cursor: that does it. Raises: what `call` raises."""
    return heard(call, cursor.adbc_cancel)


class Drawn:
    """A query's batches, and the connection they come over, which goes when they end or are ended. Args: connect: opens it; kind, what: as of `ours`."""

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
                    # a query that is left in its middle holds the connection
                    with contextlib.suppress(Exception):
                        cursor.adbc_cancel()

    def stop(self) -> None:
        """End it early, from another thread."""
        cursor = self._cursor
        if cursor is not None:
            with contextlib.suppress(Exception):
                cursor.adbc_cancel()
