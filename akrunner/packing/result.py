"""The result of `akrunner.pack`, and words for its messages."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from akrunner.checks import counted
from akrunner.foreign import no_files

#: a limit of open files that is enough for any run: threads that fetch URLs, nested buckets of tables, a shard of each split
_OPEN_FILES = 1024


@dataclass(frozen=True)
class Packed:
    """What `pack` has done, or with `dry_run` would do.

    Attributes:
        path: the output directory.
        kind: images, texts, files or rows.
        splits: name of each split -> number of its rows, with those of earlier runs.
        rows: number of rows that this run packed (with `dry_run`: would pack); 0: there was nothing new.
        total_rows: number of rows in the output.
        shards: number of files in the output.
        bytes: bytes of these files. With `dry_run`, the bytes of existing files and an estimate for new ones, uncompressed; for
            tables, whose rows a dry run does not read, only of existing files.
        labels: the name of each class, by its number.
        skipped: (path, why) of the broken files of the input, which are not in the output; the first 1,000.
        skipped_rows: how many broken files there are.
        skipped_before: how many of them an earlier run had left out, and are as they were then.
        unfetched: (path, why) of files that could not be fetched, left out until a later run gets them; the first 1,000.
        unfetched_rows: how many such files there are.
        warnings: other messages for the user.
        seconds: how long the run took.
        dry_run: whether the run only planned.
        label: the input's column of classes, in whose place the output has the columns label and label_name; "": there is none,
            as when folders are the classes.
    """

    path: str
    kind: str
    splits: dict[str, int]
    rows: int
    total_rows: int
    shards: int
    bytes: int
    labels: list[str]
    skipped: list[tuple[str, str]] = field(default_factory=list)
    skipped_rows: int = 0
    skipped_before: int = 0
    unfetched: list[tuple[str, str]] = field(default_factory=list)
    unfetched_rows: int = 0
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0
    dry_run: bool = False
    label: str = ""

    def _repr_html_(self) -> str:
        from akrunner.packing import shown

        return shown.packed(self)


def told(done: Packed) -> dict[str, Any]:
    """Return what was packed as other programs are told it."""
    said = {"ok": True, "exit_code": 0, **dataclasses.asdict(done)}
    if done.dry_run and done.kind == "rows":
        # rows of tables are counted only when they are read
        said.update(rows=None, total_rows=None, shards=None)
    return said


def needs_less(shortage: BaseException) -> str:
    """Return what a user can do about an error that tells of too little memory, or too few threads or open files."""
    if no_files(shortage):
        return f"{_OPEN_FILES} are enough (ulimit -n {_OPEN_FILES})"
    return "threads=, shard_size= and memory= (--threads, --shard-size, --memory) that are smaller need less"


def size_in_words(size: int) -> str:
    """Return a number of bytes in words, such as "812 bytes", "4.2 kB", "1,234.5 MB"."""
    if size < 1000:
        return counted(size, "byte")
    return f"{size / 1e3:.1f} kB" if size < 999_950 else f"{size / 1e6:,.1f} MB"
