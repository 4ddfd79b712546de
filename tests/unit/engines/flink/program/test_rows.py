"""Rows of a PyFlink table that go through Python one by one: to bytes and back, dealt in turn, and in chunks; a stand-in takes PyFlink's place."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from akrunner.engines.flink.cells import packed, unpacked
from akrunner.engines.flink.schemas import schema_bytes
from akrunner.engines.flink.taskmanager.feed import as_bytes
from tests.unit.engines.flink.pyflink_stand_in import DataTypes, Table, imported

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string())])


@pytest.fixture(scope="module")
def rows() -> Iterator[Any]:
    with imported("program.rows") as module:
        yield module


def test_a_row_is_bytes_that_begin_with_their_kind(rows: Any) -> None:
    data = rows._AsBytes().eval(1, None, "ü")
    assert data[:1] == b"\1" and unpacked(data[1:]) == (1, None, "ü")


def test_arrow_bytes_are_rows_again(rows: Any) -> None:
    batches = [pa.record_batch([[1, None], ["ü", None]], schema=SCHEMA), pa.record_batch([[3], [""]], schema=SCHEMA)]
    assert list(rows._AsRows().eval(as_bytes(batches))) == [(1, "ü"), (None, None), (3, "")]


def test_words_of_a_failure_fail_the_job_with_them(rows: Any) -> None:
    with pytest.raises(RuntimeError, match="^ScriptFailedError: nö$"):
        list(rows._AsRows().eval(b"\0" + "ScriptFailedError: nö".encode()))


def test_rows_are_dealt_in_turn_and_a_hello_goes_to_its_own_subtask(rows: Any) -> None:
    dealt = rows._Dealt([10, 20, 30])
    row, hello = (b"\1abc",), (b"\0\0\2",)
    assert [dealt(one) for one in (row, hello, row, row, hello, row)] == [10, 30, 20, 30, 30, 10]


class Timers:
    """In place of Flink's timers, and of the context that has them."""

    def __init__(self) -> None:
        self.set: list[tuple[str, int]] = []

    def timer_service(self) -> Timers:
        return self

    def register_event_time_timer(self, time: int) -> None:
        self.set.append(("event", time))

    def register_processing_time_timer(self, time: int) -> None:
        self.set.append(("processing", time))

    def current_processing_time(self) -> int:
        return 1000


class Fed:
    """In place of the function that has the task. It answers each element with its kind."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, Any]] = []

    def open(self, context: Any) -> None:
        self.opened = context

    def process_element(self, element: Any, ctx: Any) -> Iterator[bytes]:
        kind, data = element
        if data:
            with pa.ipc.open_stream(data) as reader:
                data = reader.read_all().to_pylist()
        self.seen.append((kind, data))
        yield bytes([kind])


def element(*values: Any) -> tuple[bytes]:
    return (b"\1" + packed(values),)


HELLO = (b"\0\0\0",)
THE_END = 2**63 - 1


def fed_rows(rows: Any, chunk_rows: int = 2, flush_millis: int = 50, schema: pa.Schema = SCHEMA) -> tuple[Any, Fed, Timers]:
    fed = Fed()
    made = rows.FedRows(fed, schema_bytes(schema), chunk_rows, flush_millis)
    made.open("its context")
    assert fed.opened == "its context"
    return made, fed, Timers()


def test_the_first_element_greets_and_sets_the_timers(rows: Any) -> None:
    made, fed, timers = fed_rows(rows)
    assert list(made.process_element(HELLO, timers)) == [bytes([0])]
    assert fed.seen == [(0, b"")] and timers.set == [("event", THE_END), ("processing", 1050)]
    assert list(made.process_element(HELLO, timers)) == [] and len(timers.set) == 2


def test_rows_go_on_in_chunks(rows: Any) -> None:
    made, fed, timers = fed_rows(rows)
    out = [list(made.process_element(element(number, "x"), timers)) for number in range(4)]
    assert out == [[bytes([0])], [bytes([1])], [], [bytes([1])]]
    assert [data for kind, data in fed.seen if kind == 1] == [[{"a": n, "s": "x"} for n in pair] for pair in ((0, 1), (2, 3))]


def test_a_tick_sends_what_has_come_and_sets_the_next(rows: Any) -> None:
    made, fed, timers = fed_rows(rows, chunk_rows=100)
    list(made.process_element(element(7, None), timers))
    assert list(made.on_timer(1050, timers)) == [bytes([1]), bytes([3])]
    assert fed.seen[1:] == [(1, [{"a": 7, "s": None}]), (3, b"")]
    assert timers.set[2:] == [("processing", 1050)]
    assert list(made.on_timer(1100, timers)) == [bytes([3])], "no empty chunk"


def test_the_end_sends_the_rest_and_no_tick(rows: Any) -> None:
    made, _, timers = fed_rows(rows, chunk_rows=100, flush_millis=0)
    list(made.process_element(element(7, "x"), timers))
    assert timers.set == [("event", THE_END)], "a whole table needs no ticks"
    assert list(made.on_timer(THE_END, timers)) == [bytes([1]), bytes([2])]
    assert len(timers.set) == 1


def test_a_moment_that_comes_as_text_keeps_its_nanoseconds(rows: Any) -> None:
    kind = pa.timestamp("ns")
    made = rows._array(("2026-01-02 03:04:05.123456789", None), kind)
    assert made.type == kind and made.cast(pa.int64()).to_pylist()[0] % 10**9 == 123456789 and made[1].as_py() is None
    moment = datetime.datetime(2026, 1, 2)
    assert rows._array((moment, None), pa.timestamp("us")).to_pylist() == [moment, None]
    assert rows._array((None,), kind).to_pylist() == [None]
    assert rows._array(("2026",), pa.string()).to_pylist() == ["2026"]


class Column:
    """In place of an expression: how it is written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def cast(self, kind: Any) -> Column:
        return Column(f"CAST({self.text} AS {kind})")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("BinaryType", "CAST(a AS BYTES())"),
        ("VarBinaryType", "CAST(a AS BYTES())"),
        ("TimestampType", "CAST(a AS STRING())"),
        ("", "a"),
    ],
)
def test_columns_are_brought_in_types_that_python_takes(
    kind: str, text: str, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "col", Column)
    assert rows._column("a", getattr(rows, kind)() if kind else DataTypes.BIGINT()).text == text


def test_a_key_is_found_for_each_subtask(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    subtasks = [2, 2, 0, 2, 0, 1]

    class Java(SimpleNamespace):
        def __getattr__(self, name: str) -> Any:
            return self

    java = Java(
        Row=SimpleNamespace(of=lambda fields: fields[0]),
        KeyGroupRangeAssignment=SimpleNamespace(
            assignKeyToParallelOperator=lambda key, most, count: subtasks[key] if (most, count) == (128, 3) else None
        ),
    )
    monkeypatch.setattr(rows, "get_gateway", lambda: SimpleNamespace(jvm=java, new_array=lambda kind, size: [None] * size))
    assert rows._keys(3) == [2, 5, 0], "in the order of the subtasks, the first of each"


def test_what_tasks_write_is_a_table_of_its_columns(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    functions: dict[str, Any] = {}

    class Written:
        def alias(self, name: str) -> str:
            assert name == "akrunner_written"
            return "written"

    environment = SimpleNamespace(
        create_temporary_system_function=functions.__setitem__,
        from_data_stream=lambda out: Written(),
        sql_query=lambda text: text,
    )
    monkeypatch.setattr(rows, "udtf", lambda function, result_types: result_types)
    query = rows.rows_table(Table(None, environment), "out", ["a", "select", "x`y`"], ["BIGINT", "STRING", "INT"])
    ((name, kinds),) = functions.items()
    assert kinds == ["BIGINT", "STRING", "INT"]
    columns = "`a`, `select`, `x``y```"
    assert query == f"SELECT {columns} FROM written, LATERAL TABLE({name}(akrunner_written)) AS T({columns})"
