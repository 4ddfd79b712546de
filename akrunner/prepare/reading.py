"""How a job reads its table: the one place where the options for that become an opened table, whichever verb has them.

::

    Arguments, PredictArguments -> Reading.of -> open           files, tables by name, folders, databases, rows in memory
    the job's arguments by name -> Reading.written -> open      a file that a stream of files has found
                                                   \\-> lines    stdin, a file that grows (`akrunner.running.inputs`)
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from akrunner import codec
from akrunner.checks import STDIN, check_path, check_stdin, check_text, shown
from akrunner.errors import ConfigError, SourceError
from akrunner.foreign import ours
from akrunner.io import formats
from akrunner.io.bad_rows import BadRows
from akrunner.io.csv_options import CsvOptions
from akrunner.io.decimals import check_decimals
from akrunner.io.follow import open_text
from akrunner.io.formats import check_format
from akrunner.io.formats.lines import Lines
from akrunner.io.limits import check_time, opened
from akrunner.io.readers import no_bad_rows
from akrunner.io.table import Awaited, TableSource
from akrunner.io.taken import check_columns, check_defaults
from akrunner.prepare.schemas import schema_of
from akrunner.schema import Schema
from akrunner.tables.opening import open_input


class Reads(Protocol):
    """The arguments that say how a table is read, of every verb that reads one."""

    @property
    def source(self) -> Any: ...
    @property
    def input_schema(self) -> Any: ...
    @property
    def input_format(self) -> Any: ...
    @property
    def input_csv(self) -> Any: ...
    @property
    def bad_rows(self) -> Any: ...
    @property
    def max_bad_rows(self) -> Any: ...
    @property
    def select(self) -> Any: ...
    @property
    def defaults(self) -> Any: ...
    @property
    def decimals(self) -> Any: ...
    @property
    def timeout(self) -> Any: ...
    @property
    def flush_seconds(self) -> Any: ...


@dataclass(frozen=True)
class Reading:
    """The checked values of the options that say how a table is read.

    Attributes:
        schema, form, csv: as `input_schema=`, `input_format=` and `input_csv=`.
        bad: what becomes of rows that cannot be read; None: they fail the job.
        select, columns, defaults, decimals: as the options of these names.
        select_seconds: how long the query may take where no job's time has begun; None: without a limit.
        flush_seconds: how long rows that arrive may be held back; None: the rows do not arrive, they are there.
    """

    schema: Schema | None = None
    form: str | None = None
    csv: CsvOptions | None = None
    bad: BadRows | None = None
    select: str | None = None
    columns: list[str] | None = None
    defaults: Mapping[str, Any] | None = None
    decimals: str = "refuse"
    select_seconds: float | None = None
    flush_seconds: float | None = None

    @property
    def read_as(self) -> dict[str, Any]:
        """What decides where the rows of a text begin, as JSON values: a save that counts rows counts them by it. (What nulls and
        numbers look like may become another: if a row that could not be read has ended a job, the next one goes on there.)"""
        csv = self.csv if self.csv is not None else CsvOptions()
        return {
            "input_format": self.form or "", "header": "yes" if csv.header is True else "no", "quote": csv.quote,
            "comment": csv.comment, "skip": csv.skip, "encoding": csv.encoding,
        }  # fmt: skip

    @classmethod
    def of(cls, given: Reads, arrives: bool, columns: Any = None) -> Reading:
        """Check the arguments of a job.

        Args: arrives: whether the rows arrive as a stream; columns: as `columns=` of the verbs that have it.
        Raises: ConfigError: a value is wrong.
        """
        written = cls.written(given.input_schema, given.input_format, given.input_csv, given.bad_rows, given.max_bad_rows)
        return replace(
            written,
            select=check_text("select", given.select) if given.select is not None else None,
            columns=check_columns(columns),
            defaults=check_defaults(given.defaults),
            decimals=check_decimals(given.decimals),
            select_seconds=given.timeout,
            flush_seconds=given.flush_seconds if arrives else None,
        )

    @classmethod
    def written(cls, input_schema: Any, input_format: Any, input_csv: Any, bad_rows: Any, max_bad_rows: Any) -> Reading:
        """Check the arguments that say how rows are written where they are read. Raises: ConfigError: a value is wrong."""
        return cls(
            schema_of(input_schema, "input_schema"),
            check_format(input_format, "input_format"),
            CsvOptions.of(input_csv, "input_csv"),
            BadRows.of(bad_rows, max_bad_rows),
        )

    def open(self, source: Any) -> TableSource:
        """Open a table that is no lines, or lines that are `Awaited`. Raises: ConfigError: it cannot be read so."""
        with ours(SourceError, "source: it cannot be read"):
            source = source.open() if isinstance(source, Awaited) else source
            return opened(source, lambda: self._opened(source))

    def _opened(self, source: Any) -> TableSource:
        check_time("its input")
        return open_input(
            source,
            read_examples=codec.read_examples,
            input_schema=self.schema,
            input_format=self.form,
            input_csv=self.csv,
            select=self.select,
            select_left=self._left,
            columns=self.columns,
            defaults=self.defaults,
            decimals=self.decimals,
            flush_seconds=self.flush_seconds,
            bad=self.bad,
        )

    def _left(self) -> float | None:
        """Return how long the query may still take. Raises: JobTimeoutError: the job's time is over."""
        left = check_time("the query of select=")
        # a plan has no time that has begun
        return self.select_seconds if left is None else left

    def lines(self, source: Any, follow: bool) -> TableSource:
        """Open stdin ("-") or a growing file (`follow`), to read its lines as they arrive.

        Raises: ConfigError: it is no file of lines, or cannot be read so.
        """
        name, lines = self.check_lines(source)
        csv = self.csv
        if csv is not None and self.schema is not None:
            csv = csv.named(tuple(self.schema.names))
        try:
            fd = 0 if name == "-" else os.open(os.path.expanduser(name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError as e:
            raise SourceError(f"source: {name}: {e.strerror}") from None
        try:
            table = open_text(fd, lines.written_as(csv), self.schema, follow, "stdin" if name == "-" else name, self.bad)
        except BaseException:
            if fd != 0:
                os.close(fd)
            raise
        return _closing(table, fd) if fd != 0 else table

    def check_lines(self, source: Any) -> tuple[str, Lines]:
        """Check what can be known of stdin ("-") or a growing file before a line has come, and return its name and its format.

        Raises: ConfigError: it is no file of lines, or cannot be read so.
        """
        if not isinstance(source, (str, os.PathLike)):
            raise ConfigError("follow= is for one file; the source is " + type(source).__name__)
        name = check_path("source", source, SourceError)
        untold = formats.LINES[0] if self.csv is None else formats.csv.FORMAT
        lines = formats.lines_named(self.form) if self.form else formats.lines_of(name) or untold
        if lines is None:
            known = " or ".join(one.name for one in formats.LINES)
            raise ConfigError(f"input_format={shown(self.form)}: lines are read as {known}")
        if self.csv is not None and not lines.delimited:
            raise ConfigError(f"input_csv= (--input-csv) is for CSV, and {name} is read as {lines.name}; leave it out")
        if self.bad is not None and not lines.tolerant:
            raise no_bad_rows("stdin" if name == "-" else name)
        check_stdin("source", STDIN if name == "-" else name, SourceError)
        if name != "-":
            try:
                os.stat(os.path.expanduser(name))
            except OSError as e:
                raise SourceError(f"source: {name}: {e.strerror}") from None
        return name, lines


def _closing(table: TableSource, fd: int) -> TableSource:
    """Return a table that closes its file when it was read, or when nobody can read it any more. Args: fd: the file's descriptor."""
    close = weakref.finalize(table, os.close, fd)
    # at the end of the process a thread may still read it
    close.atexit = False

    def batches() -> Iterator[pa.RecordBatch]:
        # it keeps the table, and by that its file
        try:
            yield from table.open()
        finally:
            close()

    return replace(table, open=batches)
