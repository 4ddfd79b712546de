"""How other machines reach a table of PostgreSQL, and when they cannot; no server is asked."""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.io.pg_ranges import Column, network
from akrunner.io.shared import Unshared
from akrunner.io.systems import libpq
from akrunner.io.systems.pg_snapshot import Snapshot, reached
from akrunner.io.systems.postgres import _SILENCE, SYSTEM, _Place
from tests.unit.io.systems.test_postgres import NAMED, Server, server

__all__ = ["server"]

COLUMNS = [Column("x", pa.int64(), '"x" AS "x"'), Column("l", pa.list_(pa.int64()), '"l" AS "l"', ("array_ndims(l)", "wrong"))]
URL = "postgresql://me@h:1/d?table=t"
#: kind, children, standby, version, bytes, bytes of a page, user, database, start
LOOK = ("r", False, False, 160002, 10 * 8192 - 5, 8192, "me", "d", "17.5")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No settings of libpq's but those of a test. Returns the home directory."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def held(server: Server, url: str = URL, look: tuple[Any, ...] = LOOK, readers: int = 2, trusted: bool = True) -> Snapshot:
    server.answers = [("relhassubclass", [look]), ("pg_export_snapshot", [("0003-1",)])]
    return Snapshot.of(_Place(url), '"public"."t"', COLUMNS, readers, trusted)


def told(snapshot: Snapshot) -> dict[str, str]:
    base, _, query = snapshot.ranges.settings["uri"].partition("?")
    assert base == "postgresql:///"
    return dict(urllib.parse.parse_qsl(query))


def test_a_state_is_held_until_it_is_closed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    snapshot = held(server)
    assert (snapshot.pages, snapshot.bytes) == (10, 10 * 8192 - 5)
    settings = dict(snapshot.ranges.settings)
    uri = settings.pop("uri")
    assert settings == {
        "table": '"public"."t"', "select": '"x" AS "x", "l" AS "l", array_ndims(l)', "looks": [["", ""], ["array_ndims(l)", "wrong"]],
        "shown": URL, "snapshot": "0003-1", "started": "17.5", "network": "",
        "session": {}, "revoked": [],
    }  # fmt: skip
    assert "s3cret" not in uri and snapshot.ranges.secrets == {"password": "s3cret"}
    assert "closed" not in server.said and any("idle_in_transaction" in str(one) for one in server.said)
    server.answers = [("generate_series", [(0, 7), (2, 0), (4, 5)])]
    assert snapshot.counted(1) == [(0, 2, 7), (4, 6, 5)], "without those that have no rows"
    assert "generate_series(0::bigint, 9, 2)" in server.said[-1] and "akrunner_pages.first + 2)::tid" in server.said[-1]
    assert snapshot.counted(100)[0] == (0, 1, 7)
    snapshot.close()
    assert server.said[-1] == "closed"


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (("v", *LOOK[1:]), "it is a view"),
        (("r", True, *LOOK[2:]), "or other tables below it"),
        (("r", False, True, *LOOK[3:]), "a standby"),
        ((*LOOK[:3], 130009, *LOOK[4:]), "before PostgreSQL 14"),
    ],
)
def test_what_other_machines_cannot_read(server: Server, look: tuple[Any, ...], words: str) -> None:
    with pytest.raises(Unshared, match=words):
        held(server, look=look)
    assert server.said[-1] == "closed"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://h,i/d?table=t", "several servers"),
        ("postgresql:///d?table=t&host=h,i", "several servers"),
        ("postgresql:///d?table=t", "a socket of"),
        ("postgresql://%2Frun%2Fpg/d?table=t", "a socket of"),
        ("postgresql://h/d?table=t&host=/run/pg", "a socket of"),
        ("postgresql://h/d?table=t&service=mine", r"service= \(PGSERVICE\)"),
        ("postgresql://h/d?table=t&connections=1", "connections= is less than the number of tasks that read, 2"),
    ],
)
def test_ways_that_other_machines_do_not_have(server: Server, url: str, words: str) -> None:
    with pytest.raises(Unshared, match=words):
        held(server, url)
    held(server, f"{URL}&connections=2").close()


def test_what_the_url_and_the_environment_say_goes_along(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"application_name": "akrunner", "connect_timeout": "30", **_SILENCE, "dbname": "d"}
    assert told(held(server)) == {**own, "host": "h", "port": "1", "user": "me"}
    assert told(held(server, "postgresql://h/d?table=t&sslmode=verify-full")) == {
        **own, "host": "h", "user": "me", "sslmode": "verify-full",
    }  # fmt: skip
    for name, value in {"PGHOST": "other", "PGPORT": "7", "PGUSER": "you", "PGTARGETSESSIONATTRS": "any"}.items():
        monkeypatch.setenv(name, value)
    assert told(held(server, "postgresql:///d?table=t")) == {
        **own, "host": "other", "port": "7", "user": "you", "target_session_attrs": "any",
    }  # fmt: skip
    assert told(held(server, "postgresql://a%40b@[::1]:5/x?table=t")) == {
        **own, "dbname": "x", "host": "::1", "port": "5", "user": "a@b", "target_session_attrs": "any",
    }  # fmt: skip


def test_a_pooler_may_call_a_database_as_the_server_does_not(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(held(server, "postgresql://h/pooled?table=t"))["dbname"] == "pooled"
    assert told(held(server, "postgresql://h/pooled?table=t&dbname=b%20c"))["dbname"] == "b c"
    monkeypatch.setenv("PGDATABASE", "around")
    assert told(held(server, "postgresql://h?table=t"))["dbname"] == "around"


def test_every_variable_of_libpqs_is_carried(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    carried = {option: variable for option, variable in libpq.OPTIONS.items() if variable and option != "service"}
    for option, variable in carried.items():
        monkeypatch.setenv(variable, f"of {option}")
    sent = told(held(server, "postgresql:///?table=t"))
    # the password is there, or not at all
    assert "passfile" not in sent
    assert {option: f"of {option}" for option in carried if option != "passfile"} == {
        **{option: value for option, value in sent.items() if option not in _SILENCE},
        "application_name": "of application_name",
    }


def test_what_libpq_knows_by_other_names(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGTZ": "Asia/Tokyo", "PGDATESTYLE": "Default", "PGGEQO": "off", "PGREQUIRESSL": "1"}.items():
        monkeypatch.setenv(name, value)
    snapshot = held(server)
    assert snapshot.ranges.settings["session"] == {"geqo": "off"} and told(snapshot)["sslmode"] == "require"
    monkeypatch.setenv("PGSSLMODE", "disable")
    assert told(held(server))["sslmode"] == "disable"
    # the URL may say as much as the environment
    assert told(held(server, f"{URL}&require_auth=scram-sha-256&sslmode=verify-full"))["require_auth"] == "scram-sha-256"


def test_rows_stay_where_they_are_once_pages_are_counted(server: Server) -> None:
    held(server)
    words = [one if isinstance(one, str) else one[0] for one in server.said]
    (lock,) = [number for number, one in enumerate(words) if one == 'SELECT FROM "public"."t" LIMIT 0']
    (size,) = [number for number, one in enumerate(words) if "pg_relation_size" in one]
    assert lock < size


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("localhost", True), ("a.LocalHost.", True), ("127.0.1.1", True), ("127.1", True), ("[::1]", True), ("0.0.0.0", True),
        ("[::ffff:127.0.0.1]", True), ("db", False), ("localhost.org", False), ("localhost.localdomain", True), ("ip6-localhost", True), ("[fd00::1]", False), ("10.0.0.1", False),
    ],
)  # fmt: skip
def test_a_localhost_is_this_machines(server: Server, host: str, is_own: bool) -> None:
    assert held(server, f"postgresql://{host}/d?table=t").ranges.settings["network"] == (network() if is_own else "")
    assert held(server, f"postgresql://{host}/d?table=t&hostaddr=127.0.0.2").ranges.settings["network"] == network()


def test_a_certificate_that_is_checked_here_is_checked_there(server: Server, bare: Path) -> None:
    url = f"{URL}&sslmode=require"
    assert told(held(server, url))["sslmode"] == "require"
    (bare / ".postgresql").mkdir()
    (bare / ".postgresql" / "root.crt").touch()
    assert told(held(server, url))["sslmode"] == "verify-ca", "as libpq does it, but also where there is no such file"


def test_revoked_certificates_are_refused_there_too(server: Server, bare: Path) -> None:
    def revoked(more: str) -> Any:
        return held(server, URL + more).ranges.settings["revoked"]

    full = "&sslmode=verify-full"
    assert revoked(full) == []
    (bare / ".postgresql").mkdir()
    crl = bare / ".postgresql" / "root.crl"
    crl.touch()
    assert revoked(full) == [str(crl)] and told(held(server, URL + full))["sslcrl"] == str(crl)
    assert revoked("&sslmode=prefer") == revoked("") == [], "no certificate is checked"
    assert revoked(f"{full}&sslcrl={bare}/none") == [], "libpq has none here either"
    assert revoked(f"{full}&sslcrldir={bare}") == [str(bare)]


def passwords(server: Server, url: str, trusted: bool = True) -> str | None:
    snapshot = held(server, url, trusted=trusted)
    assert not re.search("pass-", snapshot.ranges.settings["uri"]) and "pass-" not in repr(snapshot.ranges)
    return snapshot.ranges.secrets.get("password")


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_password_is_found_where_libpq_finds_it(
    server: Server, bare: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    kept = bare / ".pgpass"
    kept.write_text("# h:1:d:me:pass-x\nh:2:*:*:pass-2\n\nno\nh:1:d:me:pass-\\:\\\\1\nBig:*:*:*:pass-big\n*:*:*:*:pass-*\n")
    kept.chmod(mode)
    readable = mode == 0o600
    assert passwords(server, URL) == ("pass-:\\1" if readable else None)
    assert passwords(server, "postgresql://me@i/d?table=t") == ("pass-*" if readable else None)
    assert passwords(server, "postgresql://me@Big/d?table=t") == ("pass-big" if readable else None)
    (bare / "other").write_text("h:*:*:me:pass-other")
    (bare / "other").chmod(0o600)
    assert passwords(server, f"{URL}&passfile={bare}/other") == "pass-other"
    assert passwords(server, f"{URL}&passfile={bare}/none") is None
    monkeypatch.setenv("PGPASSWORD", "pass-env")
    assert passwords(server, URL) == "pass-env"
    assert passwords(server, URL.replace("@", ":pass-%2Furl@")) == "pass-/url"
    (bare / "file").write_text("pass-file\n")
    assert passwords(server, f"{URL}&password_file={bare}/file") == "pass-file"


def test_no_password_goes_over_a_network_in_clear_text(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "pass-env")
    assert passwords(server, URL, trusted=False) is None
    assert reached(_Place(URL.replace("@", ":pass-url@")), "me", "d", False)[1] == {}


def test_only_a_table_as_it_stands_can_be_held(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from akrunner import codec
    from akrunner.io.sources import open_source

    server.answers = [NAMED]

    def opened(url: str = URL, **options: Any) -> Callable[[int, bool], Snapshot] | None:
        return open_source(url, read_examples=codec.read_examples, **options).held

    whole, two, one = opened(), opened(columns=["y", "x"]), opened(columns=["x"])
    assert whole is not None and two is not None and one is not None
    assert opened("postgresql://me@h/d", select="SELECT 1 AS x") is None
    assert opened(defaults={"x": 0}) is None
    server.answers = [("relhassubclass", [LOOK]), ("pg_export_snapshot", [("0003-1",)]), NAMED]
    assert one(2, True).ranges.settings["select"] == '"x" AS "x"'
    assert two(2, True).ranges.settings["select"] == '"y" AS "y", "x" AS "x"'
    assert SYSTEM.open("postgresql://h/d", "SELECT 1", None).held is None
