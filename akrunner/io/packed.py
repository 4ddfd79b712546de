"""What `akrunner pack` has written, as an input: the files its `dataset.json` lists, with their schema and format.

::

    OUT/train  ->  OUT/dataset.json: splits.train.files, format, columns  ->  Files, Schema
"""

from __future__ import annotations

import glob
import json
import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import fsspec

from akrunner.checks import check_url
from akrunner.errors import SourceError
from akrunner.foreign import ours, redacted
from akrunner.io import formats
from akrunner.io.paths import Files, is_local, protocols
from akrunner.schema import Field, Schema, nearest

#: beside the splits: what is here
DESCRIPTION = "dataset.json"
#: where a run that is not finished keeps what it has done
STATE = ".pack"
MADE_BY = "akrunner pack"
#: of what the description says; a later one is not read
VERSION = 1
_MOST_BYTES = 256 << 20

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Packed:
    """A split as an input. Attributes: schema: needed for TFRecord; None: the files say it themselves."""

    files: Files
    schema: Schema | None


def find(source: PathLike | Sequence[PathLike]) -> Packed | None:
    """The splits a source names; None: it names something else.

    Raises: SourceError: a dataset is not finished, damaged, or of another schema than the first, or has no such split.
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
    if not isinstance(name, str) or not name or "\0" in name or any(mark in name for mark in "*?[") or _is_file_name(name):
        return None
    check_url("source", name, SourceError)
    with ours(SourceError, f"source: cannot open {name}"):
        fs, path = fsspec.core.url_to_fs(os.path.expanduser(name))
        if not is_local(fs) and "http" in protocols(fs):
            return None
        path = os.path.abspath(path) if is_local(fs) else path.rstrip("/")
        parent, split = posixpath.split(path)
        for folder, wanted in ((path, None), (parent, split)):
            about = _read(fs, folder, name)
            if about is not None:
                return _split(fs, folder, about, wanted, name)
        if is_local(fs) and not os.path.exists(path) and glob.glob(os.path.join(glob.escape(parent), STATE, "*", "plan.json")):
            raise SourceError(f"source: {parent} is not packed to its end; run `akrunner pack` again, and it goes on")
    return None


def _is_file_name(name: str) -> bool:
    return formats.format_of(name) is not None


def _read(fs: Any, folder: str, name: str) -> dict[str, Any] | None:
    """The description of a directory that `pack` has written, None of any other."""
    path = posixpath.join(folder, DESCRIPTION)
    if not fs.isfile(path):
        return None
    with fs.open(path, "rb") as stream:
        text = stream.read(_MOST_BYTES)
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        return None  # somebody else's
    if not isinstance(about, dict) or about.get("made_by") != MADE_BY:
        return None
    if about.get("version") != VERSION:
        raise SourceError(
            f"source: {redacted(name)} was packed by a later akrunner (version {about.get('version')!r} of {DESCRIPTION}); update this one"
        )
    return about


def _split(fs: Any, folder: str, about: dict[str, Any], wanted: str | None, name: str) -> Packed | None:
    try:
        splits: dict[str, Any] = about["splits"]
        if wanted is None:
            if len(splits) != 1:
                raise SourceError(
                    f"source: {redacted(name)} has the splits {', '.join(splits)}; name one: {redacted(posixpath.join(name, next(iter(splits))))}"
                )
            (wanted,) = splits
        if wanted not in splits:
            if fs.exists(posixpath.join(folder, wanted)):
                return None
            raise SourceError(
                f"source: {redacted(folder)} has no split {wanted!r} (it has {', '.join(splits)}){nearest(wanted, list(splits))}"
            )
        listed: list[tuple[str, int]] = [(str(one["name"]), int(one["bytes"])) for one in splits[wanted]["files"]]
        if about["format"] not in formats.names():
            raise ValueError("its format is not known")
        form = formats.named(about["format"])
        fields = tuple(_field(one) for one in about["columns"]) if form.examples else ()
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


def _field(column: dict[str, Any]) -> Field:
    (field,) = Schema.parse(f"x {column['type']}", DESCRIPTION)
    return Field(str(column["name"]), field.type, field.nullable)


def _check_there(fs: Any, folder: str, listed: list[tuple[str, int]]) -> None:
    """Raises: SourceError: a file is gone, or is not as long as it was."""
    for name, size in listed if is_local(fs) else ():
        path = os.path.join(folder, name)
        try:
            found = os.stat(path).st_size
        except FileNotFoundError:
            raise SourceError(f"source: {path} is gone, which {DESCRIPTION} lists; pack the data again (--overwrite)") from None
        if found != size:
            raise SourceError(
                f"source: {path} has {found:,} bytes, and {DESCRIPTION} says {size:,}: it was changed; pack the data again (--overwrite)"
            )
