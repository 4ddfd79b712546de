"""Datasets of Hugging Face's library in directories, as its `save_to_disk` writes them and `load_from_disk` reads them.

::

    datasets:///scored          a directory here
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from akrunner.errors import SinkError, SourceError
from akrunner.foreign import ours
from akrunner.io import datasets
from akrunner.io.commits import last_step
from akrunner.io.local_destinations import LocalFolder
from akrunner.io.systems import lakes
from akrunner.io.systems.base import TableSink, Transaction, Url
from akrunner.io.systems.database_file import path_of
from akrunner.io.systems.kept_rows import KeptRows
from akrunner.io.table import TableSource


class _Hub:
    """Datasets in directories as a `System`."""

    queries = False
    decimals: Sequence[str] = ()

    def in_files(self, url: str) -> bool:
        return True

    def open(self, url: str, query: str | None, columns: Sequence[str] | None) -> TableSource:
        place = Url.parse(url)
        place.check(())
        found = datasets.opened(path_of(place, "datasets"), columns)
        if found is None:
            raise SourceError(f"source: {place.shown}: there is no dataset (a directory with dataset_info.json and state.json)")
        return found

    def output(self, url: str, schema: pa.Schema, overwrite: bool) -> TableSink:
        place = Url.parse(url)
        place.check(())
        path, library = path_of(place, "datasets"), _library()
        with ours(SinkError, f"output: cannot write {place.shown}"):
            there = _state(path)
            if there is None and not overwrite and os.path.isdir(path) and os.listdir(path):
                raise SinkError(
                    f"output: {place.shown}: {path} holds files, and no dataset of Hugging Face's; name another directory"
                )
            LocalFolder(path, place.shown, overwrite or there is not None)
            columns = pa.schema([field.remove_metadata() for field in schema])
            if there is not None and not overwrite:
                columns = library.load_from_disk(path).features.arrow_schema.remove_metadata()
                lakes.check_rows(columns, schema, {}, place.shown)
            # a type that the library does not have is told now
            library.Features.from_arrow_schema(columns)
        return TableSink(
            place.shown, schema, lambda: _Writing(place, there, columns, overwrite), is_new=there is None and not overwrite
        )


SYSTEM = _Hub()


def _library() -> Any:
    return lakes.library("datasets", "datasets", "datasets of Hugging Face's library")


def _state(path: str) -> bytes | None:
    """Return what tells one state of a dataset from another; None if there is no dataset.

    Raises:
        SinkError: there are several.
    """
    if os.path.isfile(os.path.join(path, "dataset_dict.json")):
        raise SinkError(f"output: {path} is several datasets; name one of the directories in it")
    try:
        with open(os.path.join(path, "state.json"), "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


class _Writing(Transaction):
    """Has the library write all rows, those that are there and the job's, when the job has succeeded.

    Args:
        there: the state of the dataset when the output was opened; None: there was none.
    """

    def __init__(self, place: Url, there: bytes | None, columns: pa.Schema, overwrite: bool) -> None:
        self._place, self._there, self._overwrite = place, there, overwrite
        self._path = path_of(place, "datasets")
        self._folder = LocalFolder(self._path, place.shown, overwrite or there is not None)
        # the library maps the file into memory, in which compressed rows would have to be unpacked
        self._kept = KeptRows(columns, packed=False)

    def append(self, rows: pa.Table) -> None:
        for batch in rows.to_batches():
            self._kept.append(lakes.shaped(batch, self._kept.schema, {}, self._kept.rows, self._place.shown))

    def commit(self) -> None:
        library = _library()
        if _state(self._path) != self._there:
            raise lakes.conflict(self._place.shown, ValueError("its state.json is another one now"))
        self._folder.make()
        with _without_bars(library):
            rows = library.Dataset.from_file(self._kept.file())
            if self._there is not None and not self._overwrite:
                there = library.load_from_disk(self._path)
                rows = library.concatenate_datasets([there, rows.cast(there.features)])
            # the library would write no file at all for no rows, and then could not read the directory
            rows.save_to_disk(self._folder.partial, num_shards=None if len(rows) else 1)
        for found, _, names in os.walk(self._folder.partial):
            for name in names:
                with open(os.path.join(found, name), "rb+") as file:
                    os.fsync(file.fileno())
        # the library may have written for long
        if _state(self._path) != self._there:
            raise lakes.conflict(self._place.shown, ValueError("its state.json is another one now"))
        last_step(self._place.shown, self._folder.commit)

    def close(self) -> None:
        self._kept.drop()
        self._folder.abort()


@contextlib.contextmanager
def _without_bars(library: Any) -> Iterator[None]:
    """Keep the library's bars of progress from stderr."""
    off = library.are_progress_bars_disabled()
    library.disable_progress_bars()
    try:
        yield
    finally:
        if not off:
            library.enable_progress_bars()
