"""A stand-in for librdkafka: a consumer and a producer that do what a test says."""

from __future__ import annotations

import types
from typing import Any

import pytest

from akrunner.io.streams import kafka_client


class Error:
    def __init__(self, code: int, retriable: bool = False, aborts: bool = False) -> None:
        self._code, self._retriable, self._aborts = code, retriable, aborts

    def code(self) -> int:
        return self._code

    def str(self) -> str:
        return "failed with pass-w0rd"

    def retriable(self) -> bool:
        return self._retriable

    def txn_requires_abort(self) -> bool:
        return self._aborts

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
    def __init__(self, topic: str, partition: int, offset: int = -1001) -> None:
        self.topic, self.partition, self.offset, self.error = topic, partition, offset, None


class Consumer:
    """Attributes: coming: what each call of `consume` returns; stored: what was committed; fails: the error of a commit."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.coming: list[list[Message]] = []
        self.stored: list[dict[int, int]] = []
        self.fails: Error | None = None
        self.assigned: dict[int, int] = {}

    def list_topics(self, topic: str = "", timeout: float = 0) -> Any:
        cluster = self.settings["bootstrap.servers"].partition(".")[0]
        return types.SimpleNamespace(topics={topic: types.SimpleNamespace(error=None)}, cluster_id=cluster)

    def subscribe(self, topics: list[str], **calls: Any) -> None:
        self.calls = calls

    def consume(self, most: int, seconds: float) -> list[Message]:
        return self.coming.pop(0) if self.coming else []

    def commit(self, offsets: list[Partition], asynchronous: bool) -> list[Partition]:
        if self.fails is not None:
            raise Failed(self.fails)
        self.stored.append({one.partition: one.offset for one in offsets})
        return offsets

    def consumer_group_metadata(self) -> str:
        return "member"

    def assign(self, partitions: list[Partition]) -> None:
        self.assigned = {one.partition: one.offset for one in partitions}

    def unassign(self) -> None:
        self.assigned = {}

    def committed(self, partitions: list[Partition], seconds: float) -> list[Partition]:
        return [Partition(one.topic, one.partition, 5 if one.partition == 0 else -1001) for one in partitions]

    def get_watermark_offsets(self, partition: Partition, seconds: float) -> tuple[int, int]:
        return 0, 40

    def close(self) -> None:
        self.closed = True


class Producer(Consumer):
    """Attributes: did: the calls of transactions; refuses: a call's name -> the errors that its next calls raise."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self.did: list[Any] = []
        self.refuses: dict[str, list[Error]] = {}

    def _do(self, name: str, *words: Any) -> None:
        if self.refuses.get(name):
            raise Failed(self.refuses[name].pop(0))
        self.did.append((name, *words) if words else name)

    def init_transactions(self, seconds: float) -> None:
        self._do("init")

    def begin_transaction(self) -> None:
        self._do("begin")

    def send_offsets_to_transaction(self, offsets: list[Partition], member: str, seconds: float) -> None:
        self._do("offsets", {one.partition: one.offset for one in offsets}, member)

    def commit_transaction(self, seconds: float) -> None:
        self._do("commit")

    def abort_transaction(self, seconds: float) -> None:
        self._do("abort")

    def produce_batch(self, topic: str, messages: list[dict[str, Any]], on_delivery: Any) -> None:
        self.sent = [*getattr(self, "sent", []), *messages]
        self.on_delivery = on_delivery

    def poll(self, seconds: float) -> None:
        pass

    def purge(self) -> None:
        pass

    def flush(self, seconds: float) -> int:
        return 0


@pytest.fixture
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
        "_PARTITION_EOF _FENCED INVALID_PRODUCER_EPOCH _AUTO_OFFSET_RESET _UNKNOWN_PARTITION _UNKNOWN_TOPIC"
    )
    library = types.SimpleNamespace(
        Consumer=keeping(Consumer),
        Producer=keeping(Producer),
        KafkaException=Failed,
        TopicPartition=Partition,
        OFFSET_BEGINNING=-2,
        KafkaError=types.SimpleNamespace(**{name: number for number, name in enumerate(names.split(), 1)}),
    )
    monkeypatch.setattr(kafka_client, "client", lambda name, extra: library)
    monkeypatch.delenv("KAFKA_CONFIG", raising=False)
    return found
