"""Divides the rows of files, which the tasks' own machines read, among the tasks."""

from __future__ import annotations

import contextlib
import functools
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.host.stores import place_of
from akrunner.engines.flink.schemas import schema_bytes
from akrunner.errors import ConfigError
from akrunner.foreign import in_words
from akrunner.io import formats
from akrunner.io.formats.base import Format
from akrunner.io.shared import DISKS, Place, Seen, Unshared
from akrunner.io.table import TableSource

#: with fewer blocks than this for each task, rows that lie together would go to one task together: the host deals them one by
#: one then
BLOCKS_EACH = 4
#: reading the footers of more files than this here takes longer than it saves
_FILES = 2000
#: how many files of a store are looked at at the same time
_AT_ONCE = 16
#: a table with fewer bytes than this for each task is read here without a word, if the machines cannot read it
WORTH = 4 << 20


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
        place: where the files lie.
        must: whether it is an error if the machines cannot read them.
    """

    source: TableSource
    tasks: int
    sizes: tuple[tuple[str, int], ...]
    place: Place = DISKS
    must: bool = False

    #: a job that starts again may read them another way
    begun = False
    #: files are there for every attempt
    closed = False

    @classmethod
    def of(cls, source: Any, tasks: int, trusted: bool = True, must: bool = False) -> SharedFiles | None:
        """Return the files of a table; None if it is no table of files that other machines can open, or its files cannot be
        divided.

        Args:
            source: the source, as it was opened.
            tasks: the number of tasks that get rows.
            trusted: whether the store's secrets may be sent to the machines.
            must: whether it is an error if the machines cannot read the files.
        Raises:
            ConfigError: they cannot, and must.
        """
        try:
            return _found(cls, source, tasks, trusted, must)
        except Unshared as e:
            if must:
                raise must_not(str(e)) from None
            return None

    @property
    def asked(self) -> tuple[tuple[str, int], ...]:
        """(path, bytes) of the files that a machine must see before it is given rows: all on disks, and two of a store, whose
        files are there for all machines, or for none."""
        return self.sizes if not self.place.away else tuple(dict.fromkeys((self.sizes[0], self.sizes[-1])))

    @property
    def is_worth_it(self) -> bool:
        """Whether the table is so large that it matters who reads it."""
        return sum(size for _, size in self.sizes) >= WORTH * self.tasks

    @functools.cached_property
    def shares(self) -> list[list[Part]] | None:
        """For each task, the parts that it reads, in order; None if the format has no blocks, or there are too few. Reads
        every footer, and every line of text."""
        parts = [part for counted in self._counted for part in counted.parts]
        return dealt(parts, self.tasks) if len(parts) >= BLOCKS_EACH * self.tasks else None

    @property
    def undivided(self) -> str:
        """Half a sentence that says why there are no shares."""
        if self.broken:
            return self.broken
        parts = sum(len(counted.parts) for counted in self._counted)
        return (
            f"the number of its blocks (row groups, batches, pieces of uncompressed text) is {parts}, and must be "
            f"{BLOCKS_EACH * self.tasks} for {self.tasks} tasks"
        )

    @property
    def broken(self) -> str:
        """Half a sentence that says why this process cannot count the rows of a file; "" if it can."""
        return next((one for one in self._looked if isinstance(one, str)), "")

    @property
    def _counted(self) -> list[_Counted]:
        """The blocks of every file; [] if one of them has none, or is not of the first one's schema: the host casts it then,
        or says what is wrong."""
        found = [one for one in self._looked if isinstance(one, _Counted)]
        return found if len(found) == len(self._looked) else []

    @functools.cached_property
    def _looked(self) -> list[_Counted | str | None]:
        """What `_blocks` returns for every file."""
        files = self.source.files
        assert files is not None
        form = formats.named(files.format).written_as(files.csv)

        over = threading.Event()
        place = cast(Place, _Until(self.place, over)) if self.place.away else self.place

        def looked(path: str) -> _Counted | str | None:
            return _blocks(form, path, self.source.schema, files.paths[0], place)

        if not self.place.away:
            return [looked(path) for path in files.paths]
        with ThreadPoolExecutor(_AT_ONCE, "akrunner-count") as threads:
            try:
                return list(threads.map(looked, files.paths))
            finally:
                # Ctrl-C does not wait until every line of the files that are being read is counted
                over.set()

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
        paths = {part.path for part in parts}
        there = [pb.File(path=one.path, bytes=one.seen.bytes, tag=one.seen.tag) for one in self._counted if one.path in paths]
        schema = schema_bytes(self.source.schema)
        return pb.Files(format=self.source.files.format, schema=schema, parts=parts, files=there)

    def close(self) -> None:
        """Do nothing: files are there without this process."""


class _Until:
    """A store whose texts end with an error once an event is set."""

    def __init__(self, place: Place, over: threading.Event) -> None:
        self._place, self._over = place, over

    def __getattr__(self, name: str) -> Any:
        return getattr(self._place, name)

    @contextlib.contextmanager
    def stream(self, path: str) -> Iterator[Any]:
        with self._place.stream(path) as file:
            yield _Reading(file, self._over)


class _Reading:
    def __init__(self, file: Any, over: threading.Event) -> None:
        self._file, self._over, self.tell, self.seek = file, over, file.tell, file.seek

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        if self._over.is_set():
            raise OSError("given up")
        data: bytes = self._file.read(size)
        return data


def must_not(why: str) -> ConfigError:
    """Return the error for a table that TaskManagers have to read, and cannot."""
    return ConfigError(
        f"files_there=True (--flink-files-there): the TaskManagers cannot read the table themselves: {why.rstrip('.')}; leave it out, and "
        "this process reads the table"
    )


def _found(kind: type[SharedFiles], source: Any, tasks: int, trusted: bool, must: bool) -> SharedFiles:
    """Return the files of a table.

    Raises:
        Unshared: other machines cannot read them.
    """
    if not isinstance(source, TableSource) or source.files is None:
        raise Unshared("it is more than the content of files (select=, columns=, defaults=, another type), or none of files")
    files = source.files
    # columns may be in the names of directories, as in year=2026/
    if files.base is not None and any("=" in path[len(files.base) :] for path in files.paths):
        raise Unshared("it has a column in the names of directories")
    if len(files.paths) > _FILES:
        raise Unshared(f"it has more than {_FILES:,} files")
    try:
        place = place_of(files.filesystem, files.paths, trusted)
        sizes = files.filesystem.sizes(files.paths) if place.away else [place.seen(path).bytes for path in files.paths]
    except Unshared:
        raise
    except Exception as e:
        # whatever a library of a store raises: reading the table here says it better
        raise Unshared(f"its store does not say how it is opened: {in_words(e)}") from None
    if not all(isinstance(size, int) for size in sizes):
        raise Unshared("its store does not say how large the files are")
    return kind(source, tasks, tuple(zip(files.paths, sizes)), place, must)


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


@dataclass(frozen=True)
class _Counted:
    """The blocks of a file that have rows. Attributes: seen: the file's state before they were counted."""

    path: str
    seen: Seen
    parts: list[Part]


def _blocks(form: Format, path: str, schema: pa.Schema, first: str, place: Place) -> _Counted | str | None:
    """Return the blocks of a file; None if it has none, and the reason, as half a sentence, if it cannot be read. The arguments
    are as for `Format.blocks`."""

    def broken(error: Exception) -> str:
        return f"this process cannot read {place.shown(path)} with pyarrow: {place.hidden(in_words(error))}"

    try:
        seen = place.seen(path)
    except Exception as e:
        # anything: pyarrow may be built without a store, or be too old for an argument
        return broken(e)
    try:
        counted = form.blocks(path, schema, first, place)
    except (pa.ArrowException, OSError) as e:
        return broken(e)
    if counted is None:
        return None
    return _Counted(path, seen, [Part(path, block, 0, rows) for block, rows in counted if rows])
