"""Snowflake, by its ADBC driver.

::

    snowflake://me@account/database/schema?table=sales&warehouse=w
"""

from __future__ import annotations

import os
import re
import urllib.parse
from typing import Any

from akrunner.errors import ConfigError
from akrunner.io.paths import local_path
from akrunner.io.systems.adbc import driver
from akrunner.io.systems.base import Url, quoted
from akrunner.io.systems.servers import Server, parts_of, secret_of

_EXTRA = ("adbc_driver_snowflake", "snowflake")
_SQL = "adbc.snowflake.sql."
#: an option of the URL -> the driver's
_GIVEN = {"warehouse": _SQL + "warehouse", "role": _SQL + "role", "authenticator": _SQL + "auth_type"}
#: names that Snowflake's SQL takes without quotes: it reads them as capitals
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")


class _Snowflake(Server):
    called = "Snowflake"
    options = ("warehouse", "role", "authenticator", "password_file", "private_key_file", "token_file")

    def named(self, table: str) -> str:
        return ".".join(quoted(one.upper() if _PLAIN.fullmatch(one) else one) for one in table.split("."))

    def connect(self, place: Url) -> Any:
        parts = parts_of(place)
        path = [urllib.parse.unquote(one) for one in parts.path.strip("/").split("/") if one]
        if not parts.username or len(path) > 2:
            raise ConfigError(f"{place.shown}: write snowflake://USER@ACCOUNT/DATABASE/SCHEMA?table=NAME&warehouse=NAME")
        given = {
            _SQL + "account": parts.netloc.rpartition("@")[2],
            "username": urllib.parse.unquote(parts.username),
            **dict(zip((_SQL + "db", _SQL + "schema"), path)),
            **{_GIVEN[name]: value for name, value in place.options.items() if name in _GIVEN},
        }
        password = secret_of(place, "password_file", parts.password, os.environ, "SNOWFLAKE_PASSWORD")
        if password is not None:
            given["password"] = password
        token = secret_of(place, "token_file", None, os.environ, "SNOWFLAKE_TOKEN")
        if token is not None:
            given[_SQL + "client_option.auth_token"] = token
        key = place.options.get("private_key_file")
        if key is not None:
            given[_SQL + "client_option.jwt_private_key"] = str(local_path(key, "private_key_file"))
            given.setdefault(_SQL + "auth_type", "auth_jwt")
        return driver(*_EXTRA).connect(db_kwargs=given, autocommit=True)


SYSTEM = _Snowflake()
