"""What libpq is told by the environment."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from akrunner.io.systems.libpq import OPTIONS, SESSION, options_of, session_of

#: where services, words and the password are, what is printed, and the zone, which is always UTC
_OTHERS = {"PGCOPY", "PGSERVICEFILE", "PGSYSCONFDIR", "PGLOCALEDIR", "PGPASSWORD", "PGOAUTHDEBUG", "PGREQUIRESSL", "PGTZ"}


def test_every_variable_that_the_drivers_libpq_knows_is_here() -> None:
    driver = importlib.util.find_spec("adbc_driver_postgresql")
    assert driver is not None and driver.origin is not None
    (library,) = Path(driver.origin).parent.glob("libadbc_driver_postgresql*")
    names = {name.decode() for name in re.findall(rb"\0(PG[A-Z_]{2,})(?=\0)", library.read_bytes())}
    knows = {name for name in names if not name.startswith(("PGRES_", "PG_"))} - _OTHERS
    assert {"PGREQUIREAUTH", "PGSSLMINPROTOCOLVERSION"} <= knows <= {*OPTIONS.values(), *SESSION}


def test_variables_are_options_of_a_connection_or_parameters_of_a_session() -> None:
    environment = {
        "PGSSLMINPROTOCOLVERSION": "TLSv1.3",
        "PGHOST": "",
        "PGTZ": "Asia/Tokyo",
        "PGDATESTYLE": "Default",
        "PGGEQO": "off",
        "OTHER": "x",
    }
    assert options_of(environment) == {"ssl_min_protocol_version": "TLSv1.3"}
    assert session_of(environment) == {"geqo": "off"}
    # as old programs ask for TLS
    assert options_of({"PGREQUIRESSL": "1"}) == {"sslmode": "require"}
    assert options_of({"PGREQUIRESSL": "0"}) == {}
    assert options_of({"PGREQUIRESSL": "1", "PGSSLMODE": "disable"}) == {"sslmode": "disable"}
