"""Rows to messages of Kafka, with a stand-in for librdkafka: at least once, and in transactions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import JobTimeoutError, ReadError, SinkError, SourceError, WriteError
from akrunner.io.limits import limited
from akrunner.io.streams import kafka, kafka_output
from akrunner.io.streams.base import Address, TransactionSink
from akrunner.schema import Schema
from tests.unit.io.streams.conftest import Error, Failed, Partition, Producer

SCHEMA = pa.schema({"id": pa.int64()})
IN = "kafka://b/in?group=g"
OUT = "kafka://b/out?transactional_id=scores"


def test_rows_become_messages(made: list[Any]) -> None:
    schema = pa.schema({"id": pa.int64(), "p": pa.float64()})
    sink = kafka.SYSTEM.output("kafka://b/t?key=id", schema, None)
    sink.write_rows(pa.record_batch([pa.array([1, None], pa.int64()), pa.array([0.5, 1.5])], schema))
    sink.flush()
    assert [(one["key"], json.loads(one["value"])) for one in made[-1].sent] == [
        (b"1", {"id": 1, "p": 0.5}),
        (None, {"id": None, "p": 1.5}),
    ]
    made[-1].on_delivery(Error(1), None)
    with pytest.raises(Exception, match="has not taken all rows"):
        sink.flush()
    sink.close()
    assert sink.rows == 2 and made[-1].settings["enable.idempotence"] is True


@pytest.mark.parametrize(
    ("query", "schema", "words"),
    [
        ("key=idd", {"id": pa.int64()}, "did you mean 'id'"),
        ("value=raw", {"id": pa.int64()}, "a column 'value'"),
        ("value=raw", {"value": pa.binary(), "id": pa.int64()}, "'id' would be lost"),
        ("", {"b": pa.binary()}, "cannot hold column 'b'"),
        ("group=g", {"id": pa.int64()}, "no option 'group'"),
    ],
)
def test_rows_that_cannot_become_messages_are_refused(query: str, schema: dict[str, Any], words: str, made: list[Any]) -> None:
    with pytest.raises(SinkError, match=words):
        kafka.SYSTEM.check_output(f"kafka://b/t?{query}", pa.schema(schema), "-")
    assert made == []


def rows(*ids: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(ids, pa.int64())], SCHEMA)


class Source:
    """Attributes: kept: the positions that were stored; lost: whether another consumer has taken over."""

    name = "kafka://b/in"
    address = kafka.kafka_address("kafka://b/in", (), SourceError, "source")
    settle: Callable[[], None] | None = None

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.lost = False

    def offsets(self, position: Any) -> Any:
        if self.lost:
            raise ReadError("source: taken over (test)")
        return [Partition("in", number, offset) for number, offset in position.items()], "member"

    def stored(self, position: Any) -> None:
        self.kept.append(position)


def transactions(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Source, Producer]:
    source = Source()
    monkeypatch.setattr(kafka, "Messages", Source)
    monkeypatch.setattr(kafka, "_check_together", lambda source, output: None)
    sink = kafka.SYSTEM.output(OUT, SCHEMA, source)
    assert isinstance(sink, TransactionSink)
    sink.join(lambda: None)
    return sink, source, made[-1]


def test_rows_and_offsets_are_committed_together(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    sink, source, producer = transactions(made, monkeypatch)
    assert producer.settings["transactional.id"] == "scores" and source.settle is not None
    sink.write_rows(rows(1, 2))
    sink.write_rows(rows(3))
    assert (sink.rows, sink.uncommitted) == (0, 3)
    sink.commit({0: 5})
    sink.commit(None)
    assert producer.did == ["init", "begin", ("offsets", {0: 5}, "member"), "commit"]
    assert (sink.rows, sink.uncommitted, source.kept) == (3, 0, [{0: 5}])
    sink.commit({0: 6})
    sink.write_rows(rows(4))
    sink.commit(None)
    assert producer.did[4:] == ["begin", ("offsets", {0: 6}, "member"), "commit", "begin", "commit"]
    sink.close()
    assert "abort" not in producer.did and source.settle is None


@pytest.mark.parametrize("position", [{0: 5}, None])
def test_rows_that_were_not_committed_are_aborted(made: list[Any], monkeypatch: pytest.MonkeyPatch, position: Any) -> None:
    """Also if no rows have come since: those of the transaction are another consumer's now, too."""
    sink, source, producer = transactions(made, monkeypatch)
    sink.write_rows(rows(1))
    source.lost = True
    with pytest.raises(ReadError, match="taken over"):
        sink.commit(position)
    sink.close()
    assert producer.did == ["init", "begin", "abort"] and sink.rows == 0


@pytest.mark.parametrize(
    ("call", "name", "words"),
    [
        ("commit", "_FENCED", "another job has begun to write with transactional_id=scores"),
        ("offsets", "INVALID_PRODUCER_EPOCH", "another job has begun to write with transactional_id=scores"),
        ("offsets", "ILLEGAL_GENERATION", r"aborted: who reads .*The rows of kafka://b/in .*come again"),
    ],
)
def test_a_transaction_that_kafka_refuses(
    call: str, name: str, words: str, made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, _, producer = transactions(made, monkeypatch)
    producer.refuses = {call: [Error(getattr(sink.kafka.KafkaError, name), aborts=True)], "abort": [Error(1)]}
    sink.write_rows(rows(1))
    with pytest.raises(WriteError, match=words) as caught:
        sink.commit({0: 5})
    sink.close()
    assert "isolation.level=read_committed" in str(caught.value) and sink.rows == 0


def test_a_broker_that_does_not_answer_is_asked_again(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    sink, _, producer = transactions(made, monkeypatch)
    sink.down = "no broker"
    producer.refuses = {"commit": [Error(sink.kafka.KafkaError._TIMED_OUT, retriable=True)] * 2}
    sink.write_rows(rows(1))
    with pytest.warns(RuntimeWarning, match="is away .*it is waited for, 300 s at most"):
        sink.commit({0: 5})
    assert sink.rows == 1
    sink._wait = 0.0
    producer.refuses = {"commit": [Error(sink.kafka.KafkaError._TIMED_OUT, retriable=True)] * 2}
    sink.write_rows(rows(1))
    with pytest.raises(WriteError, match="was away for 0 s"):
        sink.commit({0: 5})
    sink.close()


def test_brokers_that_are_away_are_waited_for_within_the_job_s_time(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    sink, _, producer = transactions(made, monkeypatch)
    producer.refuses = {"commit": [Error(sink.kafka.KafkaError._TIMED_OUT, retriable=True)] * 1000}
    sink.write_rows(rows(1))
    with limited(0.001, None):
        time.sleep(0.01)
        with pytest.raises(JobTimeoutError, match="waited for kafka://b/out"):
            sink.commit({0: 5})
        monkeypatch.setattr(producer, "flush", lambda seconds: 1)
        with pytest.raises(JobTimeoutError, match="waited for kafka://b/out"):
            sink.flush()


def test_an_error_is_found_within_another(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    sink, _, producer = transactions(made, monkeypatch)
    fenced = Failed(Error(sink.kafka.KafkaError._FENCED))

    def commit(seconds: float) -> None:
        raise SystemError("returned a result with an exception set") from fenced

    monkeypatch.setattr(producer, "commit_transaction", commit)
    sink.write_rows(rows(1))
    with pytest.raises(WriteError, match="another job has begun"):
        sink.commit({0: 5})
    sink.close()


@pytest.mark.parametrize(
    ("output", "source", "words"),
    [
        (OUT, "redis://b/in?group=g", "the input is redis://b/in: read from kafka://"),
        (OUT, "-", "the input is -: read from kafka://"),
        (OUT, "kafka://other/in?group=g", "in the same cluster.*is in other:9092, this topic in b:9092"),
        ("kafka://b/out?transactional_id=", IN, "transactional_id= is empty"),
    ],
)
def test_what_cannot_be_in_one_transaction_is_told_before(output: str, source: str, words: str, made: list[Any]) -> None:
    with pytest.raises(SinkError, match=words):
        kafka.SYSTEM.check_output(output, SCHEMA, source)
    kafka.SYSTEM.check_output(OUT, SCHEMA, IN)


def test_an_input_that_reads_aborted_rows_is_refused(made: list[Any], tmp_path: Any) -> None:
    (tmp_path / "c").write_text("isolation.level=read_uncommitted\n")
    with pytest.raises(SinkError, match="say read_uncommitted"):
        kafka.SYSTEM.check_output(OUT, SCHEMA, f"{IN}&config={tmp_path / 'c'}")


def test_a_job_that_reads_something_else_has_no_transactions(made: list[Any]) -> None:
    with pytest.raises(SinkError, match="the input is no stream"):
        kafka.SYSTEM.output(OUT, SCHEMA, None)
    table = kafka.SYSTEM.open(
        "kafka://c/in?group=g", Schema.from_arrow(SCHEMA), 0.01, lambda path, columns: pytest.fail("no file")
    )
    assert table.arriving is not None
    with pytest.raises(SinkError, match="in the same cluster"):
        kafka.SYSTEM.output(OUT, SCHEMA, table.arriving.source)


def test_a_name_that_kafka_does_not_allow_is_told(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Producer, seconds: float) -> None:
        raise Failed(Error(1))

    monkeypatch.setattr(Producer, "init_transactions", refused)
    with pytest.raises(SinkError, match="transactional_id=scores: Kafka does not begin transactions"):
        transactions(made, monkeypatch)


def test_the_columns_are_checked_before_anything_is_sent() -> None:
    address = Address.of("kafka://b/t?key=idd", ("key", "value"), SinkError, "output")
    with pytest.raises(SinkError, match="key=idd: the rows have no such column"):
        kafka_output.check_columns(address, SCHEMA)
    kafka_output.check_columns(Address.of("kafka://b/t?key=id", ("key", "value"), SinkError, "output"), SCHEMA)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(2)])
def test_bytes_of_any_kind_are_sent_as_they_are(kind: pa.DataType) -> None:
    assert kafka_output._octets(pa.array([b"\xff\0", None], kind)) == [b"\xff\0", None]
