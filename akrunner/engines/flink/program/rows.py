"""Carries the rows of a PyFlink table to tasks and back where the two Java operators cannot be used: with a few Python
calls for each row, and only by what Flink documents.

::

    Table -> UDF: row -> bytes -> key_by: dealt in turn -> FedRows (keyed: it has timers) -> UDTF: Arrow bytes -> rows -> Table

Imports PyFlink, so only for programs that have it.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyflink.common import Row, Types
from pyflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext
from pyflink.java_gateway import get_gateway
from pyflink.table import DataTypes, ScalarFunction, Table, TableFunction
from pyflink.table.expressions import call, col
from pyflink.table.types import BinaryType, DataType, TimestampType, VarBinaryType
from pyflink.table.udf import udf, udtf

from akrunner.engines.flink.cells import packed, unpacked
from akrunner.engines.flink.program import planner
from akrunner.engines.flink.schemas import schema_bytes, schema_from
from akrunner.engines.flink.taskmanager.feed import as_bytes
from akrunner.engines.flink.taskmanager.function import END, FINAL, HELLO, ROWS, TICK, FedSubtask

_MAX_PARALLELISM = 128
#: the first byte of an element; a row follows it, or the number of a subtask, in two bytes
_ROW, _HELLO = b"\1", b"\0"
#: the time of an event-time timer that fires when the input has ended
_THE_END = 2**63 - 1


class _AsBytes(ScalarFunction):  # type: ignore[misc, unused-ignore]
    def eval(self, *values: Any) -> bytes:
        return _ROW + packed(values)


class _AsRows(TableFunction):  # type: ignore[misc, unused-ignore]
    """Turns Arrow bytes into rows.

    Raises:
        RuntimeError: with the words that the job is to fail with, if the bytes begin with `FINAL`.
    """

    def eval(self, data: bytes) -> Iterator[tuple[Any, ...]]:
        if data[:1] == FINAL:
            raise RuntimeError(bytes(data[1:]).decode())
        with pa.ipc.open_stream(data) as reader:
            for batch in reader:
                yield from zip(*[column.to_pylist() for column in batch.columns], strict=True)


class _Dealt:
    """Chooses the key of an element: rows go to one subtask after the other, and the first element, which
    is made for each subtask, goes to that subtask."""

    def __init__(self, keys: list[int]) -> None:
        self._keys = keys
        self._turn = itertools.count()

    def __call__(self, value: Row) -> int:
        data = bytes(value[0])
        return self._keys[int.from_bytes(data[1:], "big") if data[:1] == _HELLO else next(self._turn) % len(self._keys)]


class FedRows(KeyedProcessFunction):  # type: ignore[misc, unused-ignore]
    """Runs `FedSubtask` on rows that come one by one (`Values` of `control.proto`), and on a hello for each subtask, in
    place of what `ArrowPack.java` sends.

    Args:
        schema: the schema of the rows, serialized.
        chunk_rows: how many rows go to the task together.
        flush_millis: how long a row waits at most for others, in milliseconds; 0 for no limit.
    """

    def __init__(self, fed: FedSubtask, schema: bytes, chunk_rows: int, flush_millis: int) -> None:
        self._fed = fed
        self._schema_bytes = schema
        self._chunk_rows = chunk_rows
        self._flush_millis = flush_millis

    def open(self, runtime_context: RuntimeContext) -> None:
        self._fed.open(runtime_context)
        self._schema = schema_from(self._schema_bytes)
        self._rows: list[tuple[Any, ...]] = []
        self._greeted = False

    def process_element(self, value: Row, ctx: KeyedProcessFunction.Context) -> Iterator[bytes]:
        if not self._greeted:
            self._greeted = True
            ctx.timer_service().register_event_time_timer(_THE_END)
            self._tick_later(ctx)
            yield from self._fed.process_element((HELLO, b""), ctx)
        data = bytes(value[0])
        if data[:1] == _ROW:
            self._rows.append(unpacked(data[1:]))
        if len(self._rows) >= self._chunk_rows:
            yield from self._emit(ctx)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[bytes]:
        yield from self._emit(ctx)
        if timestamp == _THE_END:
            yield from self._fed.process_element((END, b""), ctx)
        else:
            yield from self._fed.process_element((TICK, b""), ctx)
            self._tick_later(ctx)

    def _tick_later(self, ctx: Any) -> None:
        if self._flush_millis:
            timers = ctx.timer_service()
            timers.register_processing_time_timer(timers.current_processing_time() + self._flush_millis)

    def _emit(self, ctx: Any) -> Iterator[bytes]:
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        columns = zip(*rows, strict=True)
        arrays = [_array(values, field.type) for values, field in zip(columns, self._schema, strict=True)]
        yield from self._fed.process_element((ROWS, as_bytes([pa.record_batch(arrays, schema=self._schema)])), ctx)


def _array(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) and any(isinstance(value, str) for value in values):
        return pa.array(values, pa.string()).cast(kind)
    return pa.array(values, kind)


def fed(
    table: Table, schema: pa.Schema, subtask: FedSubtask, parallelism: int, chunk_rows: int, flush_millis: int
) -> DataStream:
    """Send a table's rows through `subtask`, dealt in turn.

    Args:
        schema: the schema of the table.
    Returns:
        The stream of what the tasks write, as Arrow bytes.
    """
    environment = table._t_env
    kinds = table.get_schema().get_field_data_types()
    columns = [_column(name, kind) for name, kind in zip(schema.names, kinds, strict=True)]
    packed = table.select(call(udf(_AsBytes(), result_type=DataTypes.BYTES()), *columns).alias("data"))
    hellos = ", ".join(f"(CAST(X'{_HELLO.hex()}{number:04x}' AS BYTES))" for number in range(parallelism))
    greeted = environment.sql_query(f"SELECT * FROM (VALUES {hellos}) AS T(data)").union_all(packed)
    planner.be_ready(table)
    rows = environment.to_data_stream(greeted).key_by(_Dealt(_keys(parallelism)), key_type=Types.INT())
    function = FedRows(subtask, schema_bytes(schema), chunk_rows, flush_millis)
    out = rows.process(function, output_type=Types.PRIMITIVE_ARRAY(Types.BYTE())).name("akrunner")
    return out.set_parallelism(parallelism).set_max_parallelism(_MAX_PARALLELISM)


def _column(name: str, kind: DataType) -> Any:
    """Return a column in a type that PyFlink's functions take: BYTES, not BINARY(n), and text for a TIMESTAMP, so that
    the digits after the milliseconds are kept."""
    if isinstance(kind, (BinaryType, VarBinaryType)):
        return col(name).cast(DataTypes.BYTES())
    return col(name).cast(DataTypes.STRING()) if isinstance(kind, TimestampType) else col(name)


def _keys(parallelism: int) -> list[int]:
    """Return a key for each subtask, in the order of the subtasks."""
    jvm = get_gateway().jvm
    groups = jvm.org.apache.flink.runtime.state.KeyGroupRangeAssignment
    found: dict[int, int] = {}
    for key in itertools.count():
        fields = get_gateway().new_array(jvm.java.lang.Object, 1)
        fields[0] = key
        subtask = groups.assignKeyToParallelOperator(jvm.org.apache.flink.types.Row.of(fields), _MAX_PARALLELISM, parallelism)
        found.setdefault(subtask, key)
        if len(found) == parallelism:
            return [found[subtask] for subtask in range(parallelism)]
    raise AssertionError("unreachable")


def rows_table(table: Table, out: DataStream, names: list[str], types: list[Any]) -> Table:
    """Return the rows that tasks write as a Table.

    Args:
        table: a table of the program.
        out: the stream that `fed` returns.
        names: the names of the columns.
        types: their DataTypes.
    """
    environment = table._t_env
    function = f"akrunner_rows_{uuid.uuid4().hex}"
    environment.create_temporary_system_function(function, udtf(_AsRows(), result_types=types))
    written = environment.from_data_stream(out).alias("akrunner_written")
    columns = ", ".join("`" + name.replace("`", "``") + "`" for name in names)
    return environment.sql_query(
        f"SELECT {columns} FROM {written}, LATERAL TABLE({function}(akrunner_written)) AS T({columns})"
    )
