"""Topics of Apache Kafka.

::

    kafka://broker:9092,other:9092/topic?group=g      messages -> rows; a group's offsets are the positions
    kafka://broker:9092/topic?key=id                  rows -> messages (`kafka_output`)

librdkafka reads and writes them, in threads of its own. Its settings, with passwords, are in the file that `config=` names.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from typing import Any

import pyarrow as pa

from akrunner.errors import ReadError, SinkError, SourceError
from akrunner.foreign import redacted
from akrunner.io.bad_rows import BadRows
from akrunner.io.casts import asked
from akrunner.io.limits import waited
from akrunner.io.sql import heard
from akrunner.io.streams.arriving import table_of
from akrunner.io.streams.avro_values import AvroColumns
from akrunner.io.streams.base import (
    START_SECONDS,
    TAKEN_ROWS,
    Address,
    Away,
    OpenFile,
    StreamSink,
    StreamSource,
    check_loop,
    gone,
    same_place,
    with_meta,
)
from akrunner.io.streams.kafka_client import PORT, VARIABLE, Client, brokers, kafka_address
from akrunner.io.streams.kafka_ends import Ends
from akrunner.io.streams.kafka_output import Output, Transactions, check_columns
from akrunner.io.streams.registry import check_options
from akrunner.io.streams.values import NotTheirs, Where, columns_of_json, without_bad
from akrunner.io.table import TableSource
from akrunner.schema import Schema

_IN = ("group", "value", "registry", "subject", "schema", "with", "start", "idle", "wait", "config")
_OUT = ("key", "value", "registry", "subject", "schema", "transactional_id", "wait", "config")
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
#: librdkafka's own milliseconds until a group takes a silent consumer for dead, and seconds after which it is told that one is
#: waited for
_SESSION_MS, _TOLD_SECONDS = 45_000, 60.0
#: seconds that brokers have to take note that a consumer leaves its group
_LEAVE_SECONDS = 2.0
#: the most bytes that librdkafka fetches ahead
_AHEAD_KIB = 32 << 10

#: makes columns of messages' values: (values, says where a value is by its number, if that is asked for) -> the columns
ReadValues = Callable[[Sequence[bytes | None], Where | None], pa.RecordBatch]


class _Kafka:
    """Kafka as a `StreamSystem`."""

    has_files = False

    def open(self, url: str, schema: Schema | None, flush_seconds: float, open_file: OpenFile) -> TableSource:
        address = kafka_address(url, _IN, SourceError, "source")
        check_options(address)
        meta = address.chosen("with", _META)
        kind = address.choice("value", ("json", "raw", "avro"))
        address.group()
        given = schema.arrow if schema is not None else None
        if kind == "raw":
            given = given if given is not None else _VALUE
            _check_raw(given, meta, address)
        avro = AvroColumns(address) if kind == "avro" else None
        if avro is not None and given is None:
            given = avro.schema
        values, columns = with_meta(given, meta, address)
        read: ReadValues = _raw
        begin = _nothing
        if avro is not None:
            read, begin = functools.partial(avro.columns, values), avro.begin
        elif kind == "json":
            read = functools.partial(_json, values)
        source = Messages(address, columns, meta, read, begin, flush_seconds)
        return table_of(source, address, source.check)

    def check_output(self, url: str, schema: pa.Schema | None, source: str) -> None:
        address = _output_address(url)
        address.settings(VARIABLE)
        if schema is not None:
            check_columns(address, schema)
        if source.partition("://")[0].lower() == "kafka":
            check_loop(kafka_address(source, _IN, SourceError, "source"), address, PORT)
        if "transactional_id" in address.url.options:
            if source.partition("://")[0].lower() != "kafka":
                raise _not_kafka(address, redacted(source.partition("?")[0]))
            _check_together(Client(kafka_address(source, _IN, SourceError, "source")), Client(address))

    def output(self, url: str, schema: pa.Schema, source: StreamSource | None) -> StreamSink:
        address = _output_address(url)
        if isinstance(source, Messages):
            check_loop(source.address, address, PORT)
        if "transactional_id" not in address.url.options:
            return Output(address, schema)
        if not isinstance(source, Messages):
            raise _not_kafka(address, source.name if source is not None else "no stream")
        _check_together(source, Client(address))
        return Transactions(address, schema, source)


SYSTEM = _Kafka()


def _output_address(url: str) -> Address:
    address = kafka_address(url, _OUT, SinkError, "output")
    check_options(address)
    if address.url.options.get("transactional_id") == "":
        raise address.wrong("transactional_id= is empty: give a name that no job has that runs at the same time")
    return address


def _check_raw(values: pa.Schema, meta: Mapping[str, pa.DataType], address: Address) -> None:
    odd = [name for name in values.names if name != "value" and name not in meta]
    if odd:
        raise address.wrong(f"with value=raw there are the columns value, and those of with=; input_schema= has {odd[0]!r}")


def _raw(values: Sequence[bytes | None], where: Where | None) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, pa.binary())], _VALUE)


def _nothing() -> None:
    pass


def _json(schema: pa.Schema, values: Sequence[bytes | None], where: Where | None) -> pa.RecordBatch:
    return columns_of_json(values, schema, where)


def _not_kafka(address: Address, source: str) -> Exception:
    return address.wrong(
        f"transactional_id= commits rows and the offsets of the input in one transaction of Kafka, and the input is {source}: "
        "read from kafka://, or leave it out, and each row comes at least once"
    )


def _check_together(source: Client, output: Client) -> None:
    """Check that an input and an output can be in one transaction. Raises: SinkError: they cannot."""
    address = output.address
    if source.settings.get("isolation.level") == "read_uncommitted":
        raise address.wrong(
            "transactional_id= needs an input that is read with isolation.level=read_committed, and the settings of "
            f"{source.name} say read_uncommitted"
        )
    if brokers(source.address) == brokers(address):
        return
    one, other = _cluster(source), _cluster(output)
    if one is None or one != other:
        raise address.wrong(
            f"transactional_id= needs the input in the same cluster, as a transaction is in one: {source.name} is in "
            f"{one or 'a cluster without a name'}, this topic in {other or 'a cluster without a name'}"
        )


def _cluster(client: Client) -> str | None:
    """Return the name that the brokers give their cluster. Raises: AkrunnerError: none answers."""
    asking = client.made("Producer", {})
    client.check_topic(asking, False)
    found: str | None = asking.list_topics(client.address.path, timeout=START_SECONDS).cluster_id
    return found


class Messages(Client):
    """The messages of a topic as a `StreamSource`.

    Args:
        address: the topic's URL.
        columns: the columns of the rows.
        meta: those that are not in the messages' values, with their own types.
        read: makes columns of values.
        begin: called before `read` gets the values of new messages.
        flush_seconds: how long a message may wait for more messages.
    """

    ended = False
    bad: BadRows | None = None
    read_as: Mapping[str, Any] = {}

    def __init__(
        self,
        address: Address,
        columns: pa.Schema,
        meta: Mapping[str, pa.DataType],
        read: ReadValues,
        begin: Callable[[], None],
        flush_seconds: float,
    ) -> None:
        super().__init__(address)
        self.schema = columns
        self._meta = meta
        self._read = read
        self._begin_reading = begin
        self._flush = flush_seconds
        self._group = address.group()
        self._start = address.choice("start", ("earliest", "latest"))
        self._consumer: Any = None
        #: held while offsets are stored, for which a consumer must not be closed
        self._storing = threading.Lock()
        self._lock = threading.Lock()
        self._ready = False
        #: partition -> how often it was given to this consumer, while it has it
        self._has: dict[int, int] = {}
        self._given = 0
        #: partition -> the offset at which it begins when it is given to this consumer for the first time
        self._begin: dict[int, int] = {}
        #: whether it begins at a place of a save, from which no rows may be left out
        self._strict = False
        #: whether that save names every partition that there was, also those without a message
        self._names_all = False
        #: partition -> the time, in ms, of the message before that offset, by which a topic that was made anew is noticed
        self._times: dict[int, int] = {}
        #: partition -> the offset of the next message, as far as that is known
        self._at: dict[int, int] = {}
        #: partition -> (that number, the offset of the next message), since the last `position`
        self._next: dict[int, tuple[int, int]] = {}
        #: messages that were taken and are no rows yet, as a schema registry was away
        self._waiting: list[Any] = []
        #: what is called before partitions are given up; None: rows may come twice
        self.settle: Callable[[], None] | None = None
        #: this consumer's membership in its group
        self._member: Any = None
        #: partition -> the offset of the next message, where it is not stored; whether such a partition was lost
        self._open: dict[int, int] = {}
        self._lost = False
        #: partitions of which the brokers have not told where they begin
        self._unsure: set[int] = set()
        self._told_ends = Ends(self.name)
        #: when it asked to be given partitions, and whether it was told that this takes long
        self._asked, self._told = 0.0, False

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
                **{name: value for name, value in self.settings.items() if name != "error_cb"},
                "group.id": self._group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                # by which `ready` knows that nothing is on its way
                "enable.partition.eof": True,
                # else librdkafka would pass over messages that are deleted
                **({"auto.offset.reset": "error"} if self._strict else {}),
            },
        )

    @property
    def ready(self) -> bool:
        with self._lock:
            return self._ready and self._told_ends.reached(self._has, self._at)

    def begin(self, place: Mapping[str, Any] | None) -> None:
        offsets = same_place(place, "topic", self.address.path)["offsets"] if place is not None else {}
        self._begin = {int(partition): offset for partition, offset in offsets.items()}
        times = place.get("times", {}) if place is not None else {}
        self._times = {int(partition): at for partition, at in times.items()}
        self._strict = place is not None
        self._names_all = place is not None and bool(place.get("every"))
        with self._lock:
            self._has, self._next, self._at = {}, {}, dict(self._begin)
            self._open, self._lost, self._unsure = {}, False, set()
        self._waiting = []

    def connect(self) -> None:
        with self._storing:
            before, self._consumer = self._consumer, None
        if before is not None:
            _left(before)
        self._ready = False
        self._asked, self._told = time.monotonic(), False
        self._consumer = self._made()
        self._check_place()
        self._consumer.subscribe([self.address.path], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._gone)

    def _check_place(self) -> None:
        """Check that all messages behind the place of a save are there.

        Raises:
            Away: the brokers cannot be reached.
            SourceError: some are not.
        """
        last: dict[int, int] = {}
        for partition, offset in sorted(self._begin.items()):
            low, high = self._ends(partition)
            if low > offset:
                raise gone(
                    self.name,
                    f"partition {partition} now begins at offset {low}, and the save was made at {offset}: {low - offset:,} messages were "
                    "deleted (retention.ms, retention.bytes of the topic)",
                )
            if high < offset:
                raise gone(
                    self.name,
                    f"partition {partition} ends at offset {high}, and the save was made at {offset}: the topic was made anew, or cut off",
                )
            if partition in self._times and low < offset:
                last[partition] = offset - 1
        if last:
            self._check_last(last)

    def _ends(self, partition: int) -> tuple[int, int]:
        """Return the first offset of a partition and the one behind its last. Raises: as `_check_place`."""
        kinds = self.kafka.KafkaError
        try:
            low, high = self._consumer.get_watermark_offsets(
                self.kafka.TopicPartition(self.address.path, partition), START_SECONDS
            )
        except self.kafka.KafkaException as e:
            if e.args[0].code() in (kinds.UNKNOWN_TOPIC_OR_PART, kinds._UNKNOWN_PARTITION, kinds._UNKNOWN_TOPIC):
                raise gone(self.name, f"there is no partition {partition}: the topic was deleted, or made anew") from None
            raise Away(f"{self.name} is away ({self.hidden(e.args[0].str())})") from None
        return low, high

    def _check_last(self, last: dict[int, int]) -> None:
        """Check that the last messages before a place are those that were read then; some may have been deleted.

        Args:
            last: partition -> the offset of the message.
        Raises:
            Away: no message has come from a partition.
            SourceError: a message is another one.
        """
        for partition, offset in last.items():
            # one after the other: what waits in one partition would keep the messages of the others back
            self._consumer.assign([self.kafka.TopicPartition(self.address.path, partition, offset)])
            try:
                message = self._first(partition)
            finally:
                self._consumer.unassign()
            if message is not None and message.offset() == offset and message.timestamp()[1] != self._times[partition]:
                raise gone(
                    self.name,
                    f"the message at offset {offset} of partition {partition} is not the one that was read before: the topic was made anew",
                )

    def _first(self, partition: int) -> Any:
        """Return the first message that comes from a partition; None if the one that was asked for was deleted.

        Raises:
            Away: none has come within `START_SECONDS`.
            SourceError: the topic cannot be read.
        """
        end = time.monotonic() + START_SECONDS
        while (left := end - time.monotonic()) > 0:
            for message in self._consumer.consume(1, left):
                error = message.error()
                if error is None:
                    if message.partition() == partition:
                        return message
                elif error.code() == self.kafka.KafkaError._AUTO_OFFSET_RESET:
                    return None
                else:
                    self._check_error(error, message.partition())
        raise Away(f"{self.name} is away (no message has come from partition {partition} within {START_SECONDS:g} s)")

    def _assigned(self, consumer: Any, partitions: Sequence[Any]) -> None:
        begin, at = self._beginnings(consumer, partitions)
        with self._lock:
            self._ready = True
            self._told_ends.came()
            self._told_ends.forget(one.partition for one in partitions)
            self._given += 1
            self._has.update({one.partition: self._given for one in partitions})
            self._at.update({one: offset for one, offset in {**at, **begin}.items() if offset >= 0})
            # stored for the group, too, when all tasks have saved next
            self._next |= {one: (self._given, offset) for one, offset in begin.items() if offset >= 0}
        if begin:
            for one in partitions:
                one.offset = begin.get(one.partition, one.offset)
            gradual = "cooperative" in str(self.settings.get("partition.assignment.strategy", ""))
            (consumer.incremental_assign if gradual else consumer.assign)(partitions)

    def _beginnings(self, consumer: Any, partitions: Sequence[Any]) -> tuple[dict[int, int], dict[int, int]]:
        """Return the offsets at which partitions begin.

        Returns:
            (those that are not where librdkafka begins by itself, the others, as far as they are known).
        """
        numbers = [one.partition for one in partitions]
        self._unsure.difference_update(numbers)
        begin = {number: self._begin.pop(number) for number in numbers if number in self._begin}
        new = [one for one in partitions if one.partition not in begin]
        at: dict[int, int] = {}
        # the group's offsets are those of the newest save, and this one may be older: what it does not name, it has not read. A save
        # of an earlier version names only partitions from which messages came: of the others the group knows more
        anew = self._strict and self._names_all and not self._ready
        try:
            stored = {one.partition: one.offset for one in consumer.committed(new, START_SECONDS)} if new and not anew else {}
            for one in new:
                low, high = consumer.get_watermark_offsets(one, START_SECONDS)
                offset = stored.get(one.partition, -1)
                # in a save, also if no message comes: one that comes later must not be left out by who goes back to the save
                if low <= offset <= high or (self._strict and offset >= 0):
                    at[one.partition] = offset
                elif self._strict or self._start == "latest":
                    # else a job that is started again would leave out what has come to such a partition since
                    begin[one.partition] = low if self._strict else high
                else:
                    at[one.partition] = low
        except self.kafka.KafkaException:
            unknown = {one.partition for one in new if one.partition not in begin and one.partition not in at}
            if anew:
                begin |= dict.fromkeys(unknown, self.kafka.OFFSET_BEGINNING)
            else:
                self._unsure |= unknown
        return begin, at

    def _revoked(self, consumer: Any, partitions: Sequence[Any]) -> None:
        if self.settle is not None:
            # the group waits until this returns
            self.settle()
        self._gone(consumer, partitions)

    def _gone(self, consumer: Any, partitions: Sequence[Any]) -> None:
        if self._consumer is not None and consumer is not self._consumer:
            # one that was left, and tells it late: the next one may have these partitions already
            return
        with self._lock:
            self._told_ends.forget(one.partition for one in partitions)
            for one in partitions:
                for known in (self._has, self._next, self._at, self._times):
                    known.pop(one.partition, None)
                self._lost |= self._open.pop(one.partition, None) is not None

    def take(self, seconds: float) -> pa.RecordBatch | None:
        self._check_there()
        self._tell_waiting()
        # asked for here, as confluent_kafka holds Python's lock meanwhile: beside `consume` in another thread it never returns
        self._member = self._consumer.consumer_group_metadata()
        found = self._waiting
        if not found:
            found = self._consumer.consume(1, seconds)
            if found:
                self.down = None
                had = dict(self._has)
                more = self._consumer.consume(TAKEN_ROWS - 1, self._flush)
                # a partition that was taken away meanwhile, even if it was given back, has these messages again
                found = [one for one in found if self._has.get(one.partition()) == had.get(one.partition())] + more
        errors = [one for one in found if one.error() is not None]
        if errors:
            for one in errors:
                self._note_end(one)
            found = [one for one in found if one.error() is None]
        with self._lock:
            here = set(self._has)
        if not here.issuperset(map(methodcaller("partition"), found)):
            # another consumer gets them, too
            found = [one for one in found if one.partition() in here]
        self._waiting = found
        batch = self._rows(found) if found else None
        self._waiting = []
        return batch if batch is not None or not found else pa.RecordBatch.from_pylist([], self.schema)

    def _tell_waiting(self) -> None:
        """Tell once that the group has given this consumer no partitions for long, and why."""
        if self._ready or self._told or time.monotonic() - self._asked < _TOLD_SECONDS:
            return
        self._told = True
        session = int(self.settings.get("session.timeout.ms", _SESSION_MS)) / 1000
        warnings.warn(
            f"source: {self.name}: group {self._group!r} has given this job no partitions yet; it waits. A consumer that was killed keeps "
            f"its partitions for {session:g} s (session.timeout.ms), several may do so one after the other; one that lives, and does not "
            f"answer, for {_LONGEST_POLL_MS / 60_000:g} min at most",
            RuntimeWarning,
            stacklevel=2,
        )

    def _check_there(self) -> None:
        """Raise Away if the brokers are away, and what librdkafka itself takes for the end."""
        if self.fatal is not None:
            raise SourceError(f"source: {self.name}: {self.fatal}")
        if self.down is None:
            return
        try:
            # nothing else says that a broker is back while no message comes
            self._consumer.list_topics(self.address.path, timeout=1)
        except self.kafka.KafkaException:
            # the callbacks of a rebalance come here, too; messages, which wait for the next call, do not
            raise Away(f"{self.name} is away ({self.down})") from None
        self.down = None
        # they could tell nothing meanwhile
        self._told_ends.came()

    def _note_end(self, message: Any) -> None:
        """Note that a partition has ended so far, or an error."""
        if message.error().code() != self.kafka.KafkaError._PARTITION_EOF:
            self._check_error(message.error(), message.partition())
            return
        with self._lock:
            if message.partition() in self._has:
                self._told_ends.told(message.partition(), message.offset())

    def _check_error(self, error: Any, partition: int | None) -> None:
        """Note that the brokers are away, or raise what ends the stream. Args: partition: of which the error is."""
        kinds = self.kafka.KafkaError
        if error.code() == kinds.UNKNOWN_TOPIC_OR_PART:
            raise SourceError(f"source: {self.name}: the topic is gone")
        if error.code() == kinds._AUTO_OFFSET_RESET and partition in self._unsure:
            raise ReadError(
                f"source: {self.name}: the brokers have not answered where group {self._group!r} begins in partition {partition} "
                f"({self.hidden(error.str())}): start the job again"
            )
        if error.code() == kinds._AUTO_OFFSET_RESET:
            raise SourceError(
                f"source: {self.name}: messages were deleted before they were read (retention.ms, retention.bytes of the topic: "
                f"{self.hidden(error.str())}); a model that may miss rows begins in another checkpoint_dir"
            )
        if error.code() in (kinds._ALL_BROKERS_DOWN, kinds._TRANSPORT):
            self.down = self.hidden(error.str())
        elif not error.retriable() and error.code() != kinds._PARTITION_EOF:
            raise SourceError(f"source: {self.name}: {self.hidden(error.str())}")

    def _where(self, message: Any) -> str:
        return f"the message at offset {message.offset()} of partition {message.partition()} of {self.name}"

    def _rows(self, found: list[Any]) -> pa.RecordBatch | None:
        """Return the rows of messages, and note what comes behind them; None if none of them can be read."""
        self._begin_reading()
        batch = without_bad(found, self._columns, self.bad, lambda one: (self._where(one), one.value() or b""))
        with self._lock:
            # the last message of each partition wins
            last = {one.partition(): one.offset() for one in found}
            self._next |= {one: (self._has[one], offset + 1) for one, offset in last.items() if one in self._has}
            self._open |= {one: offset + 1 for one, offset in last.items()}
            self._at |= {one: offset + 1 for one, offset in last.items() if one in self._has}
            self._told_ends.came()
            newest = {one.partition(): one for one in found}
            self._times |= {one: message.timestamp()[1] for one, message in newest.items() if one in self._has}
        return batch

    def _columns(self, found: Sequence[Any], locate: bool) -> pa.RecordBatch:
        partitions = list(map(methodcaller("partition"), found))
        offsets = list(map(methodcaller("offset"), found))
        values = list(map(methodcaller("value"), found))

        try:
            read = self._read(values, (lambda row: self._where(found[row])) if locate else None)
        except NotTheirs as e:
            if e.row is None:
                raise
            raise NotTheirs(f"source: {self._where(found[e.row])} cannot be read as Avro: {e}", e.row) from None
        columns: dict[str, pa.Array] = dict(zip(read.schema.names, read.columns))
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
        return pa.RecordBatch.from_arrays(made, schema=self.schema)

    def position(self) -> Any:
        with self._lock:
            position, self._next = self._next, {}
        return position or None

    def offsets(self, position: Any) -> tuple[list[Any], Any]:
        """Return the offsets of a position, and this consumer's membership in its group (`GroupSource`)."""
        with self._lock:
            lost = self._lost or any(self._has.get(one) != given for one, (given, _) in position.items())
        if lost:
            raise ReadError(
                f"source: {self.name}: another consumer of group {self._group!r} has taken over partitions, and makes their rows "
                "anew; so the transaction of these rows was aborted, and who reads with isolation.level=read_committed sees none "
                "of them. Start the job again"
            )
        made = [self.kafka.TopicPartition(self.address.path, one, offset) for one, (_, offset) in position.items()]
        return made, self._member

    def stored(self, position: Any) -> None:
        """Note that a position is stored (`GroupSource`)."""
        with self._lock:
            for one, (_, offset) in position.items():
                if self._open.get(one) == offset:
                    del self._open[one]

    def reached(self) -> Mapping[str, Any]:
        with self._lock:
            return {
                "topic": self.address.path,
                "offsets": {str(one): offset for one, offset in sorted(self._at.items())},
                "every": True,
                "times": {str(one): self._times[one] for one in sorted(self._at) if one in self._times},
            }

    def commit(self, position: Any) -> None:
        with self._lock:
            # a partition that another consumer has got meanwhile has its own position there
            ours = {one: offset for one, (given, offset) in position.items() if self._has.get(one) == given}
        topic = self.address.path
        offsets = [self.kafka.TopicPartition(topic, one, offset) for one, offset in ours.items()]

        def store() -> Any:
            with self._storing:
                if not ours or self._consumer is None:
                    return None
                return self._consumer.commit(offsets=offsets, asynchronous=False)

        try:
            # librdkafka waits for minutes for brokers that are silent, and within it no signal is heard
            stored = waited(store, None, self.name)
            if stored is None:
                return
        except self.kafka.KafkaException as e:
            self._not_stored(e.args[0])
            return
        for one in stored:
            if one.error is not None:
                self._not_stored(one.error)
        self.stored(position)

    def _not_stored(self, error: Any) -> None:
        kinds = self.kafka.KafkaError
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
        self.settle = None
        if self._consumer is None or not self._storing.acquire(blocking=False):
            # offsets are still being stored, for which the job's time was too short: a consumer must not be closed meanwhile
            return
        try:
            consumer, self._consumer = self._consumer, None
            _left(consumer)
        finally:
            self._storing.release()


def _left(consumer: Any) -> None:
    """Let a consumer leave its group, so that the next one need not wait for its partitions. Brokers that do not answer are not
    waited for: the consumer goes on trying in a thread of its own."""
    with contextlib.suppress(TimeoutError):
        heard(consumer.close, None, _LEAVE_SECONDS)
