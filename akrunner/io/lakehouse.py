"""Recognizes tables that are more than their files: Delta, Iceberg and Hudi keep files that no longer belong to the table
beside those that do.

Such a table is never read as plain Parquet: the root of a Delta or an Iceberg table is read by its system
(`akrunner.io.systems`), and the error about anything else says how to read it.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
from collections.abc import Iterable
from typing import Any

import fsspec

from akrunner.errors import SinkError, SourceError
from akrunner.foreign import redacted
from akrunner.io import formats

#: how many directories above a file of a remote file system are looked at; each costs a request over the network
_ABOVE = 4
#: the schemes of the stores on which tables can be read
_STORES = frozenset("s3 s3a gs gcs abfs abfss az adl hdfs".split())
#: the directories by which tables of Delta and Hudi are known
_DELTA, _HUDI = "_delta_log", ".hoodie"
_SYSTEMS = {"Delta": "delta", "Iceberg": "iceberg"}


def system_at(given: str) -> str | None:
    """Return the module of `akrunner.io.systems` for the table whose root is a path or URL; None if no such table is there.

    On a store, a name that ends like a file of rows, and one with wildcards, is not asked about.
    Args:
        given: the path or URL; what stands behind its first `?` are options.
    """
    base = given.partition("?")[0]
    local = re.sub(r"^file://(localhost)?(?=/)", "", base)
    if "\0" in given or not base:
        return None
    if _is_lance(base):
        return "lance"
    if "://" not in local and "::" not in local:
        root = os.path.expanduser(local)
        if not os.path.isdir(root):
            return None
        found = _at(fsspec.filesystem("file"), os.path.abspath(root)) if os.access(root, os.R_OK | os.X_OK) else None
    else:
        scheme = base.partition("://")[0].lower()
        if scheme not in _STORES or any(mark in base for mark in "*[") or formats.format_of(base) is not None:
            return None
        # whoever opens the URL next reports what is wrong with it
        with contextlib.suppress(Exception):
            fs, path = fsspec.core.url_to_fs(base)
            found = _at(fs, path.rstrip("/"))
            return _SYSTEMS.get(found[0]) if found is not None else None
        return None
    return _SYSTEMS.get(found[0]) if found is not None else None


def _is_lance(base: str) -> bool:
    """Whether a path or URL names a Lance dataset, by its ending. (Files within a dataset have the same.)"""
    scheme, mark, _ = base.partition("://")
    named = base.rstrip("/").lower().endswith(".lance") and not any(sign in base for sign in "*[")
    return named and (scheme.lower() in (*_STORES, "file") if mark else not os.path.isfile(os.path.expanduser(base)))


def newest_metadata(fs: Any, root: str) -> list[str]:
    """Return the files of metadata of an Iceberg table that have the highest number: more than one if writers without a
    common catalog, or a commit that was given up, have left several."""
    metadata = posixpath.join(root, "metadata")
    if not fs.isdir(metadata):
        return []
    found = sorted((path for path in fs.ls(metadata, detail=False) if path.endswith(".metadata.json")), key=_numbered)
    return [one for one in found if _number(one) == _number(found[-1])]


def refuse(fs: Any, given: str, directories: Iterable[str], local: bool) -> None:
    """Check that files do not belong to such a table, by looking into their directories and those above.

    Args:
        given: what the user gave.
        directories: the directories that have the files, as the file system names them.
    Raises:
        SourceError: they do; the message has the lines of Python that read the table.
    """
    found = _around(fs, directories, local)
    if found is not None:
        root, kind = found
        raise SourceError(_message(given, fs.unstrip_protocol(root) if not local else root, kind))


def check_output(fs: Any, shown: str, directory: str, local: bool) -> None:
    """Check that files which a job writes do not come into such a table, where they would belong to no version of it, or would
    replace files that do.

    Args:
        shown: the output as the user gave it.
        directory: where the files are to be, as the file system names it.
    Raises:
        SinkError: they would.
    """
    try:
        found = _around(fs, [directory], local)
    except Exception:
        # whoever may write to a store need not be allowed to look around there
        found = None
    if found is not None:
        root, (kind, _) = found
        itself = "write to the table itself, or to another place" if kind in _SYSTEMS else "write to another place"
        raise SinkError(
            f"output: {redacted(shown)} would be files within the {kind} table {redacted(root)}, which belong to no version of it, and "
            f"may replace files that do; {itself}"
        )


def _around(fs: Any, directories: Iterable[str], local: bool) -> tuple[str, list[str]] | None:
    """Return (root, what `_at` returns) of a table to which one of some directories belongs; None if there is none."""
    looked = set()
    if local:
        # look also at the directories that links point to
        directories = sorted({named for one in directories for named in (posixpath.normpath(one), os.path.realpath(one))})
    for directory in directories:
        for root in _upwards(directory.rstrip("/") or "/", None if local else _ABOVE):
            if root in looked:
                break
            looked.add(root)
            found = _at(fs, root)
            if found is not None:
                return root, found
    return None


def _upwards(directory: str, most: int | None) -> list[str]:
    found = [directory]
    while (above := posixpath.dirname(found[-1])) != found[-1] and above and not above.endswith(":/"):
        if most is not None and len(found) >= most:
            break
        found.append(above)
    return found


def _at(fs: Any, root: str) -> list[str] | None:
    """Return [kind of table, path of its newest metadata] if such a table is at `root`; else None."""
    inside = _directories(fs, root)
    if inside is not None and not inside & {_DELTA, _HUDI, "metadata"}:
        return None
    if fs.isdir(posixpath.join(root, _DELTA)):
        return ["Delta", ""]
    if fs.isdir(posixpath.join(root, _HUDI)):
        return ["Hudi", ""]
    newest = newest_metadata(fs, root)
    if newest:
        return ["Iceberg", newest[-1] if "://" in newest[-1] or newest[-1].startswith("/") else fs.unstrip_protocol(newest[-1])]
    return None


def _directories(fs: Any, root: str) -> set[str] | None:
    """Return the names of the directories in a directory of S3, by one request; None if they are too many for that, or on
    another file system, or if it may not be listed."""
    if not hasattr(fs, "call_s3"):
        return None
    bucket, key, _ = fs.split_path(root)
    prefix = f"{key.rstrip('/')}/" if key.rstrip("/") else ""
    try:
        found = fs.call_s3("list_objects_v2", Bucket=bucket, Prefix=prefix, Delimiter="/")
    except Exception:
        return None
    if found.get("IsTruncated"):
        return None
    return {one["Prefix"][len(prefix) :].rstrip("/") for one in found.get("CommonPrefixes", ())}


def _number(path: str) -> list[Any]:
    return _numbered(path)[:2]


def _numbered(path: str) -> list[Any]:
    """Return a key by which files of Iceberg's metadata are sorted: v9 before v11, and 00009-... before 00011-..."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", posixpath.basename(path), maxsplit=1)]


def _message(given: str, root: str, found: list[str]) -> str:
    kind, metadata = found
    begun = (
        f"source: {given} belongs to the {kind} table {root}, whose files are not all part of it: deleted and replaced rows "
        "are in them, too. "
    )
    if kind in _SYSTEMS and ("://" not in root or root.partition("://")[0] in _STORES):
        return f"{begun}Give the table itself, as a whole: {root} (pip install 'akrunner[{_SYSTEMS[kind]}]')"
    lines = {
        "Delta": ("deltalake", "from deltalake import DeltaTable", f"source = DeltaTable({root!r})"),
        "Iceberg": (
            "'pyiceberg[pyarrow]'",
            "from pyiceberg.table import StaticTable",
            f"source = StaticTable.from_metadata({metadata!r})",
        ),
        "Hudi": (
            "hudi",
            "from hudi import HudiTableBuilder",
            f"source = HudiTableBuilder.from_base_uri({root!r}).build().read_snapshot()",
        ),
    }
    package, load, read = lines[kind]
    return f"{begun}Give the table as it is now (pip install {package}):\n    {load}\n    {read}"
