"""Holds one state of a table of PostgreSQL, and says how other machines reach it (`akrunner.io.pg_ranges`).

::

    the URL, PGHOST, PGPASSWORD, ~/.pgpass, password_file= -> what libpq is told there, and the password, which is kept apart
    a transaction that stays open                          -> the state's name, and how many rows each range of pages has
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlencode, urlsplit

from akrunner.io.pg_ranges import STARTED, Column, Ranges, expressions, network
from akrunner.io.shared import Unshared
from akrunner.io.systems.base import Url
from akrunner.io.systems.libpq import options_of, session_of

#: names that Debian and Red Hat give to a machine itself in /etc/hosts, and what stands for it in a system's calls
_OWN = {
    "localhost", "localhost4", "localhost6", "localhost.localdomain", "localhost4.localdomain4", "localhost6.localdomain6",
    "ip6-localhost", "ip6-loopback", "0",
}  # fmt: skip
#: the host of a URL, and its port
_AT = re.compile(r"(\[[^\]]*\]|[^:]*):?(\d*)")
#: with these values of sslmode= a certificate is checked
_CHECKS = ("verify-ca", "verify-full")
#: older servers read a whole table to find the rows of a few pages
_OLDEST = 140000
#: the most pages of a range, 16 MB: a range of which a task reads a part is sorted
_PAGES = 2048
_LOOK = (
    "SELECT c.relkind::text, c.relhassubclass, pg_is_in_recovery(), current_setting('server_version_num')::bigint, "
    "pg_relation_size(c.oid), current_setting('block_size')::bigint, session_user::text, current_database()::text, "
    f"{STARTED} FROM pg_class c WHERE c.oid = to_regclass($1)"
)


class Place(Protocol):
    """Where a table is: a server and a database.

    Attributes:
        url: its URL.
        shown: the URL in errors.
        libpq: libpq's options that the URL has, without a password.
        password: the one in the file that the URL names; None if it names none.
    """

    url: Url
    shown: str

    @property
    def libpq(self) -> Mapping[str, str]: ...

    @property
    def password(self) -> str | None: ...

    def reading(self) -> contextlib.AbstractContextManager[Any]:
        """Open a transaction that only reads, and yield its cursor."""
        ...


class Snapshot:
    """A state of a table that is there until it is closed.

    Attributes:
        ranges: what other machines are told of it.
        pages, bytes: the table's size.
    """

    def __init__(self, cursor: Any, opened: contextlib.ExitStack, ranges: Ranges, pages: int, size: int) -> None:
        self.ranges, self.pages, self.bytes = ranges, pages, size
        self._cursor, self._opened = cursor, opened

    @classmethod
    def of(cls, place: Place, table: str, columns: Sequence[Column], readers: int, trusted: bool) -> Snapshot:
        """Hold the present state.

        Args:
            table: the table's name in SQL.
            columns: what is read of it.
            readers: how many machines read at the same time.
            trusted: whether the password may be sent to them.
        Raises:
            Unshared: other machines cannot read it.
            Exception: whatever ADBC raises.
        """
        if int(place.url.options.get("connections", readers)) < readers:
            raise Unshared(f"connections= is less than the number of tasks that read, {readers}")
        with contextlib.ExitStack() as opened:
            cursor = opened.enter_context(place.reading())
            # its lock keeps the table's rows in their pages: VACUUM FULL would move some behind the last page that is counted
            cursor.execute(f"SELECT FROM {table} LIMIT 0")
            cursor.execute(_LOOK, (table,))
            kind, children, standby, version, size, page, user, database, started = cursor.fetchone()
            if kind not in ("r", "m") or children:
                raise Unshared("it is a view, or has partitions or other tables below it")
            if standby:
                raise Unshared("the server is a standby, which has no states that others can see")
            if version < _OLDEST:
                raise Unshared("a server before PostgreSQL 14 does not find a part of a table without reading all of it")
            settings, secrets = reached(place, user, database, trusted)
            cursor.execute("SELECT pg_export_snapshot()")
            told = {
                "shown": place.shown,
                "table": table,
                "select": expressions(columns),
                "looks": [[*one.looks] for one in columns],
            }
            host = settings.get("hostaddr") or settings["host"]
            more = {
                "snapshot": str(cursor.fetchone()[0]),
                "started": started,
                "network": network() if _is_own(host) else "",
                "session": session_of(os.environ),
                "revoked": _revoked(settings),
            }
            uri = f"postgresql:///?{urlencode(settings, quote_via=quote)}"
            ranges = Ranges({"uri": uri, **told, **more}, secrets)
            return cls(cursor, opened.pop_all(), ranges, -(-size // page), size)

    def counted(self, least: int) -> list[tuple[int, int, int]]:
        """Return (first page, the page behind the last, rows) of ranges of the table, which have all of its rows. It is the database
        that reads every row for this.

        Args:
            least: how many ranges there are at least, if there are so many pages.
        Raises:
            Exception: whatever ADBC raises.
        """
        each = max(1, min(self.pages // (4 * least), _PAGES))
        # whatever the table and its columns are called, these are the numbers of pages
        first = "akrunner_pages.first"
        pages = f"ctid >= format('(%s,0)', {first})::tid AND ctid < format('(%s,0)', {first} + {each})::tid"
        query = (
            f"SELECT {first}, (SELECT count(*) FROM {self.ranges.settings['table']} AS akrunner_rows WHERE {pages}) "
            f"FROM generate_series(0::bigint, {self.pages - 1}, {each}) AS akrunner_pages(first) ORDER BY {first}"
        )

        def rows() -> list[tuple[int, int]]:
            self._cursor.execute("SELECT set_config('enable_seqscan', 'off', true)")
            self._cursor.execute(query)
            found: list[tuple[int, int]] = self._cursor.fetchall()
            return found

        return [(first, first + each, count) for first, count in rows() if count]

    def close(self) -> None:
        """End the transaction."""
        with contextlib.suppress(Exception):
            self._opened.close()


def reached(place: Place, user: str, database: str, trusted: bool) -> tuple[dict[str, str], dict[str, str]]:
    """Return what libpq is told on another machine, as it was found on this one: its options, and those that are secret.

    Args:
        user, database: as the server calls them.
        trusted: whether secrets may be sent.
    Raises:
        Unshared: other machines do not get there that way.
    """
    parts = urlsplit(place.url.base)
    login, _, at = parts.netloc.rpartition("@")
    found = _AT.fullmatch(at)
    host, port = (unquote(found[1].strip("[]")), found[2]) if found is not None else (at, "")
    in_url = {"user": unquote(login.partition(":")[0]), "host": host, "port": port, "dbname": unquote(parts.path[1:])}
    around = options_of(os.environ)
    # where passwords are on this machine is nothing to another one
    passfile = around.pop("passfile", os.path.join(os.path.expanduser("~"), ".pgpass"))
    told = {"user": user, "dbname": database}
    for one in (around, in_url, place.libpq):
        told.update({name: value for name, value in one.items() if value})
    if told.get("service"):
        raise Unshared("service= (PGSERVICE) names settings in a file of the submitter's")
    host = told.get("host") or told.get("hostaddr") or ""
    if "," in host:
        raise Unshared("several servers are named, and a state is of one of them")
    if host.startswith(("/", "@")) or not host:
        raise Unshared("the server is reached by a socket of the submitter's machine")
    _check_alike(told)
    if not trusted:
        return told, {}
    password = place.password or unquote(login.partition(":")[2]) or os.environ.get("PGPASSWORD")
    if not password:
        kept = told.get("passfile", passfile)
        password = _kept(kept, host, told.get("port", "5432"), told["dbname"], told["user"])
    return told, {"password": password} if password else {}


def _check_alike(told: dict[str, str]) -> None:
    """Change the options so that other machines check the server's certificate no less than this one does by files that it has."""
    files = os.path.join(os.path.expanduser("~"), ".postgresql")
    if told.get("sslmode") == "require" and os.path.exists(told.get("sslrootcert", os.path.join(files, "root.crt"))):
        # libpq checks the certificate then, but not where the file is missing
        told["sslmode"] = "verify-ca"
    revoked = os.path.join(files, "root.crl")
    if told.get("sslmode") in _CHECKS and not {"sslcrl", "sslcrldir"} & set(told) and os.path.exists(revoked):
        told["sslcrl"] = revoked


def _revoked(told: Mapping[str, str]) -> list[str]:
    """Return the files and directories of revoked certificates that this machine has."""
    named = [told[name] for name in ("sslcrl", "sslcrldir") if told.get("sslmode") in _CHECKS and name in told]
    return [path for path in named if os.path.exists(path)]


def _is_own(host: str) -> bool:
    """Whether a host is another one for each machine."""
    name = host.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name in _OWN or name.endswith(".localhost") or name.startswith("127.")
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _kept(path: str, *wanted: str) -> str | None:
    """Return the password that a file of libpq's has for a host, port, database and user; None if it has none."""
    try:
        if os.stat(path).st_mode & 0o077:
            # libpq does not read it either
            return None
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeError):
        return None
    for line in lines:
        fields = [re.sub(r"\\(.)", r"\1", one) for one in re.findall(r"((?:[^:\\]|\\.)*)(?::|$)", line)]
        if not line.startswith("#") and len(fields) > len(wanted) and all(a in ("*", b) for a, b in zip(fields, wanted)):
            return fields[len(wanted)]
    return None
