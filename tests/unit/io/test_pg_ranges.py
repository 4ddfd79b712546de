"""Ranges of a table of PostgreSQL without a server: what a machine asks, and what it says of what it cannot read."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ReadError, SourceError
from akrunner.io.pg_ranges import Column, Range, Ranges, in_query, network, plain
from tests.unit.io.systems.test_postgres import Server

SCHEMA = pa.schema([("x", pa.int64()), ("d", pa.date32())])
TABLE = Ranges(
    {
        "uri": "postgresql:///?host=h&user=me",
        "shown": "postgresql://h/d?table=t",
        "table": '"public"."t"',
        "select": '"x" AS "x", "d" AS "d"',
        "looks": [["", ""], ["", ""]],
        "snapshot": "0003-1",
        "started": "17.5",
        "network": "",
        "session": {},
        "revoked": [],
    },
    {"password": "very secret&"},
)


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.int64()), pa.array([0] * len(values), pa.date32())], schema=SCHEMA)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    there = Server(("pg_postmaster_start_time", [("17.5",)]))
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", there)  # type: ignore[arg-type]
    return there


def test_ranges_are_read_in_the_state_that_is_held(server: Server) -> None:
    answers = {"0": [batch(1), batch(2, 3)], "4": [batch(5)]}
    server.read = lambda query: answers[re.findall(r"ctid >= '\((\d+),0\)'", query)[0]]
    found = TABLE.rows(SCHEMA, [Range(0, 4, 3, 0, 3), Range(4, 8, 9, 2, 3)])
    assert [row["x"] for one in found for row in one.to_pylist()] == [1, 2, 3, 5]
    assert server.uris == ["postgresql:///?host=h&user=me&password=very%20secret%26"]
    first, back, mode, state, zone, endless, ways, whole, some, closed = server.said
    assert (first, back, closed) == ("SELECT extract(epoch FROM pg_postmaster_start_time())::text", "rollback", "closed")
    assert (
        "READ ONLY" in mode
        and zone == "SET LOCAL timezone = 'UTC'"
        and state == "SET TRANSACTION SNAPSHOT '0003-1'"
        and "'enable_seqscan', 'off'" in ways
    )
    # a task may take its time, whatever the server's administrator thinks of transactions that wait
    assert "'idle_in_transaction_session_timeout', 'statement_timeout', 'transaction_timeout'" in endless
    select = 'SELECT "x" AS "x", "d" AS "d" FROM "public"."t" WHERE '
    assert whole == select + "ctid >= '(0,0)'::tid AND ctid < '(4,0)'::tid"
    # which rows these are has to be the same for the task that reads the others
    assert some == select + "ctid >= '(4,0)'::tid AND ctid < '(8,0)'::tid ORDER BY ctid OFFSET 2 LIMIT 1"


def test_rows_that_are_not_those_that_were_counted(server: Server) -> None:
    server.read = lambda query: [batch(1)]
    with pytest.raises(
        ReadError, match=r"^source: postgresql://h/d\?table=t gave .* 1 rows where 2 were counted.*files_there=False"
    ):
        list(TABLE.rows(SCHEMA, [Range(0, 4, 2, 0, 2)]))
    server.read = lambda query: [pa.record_batch([[1], pa.array([-2147472692], pa.date32())], schema=SCHEMA)]
    with pytest.raises(ReadError, match="column 'd' has 'infinity' .*'SELECT CASE WHEN isfinite.d. THEN d END AS d,"):
        list(TABLE.rows(SCHEMA, [Range(0, 4, 1, 0, 1)]))
    assert server.said[-1] == "closed"


def fails(error: Exception) -> Any:
    def read(query: str) -> list[pa.RecordBatch]:
        raise error

    return read


def test_what_goes_wrong_is_told_without_the_password(server: Server) -> None:
    server.read = fails(OSError("the state is gone, very secret& or not"))
    with pytest.raises(
        ReadError, match=r"^source: cannot read postgresql://h/d\?table=t on .*: the state is gone, \*\*\* or not$"
    ):
        list(TABLE.rows(SCHEMA, [Range(0, 4, 2, 0, 2)]))
    assert "secret" not in repr(TABLE)


def test_another_server_of_that_name(server: Server) -> None:
    server.answers = [("pg_postmaster_start_time", [("18",)])]
    words = "postgresql://h/d?table=t is another server there, or was started again"
    assert TABLE.unseen() == words
    with pytest.raises(ReadError, match=re.escape(words)):
        list(TABLE.rows(SCHEMA, [Range(0, 4, 2, 0, 2)]))
    assert not any("SNAPSHOT" in str(one) for one in server.said)


def test_a_machine_says_why_it_cannot_read_the_table(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert TABLE.unseen() == "" and server.said[-2].endswith('FROM "public"."t" LIMIT 0')
    monkeypatch.setattr(server, "connect", fails(OSError("refused: very secret&")))
    assert TABLE.unseen() == "cannot read postgresql://h/d?table=t: refused: ***"
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)  # type: ignore[arg-type]
    assert TABLE.unseen() == "Flink's Python has no driver of PostgreSQL: pip install adbc-driver-postgresql there"


def test_no_other_machines_localhost_is_given_the_password(server: Server) -> None:
    assert not dataclasses.replace(TABLE, settings={**TABLE.settings, "network": network()}).unseen()
    server.uris.clear()
    other = dataclasses.replace(TABLE, settings={**TABLE.settings, "network": "another"})
    assert (
        other.unseen().startswith("the host of postgresql://h/d?table=t is the submitter's own machine: ") and not server.uris
    )


def test_without_a_secret_libpq_finds_one_there(server: Server) -> None:
    assert not dataclasses.replace(TABLE, secrets={}).unseen() and server.uris == ["postgresql:///?host=h&user=me"]


def test_a_session_is_set_as_the_submitters_is(server: Server) -> None:
    session = {"timezone": "Asia/Tokyo", "datestyle": "it's"}
    assert not dataclasses.replace(TABLE, settings={**TABLE.settings, "session": session}).unseen()
    assert [one for one in server.said if "$1" in one[0]] == [
        ("SELECT set_config($1, $2, true)", name, value) for name, value in session.items()
    ]


def test_a_machine_without_the_submitters_revoked_certificates_does_not_connect(server: Server, tmp_path: Path) -> None:
    revoked = tmp_path / "root.crl"
    table = dataclasses.replace(TABLE, settings={**TABLE.settings, "revoked": [str(revoked)]})
    assert (
        re.fullmatch(r"/.*/root.crl, which the submitter has for revoked .*, is not there", table.unseen()) and not server.uris
    )
    revoked.touch()
    assert not table.unseen()


def test_names_in_queries_are_quoted_if_they_must_be() -> None:
    assert [in_query(name) for name in ("a_1", "A", 'a"b')] == ["a_1", '"A"', '"a""b"']


def test_infinite_times_and_arrays_of_arrays_are_no_numbers() -> None:
    date = Column("d", pa.date32(), "")
    good = pa.record_batch([pa.array([-719528, None], pa.date32())], ["d"])
    assert next(iter(plain(iter([good]), [date], "t"))).equals(good)
    with pytest.raises(SourceError, match="'infinity'"):
        list(plain(iter([pa.record_batch([pa.array([-2147472692], pa.date32())], ["d"])]), [date], "t"))
    times = Column("t", pa.list_(pa.timestamp("us")), "", ("array_ndims", "has arrays of arrays"))
    rows = [pa.array([[-9222425352054775809 + 1]], pa.list_(pa.timestamp("us"))), pa.array([1])]
    with pytest.raises(SourceError, match="'infinity'"):
        list(plain(iter([pa.record_batch(rows, ["t", "n"])]), [times], "t"))
    flat = [pa.array([[1, 2]], pa.list_(pa.timestamp("us"))), pa.array([2])]
    with pytest.raises(SourceError, match="has arrays of arrays"):
        list(plain(iter([pa.record_batch(flat, ["t", "n"])]), [times], "t"))
