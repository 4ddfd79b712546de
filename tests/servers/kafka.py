"""A cluster of Kafka in this process: librdkafka's own mock, to which other processes connect, too."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import NOT_RUN


class Kafka:
    """Attributes: hosts: the brokers' addresses."""

    def __init__(self) -> None:
        import confluent_kafka

        self._library: Any = confluent_kafka
        # the cluster lives as long as this producer
        self._producer: Any = confluent_kafka.Producer(
            {"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 1, "log_level": 2}
        )
        brokers = self._producer.list_topics(timeout=10).brokers.values()
        self.hosts = ",".join(f"{one.host}:{one.port}" for one in brokers)

    def put(self, topic: str, *values: bytes) -> None:
        """Produce messages to the four partitions of a topic, in turn."""
        for number, value in enumerate(values):
            self._producer.produce(topic, value, partition=number % 4)
        assert self._producer.flush(30) == 0

    def _consumer(self, group: str, more: dict[str, Any] | None = None) -> Any:
        told = {"bootstrap.servers": self.hosts, "group.id": group, "auto.offset.reset": "earliest", "log_level": 2}
        return self._library.Consumer({**told, **(more or {})})

    def store(self, topic: str, group: str, *offsets: int) -> None:
        """Store the offsets of a group without a member, of partition 0, 1, 2, 3."""
        consumer = self._consumer(group)
        made = [self._library.TopicPartition(topic, number, offset) for number, offset in enumerate(offsets)]
        consumer.commit(offsets=made, asynchronous=False)
        consumer.close()

    def stored(self, topic: str, group: str) -> list[int]:
        """Return the offsets that a group has stored, of partition 0, 1, 2, 3; none is -1001."""
        consumer = self._consumer(group)
        try:
            partitions = [self._library.TopicPartition(topic, number) for number in range(4)]
            return [one.offset for one in consumer.committed(partitions, 30)]
        finally:
            consumer.close()

    def all(self, topic: str, count: int) -> list[tuple[bytes | None, bytes]]:
        """Return (key, value) of so many messages of a topic, once there are so many."""
        consumer = self._consumer("all")
        consumer.assign([self._library.TopicPartition(topic, number, 0) for number in range(4)])
        found: list[Any] = []
        try:
            while len(found) < count:
                found += [one for one in consumer.consume(count - len(found), 30) if one.error() is None]
            return [(one.key(), one.value()) for one in found]
        finally:
            consumer.close()

    def whole(self, topic: str) -> list[tuple[bytes | None, bytes]]:
        """Return (key, value) of all messages of a topic."""
        return [(one.key(), one.value()) for one in self.messages(topic)]

    def messages(self, topic: str) -> list[Any]:
        """Return all messages of a topic."""
        consumer = self._consumer("count", {"enable.partition.eof": True})
        consumer.assign([self._library.TopicPartition(topic, number, 0) for number in range(4)])
        found: list[Any] = []
        ended: set[int] = set()
        try:
            while len(ended) < 4:
                some = consumer.consume(10_000, 1)
                found += [one for one in some if one.error() is None]
                ended |= {one.partition() for one in some if one.error() is not None}
            return found
        finally:
            consumer.close()


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    if importlib.util.find_spec("confluent_kafka") is None:
        pytest.skip(NOT_RUN + "Kafka: pip install confluent-kafka")
    yield Kafka()
