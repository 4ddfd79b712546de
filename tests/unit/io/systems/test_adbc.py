"""What systems with an ADBC driver share, over a connection that is none."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SourceError
from akrunner.io.systems import adbc
from akrunner.io.systems.adbc import Drawn, driver

BATCHES = [pa.record_batch({"x": [1]}), pa.record_batch({"x": [2]})]


class Connection:
    """In place of a driver's connection, and of its cursor. Attributes: told: what was done, in order."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def cursor(self) -> Cursor:
        return Cursor(self.told)

    def close(self) -> None:
        self.told.append("connection closed")


class Cursor:
    def __init__(self, told: list[str]) -> None:
        self.told = told

    def adbc_cancel(self) -> None:
        self.told.append("cancelled")
        raise OSError("nothing to cancel")

    def close(self) -> None:
        self.told.append("cursor closed")


CLOSED = ["cancelled", "cursor closed", "connection closed"]


def drawn(connection: Connection, start: Any = lambda cursor: iter(BATCHES)) -> Drawn:
    return Drawn(lambda: connection, start, SourceError, "source: cannot read t")


def test_a_driver_that_is_missing_is_told_with_what_to_install() -> None:
    with pytest.raises(ConfigError, match=r"by adbc-driver-of-nobody, which is missing .*: pip install 'akrunner\[nobody\]'"):
        driver("adbc_driver_of_nobody", "nobody")


def test_a_connection_is_opened_when_rows_are_drawn_and_closed_behind_the_last() -> None:
    connection = Connection()
    batches = drawn(connection).batches()
    assert next(batches) is BATCHES[0] and connection.told == []
    assert list(batches) == BATCHES[1:] and connection.told == CLOSED


def test_a_connection_is_closed_when_the_rest_is_not_wanted() -> None:
    connection = Connection()
    batches = drawn(connection).batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert connection.told == CLOSED


def test_what_the_query_raises_is_told_and_the_connection_closed() -> None:
    def fails(cursor: Any) -> Any:
        raise OSError("the server went away")

    connection = Connection()
    with pytest.raises(SourceError, match="source: cannot read t: .*the server went away"):
        list(drawn(connection, fails).batches())
    assert connection.told == CLOSED


def test_a_query_is_ended_from_outside_while_it_runs_and_not_before_or_after() -> None:
    connection = Connection()
    query = drawn(connection)
    query.stop()
    batches = query.batches()
    next(batches)
    assert connection.told == []
    query.stop()
    assert connection.told == ["cancelled"]
    list(batches)
    query.stop()
    assert connection.told == ["cancelled", *CLOSED]


def test_what_takes_long_is_asked_so_that_it_can_be_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    cursor, given = Cursor([]), []

    def heard(call: Any, cancel: Any) -> Any:
        given.append(cancel)
        return call()

    monkeypatch.setattr(adbc, "heard", heard)
    assert adbc.asked(cursor, lambda: 5) == 5
    # an error of the driver would take the place of Ctrl-C
    given[0]()
    assert cursor.told == ["cancelled"]
