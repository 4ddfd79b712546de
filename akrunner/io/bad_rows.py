"""What becomes of rows of a text that cannot be read: they fail the job, are left out, or are written to a directory.

::

    parser -> take(file, rows) -> counted, the first few as warnings, DIR/.bad-rows-....partial -> commit -> DIR/bad-rows-....jsonl
    of a stream                -> the same, but at once in DIR/bad-rows-....jsonl, whichever file of the stream they are in
"""

from __future__ import annotations

import contextlib
import datetime
import json
import numbers
import os
import re
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import IO, Any, TypeVar

from akrunner import leftovers
from akrunner.checks import MOST_DIGITS, check_path, holds_no_files, shown, whole_number, whole_of
from akrunner.errors import ConfigError, SourceError, WriteError
from akrunner.foreign import in_words, redacted
from akrunner.io.commits import may_be_written
from akrunner.io.rename import drop_empty, missing, move_new, sync
from akrunner.leftovers.private import private_file

#: how many rows may be bad if `max_bad_rows=` is not given
MOST_BAD_ROWS = 100
#: how many bad rows are shown as warnings
SHOWN_ROWS = 5
#: a share is judged from this many rows on: of fewer rows, one is easily more than 1 %
_JUDGED = 10_000
#: the most characters of a row that are written: a longer line could not be read again
_TEXT = 1 << 20
#: the most characters of a row that a warning shows
_SHORT = 80
#: so many bad messages are known again if they come again, and so many files; those before them were read long ago
_KNOWN = 100_000
_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
#: the most characters of a share that a message shows
_LONGEST_SHARE = 40
_Value = TypeVar("_Value")
_REPAIR = "repair the rows, give input_schema= (--input-schema) if the columns' types are not these, or raise max_bad_rows="


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be read.

    Attributes:
        line: the number of its first line in the file, from 1.
        reason: why it cannot be read.
        text: its bytes.
        place: where it is, if it is no row of a file: "the message at offset 5 of ...".
    """

    line: int
    reason: str
    text: bytes
    place: str = ""


@dataclass(frozen=True)
class Limit:
    """How many rows may be bad.

    Attributes:
        rows: the number; None if a share is given.
        percent: the share of all rows, from 0 to 100, as exact as it was written.
    """

    rows: int | None
    percent: Decimal = Decimal()

    @classmethod
    def of(cls, given: Any) -> Limit:
        """Return `max_bad_rows=` as a limit.

        Raises:
            ConfigError: it is neither a number of rows nor a share.
        """
        if isinstance(given, str):
            found = _SHARE.fullmatch(given)
            if found is not None and (percent := Decimal(found[1])) <= 100:
                return cls(None, percent)
            rows = whole_of(given.strip())
            if rows is not None:
                return cls(rows)
        elif isinstance(given, numbers.Integral) and not isinstance(given, bool):
            rows = whole_number("max_bad_rows (--max-bad-rows)", given)
            if 0 <= rows < 10**MOST_DIGITS:
                return cls(rows)
        raise ConfigError(
            f"max_bad_rows (--max-bad-rows) must be a number of rows below 10^{MOST_DIGITS}, or a share like '1%', not {shown(given)}"
        )

    def __str__(self) -> str:
        return f"{self.share} of the rows" if self.rows is None else f"{self.rows:,} row{'s' * (self.rows != 1)}"

    @property
    def share(self) -> str:
        """The share in words, such as "1.4%"."""
        text = f"{self.percent:f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return f"{text if len(text) <= _LONGEST_SHARE else text[:_LONGEST_SHARE] + '...'}%"

    def is_passed(self, bad: int, rows: int) -> bool:
        """Whether more rows are bad than may be. Args: rows: how many there are, the bad ones among them."""
        if self.rows is not None:
            return bad > self.rows
        # exact, unlike a product of Decimals or floats: 14 of 1,000 rows are no more than 1.4%
        return rows > 0 and self.percent < Fraction(100 * bad, rows)


class BadRows:
    """The bad rows of one job's table. A thread that reads the table calls `take` and `read`; all else is called by others.

    Attributes:
        directory: where bad rows are written; None: they are only counted.
        limit: how many rows may be bad.
        count: how many were bad so far, in the newest reading of the table.
    """

    def __init__(self, directory: str | None, limit: Limit) -> None:
        self.directory = directory
        self.limit = limit
        self.count = 0
        self._rows = 0
        self._first: list[str] = []
        self._told = 0
        #: found before the job began: a plan writes nothing
        self._waiting: list[bytes] = []
        self._begun = False
        self._file: IO[bytes] | None = None
        self._partial = ""
        self._target = ""
        self._committed = False
        self._over = False
        #: the directories that were made for the file, the innermost first
        self._new: list[str] = []

    @classmethod
    def of(cls, bad_rows: Any, max_bad_rows: Any) -> BadRows | None:
        """Return what `bad_rows=` and `max_bad_rows=` say; None for "fail".

        Raises:
            ConfigError: a value is wrong, or the directory cannot be written.
        """
        place = check_path("bad_rows", bad_rows)
        limit = Limit.of(max_bad_rows)
        if place == "fail":
            if limit != Limit(MOST_BAD_ROWS):
                raise ConfigError(
                    "max_bad_rows= (--max-bad-rows) means nothing with bad_rows='fail', where the first bad row fails the job: give "
                    "bad_rows= (--bad-rows) skip or a directory, too"
                )
            return None
        if place == "skip":
            return cls(None, limit)
        if "://" in place:
            raise ConfigError(
                f"bad_rows: {redacted(place)} is a URL: bad rows are written to a directory of this machine; name one, or give "
                "skip"
            )
        place = os.path.abspath(os.path.expanduser(place))
        there = place
        while not os.path.lexists(there):
            there = os.path.dirname(there)
        if not os.path.isdir(there):
            raise ConfigError(f"bad_rows (--bad-rows): {there} is no directory; give fail, skip, or a directory")
        if holds_no_files(there) or not os.access(there, os.W_OK | os.X_OK):
            raise ConfigError(f"bad_rows (--bad-rows): nothing may be written in {there}; name another directory")
        return cls(place, limit)

    def of_messages(self) -> BadMessages:
        """Return what becomes of the bad messages of a stream, to which `bad_rows=` says the same."""
        return BadMessages(self.directory, self.limit)

    @property
    def room(self) -> int:
        """How many more rows may be bad, as far as that is known: if more are found, the limit is certainly passed."""
        return sys.maxsize if self.limit.rows is None else self.limit.rows - self.count

    @property
    def file(self) -> str | None:
        """The file that bad rows are written to; None if there is none."""
        return self._target or None

    # -- the thread that reads

    def take(self, file: str, rows: Sequence[BadRow]) -> None:
        """Take the next bad rows of a file, in their order.

        Raises:
            SourceError: there are more than the limit allows.
            WriteError: they cannot be written.
        """
        for row in rows:
            text = row.text.decode("utf-8", "backslashreplace")[:_TEXT]
            if len(self._first) < SHOWN_ROWS:
                line = row.text.decode("utf-8", "replace")
                cut = "..." if len(line) > _SHORT else ""
                place = row.place or f"{redacted(file)} line {row.line}"
                said = f"source: {place}: {row.reason}: {line[:_SHORT]!r}{cut}"
                # a row of a table that is read again comes again
                if said not in self._first:
                    self._first.append(said)
            self.count += 1
            if self.directory is not None:
                at = {"place": row.place} if row.place else {"file": redacted(file), "line": row.line}
                one = {**at, "reason": row.reason, "text": text}
                self._write(json.dumps(one, ensure_ascii=False).encode() + b"\n")
            if self.limit.rows is not None and self.limit.is_passed(self.count, self.count):
                self._fail(f"more than {self.limit} cannot be read")

    def were_read(self, rows: int) -> None:
        """Count rows that could be read.

        Raises:
            SourceError: the share of bad rows is too large.
        """
        self._rows += rows
        if self._rows + self.count >= _JUDGED:
            self._judge()

    def end(self) -> None:
        """Judge the whole table once all of it was read, and bring what was written to the disk.

        Raises:
            SourceError: the share of bad rows is too large.
            WriteError: the rows cannot be written.
        """
        self._judge()
        if self._file is not None:
            with self._storing():
                sync(self._file)

    def restart(self) -> None:
        """Begin again, because the table is read again from its first row. Rows that were shown are not shown twice."""
        self.count = self._rows = 0
        self._waiting.clear()
        if self._file is not None:
            with self._storing():
                self._file.seek(0)
                self._file.truncate()

    def _judge(self) -> None:
        rows = self._rows + self.count
        if self.limit.rows is None and self.limit.is_passed(self.count, rows):
            self._fail(f"{self.count:,} of the first {rows:,} rows cannot be read, more than {self.limit.share}")

    def _fail(self, what: str) -> None:
        first = "; ".join(one.removeprefix("source: ") for one in self._first)
        raise SourceError(f"source: {what} (max_bad_rows=, --max-bad-rows); the first: {first}; {_REPAIR}")

    def _write(self, line: bytes) -> None:
        if not self._begun:
            self._waiting.append(line)
            return
        if self._over:
            # the job has ended while its table was still being read
            return
        with self._storing():
            if self._file is None:
                assert self.directory is not None
                self._new = missing(self.directory)
                os.makedirs(self.directory, mode=0o700, exist_ok=True)
                now = datetime.datetime.now(datetime.UTC)
                name = f"bad-rows-{now:%Y%m%dT%H%M%SZ}-{uuid.uuid4().hex[:8]}.jsonl"
                self._file = self._made(self.directory, name)
                self._target = os.path.join(self.directory, name)
            self._file.write(line)

    def _made(self, directory: str, name: str) -> IO[bytes]:
        """Make the file of bad rows, and return it."""
        # a hidden name: no job reads such a file (`akrunner.io.unfinished`)
        self._partial = os.path.join(directory, f".{name}.partial")
        leftovers.register(self._partial)
        return private_file(self._partial, "xb")

    @contextlib.contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except OSError as e:
            raise WriteError(
                f"bad_rows: cannot write to {self.directory}: {in_words(e, self.directory)}; name another directory (--bad-rows)"
            ) from None

    # -- the job

    def news(self) -> list[str]:
        """Return the warnings about bad rows that were not returned before."""
        new = self._first[self._told :]
        self._told += len(new)
        return new

    def summary(self) -> list[str]:
        """Return a warning about all bad rows; [] if there is none."""
        if not self.count:
            return []
        rows = f"{self.count:,} row{'s' * (self.count != 1)} of the input could not be read and"
        were = "was" if self.count == 1 else "were"
        if self._target:
            return [f"source: {rows} {were} written to {self._target}"]
        return [f"source: {rows} {were} left out (bad_rows=, --bad-rows DIR keeps them)"]

    def planned(self) -> str:
        """Return what becomes of bad rows, in words, for a plan."""
        where = "left out" if self.directory is None else f"written to a file in {self.directory}"
        found = f"; {self.count:,} in what was read of the input's beginning" if self.count else ""
        return f"{where}; more than {self.limit} fail the job{found}"

    def begin(self) -> None:
        """Write from now on, also what was found before."""
        self._begun = True
        waiting, self._waiting = self._waiting, []
        for line in waiting:
            self._write(line)

    def commit(self) -> None:
        """Make the file visible, because the job has succeeded.

        Raises:
            WriteError: it cannot be written.
        """
        if self._file is None:
            return
        if not self.count:
            self.abort()
            return
        with self._storing():
            sync(self._file)
            self._file.close()
            move_new(self._partial, self._target)
        leftovers.forget(self._partial)
        self._committed = True

    def abort(self) -> None:
        """Remove the file, also one that is committed, because the job has failed."""
        self._over = True
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            leftovers.drop(self._partial)
        if self._committed:
            with contextlib.suppress(OSError):
                os.unlink(self._target)
        drop_empty(self._new)
        self._file, self._target, self._committed = None, "", False


class BadMessages(BadRows):
    """The bad rows of a stream. Each is on the disk before the stream's position moves on behind it, and stays there however the job
    ends: the next job does not see a message again (but the bad rows of a file that grows, which it reads from the first line).
    One that comes again in the same job (`max_restarts=`) is neither counted nor written again."""

    def __init__(self, directory: str | None, limit: Limit) -> None:
        super().__init__(directory, limit)
        #: the places of the last `_KNOWN` messages
        self._known: dict[str, None] = {}
        #: the last bad line of each of the last `_KNOWN` files: a file is read again from its first line
        self._lines: dict[str, int] = {}
        #: the number of good rows of each of these files that were counted
        self._good: dict[str, int] = {}
        #: how many of the good rows that come next were counted before, and how many of these by an earlier job
        self._read_again = self._before = 0

    @property
    def room(self) -> int:
        # those that were counted may be found again
        return sys.maxsize if self.limit.rows is None else self.limit.rows

    def of_file(self, path: str) -> BadOfFile:
        """Return what becomes of the bad rows of one file of the stream, which is read from its first row."""
        return BadOfFile(self, path)

    def last_line(self, file: str) -> int:
        """Return the line of the last bad row of a file that was counted; 0: there is none."""
        return self._lines.get(file, 0)

    def know(self, file: str, line: int, good: int) -> None:
        """Note what an earlier job has counted of a file. Args: line: the last bad row's; good: the number of good rows."""
        _note(self._lines, file, max(line, self._lines.get(file, 0)))
        _note(self._good, file, max(good, self._good.get(file, 0)))

    def goes_on(self, file: str, line: int, good: int) -> None:
        """Begin with the only file of the stream anew, behind rows that an earlier job has counted. Args: as of `know`."""
        self.count = self._rows = 0
        self._first.clear()
        self._waiting.clear()
        self._lines = {file: line}
        self._read_again = self._before = good

    def good_of_file(self, file: str, good: int) -> None:
        """Count the good rows of a file. Args: good: how many were read, from its first row on."""
        new = good - self._good.get(file, 0)
        if new > 0:
            _note(self._good, file, good)
            super().were_read(new)

    def take(self, file: str, rows: Sequence[BadRow]) -> None:
        try:
            for row in rows:
                if row.place:
                    if row.place not in self._known:
                        super().take(file, [row])
                        _note(self._known, row.place, None)
                elif row.line > self._lines.get(file, 0):
                    super().take(file, [row])
                    _note(self._lines, file, row.line)
        finally:
            self._bring()

    def begin(self) -> None:
        super().begin()
        self._bring()

    def restart(self) -> None:
        """Begin again, as a file that grows does: it is read from its first row, and no row counts twice."""
        self._read_again = self._before + self._rows

    def were_read(self, rows: int) -> None:
        known = min(rows, self._read_again)
        self._read_again -= known
        super().were_read(rows - known)

    def commit(self) -> None:
        """Close the file, which stays."""
        self._over = True
        if self._file is not None:
            with self._storing():
                self._file.close()
            self._file = None

    def abort(self) -> None:
        """Close the file, which stays. The job has failed already, and each row is on the disk."""
        with contextlib.suppress(WriteError, OSError):
            self.commit()

    def _made(self, directory: str, name: str) -> IO[bytes]:
        return private_file(os.path.join(directory, name), "xb")

    def _bring(self) -> None:
        """Bring what was written to the disk."""
        if self._file is not None:
            with self._storing():
                sync(self._file)


def _note(known: dict[str, _Value], name: str, value: _Value) -> None:
    """Keep a value by its name, and drop the one whose name was noted first if there are more than `_KNOWN`."""
    known[name] = value
    if len(known) > _KNOWN:
        del known[next(iter(known))]


class BadOfFile(BadRows):
    """The bad rows of one file of a stream of files: they are the stream's."""

    def __init__(self, stream: BadMessages, path: str) -> None:
        super().__init__(None, stream.limit)
        self._stream = stream
        self._path = path

    @property
    def room(self) -> int:
        return self._stream.room

    def take(self, file: str, rows: Sequence[BadRow]) -> None:
        self._stream.take(self._path, rows)

    def were_read(self, rows: int) -> None:
        # who reads the file again begins with its first row
        self._rows += rows
        self._stream.good_of_file(self._path, self._rows)

    def restart(self) -> None:
        self._rows = 0

    def end(self) -> None:
        """Judge nothing: other files follow."""


@contextlib.contextmanager
def kept(bad: BadRows | None) -> Iterator[None]:
    """Write the bad rows of the job that the block runs. They are removed if the block raises, unless its output is there all the same."""
    if bad is None:
        yield
        return
    try:
        bad.begin()
        yield
    except BaseException as e:
        if not may_be_written(e):
            bad.abort()
        raise
