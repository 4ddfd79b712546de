"""Parquet files that the tasks' own machines read: which of their rows are whose."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import pyarrow as pa

from akrunner.io.table import TableSource

#: with fewer row groups for each task, rows that lie together would go to one task together: they are dealt one by one, by the host
GROUPS_EACH = 4
#: more footers than that take longer to read here than they are worth
_FILES = 2000


@dataclass(frozen=True)
class Part:
    """Rows `start` to `stop` of a row group."""

    path: str
    group: int
    start: int
    stop: int

    @property
    def rows(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class SharedFiles:
    """Attributes: source: the table; sizes: (path, bytes) of every file; shares: of each task with rows, what it reads, in order."""

    source: TableSource
    sizes: Tuple[Tuple[str, int], ...]
    shares: Tuple[Tuple[Part, ...], ...]

    @classmethod
    def of(cls, source: Any, tasks: int) -> Optional["SharedFiles"]:
        """None when it is no table of Parquet files on a file system of this machine's, or one of few row groups.

        Args: source: as it was opened; tasks: that get rows.
        """
        if not isinstance(source, TableSource) or source.files is None:
            return None
        files = source.files
        if files.format != "parquet" or not files.is_local or len(files.paths) > _FILES:
            return None
        groups = _groups(files.paths, source.schema)
        if len(groups) < GROUPS_EACH * tasks:
            return None
        sizes = tuple((path, os.path.getsize(path)) for path in files.paths)
        return cls(source, sizes, tuple(tuple(share) for share in dealt(groups, tasks)))

    def order(self, share: int) -> Dict[str, Any]:
        """What an agent is told."""
        return {"parts": [[part.path, part.group, part.start, part.stop] for part in self.shares[share]]}


def dealt(groups: List[Part], tasks: int) -> List[List[Part]]:
    """Row groups in turn, then evened to within one row: what a share has too much of goes to one that has too little."""
    shares = [groups[task::tasks] for task in range(tasks)]
    total = sum(part.rows for part in groups)
    wanted = [total // tasks + (task < total % tasks) for task in range(tasks)]
    spare: List[Part] = []
    for share, rows in zip(shares, wanted):
        while sum(part.rows for part in share) > rows:
            over = sum(part.rows for part in share) - rows
            last = share.pop()
            if last.rows > over:
                share.append(Part(last.path, last.group, last.start, last.stop - over))
                last = Part(last.path, last.group, last.stop - over, last.stop)
            spare.append(last)
    for share, rows in zip(shares, wanted):
        while (lacking := rows - sum(part.rows for part in share)) > 0:
            part = spare.pop()
            if part.rows > lacking:
                spare.append(Part(part.path, part.group, part.start + lacking, part.stop))
                part = Part(part.path, part.group, part.start, part.start + lacking)
            share.append(part)
    return shares


def _groups(paths: List[str], schema: pa.Schema) -> List[Part]:
    """Every row group that has rows; none when the files are not all of one schema: the host casts then, or says what is wrong."""
    import pyarrow.parquet as pq

    found: List[Part] = []
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                if not file.schema_arrow.remove_metadata().equals(schema):
                    return []
                counts = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        except (pa.ArrowException, OSError):
            return []
        found += [Part(path, group, 0, rows) for group, rows in enumerate(counts) if rows]
    return found
