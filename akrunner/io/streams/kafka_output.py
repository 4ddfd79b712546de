"""Rows to messages of a topic of Kafka.

::

    Output          rows -> messages, each acknowledged                          at least once
    Transactions    rows -> messages of a transaction     \\
                    position -> offsets of the input's group  > committed together: exactly once
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pyarrow as pa

from akrunner.column_types import is_octets
from akrunner.errors import WriteError
from akrunner.io.limits import check_time
from akrunner.io.streams.avro_values import AvroValues, check_avro
from akrunner.io.streams.base import START_SECONDS, TAKEN_ROWS, Address
from akrunner.io.streams.kafka_client import Client
from akrunner.io.streams.values import JsonValues, check_json
from akrunner.wire.near import nearest

#: the most bytes that are under way to the brokers
_UNDER_WAY = 32 << 20
#: bytes that count for each message beside its value: so they are fewer messages than librdkafka's queue takes (100,000)
_MESSAGE = 400
#: a transaction that is not committed within these is aborted by Kafka, unless the settings say otherwise
_TRANSACTION_MS = 300_000
#: seconds that one try of a call that answers may take
_TRY_SECONDS = 2.0


def check_columns(address: Address, schema: pa.Schema) -> None:
    """Check that rows can become messages. Raises: SinkError: they cannot."""
    key = address.url.options.get("key")
    if key is not None and key not in schema.names:
        raise address.wrong(f"key={key}: the rows have no such column{nearest(key, schema.names)}")
    kind = address.choice("value", ("json", "raw", "avro"))
    if kind == "json":
        check_json(schema)
        return
    if kind == "avro":
        check_avro(address, schema)
        return
    if "value" not in schema.names:
        raise address.wrong("with value=raw a column 'value' has the messages' bytes or text, and the rows have none")
    others = [name for name in schema.names if name not in ("value", key)]
    if others:
        raise address.wrong(
            f"with value=raw a message has the column 'value', and key= as its key; {others[0]!r} would be lost"
        )


class Output(Client):
    """A topic as a `StreamSink`.

    Args:
        address: the URL.
        schema: the schema of the rows.
    Raises:
        SinkError: as of `StreamSystem.output`.
    """

    def __init__(self, address: Address, schema: pa.Schema) -> None:
        super().__init__(address)
        check_columns(address, schema)
        self.path = address.name
        self.rows = 0
        self._key = address.url.options.get("key")
        self._wait = address.wait
        self._bytes = 0
        #: why a message did not arrive
        self._failed: Any = None
        self._producer = self.made(
            "Producer",
            {
                "linger.ms": 5,
                "compression.type": "lz4",
                **{name: value for name, value in self.settings.items() if name != "error_cb"},
                # a try that is repeated neither doubles a message nor changes their order
                "enable.idempotence": True,
                "message.timeout.ms": int(self._wait * 1000),
                # without a call of Python for every message that arrived
                "delivery.report.only.error": True,
                **self._more(),
            },
        )
        self.check_topic(self._producer, False)
        kind = address.choice("value", ("json", "raw", "avro"))
        self._values: JsonValues | AvroValues | None = None
        if kind != "raw":
            self._values = JsonValues(schema) if kind == "json" else AvroValues(address, schema)

    def _more(self) -> Mapping[str, Any]:
        """Return further settings of the producer."""
        return {}

    def write_rows(self, batch: pa.RecordBatch) -> None:
        values = self._values.of(batch) if self._values is not None else _octets(batch.column("value"))
        if self._key is None:
            messages: list[dict[str, Any]] = [{"value": value} for value in values]
        else:
            keys = _octets(batch.column(self._key))
            messages = [{"key": key, "value": value} for key, value in zip(keys, values)]
        for at in range(0, len(messages), TAKEN_ROWS):
            self._send(messages[at : at + TAKEN_ROWS])
        self.rows += batch.num_rows

    def _send(self, messages: list[dict[str, Any]]) -> None:
        self._bytes += sum(len(one["value"] or b"") + _MESSAGE for one in messages)
        self._producer.produce_batch(self.address.path, messages, on_delivery=self._delivered)
        refused = next((one["_error"] for one in messages if "_error" in one), None)
        if refused is not None:
            raise self.not_taken(refused)
        self._served(self._producer.poll, 0)
        if self._bytes >= _UNDER_WAY:
            self.flush()
        self._check()

    def _error(self, raised: BaseException) -> Any:
        """Return librdkafka's error. confluent_kafka raises it within a SystemError if messages were refused in the same call."""
        while not isinstance(raised, self.kafka.KafkaException):
            if raised.__cause__ is None:
                raise raised
            raised = raised.__cause__
        return raised.args[0]

    def _served(self, call: Callable[..., Any], *words: Any) -> Any:
        """Return what a call of the producer returns. Raises: WriteError: it has an error that cannot be mended."""
        try:
            return call(*words)
        except (self.kafka.KafkaException, SystemError) as e:
            raise self.not_taken(self._error(e)) from None

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed = self._failed or error

    def _check(self) -> None:
        if self._failed is not None or self.fatal is not None:
            raise self.not_taken(self._failed)

    def not_taken(self, error: Any) -> WriteError:
        """Return the error that says that the topic has not taken all rows. Args: error: the first one; None: a fatal one."""
        return WriteError(
            f"output: {self.path} has not taken all rows: {self.fatal if error is None else self.hidden(error.str())}"
        )

    def flush(self) -> None:
        until, told = time.monotonic() + self._wait + START_SECONDS, False
        while self._served(self._producer.flush, 1.0):
            self._check()
            check_time(self.path)
            if self.down is not None and not told:
                told = True
                self._say_away()
            if time.monotonic() > until:
                raise self._away_too_long()
        self._bytes, self.down = 0, None
        self._check()

    def _say_away(self) -> None:
        warnings.warn(
            f"output: {self.path} is away ({self.down or 'no broker answers'}); it is waited for, {self._wait:g} s at most",
            RuntimeWarning,
            stacklevel=3,
        )

    def _away_too_long(self) -> WriteError:
        return WriteError(f"output: {self.path} was away for {self._wait:g} s (?wait= says how long it is waited for)")

    def close(self) -> None:
        if self._values is not None:
            self._values.close()
        # what was not flushed is not waited for, and what became of it was told
        with contextlib.suppress(self.kafka.KafkaException, SystemError):
            self._producer.purge()
            self._producer.flush(1.0)


class GroupSource(Protocol):
    """The input of a transaction: a topic that a group of consumers reads.

    Attributes:
        name: its URL without secrets.
        settle: what it calls before it gives up partitions.
    """

    name: str
    settle: Callable[[], None] | None

    def offsets(self, position: Any) -> tuple[list[Any], Any]:
        """Return the offsets of a position, and this consumer's membership in its group.

        Raises:
            ReadError: another consumer has taken over a partition of which rows are not committed.
        """
        ...

    def stored(self, position: Any) -> None:
        """Note that a position is stored."""
        ...


class Transactions(Output):
    """A topic as a `TransactionSink`. Its rows and the offsets of the group that reads the input are committed together.

    Args:
        address: the URL, with `transactional_id=`.
        schema: the schema of the rows.
        source: the input, in the same cluster.
    Raises:
        SinkError: as of `StreamSystem.output`, or Kafka does not allow transactions of this name.
    """

    def __init__(self, address: Address, schema: pa.Schema, source: GroupSource) -> None:
        self._name = address.url.options["transactional_id"]
        super().__init__(address, schema)
        self._source = source
        self.uncommitted = 0
        self._open = False
        try:
            # aborts what a job of this name has left open when it died
            self._answered(self._producer.init_transactions)
        except WriteError as e:
            raise address.wrong(f"transactional_id={self._name}: Kafka does not begin transactions of this name: {e}") from None

    def _more(self) -> Mapping[str, Any]:
        timeout = int(self.settings.get("transaction.timeout.ms", _TRANSACTION_MS))
        return {
            "transactional.id": self._name,
            "transaction.timeout.ms": timeout,
            "message.timeout.ms": min(int(self._wait * 1000), timeout),
        }

    def join(self, settle: Callable[[], None]) -> None:
        self._source.settle = settle

    def write_rows(self, batch: pa.RecordBatch) -> None:
        self._begin()
        before = self.rows
        super().write_rows(batch)
        self.uncommitted += self.rows - before
        self.rows = before

    def _begin(self) -> None:
        if not self._open:
            self._answered(lambda seconds: self._producer.begin_transaction())
            self._open = True

    def commit(self, position: Any) -> None:
        if not self._open and position is None:
            return
        # also without a position: partitions whose rows are in this transaction may be another consumer's now
        found = self._source.offsets(position or {})
        offsets = found if position is not None else None
        self._begin()
        if offsets is not None:
            self._answered(lambda seconds: self._producer.send_offsets_to_transaction(*offsets, seconds))
        self._answered(self._producer.commit_transaction)
        self._check()
        self._open, self._bytes, self.down = False, 0, None
        self.rows += self.uncommitted
        self.uncommitted = 0
        if position is not None:
            self._source.stored(position)

    def _answered(self, call: Callable[[float], Any]) -> None:
        """Call until the brokers answer. Args: call: takes the seconds that one try has.

        Raises:
            WriteError: the transaction was aborted, or the brokers were away for too long.
            JobTimeoutError: the job's time is over.
        """
        until, told = time.monotonic() + self._wait, False
        while True:
            try:
                call(_TRY_SECONDS)
                return
            except (self.kafka.KafkaException, SystemError) as e:
                error = self._error(e)
                if not error.retriable() or error.txn_requires_abort():
                    raise self.not_taken(error) from None
            check_time(self.path)
            if time.monotonic() > until:
                raise self._away_too_long()
            if not told and self.down is not None:
                told = True
                self._say_away()

    def not_taken(self, error: Any) -> WriteError:
        kinds = self.kafka.KafkaError
        thrown = "its transaction was aborted: who reads with isolation.level=read_committed sees none of its rows"
        if error is not None and error.code() in (kinds._FENCED, kinds.INVALID_PRODUCER_EPOCH):
            return WriteError(
                f"output: {self.path}: another job has begun to write with transactional_id={self._name}, or Kafka has ended this "
                f"transaction because it took longer than transaction.timeout.ms; so this job is shut out, and {thrown}. Jobs "
                "that run at the same time need different names"
            )
        why = self.fatal if error is None else self.hidden(error.str())
        return WriteError(
            f"output: {self.path} has not taken all rows ({why}), and {thrown}. The rows of {self._source.name} that they were "
            "made of come again next time"
        )

    def close(self) -> None:
        self._source.settle = None
        if self._open:
            # else Kafka aborts it when a job of this name begins, or after transaction.timeout.ms
            self._producer.purge()
            with contextlib.suppress(self.kafka.KafkaException, SystemError):
                self._producer.abort_transaction(_TRY_SECONDS)
        super().close()


def _octets(column: pa.Array) -> list[bytes | None]:
    """Return the bytes, or the text as UTF-8, of a column's values."""
    if is_octets(column.type):
        return list(column.to_pylist())
    found: list[bytes | None] = column.cast(pa.string()).cast(pa.binary()).to_pylist()
    return found
