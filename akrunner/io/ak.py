"""Reads and writes Alink's `.ak` files: zips of a description and of rows; single files, or directories of them.

::

    t.ak                          one file: a zip of alink_meta.json and data
    t/1, t/2, t/3                 a directory of several files
    t/day=17/0, t/day=18/0 ...    a directory for each value; partitions="day = '17'" reads only the first
"""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import fsspec
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.checks import check_url
from akrunner.errors import ConfigError, SourceError
from akrunner.foreign import ours, redacted
from akrunner.io import ak_rows
from akrunner.io.commits import last_step
from akrunner.io.destinations import file_destination, folder_destination
from akrunner.io.partitioner import rechunk
from akrunner.io.partitions import values_of
from akrunner.io.sql import check_query
from akrunner.io.table import TableSource

_META = "alink_meta.json"
_TIME = (1980, 1, 1, 0, 0, 0)
_LONGEST_META = 1 << 22
_CHUNK_ROWS, _CHUNK_BYTES = 8192, 4 << 20
#: `day=17`, `day=17/hour=3`, or several of these with commas between them
_PATHS = re.compile(r"[^=/,'\s]+=[^=/,']*(?:[/,][^=/,'\s]+=[^=/,']*)*")
_MOST_FILES = 100_000


def ak_source(path: str, partitions: str | None = None) -> TableSource:
    """Return the rows of a file, or of all files in a directory and those below it, as a table with the columns of the first
    file.

    Args:
        path: a local path, or any URL that fsspec can open.
        partitions: which directories named `column=value` to read: SQL such as "day = '17'", or day=17/hour=3. None: all.
    Raises:
        SourceError: the files cannot be read, or have a column of a type whose cells are unknown here.
    """
    check_url("filePath", path, SourceError)
    with ours(SourceError, f"filePath: cannot open {path}"):
        fs, place = fsspec.core.url_to_fs(os.path.expanduser(path))
        found = _found(fs, place, path)
    if partitions:
        found = _chosen(found, place, partitions)
    with ours(SourceError, f"filePath: cannot read {path}"):
        schema = _schema(fs, found[0])

    def batches() -> Iterator[pa.RecordBatch]:
        for one in found:
            mine = _schema(fs, one)
            if mine != schema:
                raise SourceError(
                    f"filePath: {one} has the columns {', '.join(mine.names)}, {found[0]} {', '.join(schema.names)}"
                )
            yield from _rows(fs, one, schema)

    return TableSource(schema, batches, redacted(path), True)


def _found(fs: Any, place: str, path: str) -> list[str]:
    if not fs.isdir(place):
        return [place]
    found = [
        one
        for one in sorted(fs.find(place), key=_numbered)
        if not one.endswith(".inprogress") and not any(part.startswith((".", "_")) for part in one[len(place) :].split("/"))
    ]
    if not found:
        raise SourceError(f"filePath: there is no file in {redacted(path)}")
    if len(found) > _MOST_FILES:
        raise SourceError(f"filePath: {len(found)} files in {redacted(path)}: {_MOST_FILES} are read at most")
    return found


def _numbered(path: str) -> tuple[str, int, str]:
    """Return a sort key that puts files 1, 2, ..., 10 in this order."""
    folder, name = posixpath.split(path)
    return folder, int(name) if name.isdecimal() and len(name) < 10 else 0, name


def _chosen(found: list[str], base: str, partitions: str) -> list[str]:
    """Return the files of the partitions that were asked for.

    Raises:
        SourceError: there are none.
    """
    values = [values_of(path, base) for path in found]
    names = sorted({name for one in values for name in one})
    if not names:
        raise SourceError("partitions: no directory is named column=value")
    if _PATHS.fullmatch(partitions.strip()):
        asked = [dict(part.split("=", 1) for part in one.split("/")) for one in partitions.strip().split(",")]
        kept = [path for path, one in zip(found, values) if any(wanted.items() <= one.items() for wanted in asked)]
    else:
        kept = _where(found, values, names, partitions)
    if not kept:
        raise SourceError(
            f"partitions: none of {len(found)} files fits {partitions!r}; the directories name {', '.join(names)}"
        )
    return kept


def _where(found: list[str], values: Sequence[dict[str, str]], names: list[str], partitions: str) -> list[str]:
    import duckdb

    input = pa.table({name: pa.array([one.get(name) for one in values], pa.string()) for name in names})
    input = input.append_column("file number", pa.array(range(len(found))))
    query = f'SELECT "file number" FROM input WHERE {partitions.replace("`", chr(34))} ORDER BY 1'
    check_query(query, "partitions", SourceError)
    connection = duckdb.connect()
    try:
        connection.register("input", input)
        rows = connection.sql(query).fetchall()
    except duckdb.Error as e:
        raise SourceError(f"partitions: {e}") from None
    finally:
        connection.close()
    return [found[row[0]] for row in rows]


def _schema(fs: Any, path: str) -> pa.Schema:
    with fs.open(path, "rb") as stream, _opened(stream, path) as archive:
        if _META not in archive.namelist():
            raise SourceError(f"filePath: {path} has no {_META}: it is no .ak file")
        with archive.open(_META) as meta:
            text = meta.read(_LONGEST_META)
    try:
        told = json.loads(text)
        form, schema = told.get("fileFormat", "binary"), told["schemaStr"]
        if form != "binary" or not isinstance(schema, str):
            raise ValueError(f"its format is {form!r}")
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as e:
        raise SourceError(f"filePath: {path}: {_META} is not what Alink writes: {e}") from None
    return parsed(schema, path)


def parsed(text: str, path: str) -> pa.Schema:
    """Return the schema for the text in which a file gives its columns.

    Raises:
        SourceError: a column is of a type whose cells are unknown here, or two columns have the same name.
    """
    fields = []
    for one in re.split(r",(?![^<]*>)", text):
        name, _, kind = one.strip().partition(" ")
        known = ak_rows.TYPES.get(kind.strip().upper())
        if known is None:
            raise SourceError(
                f"filePath: column {name!r} of {path} is {kind.strip() or 'of no type'}, and how Alink writes such cells in "
                ".ak files is not known here; in Alink make it text first: TypeConvertBatchOp().setTargetType('STRING')"
            )
        fields.append((name, known))
    if len({name for name, _ in fields}) < len(fields):
        raise SourceError(f"filePath: {path} has two columns of one name")
    return pa.schema(fields)


def _rows(fs: Any, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with ours(SourceError, f"filePath: cannot read {path}"), fs.open(path, "rb") as stream, _opened(stream, path) as archive:
        for entry in archive.namelist():
            if entry != _META and not entry.endswith("/"):
                with archive.open(entry) as data:
                    try:
                        yield from ak_rows.read(data, schema, path)
                    except (zipfile.BadZipFile, EOFError) as e:
                        raise SourceError(f"filePath: {path} is damaged: {e}") from None


def _opened(stream: IO[bytes], path: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(stream)
    except zipfile.BadZipFile as e:
        raise SourceError(f"filePath: {path} is no .ak file, which is a zip: {e}") from None


# -- writing


class AkWriter:
    """One file that is being written.

    Args:
        stream: where the file is written.
        schema: the schema of the rows.
    """

    def __init__(self, stream: IO[bytes], schema: pa.Schema) -> None:
        self._archive = zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED)
        told = {"fileFormat": "binary", "numFiles": 1, "schemaStr": ak_rows.schema_text(schema), "version": "v0.1"}
        self._archive.writestr(_entry(_META), json.dumps(told))
        self._data = self._archive.open(_entry("data"), "w", force_zip64=True)
        self._data.write(ak_rows.MAGIC)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        for part in rechunk([batch], _CHUNK_ROWS, _CHUNK_BYTES):
            self._data.write(ak_rows.encoded(part))

    def close(self) -> None:
        """Write the end of the file; the stream stays open."""
        self._data.close()
        self._archive.close()

    def abort(self) -> None:
        """Give the file up, whatever errors the disk reports."""
        closing: Sequence[Any] = (self._data, self._archive)
        for one in closing:
            with contextlib.suppress(OSError, ValueError):
                one.close()


def _entry(name: str) -> zipfile.ZipInfo:
    """Return an entry of the zip with a fixed time, so that the same rows give the same bytes."""
    info = zipfile.ZipInfo(name, _TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


class AkSink:
    """Writes rows to one file, to several, or to a directory for each value. The output does not exist before `commit`.

    Args:
        path: a local path, or any URL that fsspec can write.
        schema: the schema of the rows.
        overwrite: whether an existing output is replaced.
        files: the number of files; several are the files 1, 2, ... of a directory, which get the batches in turn.
        partitions: the columns whose values name directories (`day=17`); they are left out of the files.
    Raises:
        SinkError: the output may not be written, or cells of a column cannot be.
        ConfigError: `partitions` names a column that is not in the schema.
    """

    def __init__(
        self, path: str, schema: pa.Schema, overwrite: bool = False, files: int = 1, partitions: Sequence[str] | None = None
    ) -> None:
        for name in partitions or ():
            if name not in schema.names:
                raise ConfigError(f"partitionCols: there is no column {name!r}")
        self._partitions = list(partitions or [])
        self._schema = pa.schema([field for field in schema if field.name not in self._partitions])
        ak_rows.check_types(self._schema, "filePath")
        self._files = files
        self._destination: Any
        self._writers: dict[str, AkWriter] = {}
        self._over = False
        self._turn = 0
        self._single = files == 1 and not self._partitions
        if self._single:
            self._destination = file_destination(path, overwrite)
            self._writers[""] = AkWriter(self._destination.open(), self._schema)
            return
        self._destination = folder_destination(path, overwrite)
        self._destination.make()
        for number in range(files if not self._partitions else 0):
            self._writers[str(number + 1)] = AkWriter(self._destination.open(str(number + 1)), self._schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        if self._partitions:
            self._divided(batch)
            return
        name = "" if self._single else str(self._turn % self._files + 1)
        self._turn += 1
        self._writers[name].write(batch)

    def _divided(self, batch: pa.RecordBatch) -> None:
        table = pa.Table.from_batches([batch])
        for values in table.select(self._partitions).group_by(self._partitions).aggregate([]).to_pylist():
            kept: Any = True
            for name, value in values.items():
                same = pc.is_null(batch.column(name)) if value is None else pc.equal(batch.column(name), value)
                kept = pc.and_(same.fill_null(False) if value is not None else same, kept)
            folder = "/".join(f"{name}={_part(name, value)}" for name, value in values.items())
            if folder not in self._writers:
                if self._destination.at is not None:
                    os.makedirs(os.path.join(self._destination.at, folder), exist_ok=True)
                self._writers[folder] = AkWriter(self._destination.open(folder + "/0"), self._schema)
            self._writers[folder].write(batch.filter(kept).select(self._schema.names))

    def commit(self) -> None:
        """Finish the output and put it in place, because all rows are written."""
        for writer in self._writers.values():
            writer.close()
        last_step("the .ak output", self._destination.commit)
        self._over = True

    def abort(self) -> None:
        """Leave what was there before, and nothing new. After `commit` it does nothing."""
        if self._over:
            return
        for writer in self._writers.values():
            writer.abort()
        self._destination.abort()


def _part(name: str, value: Any) -> str:
    """Return a value as a part of a path.

    Raises:
        ConfigError: the value cannot be the name of a directory.
    """
    text = "__HIVE_DEFAULT_PARTITION__" if value is None else str(value)
    if not text or "/" in text or "\0" in text or text.startswith("."):
        raise ConfigError(f"partitionCols: the value {text!r} of column {name!r} cannot be the name of a directory")
    return text
