"""URLs of Snowflake: what its driver is given, and how names are written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.io.systems import snowflake
from akrunner.io.systems.base import Url


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> type:
    """The driver, which only keeps what it is given."""

    class Driver:
        given: Any = None

        @classmethod
        def connect(cls, db_kwargs: dict[str, str], autocommit: bool) -> None:
            cls.given = db_kwargs

    monkeypatch.setattr(snowflake, "driver", lambda name, extra: Driver)
    for name in ("SNOWFLAKE_PASSWORD", "SNOWFLAKE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return Driver


def given(driver: Any, url: str) -> dict[str, str]:
    snowflake.SYSTEM.connect(Url.parse(url))
    found = {name.removeprefix("adbc.snowflake.sql."): value for name, value in driver.given.items()}
    assert found.pop("client_option.max_timestamp_precision") == "nanoseconds_error_on_overflow"
    return found


def test_what_the_driver_is_given(driver: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert given(driver, "snowflake://me:p%20w@org-account/shop/public?table=t&warehouse=w&role=r&authenticator=auth_mfa") == {
        "account": "org-account", "username": "me", "password": "p w", "db": "shop", "schema": "public", "warehouse": "w", "role": "r",
        "auth_type": "auth_mfa",
    }  # fmt: skip
    (tmp_path / "token").write_text("t0ken\n")
    monkeypatch.setenv("SNOWFLAKE_PASSWORD", "of the variable")
    assert given(driver, f"snowflake://me@a/shop?token_file={tmp_path}/token") == {
        "account": "a", "username": "me", "password": "of the variable", "db": "shop", "client_option.auth_token": "t0ken",
    }  # fmt: skip
    monkeypatch.delenv("SNOWFLAKE_PASSWORD")
    assert given(driver, f"snowflake://me@a?private_key_file={tmp_path}/key.p8") == {
        "account": "a", "username": "me", "client_option.jwt_private_key": f"{tmp_path}/key.p8", "auth_type": "auth_jwt",
    }  # fmt: skip


@pytest.mark.parametrize("url", ["snowflake://account/db?table=t", "snowflake://me@a/b/c/d?table=t"])
def test_a_url_that_lacks_something(driver: Any, url: str) -> None:
    with pytest.raises(ConfigError, match="write snowflake://USER@ACCOUNT/DATABASE/SCHEMA"):
        given(driver, url)


def test_plain_names_are_capitals() -> None:
    assert snowflake.SYSTEM.named("public.sales") == '"PUBLIC"."SALES"'
    assert snowflake.SYSTEM.named("my table") == '"my table"'


def test_a_missing_driver_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("adbc_driver_snowflake", "adbc_driver_snowflake.dbapi"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=r"adbc-driver-snowflake, which is missing .*pip install 'akrunner\[snowflake\]'"):
        snowflake.SYSTEM.open("snowflake://me@a/d?table=t", None, None)


def test_only_one_error_means_that_there_is_no_table() -> None:
    class Refused(Exception):
        def __init__(self, words: str, number: int | None, state: str | None) -> None:
            super().__init__(words)
            self.status_code, self.vendor_code, self.sqlstate = 1, number, state

    assert snowflake.SYSTEM.is_missing(Refused("Object 'T' does not exist or not authorized.", 2003, "42S02"), "T")
    for words, number, state in (
        ("No active warehouse selected in the current session.", 606, "57P03"),
        ("Object 'T' does not exist", None, None),
        ("Insufficient privileges to operate on table 'T'", 3001, "42501"),
    ):
        assert not snowflake.SYSTEM.is_missing(Refused(words, number, state), "T")
