"""Systems that keep tables: databases behind a URL, and lakehouse tables, which may also be named by the path or URL of their
directory. Each system has a module, which is imported when a job names one of its tables.

::

    postgresql://me@host/shop?table=sales      -> postgres
    sqlite:///shop.db?table=sales              -> sqlite
    duckdb:///shop.duckdb?table=sales          -> duckdb
    iceberg://catalog/shop.sales               -> iceberg
    delta:///lake/sales, delta+s3://b/sales    -> delta
    lake/sales, s3://b/sales                   -> delta or iceberg, if such a table is there (`akrunner.io.lakehouse`)
    flightsql://me@host:31337?table=sales      -> flightsql
    snowflake://me@account/db/schema?table=t   -> snowflake
    scored.lance, lance:///scored              -> lance
    datasets:///scored                         -> hub

Rows are read from a table, or written to it in one transaction that is committed when the job has succeeded.

To add one, write a module with a `System` called SYSTEM, and add a row to `_MODULES`. docs/extending.md has
the list of what else names systems.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from akrunner.errors import AkrunnerError, SinkError, SourceError
from akrunner.foreign import redacted
from akrunner.io.systems.base import System, TableSink, Url, of_parameter

__all__ = [
    "System",
    "TableSink",
    "check_no_format",
    "check_output",
    "is_system",
    "names_table",
    "of_parameter",
    "one_system",
    "system_of",
]

#: scheme of a URL -> the module that has its SYSTEM
_MODULES: Mapping[str, str] = {
    "postgresql": "postgres",
    "postgres": "postgres",
    "sqlite": "sqlite",
    "duckdb": "duckdb",
    "delta": "delta",
    "iceberg": "iceberg",
    "flightsql": "flightsql",
    "snowflake": "snowflake",
    "lance": "lance",
    "datasets": "hub",
}
#: those whose tables are directories of files, on this machine or on a store: `delta+s3://bucket/table`
_IN_FILES = ("delta", "lance")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
#: a URL without its slashes
_SHORT = re.compile(r"([A-Za-z][A-Za-z0-9]*):(?!//)(.+)")
#: schemes of systems that keep tables and have no module here, so that no file system of that name is looked for
_OTHERS = frozenset(
    "bigquery cassandra clickhouse cockroachdb databricks db2 druid elasticsearch firebird hbase hive impala influxdb "
    "mariadb mongodb mssql mysql odbc oracle phoenix presto pulsar redshift rocketmq sap singlestore "
    "sqlserver teradata tidb trino vertica".split()
)


#: schemes of streams, which no job that reads a whole table reads. `akrunner.io.streams` imports this package, so they are written
#: twice, and a test compares them
STREAMS = frozenset({"kafka", "redis", "rediss", "files"})


def is_system(given: Any) -> bool:
    """Whether it is the URL of one of these systems, or the path or URL of a lakehouse table that is there."""
    return isinstance(given, (str, os.PathLike)) and _module_of(os.fspath(given)) is not None


def system_of(url: str) -> System:
    """Return the system that reads and writes a URL; nothing is opened.

    Args:
        url: a URL for which `is_system` is true.
    """
    url = os.fspath(url)
    system: System = importlib.import_module(f"akrunner.io.systems.{_module_of(url)}").SYSTEM
    return system


def _module_of(given: str | bytes) -> str | None:
    """Return the module of the system that keeps a table; None if there is none."""
    scheme = _scheme(given)
    if scheme.partition("+")[0] in _IN_FILES:
        return scheme.partition("+")[0]
    if scheme in _MODULES or not isinstance(given, str):
        return _MODULES.get(scheme)
    # fsspec and all formats of files, which the process of a database's file (`apart`) does without
    from akrunner.io import lakehouse

    return lakehouse.system_at(given)


def names_table(url: str) -> bool:
    """Whether a URL of a system names a table.

    Raises:
        ConfigError: it has an option twice.
    """
    return not system_of(url).queries or "table" in Url.parse(url).options


def with_decimals(url: str, decimals: str) -> str:
    """Return a URL by which the system itself converts decimals that Arrow cannot hold, if it can.

    Args:
        decimals: one of `akrunner.io.decimals.WAYS`.
    """
    if decimals not in system_of(url).decimals or "decimals" in Url.parse(url).options:
        return url
    return f"{url}{'&' if '?' in url else '?'}decimals={decimals}"


def one_system(given: Any, form: str | None) -> str | None:
    """Return the URL of the table in a system that a source is; None if the source is something else.

    Args:
        given: a path, a URL, a list of them, or anything else.
        form: the value of `input_format=`.
    Raises:
        SourceError: the source is several tables, or a table and files; or a format is given for a table.
    """
    urls: Sequence[Any] = given if isinstance(given, (list, tuple)) else [given]
    for one in urls:
        _check_ours(
            one,
            SourceError,
            "source",
            "give its rows in Python: akrunner.run(script, cursor) takes a cursor of its driver (DB-API, ADBC), "
            "akrunner.stream an iterable; or export them to Parquet",
        )
    found = [one for one in urls if is_system(one)]
    if not found:
        return None
    if len(urls) > 1:
        raise SourceError(
            f"source: {redacted(os.fspath(found[0]))} is a table in {_kept_in(found[0])}, and there are {len(urls)} inputs; one table "
            f"of {_kept_in(found[0])} is one input"
            + (
                ": join them with UNION ALL in select= (--select), which the database runs where the URL has no ?table="
                if system_of(found[0]).queries
                else ""
            )
        )
    if form is not None:
        raise SourceError(f"input_format= (--input-format) is for files; the source is a table in {_kept_in(found[0])}")
    return str(os.fspath(found[0]))


def _kept_in(url: str) -> str:
    return "a database" if system_of(url).queries else "a lakehouse"


def _scheme(given: Any) -> str:
    found = _SCHEME.match(given) if isinstance(given, str) else None
    return found[1].lower() if found is not None else ""


def check_output(path: str) -> None:
    """Check that an output is not in a database that akrunner does not write.

    Raises:
        SinkError: it is.
    """
    _check_ours(path, SinkError, "output", "write Parquet and load that, or write what akrunner.run() returns, result.table")


def _check_ours(given: Any, kind: type[AkrunnerError], parameter: str, instead: str) -> None:
    """Check that a URL does not name a database, or a driver, that akrunner does not know.

    Raises:
        AkrunnerError: of the class `kind`: it does.
    """
    if not isinstance(given, (str, os.PathLike)):
        return
    text = os.fspath(given)
    wrong = f"{parameter}: {redacted(text)}"
    # the notations of SQLAlchemy (mysql+pymysql://) and of JDBC (jdbc:mysql://)
    plain = text.removeprefix("jdbc:")
    base, _, driver = _scheme(plain).partition("+")
    if base in _MODULES and base not in _IN_FILES and (driver or plain != text):
        raise kind(f"{wrong}: write {base}://, {f'without +{driver}' if driver else 'without jdbc:'}")
    short = _SHORT.match(text)
    if short is not None and short[1].lower() in _MODULES and not os.path.exists(text):
        scheme = short[1].lower()
        # in the URL of a system in files, the path stands where a server's URL has the database
        slashes = "///" if system_of(f"{scheme}://").in_files(f"{scheme}:///x") else "//"
        raise kind(f"{wrong}: write {scheme}:{slashes}{redacted(short[2])}")
    if base in STREAMS and not text.startswith("jdbc:"):
        raise kind(
            f"{wrong} is a stream, whose rows go on coming: akrunner stream and akrunner predict (akrunner.stream, "
            "akrunner.predict_stream) read and write it"
        )
    if base in _OTHERS:
        known = ", ".join(f"{scheme}://" for scheme in _MODULES if system_of(f"{scheme}://").queries)
        raise kind(f"{wrong}: of databases akrunner opens {known}, no {base}; {instead}")


def check_no_format(path: str, form: str | None) -> None:
    """Check that no file format is given for an output in a system.

    Raises:
        SinkError: there is one.
    """
    if form is not None:
        raise SinkError(f"output_format= (--output-format) is for files; {redacted(path)} is a table in {_kept_in(path)}")
