"""A proxy before librdkafka's mock of a broker, which does of Kafka's transactions what the mock does not.

::

    TxnOffsetCommit     the mock forgets the offsets      here: they are stored when the transaction is committed, and only then
    InitProducerId      the mock leaves the transaction   here: what a producer of the same name has left open is aborted,
                        of an older producer open         and that producer is shut out
    Produce             the mock shows every message      here: it is remembered which messages were committed, and `whole` returns
                        to everybody                      only these, as a reader with isolation.level=read_committed gets them

It changes no message's length: in the mock's answers it replaces the mock's port by its own.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.servers.kafka import Kafka

_PRODUCE, _OFFSET_COMMIT, _INIT, _ADD_PARTITIONS, _ADD_OFFSETS, _END, _TXN_OFFSETS = 0, 8, 22, 24, 25, 26, 28
#: the first version of each request whose texts and lists are compact
_COMPACT = {_PRODUCE: 9, _INIT: 2, _ADD_PARTITIONS: 3, _ADD_OFFSETS: 3, _END: 3, _TXN_OFFSETS: 3}


class _Reader:
    """Reads a request. Attributes: at: the place of the next byte."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at
        self.compact = False

    def number(self, form: str) -> int:
        (found,) = struct.unpack_from(">" + form, self._data, self.at)
        self.at += struct.calcsize(form)
        return int(found)

    def _length(self, form: str) -> int:
        if not self.compact:
            return self.number(form)
        found = shift = 0
        while True:
            octet = self.number("B")
            found |= (octet & 0x7F) << shift
            shift += 7
            if octet < 0x80:
                return found - 1

    def text(self) -> str:
        size = max(0, self._length("h"))
        self.at += size
        return self._data[self.at - size : self.at].decode()

    def count(self) -> int:
        return max(0, self._length("i"))

    def tags(self) -> None:
        if self.compact:
            assert self.number("B") == 0


@dataclass
class _Transaction:
    """A producer by its name. Attributes: producer, epoch: the one that may write; open: whether it has begun; offsets: group,
    generation, member -> topic -> partition -> offset; messages: topic, partition, offset."""

    producer: int = -1
    epoch: int = -1
    open: bool = False
    offsets: dict[tuple[str, int, str], dict[str, dict[int, int]]] = field(default_factory=dict)
    messages: set[tuple[str, int, int]] = field(default_factory=set)


@dataclass
class _Asked:
    """A request whose answer says something. Attributes: name: whose producer is asked for; transaction: whose messages these are;
    compact: the form of its answer; counts: topic, partition -> how many messages."""

    name: str = ""
    transaction: _Transaction | None = None
    compact: bool = False
    counts: dict[tuple[str, int], int] = field(default_factory=dict)


class TransactionalKafka(Kafka):
    """Attributes: hosts: the address of the proxy; refused: how many requests came from producers that were shut out."""

    def __init__(self) -> None:
        super().__init__()
        host, _, port = self.hosts.partition(":")
        self._mock = (host, int(port))
        self._listener = socket.create_server((host, 0))
        mine = self._listener.getsockname()[1]
        self._before, self._after = (host.encode() + struct.pack(">i", one) for one in (int(port), mine))
        self.hosts = f"{host}:{mine}"
        self.refused = 0
        self._lock = threading.Lock()
        self._names: dict[str, _Transaction] = {}
        #: messages of transactions that were not committed, or not yet
        self._hidden: set[tuple[str, int, int]] = set()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def whole(self, topic: str) -> list[tuple[bytes | None, bytes]]:
        found = self.messages(topic)
        return [(one.key(), one.value()) for one in found if (topic, one.partition(), one.offset()) not in self._hidden]

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self._mock)
                asked: dict[int, _Asked] = {}
                threading.Thread(target=self._up, args=(client, broker, asked), daemon=True).start()
                threading.Thread(target=self._down, args=(client, broker, asked), daemon=True).start()

    def _up(self, client: socket.socket, broker: socket.socket, asked: dict[int, _Asked]) -> None:
        """Pass on requests. Args: asked: those whose answers say something, by their numbers."""
        with contextlib.suppress(OSError):
            while (data := _frame(client)) is not None:
                broker.sendall(self._request(data, asked))
        _ended(client, broker)

    def _down(self, client: socket.socket, broker: socket.socket, asked: dict[int, _Asked]) -> None:
        with contextlib.suppress(OSError):
            while (data := _frame(broker)) is not None:
                (number,) = struct.unpack_from(">i", data, 4)
                if number in asked:
                    self._told(asked.pop(number), data)
                client.sendall(data.replace(self._before, self._after))
        _ended(client, broker)

    def _told(self, asked: _Asked, data: bytes) -> None:
        with self._lock:
            if asked.transaction is None:
                # number, tags, throttle time, error, producer, epoch
                _, error, producer, epoch = struct.unpack_from(">ihqh", data, 9)
                if not error:
                    self._names[asked.name] = _Transaction(producer, epoch)
                return
            reader = _Reader(data, 8)
            reader.compact = asked.compact
            reader.tags()
            for _ in range(reader.count()):
                topic = reader.text()
                for _ in range(reader.count()):
                    partition, error, offset = reader.number("i"), reader.number("h"), reader.number("q")
                    reader.at += 16
                    if asked.compact:
                        assert reader.count() == 0 and reader.text() == ""
                        reader.tags()
                    if not error:
                        count = asked.counts[topic, partition]
                        new = {(topic, partition, one) for one in range(offset, offset + count)}
                        asked.transaction.messages |= new
                        self._hidden |= new
                reader.tags()

    def _request(self, data: bytes, asked: dict[int, _Asked]) -> bytes:
        """Return a request as it goes to the mock, after what it has to do before."""
        kind, version, number = struct.unpack_from(">hhi", data, 4)
        if kind not in _COMPACT:
            return data
        reader = _Reader(data, 12)
        reader.text()
        reader.compact = version >= _COMPACT[kind]
        reader.tags()
        name = reader.text()
        if not name:
            return data
        with self._lock:
            if kind == _PRODUCE:
                asked[number] = self._produced(name, reader, version)
                return data
            if kind == _INIT:
                self._abandoned(name)
                assert version >= 2
                asked[number] = _Asked(name)
                return data
            group = reader.text() if kind == _TXN_OFFSETS else ""
            at = reader.at
            producer, epoch = reader.number("q"), reader.number("h")
            known = self._names[name]
            if (known.producer, known.epoch) != (producer, epoch):
                self.refused += 1
                # with an epoch that is not the mock's it refuses the request itself
                return data[: at + 8] + struct.pack(">h", epoch + 1) + data[at + 10 :]
            known.open = kind != _END
            if kind == _TXN_OFFSETS:
                self._keep(known, group, reader, version)
            elif kind == _END:
                if reader.number("?"):
                    for member, topics in known.offsets.items():
                        self._store(*member, topics)
                    self._hidden -= known.messages
                known.offsets, known.messages = {}, set()
        return data

    def _produced(self, name: str, reader: _Reader, version: int) -> _Asked:
        """Note messages that go to a topic. Those of a producer that is shut out are in no transaction that can be committed."""
        assert version >= 5
        found = _Asked(name, _Transaction(), compact=reader.compact)
        reader.at += 6
        for _ in range(reader.count()):
            topic = reader.text()
            for _ in range(reader.count()):
                partition, size = reader.number("i"), reader.count()
                end = reader.at + size
                reader.at += 23
                found.counts[topic, partition] = reader.number("i") + 1
                reader.at += 16
                producer, epoch = reader.number("q"), reader.number("h")
                known = self._names[name]
                if (known.producer, known.epoch) == (producer, epoch):
                    found.transaction = known
                reader.at = end
                reader.tags()
            reader.tags()
        return found

    def _keep(self, known: _Transaction, group: str, reader: _Reader, version: int) -> None:
        generation, member = -1, ""
        if version >= 3:
            generation, member, _ = reader.number("i"), reader.text(), reader.text()
        topics = known.offsets.setdefault((group, generation, member), {})
        for _ in range(reader.count()):
            partitions = topics.setdefault(reader.text(), {})
            for _ in range(reader.count()):
                partition, offset = reader.number("i"), reader.number("q")
                partitions[partition] = offset
                if version >= 2:
                    reader.number("i")
                reader.text()
                reader.tags()
            reader.tags()

    def _abandoned(self, name: str) -> None:
        known = self._names.get(name)
        if known is not None and known.open:
            known.open = False
            self._ask(_END, 1, _text(name) + struct.pack(">qh?", known.producer, known.epoch, False))

    def _store(self, group: str, generation: int, member: str, topics: dict[str, dict[int, int]]) -> None:
        body = _text(group) + struct.pack(">i", generation) + _text(member) + struct.pack(">qi", -1, len(topics))
        for topic, partitions in topics.items():
            body += _text(topic) + struct.pack(">i", len(partitions))
            body += b"".join(struct.pack(">iqh", partition, offset, -1) for partition, offset in partitions.items())
        answer = self._ask(_OFFSET_COMMIT, 2, body)
        # the last partition's error
        assert answer.endswith(b"\0\0"), answer

    def _ask(self, kind: int, version: int, body: bytes) -> bytes:
        """Return the mock's answer to a request of the proxy's own."""
        data = struct.pack(">hhi", kind, version, 1) + _text("proxy") + body
        with socket.create_connection(self._mock) as broker:
            broker.sendall(struct.pack(">i", len(data)) + data)
            answer = _frame(broker)
        assert answer is not None
        return answer


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def _frame(connection: socket.socket) -> bytes | None:
    """Return the next message, with its length; None at the end."""
    head = _exactly(connection, 4)
    rest = _exactly(connection, struct.unpack(">i", head)[0]) if head is not None else None
    return head + rest if head is not None and rest is not None else None


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        piece = connection.recv(size - len(found))
        if not piece:
            return None
        found += piece
    return bytes(found)


def _ended(*connections: socket.socket) -> None:
    for one in connections:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@pytest.fixture(scope="module")
def transactional_kafka(kafka: Kafka) -> Iterator[TransactionalKafka]:
    one = TransactionalKafka()
    yield one
    one.close()
