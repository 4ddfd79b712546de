"""Reads what `akrunner pack` has written: the files that its `dataset.json` lists, with their schema and format.

::

    OUT/train  ->  OUT/dataset.json: splits.train.files, format, columns  ->  Files, Schema

If that file is not as it was written, it is unknown which files count: that is an error, and the directory is not listed
instead.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import fsspec

from akrunner.checks import check_url
from akrunner.errors import SourceError
from akrunner.foreign import ours, redacted
from akrunner.io import formats, seals
from akrunner.io.parse import no_column
from akrunner.io.paths import Files, is_local, protocols
from akrunner.schema import Field, Schema
from akrunner.wire.near import nearest

#: the file beside the splits that describes them
DESCRIPTION = "dataset.json"
#: the directory in which an unfinished run keeps what it has done
STATE = ".pack"
MADE_BY = "akrunner pack"
#: version of the description; a later one is not read
VERSION = 1
_MOST_BYTES = 256 << 20
#: bytes of a description in which it says who has made it
_BEGINNING = 1 << 10
#: names of the files in `.pack`
_KEPT = re.compile(r"lock|dataset\.json|[0-9]{4,}")
_AGAIN = "run `akrunner pack` again, as it was run, and it writes the file again"

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Packed:
    """A split as an input.

    Attributes:
        files: the split's files.
        schema: the schema, which TFRecord needs; None: the files themselves tell it.
    """

    files: Files
    schema: Schema | None

    def schema_as(self, asked: Schema | None) -> Schema | None:
        """Return the schema by which the files are read. Args: asked: the columns to take, and their types; None: all, as they are.

        Raises:
            SourceError: the files have no such column. Nobody else would see that: an Example without it has a null there.
        """
        known = self.schema.names if self.schema is not None else None
        missing = next((field.name for field in asked or () if known is not None and field.name not in known), None)
        if known is not None and missing is not None:
            raise no_column(redacted(self.files.paths[0]), missing, known)
        return asked or self.schema


def find(source: PathLike | Sequence[PathLike]) -> Packed | None:
    """Return the splits that a source names; None if it names something else.

    Raises:
        SourceError: a dataset is unfinished or damaged, has another schema than the first one, or lacks the split.
    """
    names = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    found = [_find(os.fspath(name)) for name in names]
    if not found or any(one is None for one in found):
        return None
    first, *others = [one for one in found if one is not None]
    for name, one in zip(names[1:], others):
        if (one.schema, one.files.format) != (first.schema, first.files.format) or type(one.files.filesystem) is not type(
            first.files.filesystem
        ):
            raise SourceError(
                f"source: {redacted(str(name))} has other columns, or another format, than {redacted(str(names[0]))}"
            )
    if not others:
        return first
    every = [path for one in (first, *others) for path in one.files.paths]
    directories = tuple(path for one in (first, *others) for path in one.files.directories)
    return Packed(Files(first.files.filesystem, every, first.files.format, None, directories), first.schema)


def _find(name: str) -> Packed | None:
    if not isinstance(name, str) or not name or "\0" in name or any(mark in name for mark in "*?["):
        return None
    # the file that says what is in a directory stands for the directory, if `pack` has written it
    described = posixpath.basename(name) == DESCRIPTION
    if not described and _is_file_name(name):
        return None
    check_url("source", name, SourceError)
    with ours(SourceError, f"source: cannot open {name}"):
        fs, path = fsspec.core.url_to_fs(os.path.expanduser(name))
        if not is_local(fs) and "http" in protocols(fs):
            return None
        path = os.path.abspath(path) if is_local(fs) else path.rstrip("/")
        if described:
            if not _is_of_pack(fs, path):
                return None
            path = posixpath.dirname(path)
            name = name[: -len(DESCRIPTION)].rstrip("/") or path
        # a link may lead to a split, or stand in place of a split whose files were moved
        for place in dict.fromkeys((path, os.path.realpath(path)) if is_local(fs) else (path,)):
            parent, split = posixpath.split(place)
            for folder, wanted in ((place, None), *([] if described else [(parent, split)])):
                about = _read(fs, folder, name)
                if about is not None:
                    return _split(fs, folder, about, wanted, name)
    return None


def _is_of_pack(fs: Any, path: str) -> bool:
    """Whether a file called `dataset.json` is the one that `pack` writes, and no table of the user's: whether its beginning says so, or
    `pack` keeps files beside it."""
    if _keeps(fs, posixpath.dirname(path)):
        return True
    if not fs.isfile(path):
        return False
    with fs.open(path, "rb") as stream:
        return bool(json.dumps(MADE_BY).encode() in stream.read(_BEGINNING))


def _is_file_name(name: str) -> bool:
    return formats.format_of(name) is not None


def _read(fs: Any, folder: str, name: str) -> dict[str, Any] | None:
    """Return the description of a directory that `pack` has written; None for any other directory.

    Raises:
        SourceError: the description was changed; a later version wrote it; or it is missing, and other files that `pack` keeps
            are there.
    """
    path = posixpath.join(folder, DESCRIPTION)
    if not fs.isfile(path):
        if _keeps(fs, folder):
            raise SourceError(f"source: {redacted(path)} {_no_description(fs, folder)}")
        return None
    with fs.open(path, "rb") as stream:
        text = stream.read(_MOST_BYTES)
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        if _is_anothers(text) and not _keeps(fs, folder):
            return None
        raise SourceError(f"source: {redacted(path)} is damaged; {_bring_back(fs, folder)}") from None
    if not isinstance(about, dict) or about.get("made_by") != MADE_BY:
        if _keeps(fs, folder):
            raise SourceError(f"source: {redacted(path)} is damaged; {_bring_back(fs, folder)}")
        return None
    version = about.get("version")
    if isinstance(version, int) and version > VERSION:
        raise SourceError(
            f"source: {redacted(name)} was packed by a later akrunner (version {version} of {DESCRIPTION}); update this one"
        )
    if seals.unsealed(text.decode(errors="replace")) is None:
        why = "its checksum is not that of what it says" if seals.CHECKSUM in about else "its checksum is gone"
        raise SourceError(
            f"source: {redacted(path)} was edited ({why}), so that rows may be missing; {_bring_back(fs, folder)}"
        )
    return about


def _keeps(fs: Any, folder: str) -> bool:
    """Whether `pack` keeps files in the directory with which it can continue."""
    state = posixpath.join(folder, STATE)
    if not is_local(fs):
        return bool(fs.isfile(posixpath.join(state, DESCRIPTION)))
    try:
        return any(_KEPT.fullmatch(name) for name in os.listdir(state))
    except PermissionError:
        # only the user who packed may look into it
        return True
    except OSError:
        return False


def _no_description(fs: Any, folder: str) -> str:
    """Return what an error says about a directory in which `pack` was, and which has no description."""
    if is_local(fs) and os.access(posixpath.join(folder, STATE), os.R_OK | os.X_OK) and not _has_copy(fs, folder):
        return (
            f"is not there: {folder} is not packed to its end, or somebody removed the file; run `akrunner pack` again, and it "
            "goes on, or says what else is gone"
        )
    return f"is gone, so that nobody knows which files count; {_AGAIN}"


def _has_copy(fs: Any, folder: str) -> bool:
    return bool(fs.isfile(posixpath.join(folder, STATE, DESCRIPTION)))


def _bring_back(fs: Any, folder: str) -> str:
    """Return how the user can restore a description that was changed."""
    if _has_copy(fs, folder):
        return f"{STATE}/{DESCRIPTION} has the copy: {_AGAIN}"
    return "bring it back as it was written, or pack the data again"


def _is_anothers(text: bytes) -> bool:
    """Whether text that is not JSON as a whole may be another program's file: JSON lines with rows."""
    if json.dumps(MADE_BY).encode() in text:
        return False
    try:
        json.loads(text.lstrip().partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return True


def _split(fs: Any, folder: str, about: dict[str, Any], wanted: str | None, name: str) -> Packed | None:
    try:
        splits: dict[str, Any] = about["splits"]
        if wanted is None:
            if len(splits) != 1:
                raise SourceError(
                    f"source: {redacted(name)} has the splits {', '.join(splits)}; name one: "
                    f"{redacted(posixpath.join(name, next(iter(splits))))}"
                )
            (wanted,) = splits
        if wanted not in splits:
            if fs.exists(posixpath.join(folder, wanted)):
                return None
            raise SourceError(
                f"source: {redacted(folder)} has no split {wanted!r} (it has "
                f"{', '.join(splits)}){nearest(wanted, [*splits, DESCRIPTION])}"
            )
        listed: list[tuple[str, int]] = [(str(one["name"]), int(one["bytes"])) for one in splits[wanted]["files"]]
        if about["format"] not in formats.names():
            raise ValueError("its format is not known")
        form = formats.named(about["format"])
        fields = tuple(_field(one) for one in about["columns"]) if form.examples else ()
        _check_sums(splits)
        if any(posixpath.isabs(one) or ".." in one.split("/") for one, _ in listed):
            raise ValueError("it names files elsewhere")
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        if isinstance(e, SourceError):
            raise
        raise SourceError(
            f"source: {posixpath.join(redacted(folder), DESCRIPTION)} is damaged ({type(e).__name__}: {e}); pack the data again"
        ) from None
    if not listed:
        raise SourceError(f"source: the split {wanted} of {redacted(folder)} has no rows")
    _check_there(fs, folder, listed)
    paths = [posixpath.join(folder, one) for one, _ in listed]
    files = Files(fs, paths, form.name, None, (posixpath.join(folder, wanted),))
    return Packed(files, Schema(fields) if form.examples else None)


def _check_sums(splits: dict[str, Any]) -> None:
    """Check that each split has as many rows as its files together.

    Raises:
        ValueError: a split has another number of rows.
        KeyError, TypeError: the description lacks a number.
    """
    for split, told in splits.items():
        rows = sum(int(one["rows"]) for one in told["files"])
        if rows != int(told["rows"]):
            raise ValueError(f"{split} has {int(told['rows']):,} rows, and its files have {rows:,} together")


def _field(column: dict[str, Any]) -> Field:
    (field,) = Schema.parse(f"x {column['type']}", DESCRIPTION)
    return Field(str(column["name"]), field.type, field.nullable)


def _check_there(fs: Any, folder: str, listed: list[tuple[str, int]]) -> None:
    """Check the files of a split.

    Raises:
        SourceError: a file is missing, or its size has changed.
    """
    for name, size in listed if is_local(fs) else ():
        path = os.path.join(folder, name)
        try:
            found = os.stat(path).st_size
        except FileNotFoundError:
            raise SourceError(f"source: {path} is gone, which {DESCRIPTION} lists; pack the data again (--overwrite)") from None
        if found != size:
            raise SourceError(
                f"source: {path} has {found:,} bytes, and {DESCRIPTION} says {size:,}: it was changed; pack the data again "
                "(--overwrite)"
            )
