"""Tables of servers by their ADBC drivers, with SQLite's driver in a server's place."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import adbc_driver_sqlite.dbapi as adbc
import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SinkError, SourceError, WriteError
from akrunner.io.systems import servers
from akrunner.io.systems.base import Url
from akrunner.io.systems.servers import Server, Target
from tests.guards import one_guard

__all__ = ["one_guard"]


class Here(Server):
    called = "Somewhere"
    options: Sequence[str] = ("tls",)

    def __init__(self, file: Path) -> None:
        self.file = file
        self.brought: list[Any] = []

    def connect(self, place: Url) -> Any:
        return adbc.connect(str(self.file))

    def rehearse(self, target: Target) -> None:
        pass

    def bring(self, target: Target, rows: pa.RecordBatchReader) -> None:
        self.brought.append((target.place.table, target.new, rows.read_all().to_pylist()))


@pytest.fixture
def here(tmp_path: Path) -> Here:
    with contextlib.closing(adbc.connect(str(tmp_path / "t.db"))) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("t", pa.table({"id": [1, 2, 3], "s": [7, None, 9]}))
        connection.commit()
    return Here(tmp_path / "t.db")


def rows(table: Any) -> list[dict[str, Any]]:
    return [row for batch in table.batches() for row in batch.to_pylist()]


def test_a_table_is_read_as_often_as_it_is_wanted(here: Here) -> None:
    table = here.open("somewhere://me:s3cret@h?table=t", None, None)
    assert table.replayable and "s3cret" not in table.name
    assert rows(table) == rows(table) == [{"id": 1, "s": 7}, {"id": 2, "s": None}, {"id": 3, "s": 9}]
    assert rows(here.open("somewhere://h?table=t", None, ["s"])) == [{"s": 7}, {"s": None}, {"s": 9}]
    with pytest.raises(SourceError, match="has no column 'ss'.*did you mean 's'"):
        here.open("somewhere://h?table=t", None, ["ss"])


def test_the_server_runs_a_query(here: Here) -> None:
    assert rows(here.open("somewhere://h", "SELECT max(id) AS m FROM t;", None)) == [{"m": 3}]


def test_columns_that_change_meanwhile_are_told(here: Here) -> None:
    table = here.open("somewhere://h?table=t", None, None)
    with contextlib.closing(adbc.connect(str(here.file))) as connection, connection.cursor() as cursor:
        cursor.execute("ALTER TABLE t RENAME COLUMN s TO other")
        connection.commit()
    with pytest.raises(SourceError, match="somebody has changed its columns meanwhile"):
        rows(table)


def test_what_is_wrong_is_told(here: Here) -> None:
    with pytest.raises(SourceError, match=r"names no table: put \?table=NAME"):
        here.open("somewhere://h", None, None)
    with pytest.raises(SourceError, match="cannot read somewhere://h.table=nowhere: .*no such table"):
        here.open("somewhere://h?table=nowhere", None, None)
    with pytest.raises(ConfigError, match="there is no option 'tsl' here .*did you mean 'tls'"):
        here.open("somewhere://h?table=t&tsl=on", None, None)
    with pytest.raises(SinkError, match=r"names no table: put \?table=NAME"):
        here.output("somewhere://h", pa.schema([]), False)
    with pytest.raises(SinkError, match="has no column 'ids'.*did you mean 'id'"):
        here.output("somewhere://h?table=t", pa.schema([("ids", pa.int64())]), False)


def test_rows_are_brought_when_the_job_has_succeeded(here: Here) -> None:
    schema = pa.schema([("id", pa.int32())])
    for name, new, wanted in (("t", False, [{"id": 4}]), ("other", True, [{"id": 4}])):
        sink = here.output(f"somewhere://h?table={name}", schema, False)
        sink.write_rows(pa.record_batch([[4]], schema=schema))
        assert here.brought == []
        sink.commit()
        assert here.brought == [(name, new, wanted)]
        here.brought.clear()
    sink = here.output("somewhere://h?table=t", schema, False)
    sink.commit()
    assert here.brought == []
    sink = here.output("somewhere://h?table=t", pa.schema([("id", pa.string())]), True)
    sink.write_rows(pa.record_batch([["1", "x"]], names=["id"]))
    with pytest.raises(WriteError, match="row 1, column 'id'"):
        sink.commit()
    sink.abort()
    assert "ours is lost" in str(servers.unknown("u", OSError("ours is lost")))


@pytest.mark.parametrize("url", ["flightsql://?table=t", "flightsql://me@?table=t", "flightsql://h:port?table=t"])
def test_a_url_without_a_server(url: str) -> None:
    with pytest.raises(ConfigError, match="which server\\? write its host"):
        servers.parts_of(Url.parse(url))


def test_where_a_secret_comes_from(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the file\nmore\n")
    url = Url.parse(f"flightsql://h?password_file={tmp_path}/secret")
    assert servers.secret_of(url, "password_file", "of%20the%20url", {"V": "of a variable"}, "V") == "of the file"
    url = Url.parse("flightsql://h")
    assert servers.secret_of(url, "password_file", "of%20the%20url", {"V": "of a variable"}, "V") == "of the url"
    assert servers.secret_of(url, "password_file", None, {"V": "of a variable"}, "V") == "of a variable"
    assert servers.secret_of(url, "password_file", None, {"V": ""}, "V") is None


def test_only_a_table_that_is_not_there_is_made(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(Exception):
        status_code: Any = 1

    def fails(words: str) -> None:
        def schema(cursor: Any, query: str) -> pa.Schema:
            raise Refused(words)

        monkeypatch.setattr(servers, "_schema_of", schema)

    for words in (
        'Catalog Error: Table with name t does not exist!\nDid you mean "tt"?',
        "Object 't' not found within 'a'",
        "Error during planning: table 'datafusion.public.t' not found",
        'ERROR: relation "t" does not exist',
        "Table 'shop.T' doesn't exist",
        "[TABLE_OR_VIEW_NOT_FOUND] The table or view `a`.`t` cannot be found.",
        "no such table: main.t",
        "Unknown table 'shop.t'",
        "Table [t] does not exist in database [shop]",
        "Table or view not found: db.t; line 1 pos 14",
        "Table not found 't'",
        'relation "my shop"."t" does not exist',
        "Table 'my db.the shop.t' doesn't exist",
    ):
        fails(words)
        here.output("somewhere://h?table=t", pa.schema([("id", pa.int64())]), True)
    for words in (
        "permission denied for table t",
        "no warehouse is running",
        "the user does not exist",
        "deadline exceeded",
        "cannot read table t: role r does not exist",
        'column "x" of relation "t" does not exist',
        "view t cannot be read: function f\\(x\\) does not exist",
        "view 't': table 'base' not found",
        "Table with name tt does not exist!",
        "no such table: t.other",
        "Unknown table 't'.'other'",
        "no such table: t2",
        "table t: column 'not found' is not there",
        "view t: Table not found: base",
        "Table not found: t.other",
        "view 't' is of 'the.base'; table 'base.t2' not found",
    ):
        fails(words.replace("\\", ""))
        with pytest.raises(SinkError, match=f"cannot write somewhere://h.table=t: {words}"):
            here.output("somewhere://h?table=t", pa.schema([("id", pa.int64())]), True)


def test_a_status_that_says_not_found_may_be_about_another_table(here: Here) -> None:
    class Refused(Exception):
        status_code = SimpleNamespace(name="NOT_FOUND")

    def missing(words: str) -> bool:
        return here.is_missing(Refused(words), "shop.t")

    for words in (
        "NOT_FOUND: [FlightSQL] Not found (NotFound; Prepare)",
        "table not found",
        "NOT_FOUND: table 't' not found",
        "",
    ):
        assert missing(words), words
    for words in (
        "NOT_FOUND: [FlightSQL] view 't': table 'base' not found (NotFound; Execute)",
        "Table not found: base",
        "view t: table or view with name base does not exist",
        "schema shop does not exist",
        "function f not found",
    ):
        assert not missing(words), words
