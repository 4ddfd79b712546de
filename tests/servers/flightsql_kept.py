"""A server of Flight SQL whose tables can be written, over DuckDB in memory: it speaks the protocol itself to the real client.

No server of Flight SQL that takes rows comes as a wheel. The messages, and the numbers of their fields, are those of Arrow's
FlightSql.proto.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.flight as flight

_ANY = "type.googleapis.com/arrow.flight.protocol.sql."
#: SqlInfo: what kind of transactions there are; 1: those that are begun and ended by actions
_TRANSACTIONS = 8
#: TableExistsOption, TableNotExistOption
_APPEND, _CREATE = 2, 1
#: EndTransaction
_COMMIT = 1


class KeptServer(flight.FlightServerBase):
    """The server.

    Args:
        transactions: whether it has transactions.
    Attributes:
        url: its URL, without ?table=.
        before_commit: is called before the next transaction is committed.
    """

    def __init__(self, transactions: bool = True) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self.url = f"flightsql://127.0.0.1:{self.port}?tls=off"
        self._transacts = transactions
        self.before_commit: Callable[[], object] = lambda: None
        self._database = duckdb.connect()
        self._open: dict[bytes, Any] = {}
        self._prepared: dict[bytes, tuple[str, bytes]] = {}
        self._thread = threading.Thread(target=self.serve, name="flightsql-kept")
        self._thread.start()

    def sql(self, *statements: str) -> list[Any]:
        with self._database.cursor() as cursor:
            for statement in statements:
                rows = cursor.execute(statement).fetchall()
        return rows

    def close(self) -> None:
        self.shutdown()
        self._thread.join(30)
        assert not self._thread.is_alive()
        assert not self._open, "a transaction was left open"
        self._database.close()

    # -- what pyarrow calls

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        endpoint = flight.FlightEndpoint(descriptor.command, [])
        return flight.FlightInfo(self._result(descriptor.command).schema, descriptor, [endpoint], -1, -1)

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        return flight.SchemaResult(self._result(descriptor.command).schema)

    def do_get(self, context: Any, ticket: Any) -> Any:
        return flight.RecordBatchStream(self._result(ticket.ticket))

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:
        _, given = _unpacked(action.body.to_pybytes())
        for kind, answer in self._acted(action.type, given):
            yield flight.Result(_message((1, (_ANY + kind).encode()), (2, answer)))

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        kind, given = _unpacked(descriptor.command)
        if kind == "CommandStatementUpdate":
            rows = self._run(_text(given, 1), given.get(2, [b""])[0])
            count = int(rows[0][0]) if rows else 0
        else:
            assert kind == "CommandStatementIngest", kind
            count = self._ingest(given, reader.read_all())
        writer.write(_message((1, count)))

    # -- what they mean

    def _acted(self, action: str, given: dict[int, list[Any]]) -> Iterator[tuple[str, bytes]]:
        if action == "BeginTransaction":
            key = uuid.uuid4().bytes
            self._open[key] = self._database.cursor()
            self._open[key].begin()
            yield "ActionBeginTransactionResult", _message((1, key))
        elif action == "EndTransaction":
            cursor = self._open.pop(given[1][0])
            if given[2][0] == _COMMIT:
                # once: a transaction that is empty is ended so, too
                call, self.before_commit = self.before_commit, lambda: None
                call()
            with _told():
                cursor.commit() if given[2][0] == _COMMIT else cursor.rollback()
            cursor.close()
        elif action == "CreatePreparedStatement":
            key = uuid.uuid4().bytes
            self._prepared[key] = _text(given, 1), given.get(2, [b""])[0]
            yield "ActionCreatePreparedStatementResult", _message((1, key))
        else:
            assert action == "ClosePreparedStatement", action
            del self._prepared[given[1][0]]

    def _result(self, command: bytes) -> pa.Table:
        kind, given = _unpacked(command)
        if kind == "CommandGetSqlInfo":
            return _about(1 if self._transacts else 0)
        if kind == "CommandPreparedStatementQuery":
            query, key = self._prepared[given[1][0]]
        else:
            assert kind == "CommandStatementQuery", kind
            query, key = _text(given, 1), given.get(2, [b""])[0]
        with _told(), self._cursor(key) as cursor:
            return cursor.sql(query).to_arrow_table()

    def _run(self, statement: str, key: bytes) -> list[Any]:
        with _told(), self._cursor(key) as cursor:
            rows: list[Any] = cursor.execute(statement).fetchall()
        return rows

    def _ingest(self, given: dict[int, list[Any]], rows: pa.Table) -> int:
        options = _fields(given[1][0])
        name = ".".join(f'"{_text(given, number)}"' for number in (3, 2) if number in given)
        with _told(), self._cursor(given.get(6, [b""])[0]) as cursor:
            cursor.register("rows_given", rows)
            if options.get(1, [0])[0] == _CREATE and options.get(2, [0])[0] != _APPEND:
                cursor.execute(f"CREATE TABLE {name} AS SELECT * FROM rows_given")
            else:
                cursor.execute(f"INSERT INTO {name} BY NAME SELECT * FROM rows_given")
        return rows.num_rows

    def _cursor(self, key: bytes) -> Any:
        return _Shared(self._open[key]) if key else self._database.cursor()


class _Shared:
    """A transaction's cursor, which stays open."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def __enter__(self) -> Any:
        return self._cursor

    def __exit__(self, *told: object) -> None:
        pass


class _told:
    """Tells the client what DuckDB raises."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: object) -> None:
        if isinstance(error, duckdb.Error):
            raise flight.FlightServerError(str(error)) from None


def _about(transactions: int) -> pa.Table:
    children = [
        pa.array([], pa.string()),
        pa.array([], pa.bool_()),
        pa.array([], pa.int64()),
        pa.array([transactions], pa.int32()),
        pa.array([], pa.list_(pa.string())),
        pa.array([], pa.map_(pa.int32(), pa.list_(pa.int32()))),
    ]
    names = ["string_value", "bool_value", "bigint_value", "int32_bitmask", "string_list", "int32_to_int32_list_map"]
    value = pa.UnionArray.from_dense(pa.array([3], pa.int8()), pa.array([0], pa.int32()), children, names)
    return pa.table({"info_name": pa.array([_TRANSACTIONS], pa.uint32()), "value": value})


# -- messages of protobuf


def _unpacked(message: bytes) -> tuple[str, dict[int, list[Any]]]:
    """Return (the name of the message in an Any, its fields)."""
    whole = _fields(message)
    return _text(whole, 1).removeprefix(_ANY), _fields(whole.get(2, [b""])[0])


def _text(fields: dict[int, list[Any]], number: int) -> str:
    return str(fields[number][0].decode())


def _fields(message: bytes) -> dict[int, list[Any]]:
    """Return number -> values of a message whose fields are numbers and bytes."""
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        value, at = _number(message, at)
        if key & 7 == 2:
            found.setdefault(key >> 3, []).append(message[at : at + value])
            at += value
        else:
            assert key & 7 == 0, key
            found.setdefault(key >> 3, []).append(value)
    return found


def _number(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (message[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if message[at - 1] < 128:
            return value, at


def _message(*fields: tuple[int, Any]) -> bytes:
    made = b""
    for number, value in fields:
        whole = isinstance(value, int)
        made += _coded(number << 3 | (0 if whole else 2)) + _coded(value if whole else len(value)) + (b"" if whole else value)
    return made


def _coded(value: int) -> bytes:
    made = b""
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])
