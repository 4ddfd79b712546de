"""Topics of Kafka, with a stand-in for librdkafka: URLs, messages to rows, which offsets are stored, errors."""

from __future__ import annotations

import json
import threading
import types
import warnings
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, JobTimeoutError, ReadError, SourceError
from akrunner.io.bad_rows import BadRows, Limit
from akrunner.io.limits import limited
from akrunner.io.streams import kafka
from akrunner.io.streams.base import Away
from akrunner.schema import Schema
from tests.servers.registry import Registry
from tests.unit.io.streams.conftest import Consumer, Error, Failed, Message, Partition

SCHEMA = Schema.from_arrow(pa.schema({"id": pa.int64()}))


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


def test_json_needs_its_columns(made: list[Any]) -> None:
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
    consumer.fails = Error(getattr(messages.kafka.KafkaError, name))
    with pytest.warns(kind) if kind is RuntimeWarning else pytest.raises(kind):
        messages.commit(messages.position())


def test_brokers_that_are_down_are_away_until_one_answers(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    messages, consumer = source(made)
    consumer.settings["error_cb"](Error(messages.kafka.KafkaError._ALL_BROKERS_DOWN))

    def refuse(*_: Any, **__: Any) -> Any:
        raise Failed(Error(messages.kafka.KafkaError._TRANSPORT))

    with monkeypatch.context() as patch:
        patch.setattr(consumer, "list_topics", refuse)
        with pytest.raises(Away, match="kafka://a,b:1/t is away"):
            messages.take(0.1)
    messages._told_ends._came -= 100
    assert messages.take(0.1) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not messages.ready, "brokers that are back have their time to tell where partitions end"


def test_a_broker_that_does_not_answer_is_named_at_the_start(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Failed(Error(6))

    monkeypatch.setattr(Consumer, "list_topics", refuse)
    with pytest.raises(SourceError, match="no broker has answered within 5 s at a:9092,b:1"):
        source(made)


def test_rows_of_a_partition_that_another_consumer_has_are_its_own(made: list[Any]) -> None:
    messages, consumer = source(made)
    consumer.calls["on_revoke"](consumer, [Partition("t", 1, -1)])
    consumer.coming = [[Message(b'{"id": 1}', 1, 3)], [], [Message(b'{"id": 2}', 0, 7)], [Message(b'{"id": 3}', 1, 4)]]
    assert messages.take(0.1) is None and messages.take(0.1).to_pylist() == [{"id": 2}]


def test_a_transaction_has_the_offsets_and_the_membership(made: list[Any]) -> None:
    messages, consumer = source(made)
    consumer.coming = [[Message(b'{"id": 1}', 0, 7), Message(b'{"id": 1}', 1, 3)]]
    messages.take(0.1)
    position = messages.position()
    offsets, member = messages.offsets(position)
    assert {one.partition: one.offset for one in offsets} == {0: 8, 1: 4} and member == "member"
    messages.stored(position)
    consumer.calls["on_revoke"](consumer, [Partition("t", 1, -1)])
    consumer.coming = [[Message(b'{"id": 1}', 0, 8)]]
    messages.take(0.1)
    assert messages.offsets(messages.position())[0][0].offset == 9, "what was given up was stored"


def test_partitions_are_given_up_when_their_rows_are_settled(made: list[Any]) -> None:
    messages, consumer = source(made)
    consumer.coming = [[Message(b'{"id": 1}', 1, 3)]]
    messages.take(0.1)
    messages.settle = lambda: messages.stored(messages.position())
    consumer.calls["on_revoke"](consumer, [Partition("t", 1, -1)])
    assert messages.offsets({}) == ([], "member")


@pytest.mark.parametrize("call", ["on_revoke", "on_lost"])
def test_a_transaction_of_rows_that_another_consumer_makes_anew_is_refused(call: str, made: list[Any]) -> None:
    messages, consumer = source(made)
    consumer.coming = [[Message(b'{"id": 1}', 1, 3)], [], [Message(b'{"id": 1}', 0, 7)]]
    messages.take(0.1)
    consumer.calls[call](consumer, [Partition("t", 1, -1)])
    messages.take(0.1)
    with pytest.raises(ReadError, match="another consumer of group 'g' has taken over partitions.*aborted"):
        messages.offsets(messages.position())


def test_messages_wait_while_a_registry_is_away(made: list[Any]) -> None:
    messages, consumer = source(made)
    consumer.coming = [[Message(b'{"id": 1}', 0, 7)]]
    read, tries = messages._read, []

    def away_at_first(values: Any, where: Any) -> pa.RecordBatch:
        tries.append(values)
        if len(tries) == 1:
            raise Away("the registry is away (test)")
        return read(values, where)

    messages._read = away_at_first
    with pytest.raises(Away):
        messages.take(0.1)
    assert messages.position() is None and messages.take(0.1).to_pylist() == [{"id": 1}]
    assert messages.position() == {0: (1, 8)}


def assigned(messages: Any, consumer: Consumer, *partitions: int) -> Any:
    """Give partitions to a consumer. Returns: the offsets at which they begin; none if the group's offsets say that."""
    consumer.calls["on_assign"](consumer, [Partition("t", one, -1001) for one in partitions])
    return consumer.assigned


def test_the_place_of_a_save_is_where_a_partition_begins(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    messages, first = source(made)
    assert messages.reached() == {"topic": "t", "offsets": {"0": 5, "1": 0}, "every": True, "times": {}}
    first.coming = [[Message(b'{"id": 1}', 1, 7)], []]
    messages.take(0.1)
    place = messages.reached()
    assert place == {"topic": "t", "offsets": {"0": 5, "1": 8}, "every": True, "times": {"1": 5}}
    position = messages.position()

    messages.begin(json.loads(json.dumps(place)))
    with monkeypatch.context() as patch:
        patch.setattr(Consumer, "consume", lambda self, most, seconds: [Message(b"{}", 1, 7)])
        messages.connect()
    consumer = made[-1]
    assert first.closed and not messages.ready
    assert assigned(messages, consumer, 0, 1) == {0: 5, 1: 8} and messages.reached() == place
    messages.commit(position)
    assert consumer.stored == [], "it is of the attempt before; the save has it"
    consumer.calls["on_revoke"](consumer, [Partition("t", 1, -1)])
    assert messages.reached()["offsets"] == {"0": 5}
    consumer.assigned = {}
    assert assigned(messages, consumer, 1) == {1: 0}, "another consumer had it since, and has stored nothing"


def test_a_new_partition_that_begins_at_the_next_message_has_a_place_at_once(made: list[Any]) -> None:
    messages, consumer = source(made, "kafka://a/t?group=g&start=latest")
    assert consumer.assigned == {0: -1, 1: 40} and messages.reached()["offsets"] == {"0": 5, "1": 40}


def test_a_partition_that_a_save_does_not_name_begins_at_its_beginning(
    made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group's offset, 5 of partition 0, is that of a later save."""

    def refuse(*_: Any) -> Any:
        raise Failed(Error(6))

    messages, _ = source(made)
    place = {"topic": "t", "offsets": {"1": 8}, "every": True}
    messages.begin(place)
    messages.connect()
    assert assigned(messages, made[-1], 0, 1) == {0: 0, 1: 8} and messages.reached()["offsets"] == {"0": 0, "1": 8}
    messages.begin(place)
    messages.connect()
    with monkeypatch.context() as patch:
        patch.setattr(Consumer, "get_watermark_offsets", refuse)
        assert assigned(messages, made[-1], 0) == {0: -2} and messages.reached()["offsets"] == {"1": 8}
    # a partition that another consumer had meanwhile, and brokers that do not say what it has stored
    monkeypatch.setattr(Consumer, "committed", refuse)
    made[-1].assigned = {}
    assert assigned(messages, made[-1], 2) == {}
    odd = Message(None, 2)
    odd._all["error"] = Error(messages.kafka.KafkaError._AUTO_OFFSET_RESET)
    made[-1].coming = [[odd]]
    with pytest.raises(ReadError, match="have not answered where group 'g' begins in partition 2 .*start the job again"):
        messages.take(0.1)


def test_a_save_of_an_earlier_version_leaves_what_it_does_not_name_to_the_group(made: list[Any]) -> None:
    """It named no partition from which no message had come, though the group knew its offset."""
    messages, _ = source(made)
    messages.begin({"topic": "t", "offsets": {"1": 8}})
    messages.connect()
    assert assigned(messages, made[-1], 0, 1) == {0: -1001, 1: 8}, "the group knows where partition 0 begins"
    assert messages.reached()["offsets"] == {"0": 5, "1": 8}


def failing(code: int, partition: int | None = 0, offset: int | None = None) -> Message:
    """Return what librdkafka gives in the place of a message."""
    found = Message(None)
    found._all |= {"error": Error(code), "partition": partition, "offset": offset}
    return found


def test_every_error_among_messages_is_looked_at(made: list[Any]) -> None:
    messages, consumer = source(made)
    kinds = messages.kafka.KafkaError
    consumer.coming = [[failing(kinds._TRANSPORT)], [failing(kinds._AUTO_OFFSET_RESET, 1)]]
    with pytest.raises(SourceError, match="messages were deleted before they were read"):
        messages.take(0.1)


def test_rows_may_be_on_their_way_until_each_partition_has_told_its_end(made: list[Any]) -> None:
    messages, consumer = source(made)
    assert consumer.settings["enable.partition.eof"] is True
    end = messages.kafka.KafkaError._PARTITION_EOF
    consumer.coming = [[failing(end, 1, 40)], [], [Message(b'{"id": 1}', 0, 5)], [failing(end, 0, 6)], [failing(end, 7, 3)]]
    assert messages.take(0.1) is None and not messages.ready, "partition 0 has told nothing"
    assert messages.take(0.1).num_rows == 1 and messages.ready
    # the end of a partition that another consumer has
    assert messages.take(0.1) is None and messages.ready
    consumer.coming = [[Message(b'{"id": 1}', 0, 6)]]
    assert messages.take(0.1).num_rows == 1 and not messages.ready
    consumer.calls["on_revoke"](consumer, [Partition("t", 0)])
    assert messages.ready


def test_a_place_is_checked_with_a_message_of_each_partition(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    messages, _ = source(made)
    kinds = messages.kafka.KafkaError
    backlog = [Message(b"{}", 0, number) for number in range(7, 30)]

    def consume(self: Consumer, most: int, seconds: float) -> list[Message]:
        # an error comes first, and what waits in partition 0 before the messages of the others
        self.calls_made = calls = getattr(self, "calls_made", 0) + 1
        if calls == 1:
            return [failing(kinds._TRANSPORT, None)]
        return [*(backlog if 0 in self.assigned else []), *([Message(b"{}", 1, 7)] if 1 in self.assigned else [])][:most]

    monkeypatch.setattr(Consumer, "consume", consume)
    messages.begin({"topic": "t", "offsets": {"0": 8, "1": 8}, "times": {"0": 5, "1": 6}})
    with pytest.raises(SourceError, match="offset 7 of partition 1 is not the one that was read before"):
        messages.connect()
    monkeypatch.setattr(kafka, "START_SECONDS", 0.01)
    monkeypatch.setattr(Consumer, "consume", lambda self, most, seconds: [])
    with pytest.raises(Away, match="no message has come from partition 0"):
        messages.connect()
    gone = failing(kinds.UNKNOWN_TOPIC_OR_PART, None)
    monkeypatch.setattr(Consumer, "consume", lambda self, most, seconds: [gone])
    with pytest.raises(SourceError, match="the topic is gone"):
        messages.connect()


def test_a_place_in_another_topic_is_refused(made: list[Any]) -> None:
    messages, _ = source(made)
    with pytest.raises(ConfigError, match="saves are of the topic 'u', and the source is the topic 't'"):
        messages.begin({"topic": "u", "offsets": {}})
    with pytest.raises(ConfigError, match="saves are of the stream 'u', and the source is the topic 't'"):
        messages.begin({"stream": "u", "entry": "1-0"})


def test_a_place_behind_which_messages_are_gone_is_refused(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    messages, _ = source(made)

    def begins(low: int, high: int, words: str, offset: int = 8, **more: Any) -> None:
        messages.begin({"topic": "t", "offsets": {"1": offset}, **more})
        with monkeypatch.context() as patch:
            patch.setattr(Consumer, "get_watermark_offsets", lambda self, partition, seconds: (low, high))
            with pytest.raises(SourceError, match=words) as caught:
                messages.connect()
        assert "No row was trained on" in str(caught.value) and "another checkpoint_dir" in str(caught.value)
        assert not hasattr(made[-1], "calls"), "it has not joined the group"

    begins(12, 40, "partition 1 now begins at offset 12, and the save was made at 8: 4 messages were deleted")
    begins(0, 7, "partition 1 ends at offset 7, and the save was made at 8: the topic was made anew, or cut off")
    monkeypatch.setattr(Consumer, "consume", lambda self, most, seconds: [Message(b"{}", 1, 7)])
    begins(0, 40, "message at offset 7 of partition 1 is not the one that was read before", times={"1": 6})
    messages.begin({"topic": "t", "offsets": {"1": 8}, "times": {"1": 5}})
    messages.connect()
    assert made[-1].settings["auto.offset.reset"] == "error" and made[-1].assigned == {}
    messages.begin({"topic": "t", "offsets": {"1": 8}, "times": {"1": 6}})
    monkeypatch.setattr(Consumer, "get_watermark_offsets", lambda self, partition, seconds: (8, 40))
    messages.connect()


def test_a_partition_that_is_gone_and_brokers_that_are_away(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    messages, _ = source(made)
    messages.begin({"topic": "t", "offsets": {"1": 8}})
    for name, kind, words in (
        ("_UNKNOWN_PARTITION", SourceError, "no partition 1: the topic was deleted"),
        ("_TRANSPORT", Away, "away"),
    ):

        def refuse(*_: Any, name: str = name) -> Any:
            raise Failed(Error(getattr(messages.kafka.KafkaError, name)))

        monkeypatch.setattr(Consumer, "get_watermark_offsets", refuse)
        with pytest.raises(kind, match=words):
            messages.connect()
    with pytest.raises(SourceError, match="messages were deleted before they were read"):
        messages._check_error(Error(messages.kafka.KafkaError._AUTO_OFFSET_RESET), 1)


def test_a_group_that_gives_no_partitions_is_told_once(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    table = kafka.SYSTEM.open("kafka://a/t?group=g", SCHEMA, 0.01, lambda path, columns: pytest.fail("no file is read"))
    assert table.arriving is not None
    messages = table.arriving._source
    messages.connect()
    monkeypatch.setattr(kafka, "_TOLD_SECONDS", 0.0)
    with pytest.warns(RuntimeWarning, match=r"group 'g' has given this job no partitions yet; it waits. .*for 45 s \(session"):
        assert messages.take(0.0) is None
    # warnings are errors in these tests
    assert messages.take(0.0) is None
    made[-1].calls["on_assign"](made[-1], [Partition("t", 0, -1)])
    messages.connect()
    made[-1].calls["on_assign"](made[-1], [Partition("t", 0, -1)])
    assert messages.take(0.0) is None


def test_messages_that_cannot_be_read_are_left_out_and_told_with_their_offsets(made: list[Any]) -> None:
    messages, consumer = source(made)
    messages.bad = bad = BadRows(None, Limit(3))
    good = [Message(b'{"id": %d}' % number, 0, number) for number in range(5)]
    consumer.coming = [
        [good[0]],
        [Message(b"no JSON", 1, 3), *good[1:3], Message(b'{"id": "x"}', 0, 7), good[3]],
        [Message(b"1", 0, 8)],
    ]
    assert messages.take(0.1).to_pylist() == [{"id": number} for number in range(4)]
    first, second = bad.news()
    assert (
        bad.count == 2
        and first.startswith("source: the message at offset 3 of partition 1 of kafka://")
        and "'no JSON'" in first
    )
    assert ": column 'id' is int64, and a value here is a text" in second and "offset 7 of partition 0" in second
    # a batch without a good one moves the position as well
    messages.position()
    assert messages.take(0.1).num_rows == 0, "not None: something has come (idle=)"
    messages.commit(messages.position())
    assert consumer.stored == [{0: 9}]
    consumer.coming = [[Message(b"[]", 0, 9), Message(b"", 0, 10)]]
    with pytest.raises(SourceError, match=r"more than 3 rows cannot be read .*offset 3 of partition 1"):
        messages.take(0.1)


def test_what_a_registry_refuses_is_told_with_its_offset(made: list[Any], registry: Registry) -> None:
    number = registry.add("t-value", {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]})
    url = f"kafka://b/t?group=g&value=avro&registry={registry.url}"
    values = [bytes([0, 0, 0, 0, number, 2]), b"\0\0\0\0\x63\x04"]
    coming = [[Message(values[0], 0, 7)], [Message(values[0], 1, 2), Message(values[1], 1, 3), Message(values[0], 1, 4)]]
    messages, consumer = source(made, url, None)
    consumer.coming = list(coming)
    with pytest.raises(
        SourceError, match="message at offset 3 of partition 1 of kafka://b/t cannot be read as Avro: .* no schema 99"
    ):
        messages.take(0.1)
    messages, consumer = source(made, url, None)
    messages.bad = bad = BadRows(None, Limit(1))
    consumer.coming = list(coming)
    assert messages.take(0.1).to_pylist() == [{"id": 1}] * 3
    assert bad.count == 1 and "offset 3 of partition 1 of kafka://b/t: cannot be read as Avro: the registry" in bad.news()[0]
    registry.login = "u:p"
    consumer.coming = [[Message(values[0], 0, 8)], [Message(b"", 1, 5), Message(b"\0\0\0\0\x62\x04", 1, 6)]]
    with pytest.raises(
        SourceError, match="offset 6 of partition 1 of kafka://b/t cannot be read as Avro: .* refuses the login"
    ):
        messages.take(0.1)
    assert bad.count == 1


def test_offsets_are_stored_within_the_job_s_time_and_nothing_is_closed_meanwhile() -> None:
    source: Any = object.__new__(kafka.Messages)
    over, did = threading.Event(), []
    source.name, source.address, source.settle = "kafka://b/t", types.SimpleNamespace(path="t"), None
    source._lock, source._storing, source._has = threading.Lock(), threading.Lock(), {0: 1}
    source.kafka = types.SimpleNamespace(TopicPartition=lambda *words: words, KafkaException=ValueError)
    source._consumer = types.SimpleNamespace(commit=lambda **words: over.wait(30), close=lambda: did.append("closed"))
    with limited(0.1, None), pytest.raises(JobTimeoutError, match="waited for kafka://b/t"):
        source.commit({0: (1, 5)})
    source.close()
    assert not did
    over.set()


def test_a_signal_is_heard_while_brokers_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    # a thread that is within librdkafka hears none
    monkeypatch.setattr(kafka, "_LEAVE_SECONDS", 0.1)
    source: Any = object.__new__(kafka.Messages)
    over, threads = threading.Event(), []

    def silent(**words: Any) -> list[Any]:
        threads.append(threading.current_thread())
        return []

    source.name, source.address, source.settle, source._open = "kafka://b/t", types.SimpleNamespace(path="t"), None, {}
    source._lock, source._storing, source._has = threading.Lock(), threading.Lock(), {0: 1}
    source.kafka = types.SimpleNamespace(TopicPartition=lambda *words: words, KafkaException=ValueError)
    source._consumer = types.SimpleNamespace(commit=silent, close=lambda: (silent(), over.wait(30)))
    source.commit({0: (1, 5)})
    source.close()
    assert len(threads) == 2 and threading.main_thread() not in threads, "and a close that takes long is left alone"
    over.set()


def test_a_consumer_that_was_left_takes_no_partitions_from_the_next_one(made: list[Any]) -> None:
    messages, old = source(made)
    messages.connect()
    made[-1].calls["on_assign"](made[-1], [Partition("t", 0, -1)])
    old.calls["on_revoke"](old, [Partition("t", 0, -1)])
    made[-1].coming = [[Message(b'{"id": 1}', 0, 7)]]
    assert messages.take(0.1).to_pylist() == [{"id": 1}]
