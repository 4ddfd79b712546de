"""Tables that are more than their files: Delta, Iceberg and Hudi keep files that no longer belong to them beside those that do.

They are never read as plain Parquet; the error says how to read them.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from typing import Any

from akrunner.errors import SourceError

#: directories above a file of a remote file system that are looked at: each is a question over the network
_ABOVE = 4


def refuse(fs: Any, given: str, directories: Iterable[str], local: bool) -> None:
    """Look whether the files are those of such a table, in their directories and above them.

    Args: given: what the user gave; directories: that the files are in, as the file system names them.
    Raises: SourceError: they are; the lines that read it are in the message.
    """
    looked = set()
    if local:
        # also of what a link stands for
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
    """[kind, where its newest metadata is], if there is such a table."""
    if fs.isdir(posixpath.join(root, "_delta_log")):
        return ["Delta", ""]
    if fs.isdir(posixpath.join(root, ".hoodie")):
        return ["Hudi", ""]
    metadata = posixpath.join(root, "metadata")
    if fs.isdir(metadata):
        newest = sorted(path for path in fs.ls(metadata, detail=False) if path.endswith(".metadata.json"))
        if newest:
            return [
                "Iceberg",
                newest[-1] if "://" in newest[-1] or newest[-1].startswith("/") else fs.unstrip_protocol(newest[-1]),
            ]
    return None


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
        f"source: {given} belongs to the {kind} table {root}, whose files are not all part of it: deleted and replaced rows are in them, "
        f"too. Give the table as it is now (pip install {package}):\n    {load}\n    {read}"
    )
