"""Streams of Redis.

::

    redis://host:6379/stream?group=g      entries -> rows; what a group has acknowledged is the position
    redis://host:6379/stream              rows -> entries

An entry's fields are the columns, as text; with `value=json` one field, `value`, has a JSON object. A password is in the
environment (REDISCLI_AUTH), as for redis-cli, or in the file that `config=` names.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from akrunner.arrays import first_wrong
from akrunner.checks import shown, whole_of
from akrunner.column_types import is_octets
from akrunner.errors import AkrunnerError, SinkError, SourceError, WriteError
from akrunner.io.bad_rows import BadRows
from akrunner.io.casts import asked
from akrunner.io.limits import check_time, deadline, waited
from akrunner.io.streams.arriving import table_of
from akrunner.io.streams.base import (
    START_SECONDS,
    TAKEN_ROWS,
    Address,
    Away,
    OpenFile,
    StreamSink,
    StreamSource,
    check_loop,
    client,
    gone,
    same_place,
    with_meta,
)
from akrunner.io.streams.values import JsonValues, Where, check_json, columns_of_json, without_bad
from akrunner.io.table import TableSource
from akrunner.schema import Schema, is_list

_Given = TypeVar("_Given")
_VARIABLE = "REDIS_CONFIG"
_IN = ("group", "consumer", "value", "with", "start", "idle", "wait", "db", "config")
_OUT = ("value", "maxlen", "wait", "db", "config")
#: what an entry has beside its fields
_META: dict[str, pa.DataType] = {"entry": pa.string()}
#: settings of a file that `config=` names
_SETTINGS = ("username", "password", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_PORT = 6379
_AGAIN_SECONDS = 0.5
#: the field that has the JSON object
_VALUE = b"value"


class _Redis:
    """Redis as a `StreamSystem`."""

    has_files = False

    def open(self, url: str, schema: Schema | None, flush_seconds: float, open_file: OpenFile) -> TableSource:
        address = _address(url, _IN, SourceError, "source")
        meta = address.chosen("with", _META)
        values, columns = with_meta(None if schema is None else schema.arrow, meta, address)
        source = _Entries(address, columns, values, meta)
        return table_of(source, address, source.check)

    def check_output(self, url: str, schema: pa.Schema | None, source: str) -> None:
        address = _address(url, _OUT, SinkError, "output")
        address.settings(_VARIABLE)
        if schema is not None:
            _check_columns(address, schema)
        if source.partition("://")[0].lower() in ("redis", "rediss"):
            check_loop(_address(source, _IN, SourceError, "source"), address, _PORT)

    def output(self, url: str, schema: pa.Schema, source: StreamSource | None) -> StreamSink:
        address = _address(url, _OUT, SinkError, "output")
        if isinstance(source, _Entries):
            check_loop(source.address, address, _PORT)
        return _Output(address, schema)


SYSTEM = _Redis()


def _address(url: str, options: Sequence[str], kind: type[AkrunnerError], parameter: str) -> Address:
    address = Address.of(url, options, kind, parameter)
    if "@" in address.hosts and ":" in address.hosts.rpartition("@")[0]:
        raise address.wrong(
            "passwords do not go into the URL: REDISCLI_AUTH has one, or a file of settings, config=FILE (username=, password=)"
        )
    if not address.hosts or not address.path or "," in address.hosts:
        raise address.wrong("write redis://host[:port]/stream (rediss:// with TLS)")
    return address


class _Client:
    """A connection to Redis, and what its errors mean."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.name = address.name
        self._redis = client("redis", "redis")
        user, _, host = address.hosts.rpartition("@")
        settings = address.settings(_VARIABLE)
        odd = next((name for name in settings if name not in _SETTINGS), None)
        if odd is not None:
            raise address.wrong(f"its settings have {odd!r}; there are {', '.join(_SETTINGS)}")
        settings.setdefault("password", os.environ.get("REDISCLI_AUTH", ""))
        if user:
            settings["username"] = user
        self._key = address.path.encode()
        name, port = _host(host, address)
        secure = address.url.base.lower().startswith("rediss:")
        self._settings = {
            "host": name,
            "port": port,
            "db": _whole(address, "db", 0),
            "ssl": secure,
            "socket_connect_timeout": START_SECONDS,
            # redis-py would ask again by itself, ten times, and what Redis has given out in a lost answer would never be asked for
            "retry": self._redis.retry.Retry(self._redis.backoff.NoBackoff(), 0),
            **{key: value for key, value in settings.items() if value and (secure or not key.startswith("ssl"))},
        }
        # longer than any XREADGROUP blocks
        self._connection = self._redis.Redis(**self._settings, socket_timeout=2 * START_SECONDS)

    def checked(self) -> None:
        """Check that the server answers. Raises: AkrunnerError: it does not, or refuses the login."""
        errors = self._redis.exceptions
        asking = self._redis.Redis(**self._settings, socket_timeout=START_SECONDS)
        try:
            asking.ping()
        except errors.AuthenticationError as e:
            raise self.address.wrong(f"Redis refuses the login ({e}); REDISCLI_AUTH or config= has the password") from None
        except (errors.ConnectionError, errors.TimeoutError) as e:
            raise self.address.wrong(f"no Redis answers at {self.address.hosts} ({e})") from None
        except errors.ResponseError as e:
            raise self.address.wrong(f"{e}") from None
        finally:
            asking.close()

    def called(self, *words: Any) -> Any:
        """Return what a command returns.

        Raises:
            Away: the server cannot be reached, or cannot answer yet.
            AkrunnerError: it refuses the command.
        """
        errors = self._redis.exceptions
        try:
            return self._in_time(lambda: self._connection.execute_command(*words))
        except (errors.ConnectionError, errors.TimeoutError) as e:
            if isinstance(e, errors.AuthenticationError):
                raise self.address.wrong(f"Redis refuses the login ({e})") from None
            raise Away(f"{self.name} is away ({e})") from None

    def _in_time(self, call: Callable[[], _Given]) -> _Given:
        """Return what a call of redis-py returns, which waits for ten seconds for a server that is silent.

        Raises:
            JobTimeoutError: the job's time is over. The call ends when the connection is closed.
        """
        return call() if deadline() is None else waited(call, None, self.name)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _host(host: str, address: Address) -> tuple[str, int]:
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        return host.strip("[]"), _PORT
    number = whole_of(port)
    if number is None or not 0 < number < 1 << 16:
        raise address.wrong(f"{shown(port)} is no port")
    return name.strip("[]"), number


def _whole(address: Address, name: str, default: int) -> int:
    text = address.url.options.get(name, str(default))
    found = whole_of(text)
    if found is None:
        raise address.wrong(f"{name}={shown(text)}: give a whole number")
    return found


#: an entry: its number and its fields; None if it was deleted since it was given out
_Entry = tuple[bytes, dict[bytes, bytes] | None]


class _Entries(_Client):
    """The entries of a stream as a `StreamSource`."""

    ready = True
    ended = False
    bad: BadRows | None = None
    read_as: Mapping[str, Any] = {}

    def __init__(self, address: Address, columns: pa.Schema, values: pa.Schema, meta: Mapping[str, pa.DataType]) -> None:
        super().__init__(address)
        self.schema = columns
        self._values = values
        self._meta = meta
        self._json = address.choice("value", ("fields", "json")) == "json"
        self._group = address.group().encode()
        self._consumer = address.url.options.get("consumer", "akrunner").encode()
        self._start = b"0" if address.choice("start", ("earliest", "latest")) == "earliest" else b"$"
        #: where the entries are that this consumer was given before and never acknowledged; None: all have come
        self._again: bytes | None = b"0"
        self._last = b"0"
        self._taken: list[bytes] = []
        #: the number of the last entry that a save has learned
        self._learned = b"0"

    def check(self) -> None:
        """Check that the stream can be read. Raises: SourceError: it cannot."""
        self.checked()
        kind = self._connection.type(self._key).decode()
        if kind not in ("none", "stream"):
            self._connection.close()
            raise self.address.wrong(f"{self.address.path!r} is a {kind}, not a stream")
        if kind == "none":
            # a stream is there from its first entry on, so that this need not be a mistake
            warnings.warn(
                f"source: {self.name}: there is no stream {self.address.path!r} yet; its first entry is waited for",
                RuntimeWarning,
                stacklevel=2,
            )

    def begin(self, place: Mapping[str, Any] | None) -> None:
        self._learned = same_place(place, "stream", self.address.path)["entry"].encode() if place is not None else b"0"
        self._last = b"0"
        self._taken = []

    def connect(self) -> None:
        begins = self._learned != b"0"
        try:
            if begins:
                self._check_place()
            self._make_group(self._learned if begins else self._start)
            if begins:
                # whatever the group says was given out, the save has learned all before it, and nothing behind
                self.called("XGROUP", "SETID", self._key, self._group, self._learned)
                self._give_back()
        except self._redis.exceptions.ResponseError as e:
            raise SourceError(f"source: {self.name}: {e}") from None
        self._again = None if begins else b"0"

    def _make_group(self, start: bytes) -> None:
        try:
            self.called("XGROUP", "CREATE", self._key, self._group, start, "MKSTREAM")
        except self._redis.exceptions.ResponseError as e:
            if "BUSYGROUP" not in str(e):
                raise

    def _check_place(self) -> None:
        """Check that all entries behind the place of a save are there. Raises: SourceError: some are not."""
        learned = self._learned.decode()
        try:
            newest = self.called("XINFO STREAM", self._key)["last-generated-id"]
        except self._redis.exceptions.ResponseError as e:
            if "no such key" not in str(e):
                raise
            raise gone(
                self.name, f"there is no stream {self.address.path!r}; the save was made at its entry {learned}"
            ) from None
        if _order(newest) < _order(self._learned):
            raise gone(
                self.name,
                f"its newest entry is {newest.decode()}, and the save was made at {learned}: the stream was made anew, or Redis has lost "
                "entries",
            )
        if newest == self._learned or self.called("XRANGE", self._key, "-", self._learned, "COUNT", 1):
            # a stream is trimmed from its beginning on
            return
        raise gone(
            self.name,
            f"entry {learned}, at which the save was made, and all before it were deleted, and so may be some behind it (maxlen=, "
            "XTRIM), or the stream was made anew",
        )

    def _give_back(self) -> None:
        """Acknowledge what this consumer was given: what no save has learned comes again from where the group is now."""
        group = ("XREADGROUP", "GROUP", self._group, self._consumer, "COUNT", TAKEN_ROWS)
        while found := _entries(self.called(*group, "STREAMS", self._key, b"0")):
            self.commit([number for number, _ in found])

    def take(self, seconds: float) -> pa.RecordBatch | None:
        try:
            entries = self._read(seconds)
        except Away:
            # what Redis has given out, and was lost on its way, is behind what has come
            self._again = self._last
            raise
        if not entries:
            return None
        self._last = entries[-1][0]
        self._taken += [number for number, _ in entries]
        # an entry that was deleted since it was given out has no fields
        there = [(number, fields) for number, fields in entries if fields is not None]
        if not there:
            return None
        batch = without_bad(there, self._rows, self.bad, lambda one: (self._where(one[0]), _text_of(one[1])))
        return batch if batch is not None else pa.RecordBatch.from_pylist([], self.schema)

    def _read(self, seconds: float) -> list[_Entry]:
        group = ("XREADGROUP", "GROUP", self._group, self._consumer, "COUNT", TAKEN_ROWS)
        try:
            if self._again is not None:
                found = _entries(self.called(*group, "STREAMS", self._key, self._again))
                self._again = found[-1][0] if found else None
                if found:
                    return found
            return _entries(self.called(*group, "BLOCK", max(1, int(seconds * 1000)), "STREAMS", self._key, ">"))
        except self._redis.exceptions.ResponseError as e:
            raise SourceError(f"source: {self.name}: {e}") from None

    def _where(self, number: bytes) -> str:
        return f"entry {number.decode()} of {self.name}"

    def _rows(self, entries: Sequence[tuple[bytes, dict[bytes, bytes]]], locate: bool) -> pa.RecordBatch:
        numbers, fields = [number for number, _ in entries], [one for _, one in entries]

        def where(row: int) -> str:
            return self._where(numbers[row])

        if self._json:
            lacking = next((row for row, one in enumerate(fields) if _VALUE not in one), None)
            if lacking is not None:
                raise SourceError(f"source: {where(lacking)} has no field 'value' with its JSON (value=json)")
            read = columns_of_json([one[_VALUE] for one in fields], self._values, where if locate else None)
            columns = dict(zip(read.schema.names, read.columns))
        else:
            columns = {field.name: _column(field, fields, where if locate else None) for field in self._values}
        if "entry" in self._meta:
            columns["entry"] = pa.array([number.decode() for number in numbers])
        made = [asked(columns[field.name], field, 0) for field in self.schema]
        return pa.RecordBatch.from_arrays(made, schema=self.schema)

    def position(self) -> Any:
        taken, self._taken = self._taken, []
        return taken or None

    def reached(self) -> Mapping[str, Any]:
        return {"stream": self.address.path, "entry": max(self._learned, self._last, key=_order).decode()}

    def commit(self, position: Any) -> None:
        try:
            for numbers in _cut(position, 1000):
                self.called("XACK", self._key, self._group, *numbers)
        except self._redis.exceptions.ResponseError as e:
            raise SourceError(f"source: {self.name}: what was read cannot be acknowledged: {e}") from None


def _text_of(fields: dict[bytes, bytes]) -> bytes:
    """Return what an entry has, for a person: its JSON, or its fields."""
    return fields[_VALUE] if list(fields) == [_VALUE] else b", ".join(name + b"=" + value for name, value in fields.items())


def _order(number: bytes) -> tuple[int, ...]:
    """Return the number of an entry in a form that has its order: 12-3 comes before 100-0."""
    return tuple(int(part) for part in number.split(b"-"))


def _cut(values: Sequence[bytes], size: int) -> list[Sequence[bytes]]:
    return [values[at : at + size] for at in range(0, len(values), size)]


def _entries(answer: Any) -> list[Any]:
    """Return the entries, (number, fields), of the only stream in an answer to XREADGROUP."""
    if not answer:
        return []
    streams = list(answer.values()) if isinstance(answer, dict) else [entries for _, entries in answer]
    found = streams[0]
    # with the third protocol, redis-py puts a stream's entries into one more list
    return list(found[0] if found and isinstance(found[0], list) else found)


def _column(field: pa.Field, fields: list[dict[bytes, bytes]], where: Where | None) -> pa.Array:
    name = field.name.encode()
    octets = pa.array([one.get(name) for one in fields], pa.binary())
    if is_octets(field.type):
        return asked(octets, field, 0)
    try:
        return asked(asked(octets, pa.field(field.name, pa.string()), 0), field, 0)
    except SourceError as e:
        if where is None:
            raise
        wrong = first_wrong(
            len(octets),
            lambda start, stop: asked(octets[start:stop].cast(pa.string()), field, 0),
            (SourceError, pa.ArrowException),
        )
        raise SourceError(f"source: {where(wrong)}: {str(e).rpartition(f'column {field.name!r}: ')[2]}") from None


def _check_columns(address: Address, schema: pa.Schema) -> None:
    """Check that rows can become entries. Raises: SinkError: they cannot."""
    if address.choice("value", ("fields", "json")) == "json":
        check_json(schema)
        return
    odd = next((field for field in schema if is_list(field.type) or pa.types.is_nested(field.type)), None)
    if odd is not None:
        raise address.wrong(f"column {odd.name!r} is {odd.type}, and a field of an entry is text: add ?value=json to the URL")


class _Output(_Client):
    """A stream as a `StreamSink`."""

    def __init__(self, address: Address, schema: pa.Schema) -> None:
        super().__init__(address)
        _check_columns(address, schema)
        self.path = address.name
        self.rows = 0
        self._json = JsonValues(schema) if address.choice("value", ("fields", "json")) == "json" else None
        self._most = _whole(address, "maxlen", 0)
        self.checked()

    def write_rows(self, batch: pa.RecordBatch) -> None:
        if self._json is not None:
            entries: list[list[bytes]] = [[_VALUE, value] for value in self._json.of(batch)]
        else:
            entries = _fields(batch)
        for at in range(0, len(entries), 1000):
            self._add(entries[at : at + 1000])
        self.rows += batch.num_rows

    def _add(self, entries: list[list[bytes]]) -> None:
        """Add entries; returns once Redis has them.

        Raises:
            WriteError: it does not take them, or is away for too long.
            JobTimeoutError: the job's time is over.
        """
        errors = self._redis.exceptions
        since, told = time.monotonic(), False
        head = ("XADD", self._key, *(("MAXLEN", "~", self._most) if self._most else ()), "*")
        while True:
            # all of them, or none: a try that is repeated doubles them only if the answer to the first was lost
            pipeline = self._connection.pipeline(transaction=True)
            for entry in entries:
                # redis-py has no command that adds many entries
                pipeline.execute_command(*head, *entry)
            try:
                self._in_time(pipeline.execute)
                return
            except (errors.ConnectionError, errors.TimeoutError) as e:
                if time.monotonic() - since >= self.address.wait:
                    raise WriteError(
                        f"output: {self.path} was away for {self.address.wait:g} s ({e}; ?wait= says how long it is waited for)"
                    ) from None
                if not told:
                    told = True
                    warnings.warn(
                        f"output: {self.path} is away ({e}); it is waited for, {self.address.wait:g} s at most",
                        RuntimeWarning,
                        stacklevel=2,
                    )
                check_time(self.path)
                time.sleep(_AGAIN_SECONDS)
            except errors.RedisError as e:
                raise WriteError(f"output: {self.path} does not take the rows: {e}") from None

    def flush(self) -> None:
        """Do nothing: Redis has all rows that were written."""

    def close(self) -> None:
        if self._json is not None:
            self._json.close()
        super().close()


def _fields(batch: pa.RecordBatch) -> list[list[bytes]]:
    """Return the fields and values of each row's entry; a null has no field."""
    names = [name.encode() for name in batch.schema.names]
    columns = [
        (column if is_octets(column.type) else column.cast(pa.string()).cast(pa.binary())).to_pylist()
        for column in batch.columns
    ]
    made = [[word for name, value in zip(names, row) if value is not None for word in (name, value)] for row in zip(*columns)]
    if not all(made):
        raise WriteError(
            "output: a row in which every value is null cannot become an entry of Redis; add ?value=json to the URL"
        )
    return made
