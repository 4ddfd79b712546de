"""Values over time, a line of JSON for each moment, in a file whose size is bounded: the longer a run is, the fewer moments it has."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from akrunner.history.record import plain
from akrunner.leftovers.private import private_file

METRICS, PROGRESS, STATES = "metrics.jsonl", "progress.jsonl", "states.jsonl"
#: a series -> numbers without which a line of it says nothing
_NEEDED = {METRICS: (), PROGRESS: ("time_ns", "rows_in", "rows_out"), STATES: ("time_ns", "attempt")}
_MOST_BYTES = 4 << 20
#: bytes of a file's end that are looked at first for its last line
_END_BYTES = 1 << 16


class Series:
    """Writes a series as it comes, so that a reader sees each line at once. An error ends the file, and nothing else.

    Args:
        run: the run's directory.
        name: the file's name in it.
        most: whenever so many bytes more are written, from then on only every second of the lines that were taken until then is,
            of each key.
    Attributes:
        error: why it is not whole; None: it is.
    """

    def __init__(self, run: str, name: str, most: int = _MOST_BYTES) -> None:
        self.error: OSError | None = None
        self._path = os.path.join(run, name)
        self._most = most
        self._every, self._bytes = 1, 0
        self._counts: dict[str, int] = {}
        self._file: IO[bytes] | None = None

    def add(self, values: Mapping[str, Any], key: str = "", always: bool = False) -> None:
        """Add a moment.

        Args:
            key: whose moment it is: of each one's every second is left out, so that nobody's are lost if they come in turn.
            always: whether it is taken even if most are left out by now.
        """
        count = self._counts.get(key, 0)
        self._counts[key] = count + 1
        if self.error is not None or (not always and count % self._every):
            return
        line = json.dumps(plain(values), allow_nan=False).encode() + b"\n"
        try:
            if self._file is None:
                self._file = private_file(self._path, "ab", buffering=0)
            rest = memoryview(line)
            # a disk that is nearly full takes only a part of it, without an error
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as e:
            self.error = e
            self.close()
            return
        self._bytes += len(line)
        if self._bytes > self._most:
            self._every, self._bytes = self._every * 2, 0

    def close(self) -> None:
        if self._file is not None:
            # what could not be written is known already
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


def put(run: str, name: str, lines: Iterable[str]) -> None:
    """Write a series anew. Args: lines: as `Series` writes them. Raises: OSError: it cannot be written."""
    with private_file(os.path.join(run, name), encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def read(run: str, name: str) -> Iterator[dict[str, Any]]:
    """Yield the moments of a series; none if nothing was kept. A line that is not whole is left out."""
    try:
        file = open(os.path.join(run, name), "rb")
    except OSError:
        return
    with file:
        for line in file:
            found = _moment(line, name)
            if found is not None:
                yield found


def last(run: str, name: str) -> dict[str, Any] | None:
    """Return the last moment of a series, as `read` would yield it, of which only the end of the file is read; None: there is none."""
    try:
        with open(os.path.join(run, name), "rb") as file:
            size = file.seek(0, os.SEEK_END)
            length = _END_BYTES
            while True:
                file.seek(max(0, size - length))
                lines = file.read(min(size, length)).splitlines(keepends=True)
                # the first one is whole only at the beginning of the file
                for line in reversed(lines[length < size :]):
                    found = _moment(line, name)
                    if found is not None:
                        return found
                if length >= size:
                    return None
                length *= 4
    except OSError:
        return None


def _moment(line: bytes, name: str) -> dict[str, Any] | None:
    """Return the moment of a line; None if it is not whole."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(line)
        if isinstance(found, dict) and line.endswith(b"\n") and all(type(found.get(key)) is int for key in _NEEDED[name]):
            return found
    return None
