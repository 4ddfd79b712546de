"""Files that arrive in a directory.

::

    files:///data/incoming?group=g      each file once, in the order in which they came

Which files were read is remembered in the directory itself, in `.akrunner-read-GROUP`, or in the file that `memory=` names.
"""

from __future__ import annotations

import fnmatch
import json
import os
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akrunner.errors import AkrunnerError, SinkError, SourceError
from akrunner.foreign import ours
from akrunner.io.bad_rows import BadMessages, BadRows
from akrunner.io.partitioner import behind, rechunk
from akrunner.io.streams.arriving import table_of
from akrunner.io.streams.base import (
    TAKEN_ROWS,
    Address,
    Away,
    OpenFile,
    StreamSink,
    StreamSource,
    check_rows_by,
    checksum,
    gone,
    rows_by,
    same_place,
)
from akrunner.io.table import TableSource
from akrunner.io.unfinished import is_passed_over
from akrunner.schema import Schema

_IN = ("group", "pattern", "memory", "idle", "wait")
_ROW_BYTES = 4 << 20
#: seconds between two looks at the directory. A file is complete when it is the same in two of them
_LOOK_SECONDS = 1.0
#: how many of the files that were read last are looked at again, whether they have changed
_SEEN = 100


class _Files:
    """Directories as a `StreamSystem`."""

    has_files = True

    def open(self, url: str, schema: Schema | None, flush_seconds: float, open_file: OpenFile) -> TableSource:
        address = Address.of(url, _IN, SourceError, "source")
        if address.hosts:
            raise address.wrong("write files:///absolute/path?group=NAME, with three slashes")
        folder = "/" + address.path
        if not os.path.isdir(folder):
            raise address.wrong("there is no such directory")
        group = address.group()
        if "/" in group:
            raise address.wrong(f"group={group}: the name must not contain a /")
        memory = os.path.expanduser(address.url.options.get("memory") or os.path.join(folder, f".akrunner-read-{group}"))
        source = _Arrived(address, folder, address.url.options.get("pattern", "*"), memory, schema, open_file)
        return table_of(source, address)

    def check_output(self, url: str, schema: pa.Schema | None, source: str) -> None:
        raise self._not_written(url)

    def output(self, url: str, schema: pa.Schema, source: StreamSource | None) -> StreamSink:
        raise self._not_written(url)

    def _not_written(self, url: str) -> AkrunnerError:
        return Address.of(url, _IN, SinkError, "output").wrong(
            "files:// is read; write to a file as it grows (--output FILE --output-live)"
        )


SYSTEM = _Files()


def arrives(url: str, path: str) -> bool:
    """Whether a local file would be read as one that has arrived. Args: url: `files://` with its options; path: the file's."""
    address = Address.of(url, _IN, SourceError, "source")
    folder, name = os.path.split(os.path.abspath(os.path.expanduser(path)))
    return os.path.realpath(folder) == os.path.realpath("/" + address.path) and _is_taken(
        name, address.url.options.get("pattern", "*")
    )


def _is_taken(name: str, pattern: str) -> bool:
    """Whether a file is read, by its name."""
    return not is_passed_over(name) and fnmatch.fnmatchcase(name, pattern)


@dataclass(frozen=True)
class _File:
    """A file as it was in one look.

    Attributes:
        arrived: when it was written last, in ns.
        name: its name.
        size: its bytes.
    """

    arrived: int
    name: str
    size: int


class _Arrived:
    """The rows of the files of a directory as a `StreamSource`."""

    ready = True
    #: what opens a file gives its bad rows to it
    bad: BadRows | None = None
    #: what decides where the rows of a text begin, as JSON values
    read_as: Mapping[str, Any] = {}
    ended = False

    def __init__(
        self, address: Address, folder: str, pattern: str, memory: str, schema: Schema | None, open_file: OpenFile
    ) -> None:
        self._address = address
        self.name = address.name
        self._folder = folder
        self._pattern = pattern
        self._memory = memory
        self._open_file = open_file
        self._given = schema
        self._read: set[str] = set()
        #: how many names the memory has
        self._remembered = 0
        self._before: set[_File] = set()
        self._looked = 0.0
        self._waiting: list[_File] = []
        self._rows: Iterator[pa.RecordBatch] | None = None
        self._now: _File | None = None
        #: rows of that file that were taken
        self._taken = 0
        #: how many rows were bad when `take` returned last
        self._bad = 0
        self._done: list[str] = []
        self._lock = threading.Lock()
        #: files that were read, and are not remembered yet
        self._lately: list[str] = []
        #: the file in whose middle a save was made, and its rows that the save has learned
        self._half: tuple[_File, int] | None = None
        #: its checksum; None: a save of an earlier version does not say it
        self._checksum: int | None = None
        #: the files that were read last, by their names
        self._seen: dict[str, _File] = {}
        self._recall()
        self.schema = self._schema(schema)

    def _schema(self, schema: Schema | None) -> pa.Schema:
        if schema is not None:
            return schema.arrow
        there = self._look()
        if not there:
            raise SourceError(
                f"source: {self.name} has no new file yet, whose columns could be taken: give input_schema= (--input-schema)"
            )
        return self._open_file(os.path.join(self._folder, there[0].name), None).schema

    def _recall(self) -> None:
        """Learn which files were read. Raises: SourceError: that cannot be read, or cannot be written later."""
        with ours(SourceError, f"source: {self.name}: cannot use {self._memory}, which remembers what was read (?memory=FILE)"):
            if os.path.exists(self._memory):
                with open(self._memory, encoding="utf-8") as f:
                    # a line that a crash has cut off has no quote at its end
                    self._read = {json.loads(line) for line in f if line.startswith('"') and line.endswith('"\n')}
            self._remembered = len(self._read)
            folder = os.path.dirname(os.path.abspath(self._memory))
            if not os.access(self._memory if os.path.exists(self._memory) else folder, os.W_OK):
                raise SourceError(
                    f"source: {self.name}: {self._memory}, which remembers what was read, may not be written; name another "
                    "file: ?memory=FILE"
                )

    def begin(self, place: Mapping[str, Any] | None) -> None:
        self._rows = self._now = self._half = None
        self._done, self._lately, self._waiting, self._before, self._read = [], [], [], set(), set()
        self._recall()
        if place is None:
            return
        known = same_place(place, "directory", self._folder)
        if known["half"] is not None:
            check_rows_by(self.name, known, self.schema, self.bad, self.read_as)
        self._check_remembered(known)
        self._lately = [name for name in known["read"] if name not in self._read]
        self.commit(list(self._lately))
        self._recall()
        if known["half"] is not None:
            self._half, self._checksum = (_File(*known["half"]), known["rows"]), known.get("checksum")
            if isinstance(self.bad, BadMessages):
                self.bad.know(self._path(self._half[0]), known.get("bad_line", 0), known["rows"])

    def _check_remembered(self, known: Mapping[str, Any]) -> None:
        """Check that what is remembered, and the files that were read last, are as the save says.

        Raises:
            SourceError: files would be read twice, or were never read.
        """
        before = known.get("remembered", len(self._read))
        if len(self._read) < before:
            raise gone(
                self.name,
                f"{self._memory}, which remembers which files were read, has {len(self._read):,} of the {before:,} names that it had: the "
                "others would be read again",
            )
        more = self._read.difference(known["read"])
        if "remembered" in known and len(more) > before:
            raise gone(
                self.name,
                f"{self._memory} remembers {len(more) - before:,} files more than the save has learned: a job that has not saved, or a "
                "later save, has read them. Remove their lines there, and they are read",
            )
        self._seen = {one[1]: _File(*one) for one in known.get("seen", [])}
        changed = [name for name, one in self._seen.items() if not self._is_same(one)]
        if changed:
            raise gone(
                self.name,
                f"{changed[0]} was written again after it was read (rotated?), and a file is read once: give it another name, and it is "
                "read",
            )

    def _is_same(self, file: _File) -> bool:
        """Whether a file is as it was when it was read, or is no longer there."""
        try:
            state = os.stat(os.path.join(self._folder, file.name))
        except OSError:
            return True
        return (state.st_mtime_ns, state.st_size) == (file.arrived, file.size)

    def _path(self, file: _File) -> str:
        return os.path.join(self._folder, file.name)

    def _checksum_of(self, file: _File) -> int:
        """Return the checksum of a file as it was in one look. Raises: OSError: it cannot be read."""
        with open(os.path.join(self._folder, file.name), "rb") as f:
            return checksum(f, file.size)

    def connect(self) -> None:
        if self._half is None:
            return
        (file, rows), self._half = self._half, None
        with ours(SourceError, f"source: {self.name}: the save was made in the middle of {file.name}"):
            same = self._checksum in (None, self._checksum_of(file)) and self._is_same(file)
        if not same:
            raise SourceError(
                f"source: {self.name}: the save was made in the middle of {file.name}, which was written since: put the file that "
                "it was in its place, or begin in another checkpoint_dir"
            )
        self._open(file, rows)

    def _look(self) -> list[_File]:
        """Return the files that were not read yet, the oldest first, whether complete or not."""
        found = []
        for entry in os.scandir(self._folder):
            name = entry.name
            if is_passed_over(name) or name in self._read:
                if name in self._seen and not self._is_same(self._seen[name]):
                    self._tell_changed(name)
                continue
            if not _is_taken(name, self._pattern) or os.path.abspath(entry.path) == os.path.abspath(self._memory):
                continue
            try:
                if entry.is_file():
                    state = entry.stat()
                    found.append(_File(state.st_mtime_ns, name, state.st_size))
            except FileNotFoundError:
                continue  # it was moved away between the look and the question
        return sorted(found, key=lambda one: (one.arrived, one.name))

    def _tell_changed(self, name: str) -> None:
        del self._seen[name]
        warnings.warn(
            f"source: {self.name}: {name} was written again after it was read (rotated?); what is new in it is not read, as a file is "
            "read once: give it another name",
            RuntimeWarning,
            stacklevel=2,
        )

    def take(self, seconds: float) -> pa.RecordBatch | None:
        if self._rows is None and not self._next(seconds):
            return None
        assert self._rows is not None and self._now is not None
        batch = next(self._rows, None)
        before, self._bad = self._bad, self.bad.count if self.bad is not None else 0
        if batch is not None:
            self._taken += batch.num_rows
            return batch
        self._done.append(self._now.name)
        self._seen[self._now.name] = self._now
        if len(self._seen) > _SEEN:
            del self._seen[next(iter(self._seen))]
        with self._lock:
            self._lately.append(self._now.name)
        self._rows = self._now = None
        return pa.RecordBatch.from_pylist([], self.schema) if self._bad > before else None

    def _next(self, seconds: float) -> bool:
        """Open the next file. Returns: whether there is one."""
        if not self._waiting:
            wait = self._looked + _LOOK_SECONDS - time.monotonic()
            if wait > 0:
                time.sleep(min(wait, seconds))
                if wait > seconds:
                    return False
            try:
                found = self._look()
            except OSError as e:
                raise Away(f"{self.name} cannot be looked at ({e.strerror})") from None
            self._looked = time.monotonic()
            self._waiting = [one for one in found if one in self._before]
            self._before = set(found)
        if not self._waiting:
            return False
        self._open(self._waiting.pop(0), 0)
        return True

    def _open(self, file: _File, left_out: int) -> None:
        """Open a file. Args: left_out: its first rows that are not read."""
        self._now = file
        # a file that is being read is not new in the next look
        self._read.add(self._now.name)
        table = self._open_file(os.path.join(self._folder, self._now.name), self._given or Schema.from_arrow(self.schema))
        if not table.schema.equals(self.schema):
            raise SourceError(
                f"source: {os.path.join(self._folder, self._now.name)} has other columns ({table.schema}) than the files before"
            )
        with ours(SourceError, f"source: {self.name}: {file.name} has come, and cannot be read"):
            self._checksum = self._checksum_of(file)
        self._rows = rechunk(behind(table.batches(), left_out), TAKEN_ROWS, _ROW_BYTES)
        self._taken = left_out

    def position(self) -> Any:
        done, self._done = self._done, []
        return done or None

    def reached(self) -> Mapping[str, Any]:
        half = self._now
        with self._lock:
            lately, remembered = list(self._lately), self._remembered
        return {
            "directory": self._folder,
            "read": lately,
            "half": [half.arrived, half.name, half.size] if half is not None else None,
            "rows": self._taken,
            "checksum": self._checksum if half is not None else None,
            "bad_line": self.bad.last_line(self._path(half)) if half is not None and isinstance(self.bad, BadMessages) else 0,
            **rows_by(self.schema, self.bad, self.read_as),
            "remembered": remembered,
            "seen": [[one.arrived, one.name, one.size] for one in self._seen.values()],
        }

    def commit(self, position: Any) -> None:
        lines = "".join(json.dumps(name) + "\n" for name in position)
        with ours(SourceError, f"source: {self.name}: cannot remember in {self._memory} what was read"):
            with open(self._memory, "a+b") as f:
                f.seek(max(0, f.seek(0, os.SEEK_END) - 1))
                # the line that a crash has cut off ends here
                f.write((b"\n" if f.read(1) not in (b"", b"\n") else b"") + lines.encode())
                f.flush()
                os.fsync(f.fileno())
        stored = set(position)
        with self._lock:
            self._lately = [name for name in self._lately if name not in stored]
            self._remembered += len(stored)

    def close(self) -> None:
        self._rows = None
