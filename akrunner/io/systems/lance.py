"""Lance datasets, read and written by Lance's own library.

::

    scored.lance, s3://bucket/scored.lance     a path or URL that ends in .lance
    lance:///scored, lance+s3://bucket/scored  the same by any other name

Rows are written as one new version, when the job has succeeded.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from akrunner.errors import ConfigError, SinkError, SourceError
from akrunner.foreign import ours
from akrunner.io import datasets
from akrunner.io.systems import lakes
from akrunner.io.systems.base import TableSink, Transaction, Url
from akrunner.io.systems.database_file import path_of
from akrunner.io.systems.kept_rows import KeptRows
from akrunner.io.table import TableSource
from akrunner.io.unfinished import came_meanwhile


class _Lance:
    """Lance datasets as a `System`."""

    queries = False

    def in_files(self, url: str) -> bool:
        return "://" not in _place(Url.parse(url))

    def open(self, url: str, query: str | None, columns: Sequence[str] | None) -> TableSource:
        place = Url.parse(url)
        place.check(("version",))
        with ours(SourceError, f"source: cannot read {place.shown}"):
            found = _dataset(_place(place), _version(place))
            if found is None:
                raise SourceError(f"source: {place.shown}: there is no Lance dataset")
            return datasets.of_lance(found, columns, place.shown)

    def output(self, url: str, schema: pa.Schema, overwrite: bool) -> TableSink:
        place = Url.parse(url)
        place.check(())
        uri = _place(place)
        with ours(SinkError, f"output: cannot write {place.shown}"):
            there = _dataset(uri)
            if there is None and "://" not in uri:
                lakes.check_place(uri, place.shown, "a Lance dataset")
            columns = pa.schema([field.remove_metadata() for field in (schema if there is None else there.schema)])
            lakes.check_rows(columns, schema, {}, place.shown)
            if there is None and schema.names:
                # a type that Lance does not have is told now
                _library().write_dataset(columns.empty_table(), "memory://akrunner")
        return TableSink(place.shown, schema, lambda: _Writing(place, there, columns, overwrite))


SYSTEM = _Lance()


def _library() -> Any:
    try:
        return importlib.import_module("lance")
    except ImportError as e:
        raise ConfigError(
            f"Lance datasets are read and written by pylance, which is missing ({e}): pip install 'akrunner[lance]'"
        ) from None


def _place(place: Url) -> str:
    """Return what Lance calls the dataset: an absolute path, or a URL."""
    scheme, mark, rest = place.base.rstrip("/").partition("://")
    if scheme.lower() == "lance":
        return path_of(place, "lance")
    scheme = scheme.lower().removeprefix("lance+") if mark else ""
    if mark and scheme != "file":
        return f"{scheme}://{rest}"
    return os.path.abspath(os.path.expanduser(rest.removeprefix("localhost") if mark else place.base))


def _version(place: Url) -> int | None:
    given = place.options.get("version")
    if given is not None and not (given.isdecimal() and len(given) < 19):
        raise SourceError(f"source: {place.shown}: version= is a whole number, not {given!r}")
    return int(given) if given is not None else None


def _dataset(uri: str, version: int | None = None) -> Any | None:
    """Return the dataset at a path or URL; None if there is none."""
    library = _library()
    if "://" not in uri and not os.path.isdir(os.path.join(uri, "_versions")):
        return None
    try:
        return library.dataset(uri, version=version)
    except ValueError as e:
        if version is None and "not found" in str(e):
            return None
        raise


class _Writing(Transaction):
    """Writes rows as one new version of a dataset.

    Args:
        there: the dataset as it was when the output was opened; None: there was none.
    """

    def __init__(self, place: Url, there: Any | None, columns: pa.Schema, overwrite: bool) -> None:
        self._place, self._there, self._overwrite = place, there, overwrite
        self._kept = KeptRows(columns)

    def append(self, rows: pa.Table) -> None:
        for batch in rows.to_batches():
            self._kept.append(lakes.shaped(batch, self._kept.schema, {}, self._kept.rows, self._place.shown))

    def commit(self) -> None:
        library, uri, rows = _library(), _place(self._place), self._kept.reader()
        if self._there is None:
            if _dataset(uri) is not None:
                raise came_meanwhile(self._place.shown)
            library.write_dataset(rows, uri, mode="create")
        elif not self._overwrite:
            if self._kept.rows:
                library.write_dataset(rows, uri, mode="append")
        else:
            now = _dataset(uri)
            if now is None or now.version != self._there.version:
                # Lance would replace also what another writer has added
                raise lakes.conflict(self._place.shown, ValueError("it has another version now"))
            library.write_dataset(rows, uri, mode="overwrite")

    def close(self) -> None:
        self._kept.drop()
