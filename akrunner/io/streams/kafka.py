"""Topics of Apache Kafka.

::

    kafka://broker:9092,other:9092/topic?group=g      messages -> rows; a group's offsets are the positions
    kafka://broker:9092/topic?key=id                  rows -> messages

librdkafka reads and writes them, in threads of its own. Its settings, with passwords, are in the file that `config=` names.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from typing import Any

import pyarrow as pa

from akrunner.errors import AkrunnerError, SinkError, SourceError, WriteError
from akrunner.io.casts import asked
from akrunner.io.streams.arriving import Arriving
from akrunner.io.streams.base import START_SECONDS, TAKEN_ROWS, Away, OpenFile, Place, StreamSink, client, with_meta
from akrunner.io.streams.values import JsonValues, check_json, columns_of_json
from akrunner.io.table import TableSource
from akrunner.schema import Schema
from akrunner.wire.near import nearest

_VARIABLE = "KAFKA_CONFIG"
_IN = ("group", "value", "with", "start", "idle", "wait", "config")
_OUT = ("key", "value", "wait", "config")
#: what a message has beside its value
_META: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "timestamp": pa.timestamp("ms", "UTC"),
    "partition": pa.int32(),
    "offset": pa.int64(),
}
_VALUE = pa.schema([("value", pa.binary())])
#: a script may work for an hour on the rows that it has; a host that is dead is noticed earlier, by its heartbeats
_LONGEST_POLL_MS = 3_600_000
#: the most bytes that librdkafka fetches ahead, and the most bytes that are under way to the brokers
_AHEAD_KIB = 32 << 10
_UNDER_WAY = 32 << 20
_FIRST_WAIT = 0.25


class _Kafka:
    """Kafka as a `StreamSystem`."""

    has_files = False

    def open(self, url: str, schema: Schema | None, flush_seconds: float, open_file: OpenFile) -> TableSource:
        place = _place(url, _IN, SourceError, "source")
        meta = place.chosen("with", _META)
        raw = place.choice("value", ("json", "raw")) == "raw"
        if raw:
            schema = schema if schema is not None else Schema.from_arrow(_VALUE)
            _check_raw(schema.arrow, meta, place)
        _, columns = with_meta(schema, meta, place)
        source = _Messages(place, columns, meta, raw, flush_seconds)
        arriving = Arriving(source, place.wait, place.seconds("idle", None))
        source.check()
        return TableSource(columns, arriving.batches, place.name, stop=arriving.stop, arriving=arriving)

    def check_output(self, url: str, schema: pa.Schema | None) -> None:
        place = _place(url, _OUT, SinkError, "output")
        place.settings(_VARIABLE)
        if schema is not None:
            _check_columns(place, schema)

    def output(self, url: str, schema: pa.Schema) -> StreamSink:
        return _Output(_place(url, _OUT, SinkError, "output"), schema)


SYSTEM = _Kafka()


def _place(url: str, options: Sequence[str], kind: type[AkrunnerError], parameter: str) -> Place:
    place = Place.of(url, options, kind, parameter)
    if "@" in place.hosts:
        raise place.wrong(f"passwords do not go into the URL: write them to a file of settings, config=FILE or {_VARIABLE}")
    if not place.hosts or not place.path or "/" in place.path:
        raise place.wrong("write kafka://broker[:port][,broker[:port]]/topic")
    return place


def _check_raw(values: pa.Schema, meta: Mapping[str, pa.DataType], place: Place) -> None:
    odd = [name for name in values.names if name != "value" and name not in meta]
    if odd:
        raise place.wrong(f"with value=raw there are the columns value, and those of with=; input_schema= has {odd[0]!r}")


class _Client:
    """What a consumer and a producer have in common: settings, and whether the brokers are there."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.name = place.name
        self._kafka = client("confluent_kafka", "kafka")
        hosts = [host if _has_port(host) else f"{host}:9092" for host in place.hosts.split(",")]
        self._settings: dict[str, Any] = {"bootstrap.servers": ",".join(hosts), **place.settings(_VARIABLE)}
        # librdkafka would print every try to reach a broker on stderr
        self._settings["log_level"] = 2
        self._settings["error_cb"] = self._note
        self._down: str | None = None
        self._fatal: str | None = None

    def _note(self, error: Any) -> None:
        kinds = self._kafka.KafkaError
        if error.code() in (kinds._AUTHENTICATION, kinds._SSL) or error.fatal():
            self._fatal = self.hidden(error.str())
        elif error.code() == kinds._ALL_BROKERS_DOWN:
            self._down = self.hidden(error.str())

    def hidden(self, text: str) -> str:
        """Return a text of librdkafka's without the values of secret settings."""
        for name, value in self._settings.items():
            if (
                isinstance(value, str)
                and len(value) > 3
                and any(word in name for word in ("password", "secret", ".pem", "jaas"))
            ):
                text = text.replace(value, "***")
        return text

    def made(self, kind: str, more: Mapping[str, Any]) -> Any:
        """Return a client of librdkafka. Raises: AkrunnerError: a setting is wrong."""
        try:
            return getattr(self._kafka, kind)({**self._settings, **more})
        except self._kafka.KafkaException as e:
            raise self._place.wrong(f"its settings: {self.hidden(e.args[0].str())}") from None

    def check_topic(self, kafka: Any, must_be: bool) -> None:
        """Check that the brokers answer, and know the topic. Raises: AkrunnerError: they do not."""
        try:
            found = kafka.list_topics(self._place.path, timeout=START_SECONDS).topics[self._place.path]
        except self._kafka.KafkaException as e:
            if self._fatal is not None:
                raise self._place.wrong(
                    f"the broker refused the login: {self._fatal}; config= names the file of settings"
                ) from None
            raise self._place.wrong(
                f"no broker has answered within {START_SECONDS:g} s at {self._settings['bootstrap.servers']} "
                f"({self.hidden(e.args[0].str())}); is it the right address, and does it need settings (config=FILE)?"
            ) from None
        error = found.error
        if error is None or (error.code() == self._kafka.KafkaError.UNKNOWN_TOPIC_OR_PART and not must_be):
            return
        if error.code() == self._kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
            others = [name for name in kafka.list_topics(timeout=START_SECONDS).topics if not name.startswith("__")]
            raise self._place.wrong(f"there is no topic {self._place.path!r}{nearest(self._place.path, others)}")
        if error.code() != self._kafka.KafkaError.LEADER_NOT_AVAILABLE:
            raise self._place.wrong(self.hidden(error.str()))


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdecimal() and not host.endswith("]")


class _Messages(_Client):
    """The messages of a topic as a `StreamSource`."""

    def __init__(
        self, place: Place, columns: pa.Schema, meta: Mapping[str, pa.DataType], raw: bool, flush_seconds: float
    ) -> None:
        super().__init__(place)
        self.schema = columns
        self._meta = meta
        self._raw = raw
        self._flush = flush_seconds
        self._values = pa.schema([field for field in columns if field.name not in meta])
        self._group = place.group()
        self._start = place.choice("start", ("earliest", "latest"))
        self._consumer: Any = None
        self._lock = threading.Lock()
        #: partition -> how often it was given to this consumer, while it has it
        self._has: dict[int, int] = {}
        self._given = 0
        #: partition -> (that number, the offset of the next message), since the last `position`
        self._next: dict[int, tuple[int, int]] = {}
        self._probe = 0.0

    def check(self) -> None:
        """Check that the topic can be read. Raises: SourceError: it cannot."""
        consumer = self._made()
        try:
            self.check_topic(consumer, True)
        finally:
            consumer.close()

    def _made(self) -> Any:
        return self.made(
            "Consumer",
            {
                "auto.offset.reset": self._start,
                "max.poll.interval.ms": _LONGEST_POLL_MS,
                "queued.max.messages.kbytes": _AHEAD_KIB,
                **{name: value for name, value in self._settings.items() if name != "error_cb"},
                "group.id": self._group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
            },
        )

    @property
    def ready(self) -> bool:
        return self._given > 0

    def connect(self) -> None:
        self._consumer = self._made()
        self._consumer.subscribe([self._place.path], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)

    def _assigned(self, consumer: Any, partitions: Sequence[Any]) -> None:
        with self._lock:
            self._given += 1
            self._has.update({one.partition: self._given for one in partitions})

    def _revoked(self, consumer: Any, partitions: Sequence[Any]) -> None:
        with self._lock:
            for one in partitions:
                self._has.pop(one.partition, None)
                self._next.pop(one.partition, None)

    def take(self, seconds: float) -> pa.RecordBatch | None:
        self._check_there()
        found = self._consumer.consume(1, seconds)
        if found:
            self._down = None
            found += self._consumer.consume(TAKEN_ROWS - 1, self._flush)
        errors = [error for error in map(methodcaller("error"), found) if error is not None]
        if errors:
            self._check_error(errors[0])
            found = [one for one in found if one.error() is None]
        return self._rows(found) if found else None

    def _check_there(self) -> None:
        """Raise Away if the brokers are away, and what librdkafka itself takes for the end."""
        if self._fatal is not None:
            raise SourceError(f"source: {self.name}: {self._fatal}")
        if self._down is None:
            return
        try:
            # nothing else says that a broker is back while no message comes
            self._consumer.list_topics(self._place.path, timeout=1)
        except self._kafka.KafkaException:
            # the callbacks of a rebalance come here, too; messages, which wait for the next call, do not
            raise Away(f"{self.name} is away ({self._down})") from None
        self._down = None

    def _check_error(self, error: Any) -> None:
        kinds = self._kafka.KafkaError
        if error.code() == kinds.UNKNOWN_TOPIC_OR_PART:
            raise SourceError(f"source: {self.name}: the topic is gone")
        if error.code() in (kinds._ALL_BROKERS_DOWN, kinds._TRANSPORT):
            self._down = self.hidden(error.str())
        elif not error.retriable() and error.code() != kinds._PARTITION_EOF:
            raise SourceError(f"source: {self.name}: {self.hidden(error.str())}")

    def _rows(self, found: list[Any]) -> pa.RecordBatch:
        partitions = list(map(methodcaller("partition"), found))
        offsets = list(map(methodcaller("offset"), found))
        values = list(map(methodcaller("value"), found))

        def where(row: int) -> str:
            return f"the message at offset {offsets[row]} of partition {partitions[row]} of {self.name}"

        if self._raw:
            columns: dict[str, pa.Array] = {"value": pa.array(values, pa.binary())}
        else:
            read = columns_of_json(values, self._values, where)
            columns = dict(zip(read.schema.names, read.columns))
        draw: dict[str, Callable[[], pa.Array]] = {
            "key": lambda: pa.array(list(map(methodcaller("key"), found)), pa.binary()),
            "timestamp": lambda: pa.array(
                [at if kind else None for kind, at in map(methodcaller("timestamp"), found)], _META["timestamp"]
            ),
            "partition": lambda: pa.array(partitions, pa.int32()),
            "offset": lambda: pa.array(offsets, pa.int64()),
        }
        columns |= {name: draw[name]() for name in self._meta}
        made = [asked(columns[field.name], field, 0) if field.name in columns else None for field in self.schema]
        batch = pa.RecordBatch.from_arrays(made, schema=self.schema)
        with self._lock:
            # the last message of each partition wins
            last = dict(zip(partitions, offsets))
            self._next |= {one: (self._has[one], offset + 1) for one, offset in last.items() if one in self._has}
        return batch

    def position(self) -> Any:
        with self._lock:
            position, self._next = self._next, {}
        return position or None

    def commit(self, position: Any) -> None:
        with self._lock:
            # a partition that another consumer has got meanwhile has its own position there
            ours = {one: offset for one, (given, offset) in position.items() if self._has.get(one) == given}
        if not ours or self._consumer is None:
            return
        topic = self._place.path
        offsets = [self._kafka.TopicPartition(topic, one, offset) for one, offset in ours.items()]
        try:
            stored = self._consumer.commit(offsets=offsets, asynchronous=False)
        except self._kafka.KafkaException as e:
            self._not_stored(e.args[0])
            return
        for one in stored:
            if one.error is not None:
                self._not_stored(one.error)

    def _not_stored(self, error: Any) -> None:
        kinds = self._kafka.KafkaError
        if error.code() in (kinds.ILLEGAL_GENERATION, kinds.UNKNOWN_MEMBER_ID, kinds.REBALANCE_IN_PROGRESS, kinds._NO_OFFSET):
            warnings.warn(
                f"source: {self.name}: another consumer of group {self._group!r} has taken over partitions; some rows come "
                "twice",
                RuntimeWarning,
                stacklevel=2,
            )
            return
        if error.retriable() or error.code() in (
            kinds._TRANSPORT,
            kinds._ALL_BROKERS_DOWN,
            kinds._TIMED_OUT,
            kinds._WAIT_COORD,
            kinds.COORDINATOR_NOT_AVAILABLE,
            kinds.NOT_COORDINATOR,
        ):
            raise Away(f"{self.name} is away, and does not store the group's offsets ({self.hidden(error.str())})")
        raise SourceError(
            f"source: {self.name}: the offsets of group {self._group!r} cannot be stored: {self.hidden(error.str())}"
        )

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()


def _check_columns(place: Place, schema: pa.Schema) -> None:
    """Check that rows can become messages. Raises: SinkError: they cannot."""
    key = place.url.options.get("key")
    if key is not None and key not in schema.names:
        raise place.wrong(f"key={key}: the rows have no such column{nearest(key, schema.names)}")
    if place.choice("value", ("json", "raw")) == "json":
        check_json(schema)
        return
    if "value" not in schema.names:
        raise place.wrong("with value=raw a column 'value' has the messages' bytes or text, and the rows have none")
    others = [name for name in schema.names if name not in ("value", key)]
    if others:
        raise place.wrong(f"with value=raw a message has the column 'value', and key= as its key; {others[0]!r} would be lost")


class _Output(_Client):
    """A topic as a `StreamSink`."""

    def __init__(self, place: Place, schema: pa.Schema) -> None:
        super().__init__(place)
        _check_columns(place, schema)
        self.path = place.name
        self.rows = 0
        self._key = place.url.options.get("key")
        self._json = JsonValues(schema) if place.choice("value", ("json", "raw")) == "json" else None
        self._bytes = 0
        self._failed: str | None = None
        self._wait = place.wait
        self._producer = self.made(
            "Producer",
            {
                "linger.ms": 5,
                "compression.type": "lz4",
                **{name: value for name, value in self._settings.items() if name != "error_cb"},
                # a try that is repeated neither doubles a message nor changes their order
                "enable.idempotence": True,
                "message.timeout.ms": int(self._wait * 1000),
                # without a call of Python for every message that arrived
                "delivery.report.only.error": True,
            },
        )
        self.check_topic(self._producer, False)

    def write_rows(self, batch: pa.RecordBatch) -> None:
        values = self._json.of(batch) if self._json is not None else _octets(batch.column("value"))
        if self._key is None:
            messages: list[dict[str, Any]] = [{"value": value} for value in values]
        else:
            keys = _octets(batch.column(self._key))
            messages = [{"key": key, "value": value} for key, value in zip(keys, values)]
        for at in range(0, len(messages), TAKEN_ROWS):
            self._send(messages[at : at + TAKEN_ROWS])
        self.rows += batch.num_rows

    def _send(self, messages: list[dict[str, Any]]) -> None:
        self._bytes += sum(len(one["value"] or b"") for one in messages)
        self._producer.produce_batch(self._place.path, messages, on_delivery=self._delivered)
        refused = next((one["_error"] for one in messages if "_error" in one), None)
        if refused is not None:
            raise WriteError(f"output: {self.path} does not take a message: {self.hidden(refused.str())}")
        self._producer.poll(0)
        if self._bytes >= _UNDER_WAY:
            self.flush()
        self._check()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed = self._failed or self.hidden(error.str())

    def _check(self) -> None:
        if self._failed is not None or self._fatal is not None:
            raise WriteError(f"output: {self.path} has not taken all rows: {self._failed or self._fatal}")

    def flush(self) -> None:
        until, told = time.monotonic() + self._wait + START_SECONDS, False
        while self._producer.flush(1.0):
            self._check()
            if self._down is not None and not told:
                told = True
                warnings.warn(
                    f"output: {self.path} is away ({self._down}); it is waited for, {self._wait:g} s at most",
                    RuntimeWarning,
                    stacklevel=2,
                )
            if time.monotonic() > until:
                raise WriteError(f"output: {self.path} was away for {self._wait:g} s (?wait= says how long it is waited for)")
        self._bytes, self._down = 0, None
        self._check()

    def close(self) -> None:
        if self._json is not None:
            self._json.close()
        # what was not flushed is not waited for
        self._producer.purge()
        self._producer.flush(1.0)


def _octets(column: pa.Array) -> list[bytes | None]:
    """Return the bytes, or the text as UTF-8, of a column's values."""
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return list(column.to_pylist())
    found: list[bytes | None] = column.cast(pa.string()).cast(pa.binary()).to_pylist()
    return found
