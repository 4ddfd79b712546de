"""Divides the rows of files, which the tasks' own machines read, among the tasks."""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.schemas import schema_bytes
from akrunner.io import formats
from akrunner.io.paths import Files
from akrunner.io.table import TableSource

#: with fewer blocks than this for each task, rows that lie together would go to one task together: the host deals them one by
#: one then
BLOCKS_EACH = 4
#: reading the footers of more files than this here takes longer than it saves
_FILES = 2000


@dataclass(frozen=True)
class Part:
    """Rows `start` to `stop` of a block of a file (`akrunner.io.formats.Format.blocks`)."""

    path: str
    block: Any
    start: int
    stop: int

    @property
    def rows(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class SharedFiles:
    """The files of a table that the tasks' machines may read.

    Attributes:
        source: the table.
        tasks: the number of tasks that get rows.
        sizes: (path, bytes) of every file.
    """

    source: TableSource
    tasks: int
    sizes: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, source: Any, tasks: int) -> SharedFiles | None:
        """Return the files of a table; None if it is no table of files on a file system of this machine, or its files
        cannot be divided.

        Args:
            source: the source, as it was opened.
            tasks: the number of tasks that get rows.
        """
        if not isinstance(source, TableSource) or source.files is None:
            return None
        files = source.files
        # columns may be in the names of directories, as in year=2026/
        named = files.base is not None and any("=" in path[len(files.base) :] for path in files.paths)
        if not files.is_local or named or len(files.paths) > _FILES:
            return None
        return cls(source, tasks, tuple((path, os.path.getsize(path)) for path in files.paths))

    @functools.cached_property
    def shares(self) -> list[list[Part]] | None:
        """For each task, the parts that it reads, in order; None if the format has no blocks, or there are too few. Reads
        every footer, and every line of text."""
        assert self.source.files is not None
        parts = _parts(self.source.files, self.source.schema)
        return dealt(parts, self.tasks) if len(parts) >= BLOCKS_EACH * self.tasks else None

    def order(self, share: int) -> pb.Files:
        """Return what the agent of a task is told.

        Args:
            share: the task's index among the tasks that get rows.
        """
        assert self.source.files is not None and self.shares is not None
        parts = [
            pb.Files.Part(path=part.path, block=json.dumps(part.block), start=part.start, stop=part.stop)
            for part in self.shares[share]
        ]
        return pb.Files(format=self.source.files.format, schema=schema_bytes(self.source.schema), parts=parts)


def dealt(parts: list[Part], tasks: int) -> list[list[Part]]:
    """Deal the blocks in turn to the tasks, then even the numbers of rows out to within one row: the surplus of a share
    goes to a share that has too few."""
    shares = [parts[task::tasks] for task in range(tasks)]
    total = sum(part.rows for part in parts)
    wanted = [total // tasks + (task < total % tasks) for task in range(tasks)]
    spare: list[Part] = []
    for share, rows in zip(shares, wanted):
        while sum(part.rows for part in share) > rows:
            over = sum(part.rows for part in share) - rows
            last = share.pop()
            if last.rows > over:
                share.append(Part(last.path, last.block, last.start, last.stop - over))
                last = Part(last.path, last.block, last.stop - over, last.stop)
            spare.append(last)
    for share, rows in zip(shares, wanted):
        while (lacking := rows - sum(part.rows for part in share)) > 0:
            part = spare.pop()
            if part.rows > lacking:
                spare.append(Part(part.path, part.block, part.start + lacking, part.stop))
                part = Part(part.path, part.block, part.start, part.start + lacking)
            share.append(part)
    return shares


def _parts(files: Files, schema: pa.Schema) -> list[Part]:
    """Return every block that has rows; empty if the files are not all of one schema: the host casts them then, or says
    what is wrong."""
    found: list[Part] = []
    form = formats.named(files.format).written_as(files.csv)
    for path in files.paths:
        try:
            counted = form.blocks(path, schema, files.paths[0])
        except (pa.ArrowException, OSError):
            counted = None
        if counted is None:
            return []
        found += [Part(path, block, 0, rows) for block, rows in counted if rows]
    return found
