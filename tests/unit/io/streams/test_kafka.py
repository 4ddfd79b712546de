"""Topics of Kafka, with a stand-in for librdkafka: URLs, messages to rows, which offsets are stored, errors."""

from __future__ import annotations

import json
import types
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SinkError, SourceError
from akrunner.io.streams import kafka
from akrunner.io.streams.base import Away
from akrunner.schema import Schema

SCHEMA = Schema.from_arrow(pa.schema({"id": pa.int64()}))


class Error:
    def __init__(self, code: int, retriable: bool = False) -> None:
        self._code, self._retriable = code, retriable

    def code(self) -> int:
        return self._code

    def str(self) -> str:
        return "failed with pass-w0rd"

    def retriable(self) -> bool:
        return self._retriable

    def fatal(self) -> bool:
        return False


class Failed(Exception):
    pass


class Message:
    def __init__(self, value: bytes | None, partition: int = 0, offset: int = 0, key: bytes | None = None) -> None:
        self._all = {"value": value, "partition": partition, "offset": offset, "key": key, "error": None, "timestamp": (1, 5)}

    def __getattr__(self, name: str) -> Any:
        return lambda: self._all[name]


class Partition:
    def __init__(self, topic: str, partition: int, offset: int) -> None:
        self.topic, self.partition, self.offset, self.error = topic, partition, offset, None


class Consumer:
    """Attributes: coming: what each call of `consume` returns; stored: what was committed; fails: the error of a commit."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.coming: list[list[Message]] = []
        self.stored: list[dict[int, int]] = []
        self.fails: Error | None = None

    def list_topics(self, topic: str = "", timeout: float = 0) -> Any:
        return types.SimpleNamespace(topics={topic: types.SimpleNamespace(error=None)})

    def subscribe(self, topics: list[str], **calls: Any) -> None:
        self.calls = calls

    def consume(self, most: int, seconds: float) -> list[Message]:
        return self.coming.pop(0) if self.coming else []

    def commit(self, offsets: list[Partition], asynchronous: bool) -> list[Partition]:
        if self.fails is not None:
            raise Failed(self.fails)
        self.stored.append({one.partition: one.offset for one in offsets})
        return offsets

    def close(self) -> None:
        pass


class Producer(Consumer):
    def produce_batch(self, topic: str, messages: list[dict[str, Any]], on_delivery: Any) -> None:
        self.sent = [*getattr(self, "sent", []), *messages]
        self.on_delivery = on_delivery

    def poll(self, seconds: float) -> None:
        pass

    def purge(self) -> None:
        pass

    def flush(self, seconds: float) -> int:
        return 0


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Returns: the consumers and producers that are made."""
    found: list[Any] = []

    def keeping(kind: type) -> Any:
        def make(settings: dict[str, Any]) -> Any:
            found.append(kind(settings))
            return found[-1]

        return make

    names = (
        "_AUTHENTICATION _SSL _ALL_BROKERS_DOWN UNKNOWN_TOPIC_OR_PART LEADER_NOT_AVAILABLE _TRANSPORT _TIMED_OUT _WAIT_COORD "
        "COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR ILLEGAL_GENERATION UNKNOWN_MEMBER_ID REBALANCE_IN_PROGRESS _NO_OFFSET "
        "_PARTITION_EOF"
    )
    library = types.SimpleNamespace(
        Consumer=keeping(Consumer),
        Producer=keeping(Producer),
        KafkaException=Failed,
        TopicPartition=Partition,
        KafkaError=types.SimpleNamespace(**{name: number for number, name in enumerate(names.split(), 1)}),
    )
    monkeypatch.setattr(kafka, "client", lambda name, extra: library)
    monkeypatch.delenv("KAFKA_CONFIG", raising=False)
    return found


def source(made: list[Any], url: str = "kafka://a,b:1/t?group=g", schema: Schema | None = SCHEMA) -> tuple[Any, Consumer]:
    """Open a topic whose partitions 0 and 1 are this consumer's."""
    table = kafka.SYSTEM.open(url, schema, 0.01, lambda path, columns: pytest.fail("no file is read"))
    assert table.arriving is not None
    messages = table.arriving._source
    messages.connect()
    made[-1].calls["on_assign"](made[-1], [Partition("t", 0, -1), Partition("t", 1, -1)])
    return messages, made[-1]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("kafka://me:pass-w0rd@b/t?group=g", "passwords do not go into the URL"),
        ("kafka:///t?group=g", "write kafka://broker"),
        ("kafka://b/?group=g", "write kafka://broker"),
        ("kafka://b/t", r"give \?group=NAME"),
        ("kafka://b/t?group=g&with=speed", "there are key, timestamp, partition, offset"),
        ("kafka://b/t?group=g&key=id", "no option 'key'"),
        ("kafka://b/t?group=g&value=raw", "input_schema= has 'id'"),
    ],
)
def test_a_wrong_url_is_told_before_anything_is_asked(url: str, words: str, made: list[Any]) -> None:
    with pytest.raises(SourceError, match=words) as caught:
        kafka.SYSTEM.open(url, SCHEMA, 0.01, lambda path, columns: pytest.fail("no file is read"))
    assert made == [] and "pass-w0rd" not in str(caught.value)


def test_json_needs_its_columns() -> None:
    with pytest.raises(SourceError, match="give input_schema="):
        kafka.SYSTEM.open("kafka://b/t?group=g", None, 0.01, lambda path, columns: pytest.fail("no file is read"))


def test_settings_are_those_of_the_file_and_offsets_are_stored_by_nobody_else(made: list[Any], tmp_path: Any) -> None:
    file = tmp_path / "c"
    file.write_text("sasl.password=pass-w0rd\nsession.timeout.ms=9000\nenable.auto.commit=true\n")
    messages, consumer = source(made, f"kafka://a,b:1/t?group=g&config={file}")
    told = consumer.settings
    assert (told["bootstrap.servers"], told["group.id"], told["auto.offset.reset"]) == ("a:9092,b:1", "g", "earliest")
    assert told["session.timeout.ms"] == "9000" and told["enable.auto.commit"] is False
    assert messages.hidden("wrong pass-w0rd") == "wrong ***"


def test_messages_become_rows_and_their_offsets_the_position(made: list[Any]) -> None:
    columns = Schema.from_arrow(pa.schema({"id": pa.int64(), "key": pa.string()}))
    messages, consumer = source(made, "kafka://b/t?group=g&with=offset,key,partition,timestamp", columns)
    consumer.coming = [[Message(b'{"id": 1}', 0, 7, b"k")], [Message(b'{"id": 2}', 1, 3), Message(None, 0, 8)]]
    assert [{name: value for name, value in row.items() if name != "timestamp"} for row in messages.take(0.1).to_pylist()] == [
        {"id": 1, "key": "k", "offset": 7, "partition": 0},
        {"id": 2, "key": None, "offset": 3, "partition": 1},
        {"id": None, "key": None, "offset": 8, "partition": 0},
    ]
    position = messages.position()
    assert messages.position() is None, "nothing has come since"
    messages.commit(position)
    assert consumer.stored == [{0: 9, 1: 4}] and messages.take(0.1) is None


def test_raw_values_stay_as_they_are(made: list[Any]) -> None:
    messages, consumer = source(made, "kafka://b/t?group=g&value=raw", None)
    consumer.coming = [[Message(b"\xff\x00")]]
    assert messages.take(0.1).to_pylist() == [{"value": b"\xff\x00"}]


def test_a_message_that_cannot_be_read_is_named(made: list[Any]) -> None:
    messages, consumer = source(made)
    consumer.coming = [[Message(b'{"id": 1}', 0, 7), Message(b"oops", 1, 3)]]
    with pytest.raises(SourceError, match="the message at offset 3 of partition 1 of kafka://a,b:1/t cannot be read"):
        messages.take(0.1)


def test_no_offset_is_stored_of_a_partition_that_another_consumer_has(made: list[Any]) -> None:
    messages, consumer = source(made)
    consumer.coming = [[Message(b'{"id": 1}', 0, 7), Message(b'{"id": 1}', 1, 3)]]
    messages.take(0.1)
    position = messages.position()
    consumer.calls["on_revoke"](consumer, [Partition("t", 1, -1)])
    consumer.calls["on_assign"](consumer, [Partition("t", 1, -1)])
    messages.commit(position)
    assert consumer.stored == [{0: 8}], "partition 1 was another's meanwhile"


@pytest.mark.parametrize(
    ("name", "kind"), [("_TRANSPORT", Away), ("_SSL", SourceError), ("ILLEGAL_GENERATION", RuntimeWarning)]
)
def test_offsets_that_are_not_stored(name: str, kind: Any, made: list[Any]) -> None:
    messages, consumer = source(made)
    consumer.coming = [[Message(b'{"id": 1}')]]
    messages.take(0.1)
    consumer.fails = Error(getattr(messages._kafka.KafkaError, name))
    with pytest.warns(kind) if kind is RuntimeWarning else pytest.raises(kind):
        messages.commit(messages.position())


def test_brokers_that_are_down_are_away_until_one_answers(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    messages, consumer = source(made)
    consumer.settings["error_cb"](Error(messages._kafka.KafkaError._ALL_BROKERS_DOWN))

    def refuse(*_: Any, **__: Any) -> Any:
        raise Failed(Error(messages._kafka.KafkaError._TRANSPORT))

    with monkeypatch.context() as patch:
        patch.setattr(consumer, "list_topics", refuse)
        with pytest.raises(Away, match="kafka://a,b:1/t is away"):
            messages.take(0.1)
    assert messages.take(0.1) is None


def test_a_broker_that_does_not_answer_is_named_at_the_start(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Failed(Error(6))

    monkeypatch.setattr(Consumer, "list_topics", refuse)
    with pytest.raises(SourceError, match="no broker has answered within 5 s at a:9092,b:1"):
        source(made)


def test_rows_become_messages(made: list[Any]) -> None:
    schema = pa.schema({"id": pa.int64(), "p": pa.float64()})
    sink = kafka.SYSTEM.output("kafka://b/t?key=id", schema)
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
        kafka.SYSTEM.check_output(f"kafka://b/t?{query}", pa.schema(schema))
    assert made == []
