"""PostgreSQL without a server: what a URL says, which statements are sent, and in which order rows of several connections come."""

from __future__ import annotations

import queue
import re
import threading
import types
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SinkError, SourceError, WriteError
from akrunner.io.pg_ranges import ENDLESS
from akrunner.io.systems import postgres
from akrunner.io.systems.postgres import _SILENCE, SYSTEM, _get, _Place, _put, _Reading

X = pa.schema([("x", pa.int64())])


class Server:
    """In place of PostgreSQL and its driver.

    Attributes:
        answers: (pattern of a statement, its rows).
        said: the statements, in order, and what else was done.
        uris: what was connected to.
        read: the batches of a query, by its statement.
    """

    def __init__(self, *answers: tuple[str, list[Any]]) -> None:
        self.answers = list(answers)
        self.said: list[Any] = []
        self.uris: list[str] = []
        self.read: Callable[[str], list[pa.RecordBatch]] = lambda query: []
        self.fails: dict[str, Exception] = {}

    def connect(self, uri: str) -> Connection:
        self.uris.append(uri)
        return Connection(self)


class Connection:
    def __init__(self, server: Server) -> None:
        self.server = server

    def cursor(self) -> Cursor:
        return Cursor(self.server)

    def commit(self) -> None:
        if "commit" in self.server.fails:
            raise self.server.fails["commit"]
        self.server.said.append("commit")

    def rollback(self) -> None:
        self.server.said.append("rollback")

    def close(self) -> None:
        self.server.said.append("closed")


class Cursor:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.rows: list[Any] = []
        self.query = ""
        self.adbc_statement = types.SimpleNamespace(set_options=lambda **options: None)

    def execute(self, query: str, values: Any = ()) -> None:
        self.server.said.append(query if not values else (query, *values))
        self.query = query
        for pattern, error in self.server.fails.items():
            if pattern != "commit" and re.search(pattern, query):
                raise error
        self.rows = list(next((rows for pattern, rows in self.server.answers if re.search(pattern, query)), []))

    def fetchone(self) -> Any:
        return self.rows.pop(0) if self.rows else None

    def fetchall(self) -> list[Any]:
        return self.rows

    def fetch_record_batch(self) -> Any:
        return iter(self.server.read(self.query))

    def adbc_execute_schema(self, query: str) -> pa.Schema:
        words = {"POSTGRESQL:type": "int8", "POSTGRESQL:typmod": "-1"}
        return pa.schema([pa.field(name, pa.int64(), metadata=words) for name in ("x", "y")])

    def adbc_ingest(self, table: str, rows: pa.Table, **options: Any) -> None:
        self.server.said.append(("sent", table, rows.to_pylist(), options))

    def adbc_cancel(self) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    there = Server()
    monkeypatch.setattr(postgres, "driver", lambda name, extra: there)
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    return there


def uri(text: str) -> tuple[str, dict[str, str]]:
    base, _, query = _Place(text)._uri.partition("?")
    return base, dict(urllib.parse.parse_qsl(query, keep_blank_values=True))


def test_the_driver_is_given_what_is_libpqs_and_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    own = {"application_name": "akrunner", "connect_timeout": "30", **_SILENCE}
    assert uri("postgresql://me@h:1/d?table=t&decimals=text&connections=2") == ("postgresql://me@h:1/d", own)
    assert uri("postgresql://h/d?connect_timeout=5&application_name=a%20b") == (
        "postgresql://h/d",
        {**_SILENCE, "connect_timeout": "5", "application_name": "a b"},
    )
    assert uri("postgresql://h/d?tcp_user_timeout=10")[1] == {**own, "tcp_user_timeout": "10"}
    # a service may have its own
    assert uri("postgresql://h/d?service=s")[1] == {"service": "s", "application_name": "akrunner", "connect_timeout": "30"}
    (tmp_path / "secret").write_text("pass word&é\r\nsecond line\n")
    assert uri(f"postgresql://h/d?password_file={tmp_path}/secret")[1] == {**own, "password": "pass word&é"}
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "3")
    assert "connect_timeout" not in uri("postgresql://h/d")[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("decimals=float", "decimals= is .*, not 'float'"),
        ("connections=0", "connections= is a whole number from 1 to 64, not '0'"),
        ("connections=65", "not '65'"),
        ("connections=x", "not 'x'"),
        (f"connections={'9' * 5000}", "connections= is a whole number from 1 to 64"),
        ("connections=", "not ''"),
        ("sslmod=require", "there is no option 'sslmod' .*, and those of the database's driver.*'sslmode'"),
    ],
)
def test_options_that_are_wrong(options: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _Place(f"postgresql://h/d?table=t&{options}")


def test_a_url_without_a_table_is_told_with_what_to_write(server: Server) -> None:
    with pytest.raises(SourceError, match=r"postgresql://h/d names no table: put \?table=NAME"):
        SYSTEM.open("postgresql://h/d", None, None)
    with pytest.raises(SinkError, match=r"postgresql://h/d names no table: put \?table=NAME"):
        SYSTEM.output("postgresql://h/d", X, False)
    assert not server.uris


def test_a_table_that_is_not_there_is_told_with_those_that_are(server: Server) -> None:
    server.answers = [("FROM pg_class c JOIN pg_namespace n .*relkind IN .*ORDER BY", [("sales",), ("s.other",)])]
    with pytest.raises(SourceError, match=r"there is no table 'sale' \(there are sales, s.other\).*'sales'"):
        SYSTEM.open("postgresql://h/d?table=sale", None, None)
    server.answers = []
    with pytest.raises(SourceError, match=r"there is no table 's.sale' \(there is none at all\)"):
        SYSTEM.open("postgresql://h/d?table=s.sale", None, None)
    # by its bare name first, then as SQL has it
    asked = [one[1] for one in server.said if isinstance(one, tuple)]
    assert asked == ['"sale"', '"sale"', '"s.sale"', '"s"."sale"'] and server.said[-1] == "closed"


def test_a_query_is_run_as_it_is_over_one_connection(server: Server) -> None:
    server.read = lambda query: [pa.record_batch({"y": [1, 2]})]
    table = SYSTEM.open("postgresql://h/d", " SELECT 1 AS x, 2 AS y; ", ["y"])
    assert table.schema.names == ["y"] and table.replayable
    assert [batch.to_pylist() for batch in table.batches()] == [[{"y": 1}, {"y": 2}]]
    assert any("FROM (SELECT 1 AS x, 2 AS y\n) AS q" in one for one in server.said if isinstance(one, str))
    assert all("READ ONLY" in one for one in server.said if isinstance(one, str) and one.startswith("SET TRANSACTION"))


def test_a_column_that_is_asked_for_and_not_there_is_told(server: Server) -> None:
    server.answers = [NAMED]
    with pytest.raises(SourceError, match=r"has no column 'xx' \(it has x, y\); did you mean 'x'"):
        SYSTEM.open("postgresql://h/d?table=t", None, ["y", "xx"])


NAMED = ("c.oid = to_regclass.*relkind IN \\('r','v'", [('"public"."t"',)])


@pytest.mark.parametrize("connections", [1, 3])
def test_a_small_table_is_read_over_one_connection(server: Server, connections: int) -> None:
    server.answers = [("pg_relation_size", [(8192, 8192)]), NAMED]
    server.read = lambda query: [pa.record_batch({"x": [1], "y": [2]})]
    table = SYSTEM.open(f"postgresql://h/d?table=t&connections={connections}", None, None)
    assert [batch.to_pylist() for batch in table.batches()] == [[{"x": 1, "y": 2}]]
    assert len(server.uris) == 2 and not any("SNAPSHOT" in str(one) for one in server.said)


def test_a_large_table_is_read_in_parts_of_one_snapshot_always_in_the_same_order(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_LARGE", 1)
    server.answers = [("pg_relation_size", [(10 * 8192 - 5, 8192)]), ("pg_export_snapshot", [("0003-1",)]), NAMED]
    starts = {0: [1, 2, 3], 3: [4], 6: [5, 6]}

    def read(query: str) -> list[pa.RecordBatch]:
        found = re.search(r"ctid >= '\((\d+),0\)'", query)
        return [pa.record_batch({"x": [number]}) for number in starts[int(found[1])]] if found else []

    server.read = read
    for _ in range(3):
        table = SYSTEM.open("postgresql://h/d?table=t&connections=3", None, ["x"])
        assert [row["x"] for batch in table.batches() for row in batch.to_pylist()] == [1, 4, 5, 2, 6, 3]
    parts = {one.partition("WHERE ")[2] for one in server.said if isinstance(one, str) and "ctid" in one}
    assert parts == {
        "ctid >= '(0,0)'::tid AND ctid < '(3,0)'::tid",
        "ctid >= '(3,0)'::tid AND ctid < '(6,0)'::tid",
        "ctid >= '(6,0)'::tid",
    }
    assert server.said.count("SET TRANSACTION SNAPSHOT '0003-1'") == 9
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("akrunner-postgres")]


def test_what_one_of_several_connections_raises_is_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_LARGE", 1)
    server.answers = [("pg_relation_size", [(8 * 8192, 8192)]), ("pg_export_snapshot", [("0003-1",)]), NAMED]

    def read(query: str) -> list[pa.RecordBatch]:
        if "'(4,0)'::tid AND" not in query and ">= '(4,0)'" in query:
            raise OSError("the server closed the connection")
        return []

    server.read = read
    table = SYSTEM.open("postgresql://h/d?table=t&connections=2", None, None)
    with pytest.raises(SourceError, match=r"source: cannot read postgresql://h/d.*the server closed the connection"):
        list(table.batches())


def test_queues_between_connections_end_when_they_should(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "_WAIT", 0.001)
    over, full = threading.Event(), queue.Queue[Any](1)
    assert _put(full, 1, over) and _get(full, over) == 1
    over.set()
    assert not _put(full, 2, over)
    with pytest.raises(SourceError, match="the read was ended"):
        _get(full, over)


def test_a_read_that_is_stopped_cancels_its_queries() -> None:
    reading = _Reading(_Place("postgresql://h/d"), "t", [], None)
    cancelled: list[int] = []

    reading._cursors += [types.SimpleNamespace(adbc_cancel=lambda: cancelled.append(1))] * 2
    reading.stop()
    assert cancelled == [1, 1]


# -- output


def written(server: Server, overwrite: bool = False, table: str = "t") -> Any:
    out = SYSTEM.output(f"postgresql://h/d?table={table}", X, overwrite)
    assert server.said[-2:] == ["rollback", "closed"]
    server.said.clear()
    out.write_rows(pa.record_batch({"x": [1, 2]}))
    return out


@pytest.mark.parametrize(
    ("table", "made", "where"), [("t", '"t"', {}), ("s.t", '"s"."t"', {"db_schema_name": "s"}), ("s.", '"s."', {})]
)
def test_a_table_that_is_not_there_is_made(server: Server, table: str, made: str, where: dict[str, str]) -> None:
    written(server, table=table).commit()
    name = table.rpartition(".")[2] or table
    statements = [one for one in server.said if isinstance(one, str)]
    isolated, waits = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET LOCAL lock_timeout = '30s'"
    made = f'CREATE TABLE {made} ("x" bigint)'
    assert statements == [isolated, ENDLESS, "SET LOCAL timezone = 'UTC'", waits, made, "commit", "closed"]
    assert ("sent", name, [{"x": 1}, {"x": 2}], {"mode": "append", **where}) in server.said


THERE = [
    NAMED,
    ("format_type", [("x", "bigint", "bigint", True), ("y", "text", "text", True)]),
    ("SELECT n.nspname, c.relname", [("public", "t", "r", "me")]),
]


class Told(Exception):
    """An error of the driver's, with PostgreSQL's code."""

    def __init__(self, sqlstate: str, words: str) -> None:
        super().__init__(words)
        self.sqlstate = sqlstate


@pytest.mark.parametrize("overwrite", [False, True])
def test_rows_are_not_added_to_a_table_that_another_job_has_made_meanwhile(overwrite: bool, server: Server) -> None:
    out = written(server, overwrite)
    assert out.is_new == (not overwrite)
    server.answers = list(THERE)
    assert not SYSTEM.output("postgresql://h/d?table=t", X, overwrite).is_new
    server.said.clear()
    if overwrite:
        # they replace whatever is there
        out.commit()
        return
    with pytest.raises(WriteError, match="another program has made this table since the job began"):
        out.commit()
    out.abort()
    assert not [one for one in server.said if one == "commit" or one[0] == "sent"]


def test_rows_are_added_to_a_table(server: Server) -> None:
    server.answers = list(THERE)
    written(server).commit()
    assert not [one for one in server.said if "DELETE" in str(one)]
    sent = ("sent", "t", [{"x": 1}, {"x": 2}], {"mode": "append", "db_schema_name": "public"})
    assert server.said[server.said.index(sent) :] == [sent, "commit", "closed"]


def test_rows_take_the_place_of_the_old_ones_at_the_commit_under_a_lock(server: Server) -> None:
    server.answers = list(THERE)
    out = SYSTEM.output("postgresql://h/d?table=t", X, True)
    # what was tried before the job touches no row, and waits for nobody
    assert 'DELETE FROM "public"."t" WHERE false' in server.said
    assert not {one for one in server.said if isinstance(one, str)} & {'DELETE FROM "public"."t"', LOCK}
    server.said.clear()
    out.write_rows(pa.record_batch({"x": [1]}))
    out.commit()
    # a key may be the same as that of an old row, so the new rows are not in the table before those are gone
    sent = ("sent", "akrunner_rows", [{"x": 1}], {"mode": "append", "temporary": True})
    assert server.said[server.said.index(sent) :] == [
        sent,
        "SET LOCAL lock_timeout = '10min'",
        LOCK,
        'DELETE FROM "public"."t"',
        'INSERT INTO "public"."t" ("x") OVERRIDING SYSTEM VALUE SELECT "x"::bigint FROM akrunner_rows',
        "commit",
        "closed",
    ]


LOCK = 'LOCK TABLE "public"."t" IN SHARE UPDATE EXCLUSIVE MODE'


def test_a_lock_that_does_not_come_is_told(server: Server) -> None:
    server.answers = list(THERE)
    out = written(server, overwrite=True)
    server.fails["LOCK TABLE"] = Told("55P03", "canceling statement due to lock timeout")
    with pytest.raises(WriteError, match="has kept the table locked for 10 minutes; nothing was written: run the job again"):
        out.commit()
    assert "commit" not in server.said


@pytest.mark.parametrize(("kind", "copied", "locked"), [("r", True, True), ("f", True, False), ("v", False, True)])
def test_views_are_not_copied_to_and_foreign_tables_not_locked(server: Server, kind: str, copied: bool, locked: bool) -> None:
    server.answers = [*THERE[:2], (THERE[2][0], [("public", "t", kind, "me")])]
    written(server).commit()
    assert [one[1] for one in server.said if one[0] == "sent"] == ["t" if copied else "akrunner_rows"]
    written(server, overwrite=True).commit()
    assert (LOCK in server.said) == locked


@pytest.mark.parametrize("state", ["23505", "55P03"])
def test_a_table_that_two_programs_make_is_told(server: Server, state: str) -> None:
    server.fails["CREATE TABLE"] = Told(state, "duplicate key value violates unique constraint pg_type_typname_nsp_index")
    with pytest.raises(SinkError, match="another program makes the same table at this time; nothing was written: run the job"):
        SYSTEM.output("postgresql://h/d?table=t", X, False)
    server.fails["CREATE TABLE"] = Told("42501", "permission denied for schema public")
    with pytest.raises(SinkError, match="permission denied for schema public"):
        SYSTEM.output("postgresql://h/d?table=t", X, False)


@pytest.mark.parametrize(
    ("schema", "x", "y", "words"),
    [
        (X, False, False, r"the user may not insert rows \(column 'x'\): GRANT INSERT ON \"public\".\"t\" TO me"),
        (X, False, True, r"\(column 'x'\): GRANT INSERT \(\"x\"\) ON"),
        # the job's columns are not known yet
        (pa.schema([]), False, False, r"\(column 'x'\): GRANT INSERT ON"),
        (pa.schema([]), False, True, ""),
        (X, True, False, ""),
    ],
)
def test_a_right_that_is_missing_is_told_before_the_job(
    server: Server, schema: pa.Schema, x: bool, y: bool, words: str
) -> None:
    server.answers = [THERE[0], ("format_type", [("x", "bigint", "bigint", x), ("y", "text", "text", y)]), THERE[2]]
    if not words:
        SYSTEM.output("postgresql://h/d?table=t", schema, False)
        return
    with pytest.raises(SinkError, match=words):
        SYSTEM.output("postgresql://h/d?table=t", schema, False)


def test_rows_of_another_type_go_by_way_of_a_table_of_their_own(server: Server) -> None:
    server.answers = [THERE[0], ("format_type", [("x", "character varying(3)", "character varying", True)]), THERE[2]]
    written(server).commit()
    # a cast to the whole type would cut a text that is too long
    brings = 'INSERT INTO "public"."t" ("x") OVERRIDING SYSTEM VALUE SELECT "x"::character varying FROM akrunner_rows'
    assert server.said.index('CREATE TEMPORARY TABLE akrunner_rows ("x" bigint) ON COMMIT DROP') < server.said.index(brings)
    sent = ("sent", "akrunner_rows", [{"x": 1}, {"x": 2}], {"mode": "append", "temporary": True})
    assert server.said[server.said.index(sent) :] == [sent, brings, "commit", "closed"]


def test_a_column_that_the_table_lacks_is_told_before_the_job(server: Server) -> None:
    server.answers = [THERE[0], ("format_type", [("y", "text", "text", True)]), THERE[2]]
    with pytest.raises(SinkError, match=r"output: postgresql://h/d.* has no column 'x' \(it has y\)"):
        SYSTEM.output("postgresql://h/d?table=t", X, False)
    assert server.said[-1] == "closed"


def test_a_connection_that_is_lost_in_the_commit_leaves_it_open_whether_the_rows_are_there(server: Server) -> None:
    out = written(server)
    server.fails["commit"] = OSError("server closed the connection unexpectedly")
    with pytest.raises(WriteError, match="it is not known whether the rows are there: .*server closed the connection"):
        out.commit()
    out.abort()
    assert server.said[-1] == "closed"


@pytest.mark.parametrize(
    ("state", "known"), [("23505", True), ("40001", True), ("08006", False), ("57P01", False), ("40003", False)]
)
def test_a_commit_that_the_server_has_refused_is_no_lost_connection(server: Server, state: str, known: bool) -> None:
    out = written(server)
    server.fails["commit"] = Told(state, "duplicate key value violates unique constraint")
    words = "the database has refused the commit, so no row was written: .*duplicate key" if known else "it is not known"
    with pytest.raises(WriteError, match=words):
        out.commit()


def test_a_job_that_failed_rolls_back(server: Server) -> None:
    out = written(server)
    out.abort()
    assert "commit" not in server.said
