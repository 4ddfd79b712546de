"""URLs of Flight SQL: what its driver is given."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.io.systems import flightsql
from akrunner.io.systems.base import Url


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> type:
    """The driver, which only keeps what it is given."""

    class Driver:
        given: Any = None

        @classmethod
        def connect(cls, uri: str, db_kwargs: dict[str, str], autocommit: bool) -> None:
            cls.given = (uri, db_kwargs)

    monkeypatch.setattr(flightsql, "driver", lambda name, extra: Driver)
    monkeypatch.delenv("FLIGHTSQL_PASSWORD", raising=False)
    monkeypatch.delenv("FLIGHTSQL_TOKEN", raising=False)
    return Driver


def given(driver: Any, url: str) -> tuple[str, dict[str, str]]:
    flightsql.SYSTEM.connect(Url.parse(url))
    uri, options = driver.given
    return uri, {name.removeprefix("adbc.flight.sql."): value for name, value in options.items()}


def test_the_way_to_the_server(driver: Any, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("a certificate")
    cookies = {"rpc.with_cookie_middleware": "true"}
    assert given(driver, "flightsql://h:31337?table=t") == ("grpc+tls://h:31337", cookies)
    assert given(driver, "flightsql://h:1?tls=off&database=d") == (
        "grpc+tcp://h:1",
        {**cookies, "rpc.call_header.database": "d"},
    )
    assert given(driver, f"flightsql://h:1?tls=unverified&ca_file={tmp_path}/ca.pem") == (
        "grpc+tls://h:1",
        {**cookies, "client_option.tls_skip_verify": "true", "client_option.tls_root_certs": "a certificate"},
    )


def test_who_asks(driver: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("t0ken\n")
    uri, options = given(driver, "flightsql://m%40e:p%20w@[::1]:1?table=t")
    assert uri == "grpc+tls://[::1]:1" and (options["username"], options["password"]) == ("m@e", "p w")
    monkeypatch.setenv("FLIGHTSQL_PASSWORD", "of the variable")
    assert given(driver, "flightsql://me@h:1")[1]["password"] == "of the variable"
    assert given(driver, f"flightsql://h:1?token_file={tmp_path}/token")[1]["authorization_header"] == "Bearer t0ken"


@pytest.mark.parametrize(
    ("url", "words"),
    [("flightsql://h?tls=maybe", "tls= is on, off, unverified, not 'maybe'"), ("flightsql://h/shop", "write &database=shop")],
)
def test_what_is_wrong(driver: Any, url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        given(driver, url)


def test_a_missing_driver_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("adbc_driver_flightsql", "adbc_driver_flightsql.dbapi"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=r"adbc-driver-flightsql, which is missing .*pip install 'akrunner\[flightsql\]'"):
        flightsql.SYSTEM.open("flightsql://h?table=t", None, None)
