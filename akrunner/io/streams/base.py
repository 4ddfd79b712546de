"""What a system that keeps streams is: what each system's module has, and what all of them share."""

from __future__ import annotations

import importlib
import os
import socket
import urllib.parse
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, runtime_checkable

import pyarrow as pa

from akrunner.checks import MOST_SECONDS, shown, whole_of
from akrunner.errors import AkrunnerError, ConfigError, SourceError
from akrunner.foreign import ours, redacted
from akrunner.io.bad_rows import BadRows
from akrunner.io.systems.base import Url
from akrunner.io.table import HEAD_BYTES, TableSource
from akrunner.schema import Schema

#: seconds that a server that goes away in the middle is waited for
WAIT_SECONDS = 300.0
#: seconds in which a server must answer before a job starts
START_SECONDS = 5.0
#: bytes at the beginning and at the end of a file that are compared
_SAMPLE = HEAD_BYTES
#: how many columns an error shows
_COLUMNS = 5
#: the most rows that are taken at once
TAKEN_ROWS = 8192


class Away(Exception):
    """The server of a stream cannot be reached now. It may come back."""


class StreamSource(Protocol):
    """The rows of one stream, as they arrive, and the positions behind them.

    One thread calls `connect`, `take`, `position` and `reached`. Another calls `commit`, and `close` after the first has ended.
    `begin` is called while no thread reads.

    Attributes:
        schema: the schema of the rows.
        name: the stream's name in errors and warnings, without secrets.
        ready: whether rows that are there would have come by now. (A group of consumers is formed within some seconds.)
        ended: whether no more rows will come, for ever.
        bad: takes the bad rows, which are left out; None: a bad row is an error.
        read_as: what a user has said that decides where the rows of a text begin, as JSON values.
    """

    schema: pa.Schema
    name: str
    bad: BadRows | None
    read_as: Mapping[str, Any]

    @property
    def ready(self) -> bool: ...

    @property
    def ended(self) -> bool: ...

    def begin(self, place: Mapping[str, Any] | None) -> None:
        """Say where the next `connect` begins.

        Args:
            place: what `reached` has returned, in this process or in an earlier one; None: behind the position that was stored
                last.
        Raises:
            AkrunnerError: the rows behind that place cannot be read.
        """
        ...

    def connect(self) -> None:
        """Begin, or begin again, where `begin` says; behind the position that was stored last if it was not called.

        Raises:
            Away: the server cannot be reached.
            AkrunnerError: the stream cannot be read.
        """
        ...

    def take(self, seconds: float) -> pa.RecordBatch | None:
        """Return rows that have come, at most about `TAKEN_ROWS`; a batch without rows if only bad ones have come; None if none
        come within `seconds`.

        Raises:
            Away: the server cannot be reached.
            AkrunnerError: a row cannot be read.
        """
        ...

    def position(self) -> Any:
        """Return the position behind all rows that `take` has returned; None if it is that of the call before."""
        ...

    def reached(self) -> Mapping[str, Any]:
        """Return the place behind all rows that `take` has returned, as JSON values. Unlike a position it says all of it."""
        ...

    def commit(self, position: Any) -> None:
        """Store a position, so that the rows before it do not come again. Every position comes here, in order.

        Raises:
            Away: the server cannot be reached.
            AkrunnerError: the position cannot be stored.
        """
        ...

    def close(self) -> None:
        """Leave the stream. Nothing is called afterwards; `connect` may never have been called."""
        ...


class StreamSink(Protocol):
    """Takes rows for one stream.

    Attributes:
        path: the stream's URL, without secrets.
        rows: how many rows it was given.
    """

    path: str
    rows: int

    def write_rows(self, batch: pa.RecordBatch) -> None:
        """Send rows. They may still be under way when it returns; their number and bytes are bounded.

        Raises:
            WriteError: the system does not take them, or is away for longer than `wait=` allows.
            JobTimeoutError: the time of the job that this thread has is over.
        """
        ...

    def flush(self) -> None:
        """Return once the system has all rows.

        Raises:
            WriteError: as `write_rows`.
        """
        ...

    def close(self) -> None:
        """Leave the stream. Rows that were not flushed may be lost."""
        ...


@runtime_checkable
class TransactionSink(StreamSink, Protocol):
    """Takes rows for one stream in transactions. A transaction has rows and the position in the source behind the rows that they
    were made of: readers see both or neither (exactly once).

    Attributes:
        rows: how many rows are in transactions that were committed.
        uncommitted: how many rows the open transaction has.
    """

    uncommitted: int

    def join(self, settle: Callable[[], None]) -> None:
        """Begin to take rows.

        Args:
            settle: what the source calls before it gives up rows, so that a transaction stores their position before.
        """
        ...

    def commit(self, position: Any) -> None:
        """Commit the rows that were written since the last commit, together with a position.

        Args:
            position: behind the rows of the source that these rows were made of; None: no row was read since the last commit.
        Raises:
            WriteError: the transaction was aborted.
            ReadError: another reader has taken over rows of the source that the transaction's rows were made of.
        """
        ...


class StreamSystem(Protocol):
    """One kind of system that keeps streams.

    Attributes:
        has_files: whether its rows are in files, which have a format.
    """

    has_files: bool

    def open(self, url: str, schema: Schema | None, flush_seconds: float, open_file: OpenFile) -> TableSource:
        """Return a stream as a table that never ends, with its `arriving`.

        Args:
            url: the URL.
            schema: the columns, None: the user has given none.
            flush_seconds: how long a row may wait for more rows.
            open_file: opens one file as a table.
        Raises:
            ConfigError: the URL is wrong, or the server does not answer within `START_SECONDS`.
        """
        ...

    def check_output(self, url: str, schema: pa.Schema | None, source: str) -> None:
        """Check that rows can be written to a stream, as `output` does, and write nothing.

        Args:
            url: the URL.
            schema: the schema of the rows; None if it is not known yet.
            source: what the job reads: the URL of a stream, a file, or `-`.
        Raises:
            SinkError: they cannot.
        """
        ...

    def output(self, url: str, schema: pa.Schema, source: StreamSource | None) -> StreamSink:
        """Return a sink that writes rows to the stream.

        Args:
            url: the URL.
            schema: the schema of the rows.
            source: what the job reads; None: no stream of these systems.
        Raises:
            SinkError: the URL is wrong, the server does not answer within `START_SECONDS`, or such rows cannot be written.
        """
        ...


#: opens a file as a table: (path, schema or None) -> the table
OpenFile = Callable[[str, Schema | None], TableSource]


def client(name: str, extra: str) -> Any:
    """Return a system's client library.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise ConfigError(
            f"{extra}:// is read and written by {name.replace('_', '-')}, which is missing ({e}): pip install "
            f"'akrunner[{extra}]'"
        ) from None


@dataclass(frozen=True)
class Address:
    """A stream's URL, taken apart.

    Attributes:
        url: the URL and its options.
        hosts: what stands between `://` and the path.
        path: the path, without its first `/`.
        kind: the error of this URL's parameter.
        parameter: "source" or "output".
    """

    url: Url
    hosts: str
    path: str
    kind: type[AkrunnerError]
    parameter: str

    @classmethod
    def of(cls, text: str, options: Sequence[str], kind: type[AkrunnerError], parameter: str) -> Address:
        """Take a URL apart.

        Args:
            text: the URL.
            options: the names of its options.
            kind: the error to raise.
            parameter: the parameter that has the URL.
        Raises:
            AkrunnerError: of the class `kind`: an option is unknown, or there twice.
        """
        try:
            url = Url.parse(text)
            url.check(options)
        except ConfigError as e:
            raise kind(f"{parameter}: {e}") from None
        rest = url.base.partition("://")[2]
        hosts, _, path = rest.partition("/")
        return cls(url, hosts, urllib.parse.unquote(path), kind, parameter)

    @property
    def name(self) -> str:
        """The URL without secrets and without options."""
        return redacted(self.url.base)

    def wrong(self, what: str) -> AkrunnerError:
        """Return the error for this URL. Args: what: what is wrong, and what to write."""
        return self.kind(f"{self.parameter}: {self.name}: {what}")

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Return an option that has one of some values, the first if it is left out."""
        given = self.url.options.get(name, choices[0])
        if given not in choices:
            raise self.wrong(f"{name}={shown(given)}: give {' or '.join(choices)}")
        return given

    def seconds(self, name: str, default: float | None) -> float | None:
        """Return an option that is a number of seconds."""
        text = self.url.options.get(name)
        if text is None:
            return default
        try:
            found = float(text)
        except ValueError:
            found = -1.0
        if not 0 < found < MOST_SECONDS:
            raise self.wrong(f"{name}={shown(text)}: give seconds, more than 0 and less than {MOST_SECONDS:.0f}")
        return found

    @property
    def wait(self) -> float:
        """How many seconds a server that goes away in the middle is waited for."""
        return self.seconds("wait", WAIT_SECONDS) or WAIT_SECONDS

    def group(self) -> str:
        """Return the group, under whose name positions are stored."""
        group = self.url.options.get("group", "")
        if not group:
            raise self.wrong("give ?group=NAME, the name under which is remembered what was read")
        return group

    def chosen(self, name: str, choices: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        """Return what an option chooses of some columns, with their types. Args: name: the option, a list with commas."""
        text = self.url.options.get(name, "")
        names = [one for one in text.split(",") if one]
        for one in names:
            if one not in choices:
                are = "is" if len(choices) == 1 else "are"
                raise self.wrong(f"{name}={shown(text)}: there {are} {', '.join(choices)}")
        return {one: choices[one] for one in names}

    def settings(self, variable: str) -> dict[str, str]:
        """Return the settings in the file that `config=` names, or else an environment variable: a NAME=VALUE on each line.

        Raises:
            AkrunnerError: the file cannot be read, or a line is no setting. The error shows no value.
        """
        path = self.url.options.get("config") or os.environ.get(variable)
        if path is None:
            return {}
        with ours(self.kind, f"{self.parameter}: {self.name}: config={path}"):
            with open(os.path.expanduser(path), encoding="utf-8") as f:
                lines = f.read().splitlines()
        found: dict[str, str] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith(("#", "!")):
                continue
            name, equals, value = line.partition("=")
            if not equals or not name.strip():
                raise self.wrong(f"config={path}: line {number} is no NAME=VALUE")
            found[name.strip()] = value.strip()
        return found


def check_loop(source: Address, output: Address, port: int) -> None:
    """Check that a job does not read what it writes, for ever.

    Args:
        source: the stream that is read, in the same kind of system.
        output: the stream that is written.
        port: the system's port, where a URL has none.
    Raises:
        SinkError: both are the same stream, also by other names of the server.
    """
    if source.path != output.path or source.url.options.get("db", "0") != output.url.options.get("db", "0"):
        return
    if _servers(source, port) & _servers(output, port):
        raise output.wrong("it is the input: the job would read what it writes, for ever")


def _servers(address: Address, port: int) -> set[tuple[str, int]]:
    """Return the addresses and ports of a URL's servers; the name of one that is not known."""
    found: set[tuple[str, int]] = set()
    for server in address.hosts.rpartition("@")[2].split(","):
        host, colon, digits = server.rpartition(":")
        number = whole_of(digits) if colon else None
        if number is None:
            host, number = server, port
        host = host.strip("[]").lower()
        try:
            told = {str(one[4][0]) for one in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
        except (OSError, UnicodeError):
            told = {host}
        found |= {(one, number) for one in told}
    return found


def same_place(place: Mapping[str, Any], what: str, own: str) -> Mapping[str, Any]:
    """Return the place of a save, once it is checked to be one in this stream.

    Args:
        place: the place.
        what: what the stream is: "topic".
        own: the name of this one.
    Raises:
        ConfigError: it is a place in another stream.
    """
    if place.get(what) != own:
        there = next((f"the {kind} {shown(name)}" for kind, name in place.items() if isinstance(name, str)), "another stream")
        raise ConfigError(
            f"checkpoint_dir: its saves are of {there}, and the source is the {what} {shown(own)}: go on with the same, or begin "
            "in another checkpoint_dir"
        )
    return place


def rows_by(schema: pa.Schema, bad: BadRows | None, read_as: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what says in a place which rows it counts.

    Args: schema: their columns; bad: takes those that are not counted; read_as: what decides where rows begin.
    """
    return {"columns": _columns(schema), "leaves_out": bad is not None, "read_as": dict(read_as)}


def check_rows_by(
    name: str, place: Mapping[str, Any], schema: pa.Schema, bad: BadRows | None, read_as: Mapping[str, Any]
) -> None:
    """Check that a place that counts rows counts those that are read now: with other types of columns other rows are bad, and in a
    text that is read in another way rows begin elsewhere.

    Args:
        name: the stream's name.
        place: it may be one of an earlier version, which does not say it.
        schema, bad, read_as: as in `rows_by`.
    Raises: SourceError: they may be others.
    """
    other = _otherwise(place.get("read_as", {}), read_as)
    if other:
        raise gone(
            name,
            f"it was made with {other}, so that it may count other rows: rows would be trained on twice, or never. Give what it was "
            "made with (--input-csv, --input-format)",
        )
    # where no row is left out, all rows are counted, whatever their types are
    if "columns" not in place or (bad is None and not place["leaves_out"]):
        return
    now = _columns(schema)
    was, become = [one for one in place["columns"] if one not in now], [one for one in now if one not in place["columns"]]
    if was or become:
        raise gone(
            name,
            f"it was made behind the rows that are good with the column{'s' * (len(was) != 1)} {_few(was)}, and now it is {_few(become)}, "
            "with which other rows are bad (--bad-rows): rows would be trained on twice, or never. Give input_schema= (--input-schema) "
            "with the types of the save",
        )


def _otherwise(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return in words what decides in another way than before where rows begin; "": nothing does."""
    changed = [(name, was, now[name]) for name, was in before.items() if name in now and was != now[name]]
    # a name of a file tells the format, too
    return ", ".join(
        f"{name}={was!r}, and now it is {new!r}" for name, was, new in changed if name != "input_format" or (was and new)
    )


def _columns(schema: pa.Schema) -> list[str]:
    return [f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in schema]


def _few(columns: Sequence[str]) -> str:
    """Return the first columns of some for an error."""
    more = f" and {len(columns) - _COLUMNS:,} more" if len(columns) > _COLUMNS else ""
    return (", ".join(columns[:_COLUMNS]) or "none") + more


def checksum(file: BinaryIO, size: int) -> int:
    """Return a checksum of the beginning of a file and of what comes before a size, by which another file is noticed.

    Args:
        file: the file; its position is another one afterwards.
        size: bytes.
    Raises:
        OSError: it cannot be read.
    """
    file.seek(0)
    first = file.read(min(size, _SAMPLE))
    file.seek(max(0, size - _SAMPLE))
    return zlib.crc32(file.read(min(size, _SAMPLE)), zlib.crc32(first))


def gone(name: str, what: str) -> SourceError:
    """Return the error about a save behind which the stream cannot go on, as its rows would be lost, or come twice.

    Args:
        name: the stream's name.
        what: what has become of the place, and what to do about it.
    """
    return SourceError(
        f"source: {name}: the job cannot go on behind the newest save in checkpoint_dir: {what}. No row was trained on. If it cannot be "
        "mended, the model begins in another checkpoint_dir"
    )


def with_meta(schema: pa.Schema | None, meta: Mapping[str, pa.DataType], address: Address) -> tuple[pa.Schema, pa.Schema]:
    """Return (the columns of the values, all columns) of a stream's rows.

    Columns of `meta` that the schema names have the order and type that it says; the others come last, in their own type.

    Raises:
        SourceError: there is no schema.
    """
    if schema is None:
        raise SourceError(
            f'source: {address.name}: its values do not say their columns; give input_schema= (--input-schema "id bigint, x '
            'double")'
        )
    values = pa.schema([field for field in schema if field.name not in meta])
    more = [pa.field(name, kind) for name, kind in meta.items() if name not in schema.names]
    return values, pa.schema([*schema, *more])
