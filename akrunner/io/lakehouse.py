"""Recognizes tables that are more than their files: Delta, Iceberg and Hudi keep files that no longer belong to the table
beside those that do.

Such a table is never read as plain Parquet; the error says how to read it.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable
from typing import Any

from akrunner.errors import SourceError

#: how many directories above a file of a remote file system are looked at; each costs a request over the network
_ABOVE = 4


def refuse(fs: Any, given: str, directories: Iterable[str], local: bool) -> None:
    """Check that files do not belong to such a table, by looking into their directories and those above.

    Args:
        given: what the user gave.
        directories: the directories that have the files, as the file system names them.
    Raises:
        SourceError: they do; the message has the lines of Python that read the table.
    """
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
                raise SourceError(_message(given, fs.unstrip_protocol(root) if not local else root, found))


def _upwards(directory: str, most: int | None) -> list[str]:
    found = [directory]
    while (above := posixpath.dirname(found[-1])) != found[-1] and above and not above.endswith(":/"):
        if most is not None and len(found) >= most:
            break
        found.append(above)
    return found


def _at(fs: Any, root: str) -> list[str] | None:
    """Return [kind of table, path of its newest metadata] if such a table is at `root`; else None."""
    if fs.isdir(posixpath.join(root, "_delta_log")):
        return ["Delta", ""]
    if fs.isdir(posixpath.join(root, ".hoodie")):
        return ["Hudi", ""]
    metadata = posixpath.join(root, "metadata")
    if fs.isdir(metadata):
        newest = sorted((path for path in fs.ls(metadata, detail=False) if path.endswith(".metadata.json")), key=_numbered)
        if newest:
            return [
                "Iceberg",
                newest[-1] if "://" in newest[-1] or newest[-1].startswith("/") else fs.unstrip_protocol(newest[-1]),
            ]
    return None


def _numbered(path: str) -> list[Any]:
    """Return a key by which files of Iceberg's metadata are sorted: v9 before v11, and 00009-... before 00011-..."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", posixpath.basename(path), maxsplit=1)]


def _message(given: str, root: str, found: list[str]) -> str:
    kind, metadata = found
    lines = {
        "Delta": ("deltalake", "from deltalake import DeltaTable", f"source = DeltaTable({root!r}).to_pyarrow_dataset()"),
        "Iceberg": (
            "'pyiceberg[pyarrow]'",
            "from pyiceberg.table import StaticTable",
            f"source = StaticTable.from_metadata({metadata!r}).scan().to_arrow_batch_reader()",
        ),
        "Hudi": (
            "hudi",
            "from hudi import HudiTableBuilder",
            f"source = HudiTableBuilder.from_base_uri({root!r}).build().read_snapshot()",
        ),
    }
    package, load, read = lines[kind]
    return (
        f"source: {given} belongs to the {kind} table {root}, whose files are not all part of it: deleted and replaced rows "
        f"are in them, too. Give the table as it is now (pip install {package}):\n    {load}\n    {read}"
    )
