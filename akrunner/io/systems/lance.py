"""Lance datasets, read and written by Lance's own library.

::

    scored.lance, s3://bucket/scored.lance     a path or URL that ends in .lance
    lance:///scored, lance+s3://bucket/scored  the same by any other name

Rows are written as one new version, when the job has succeeded.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from akrunner.checks import whole_of
from akrunner.errors import SinkError, SourceError
from akrunner.foreign import ours
from akrunner.io import datasets
from akrunner.io.commits import last_step
from akrunner.io.systems import lakes
from akrunner.io.systems.base import TableSink, Transaction, Url
from akrunner.io.systems.database_file import path_of
from akrunner.io.systems.kept_rows import KeptRows
from akrunner.io.table import TableSource
from akrunner.io.unfinished import came_meanwhile


class _Lance:
    """Lance datasets as a `System`."""

    queries = False
    decimals: Sequence[str] = ()

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
        return TableSink(
            place.shown, schema, lambda: _Writing(place, there, columns, overwrite), is_new=there is None and not overwrite
        )


SYSTEM = _Lance()
#: other names of schemes -> the only one that Lance knows
_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}


def _library() -> Any:
    return lakes.library("lance", "lance", "Lance datasets")


def _place(place: Url) -> str:
    """Return what Lance calls the dataset: an absolute path, or a URL."""
    scheme, mark, rest = place.base.rstrip("/").partition("://")
    if scheme.lower() == "lance":
        return path_of(place, "lance")
    scheme = scheme.lower().removeprefix("lance+") if mark else ""
    if mark and scheme != "file":
        return f"{_SCHEMES.get(scheme, scheme)}://{rest}"
    return os.path.abspath(os.path.expanduser(rest.removeprefix("localhost") if mark else place.base))


def _version(place: Url) -> int | None:
    given = place.options.get("version")
    version = whole_of(given) if given is not None else None
    if given is not None and version is None:
        raise SourceError(f"source: {place.shown}: version= is a whole number, not {given!r}")
    return version


def _dataset(uri: str, version: int | None = None) -> Any | None:
    """Return the dataset at a path or URL; None if there is none."""
    library = _library()
    if "://" not in uri and not os.path.isdir(os.path.join(uri, "_versions")):
        return None
    try:
        return library.dataset(uri, version=version, storage_options=lakes.endpoint_options(uri) or None)
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
        uri, options = _place(self._place), lakes.endpoint_options(_place(self._place)) or None
        if self._there is None:
            if _dataset(uri) is not None:
                raise came_meanwhile(self._place.shown)
            self._written(uri, mode="create", storage_options=options)
        elif self._overwrite:
            self._replace(uri)
        elif self._kept.rows:
            self._written(uri, mode="append", storage_options=options)

    def _written(self, uri: str, **how: Any) -> None:
        try:
            # Lance writes the files, and commits them, in one call
            last_step(self._place.shown, lambda: _library().write_dataset(self._kept.reader(), uri, **how), elsewhere=True)
        except Exception as e:
            if self._there is None and "already exists" in str(e):
                raise came_meanwhile(self._place.shown) from None
            if _is_conflict(e):
                raise lakes.conflict(self._place.shown, e) from None
            raise

    def _replace(self, uri: str) -> None:
        """Replace the rows of the version that was there when the output was opened, and of no later one.

        Lance's own overwrite would take the newest version when its files are written, and replace also what another writer
        has added. So the files are written first; the version that they become must be the next one, or nothing is changed.

        Raises:
            WriteError: another writer has added a version.
        """
        library, there = _library(), self._there
        now = _dataset(uri)
        if there is None or now is None or now.version != there.version:
            raise lakes.conflict(self._place.shown, ValueError("it has another version now"))
        made = library.fragment.write_fragments(self._kept.reader(), there, mode="overwrite", return_transaction=True)
        try:
            last_step(self._place.shown, lambda: library.LanceDataset.commit(there, made, max_retries=0), elsewhere=True)
        except Exception as e:
            if not _is_conflict(e):
                raise
            _remove(uri, made)
            raise lakes.conflict(self._place.shown, e) from None

    def close(self) -> None:
        self._kept.drop()


def _is_conflict(error: Exception) -> bool:
    """Whether Lance has refused a version because another writer has made one meanwhile."""
    # older versions have no exception of its own for that
    return "commit conflict" in str(error).lower()


def _remove(uri: str, made: Any) -> None:
    """Remove the files of a version that did not come to be; in a store they stay until its owner cleans the dataset up."""
    if "://" in uri:
        return
    for fragment in made.operation.fragments:
        for file in fragment.files:
            with contextlib.suppress(OSError):
                os.remove(os.path.join(uri, "data", os.path.basename(file.path)))
