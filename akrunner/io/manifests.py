"""The file `_SUCCESS` of an output directory: JSON that says which files, rows and columns there are. It is written last.

Spark and Hadoop write a file of that name when a directory is complete, and programs wait for it; readers of tables skip it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

NAME = "_SUCCESS"
_VERSION = 1
#: (the bytes of the manifest that is there, the files that are there without the new ones) -> the bytes of the new manifest;
#: None: there is to be none, or the one that is there stays
Seal = Callable[[bytes | None, Sequence[str]], bytes | None]


@dataclass(frozen=True)
class Written:
    """A file that was written.

    Attributes:
        path: its path in the directory.
        rows: how many rows it has.
        size: how many bytes it has.
    """

    path: str
    rows: int
    size: int


def sealing(files: Sequence[Written], form: str, schema: pa.Schema, partition_by: Sequence[str], always: bool) -> Seal:
    """Return what makes a directory's manifest at the moment when its files are put into place.

    Args:
        files: the new files.
        form: the name of their format.
        schema: the schema of the rows, with the columns that are in names of directories.
        always: whether there is to be a manifest; if not, only one that is there is brought up to date.
    """

    def seal(there: bytes | None, others: Sequence[str]) -> bytes | None:
        before = _described(there)
        if before is None and not always:
            return None
        # files that no manifest describes are named without counts, so that no sum is wrong
        known = {one["path"]: one for one in before or ()}
        listed = [known.get(path, {"path": path, "rows": None, "bytes": None}) for path in sorted(others)]
        listed += [{"path": one.path, "rows": one.rows, "bytes": one.size} for one in files]
        return json.dumps(
            {
                "version": _VERSION,
                "written_by": "akrunner",
                "format": form,
                "partition_by": list(partition_by),
                "schema": [{"name": field.name, "type": str(field.type), "nullable": field.nullable} for field in schema],
                "rows": _sum(listed, "rows"),
                "bytes": _sum(listed, "bytes"),
                "files": listed,
            },
            indent=1,
        ).encode()

    return seal


def _described(there: bytes | None) -> list[dict[str, Any]] | None:
    """Return the files that a manifest describes; None if there is none, or if another program wrote it."""
    try:
        found = json.loads(there or b"")
        if found["written_by"] != "akrunner":
            return None
        return [{"path": str(one["path"]), "rows": one["rows"], "bytes": one["bytes"]} for one in found["files"]]
    except (ValueError, TypeError, KeyError):
        return None


def _sum(listed: Sequence[dict[str, Any]], what: str) -> int | None:
    counts = [one[what] for one in listed]
    return None if None in counts else sum(counts)
