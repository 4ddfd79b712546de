"""Servers of Arrow Flight SQL (Dremio, InfluxDB 3, Doris, GizmoSQL, ...), by its ADBC driver.

::

    flightsql://me@host:31337?table=sales              the table, over TLS
    flightsql://me@host:31337?tls=off, and a query     the server runs it; without TLS
"""

from __future__ import annotations

import os
import urllib.parse
from typing import Any

from akrunner.errors import ConfigError
from akrunner.io.paths import local_path
from akrunner.io.systems.adbc import driver
from akrunner.io.systems.base import Url
from akrunner.io.systems.servers import Server, parts_of, secret_of

_EXTRA = ("adbc_driver_flightsql", "flightsql")
#: what `?tls=` may say
_TLS = ("on", "off", "unverified")
_CLIENT = "adbc.flight.sql.client_option."


class _FlightSql(Server):
    called = "Flight SQL"
    options = ("database", "password_file", "token_file", "tls", "ca_file")

    def connect(self, place: Url) -> Any:
        parts, tls = parts_of(place), place.options.get("tls", "on")
        if tls not in _TLS:
            raise ConfigError(f"{place.shown}: tls= is {', '.join(_TLS)}, not {tls!r}")
        if parts.path.strip("/"):
            raise ConfigError(f"{place.shown}: the path says nothing to Flight SQL; write &database={parts.path.strip('/')}")
        host = parts.netloc.rpartition("@")[2]
        given = {"adbc.flight.sql.rpc.with_cookie_middleware": "true"}
        token = secret_of(place, "token_file", None, os.environ, "FLIGHTSQL_TOKEN")
        if token is not None:
            given["adbc.flight.sql.authorization_header"] = f"Bearer {token}"
        if parts.username:
            given["username"] = urllib.parse.unquote(parts.username)
            given["password"] = secret_of(place, "password_file", parts.password, os.environ, "FLIGHTSQL_PASSWORD") or ""
        if tls == "unverified":
            given[_CLIENT + "tls_skip_verify"] = "true"
        if "ca_file" in place.options:
            with open(local_path(place.options["ca_file"], "ca_file"), encoding="utf-8") as file:
                given[_CLIENT + "tls_root_certs"] = file.read()
        if "database" in place.options:
            given["adbc.flight.sql.rpc.call_header.database"] = place.options["database"]
        scheme = "grpc+tcp" if tls == "off" else "grpc+tls"
        return driver(*_EXTRA).connect(f"{scheme}://{host}", db_kwargs=given, autocommit=True)


SYSTEM = _FlightSql()
