"""Streams while they flow: rows go from sources to sinks, an end comes once, and an error stops them all."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

from akrunner.alink import BatchOperator, MemSourceBatchOp, MemSourceStreamOp, StreamOperator
from akrunner.alink.environment import current
from akrunner.alink.flow import Flow, SqlStreamOp, Stopped
from akrunner.errors import ConfigError, ReadError


class Sink(StreamOperator):
    """Keeps what happens to it: rows, the end, that it is closed."""

    def __init__(self, fails: str = "") -> None:
        super().__init__()
        self.rows: list[Any] = []
        self.said: list[str] = []
        self._fails = fails

    def _linked(self) -> None:
        current().streams.append(self)

    def _says(self, what: str) -> None:
        self.said.append(what)
        if what == self._fails:
            raise OSError(f"{what} failed")

    def _start(self, flow: Flow) -> None:
        self._says("start")

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        self.rows += zip(*(column.to_pylist() for column in batch.columns))
        if self._fails == "take":
            self._says("take")

    def _end(self, flow: Flow) -> None:
        self._says("end")

    def _close(self) -> None:
        self.said.append("close")


def stream(*rows: tuple[int, str | None]) -> StreamOperator:
    return MemSourceStreamOp(list(rows), "id bigint, s string")


def test_rows_flow_through_every_operator_to_every_sink() -> None:
    source = stream((1, "a"), (2, "b"), (3, "c"))
    one = source.select("id * 2 AS n, `s`").where("n > 2").filter("s <> 'c'").link(Sink())
    two = source.as_("x, y").select(["y"]).link(Sink())
    three = source.alias(["x", "y"]).where("false").link(Sink())
    StreamOperator.execute("a name")
    assert (one.rows, two.rows, three.rows) == ([(4, "b")], [("a",), ("b",), ("c",)], [])
    assert [sink.said for sink in (one, two, three)] == [["start", "end", "close"]] * 3


def test_names_and_types_are_known_before_anything_flows() -> None:
    source = stream((1, "a"))
    assert source.select("id + 0.5 AS n").getSchemaStr() == "n DECIMAL(21, 1)" or source.select("id").getColTypes() == [
        "BIGINT"
    ]
    assert source.as_("x, y").getColNames() == source.alias(["x", "y"]).getColNames() == ["x", "y"]
    with pytest.raises(ConfigError, match="alias: 2 columns .* and 1 names"):
        source.as_("x").getColNames()


def test_streams_that_are_merged_end_when_the_last_one_ends() -> None:
    first = stream((1, "a"))
    sink = first.unionAll(stream((2, "b")), first.where("id > 0")).link(Sink())
    StreamOperator.execute()
    assert sorted(sink.rows) == [(1, "a"), (1, "a"), (2, "b")] and sink.said == ["start", "end", "close"]


def test_streams_are_merged_by_the_positions_of_their_columns() -> None:
    first, others = stream((1, "a")), stream((2, "b")).as_("n, t").select("CAST(n AS INT) AS n, t")
    merged = first.unionAll(others)
    sink = merged.link(Sink())
    StreamOperator.execute()
    assert sorted(sink.rows) == [(1, "a"), (2, "b")] and merged.getColNames() == ["id", "s"]
    for other in (first.select("id"), first.select("*, 1 AS n")):
        first.unionAll(other).link(Sink())
        with pytest.raises(ConfigError, match="unionAll: 2 columns and [13] columns"):
            StreamOperator.execute()
    first.unionAll(first.select("`s`, id")).link(Sink())
    with pytest.raises(ReadError, match=r"unionAll: rows do not fit .* \(id BIGINT, s VARCHAR\): .*'a'"):
        StreamOperator.execute()


@pytest.mark.parametrize("what", ["start", "take", "end"])
def test_an_error_stops_all_streams_and_closes_them(what: str) -> None:
    source = stream((1, "a"))
    bad, other = source.link(Sink(what)), source.where("id > 0").link(Sink())
    with pytest.raises(OSError, match=f"{what} failed"):
        StreamOperator.execute()
    assert bad.said[-1] == "close" and other.said[-1] == "close"
    # it is over: nothing of it is left for the next
    with pytest.raises(ConfigError, match=r"StreamOperator.execute\(\): nothing was linked to a sink or printed"):
        StreamOperator.execute()


def test_a_query_that_fails_on_a_row_is_the_error_of_the_flow() -> None:
    stream((1, "a")).select("CAST(s AS BIGINT) AS n").link(Sink())
    with pytest.raises(Exception, match="Could not convert string 'a'"):
        StreamOperator.execute()


def test_nothing_is_given_once_the_flow_is_stopped() -> None:
    source = stream((1, "a"))
    sink = source.link(Sink())
    flow = Flow([sink])
    batch = pa.RecordBatch.from_pydict({"id": [1], "s": ["a"]})
    flow.give(source, batch)
    flow.fail(ValueError("first"))
    flow.fail(ValueError("second"))
    with pytest.raises(Stopped):
        flow.give(source, batch)
    assert sink.rows == [(1, "a")] and str(flow.error) == "first"


def test_a_thread_that_was_stopped_is_no_error_and_another_is() -> None:
    def stopped() -> None:
        raise Stopped

    def fails() -> None:
        raise KeyError("mine")

    for target, error in ((stopped, None), (fails, KeyError)):
        flow = Flow([])
        flow.thread("x", target)
        if error is None:
            flow.run()
        else:
            with pytest.raises(error):
                flow.run()


def test_an_operator_without_an_input_or_what_it_needs_is_told_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="SqlStreamOp has no input: link it from one table"):
        SqlStreamOp("SELECT 1").link(Sink())
        StreamOperator.execute()
    with pytest.raises(ConfigError, match="SqlStreamOp is linked from StreamOperators, not MemSourceBatchOp"):
        SqlStreamOp("").linkFrom(MemSourceBatchOp([(1,)], "a int"))


def test_a_stream_is_printed_row_by_row(capsys: pytest.CaptureFixture[str]) -> None:
    source = stream((1, None), (2, "b"))
    assert source.print() is source and capsys.readouterr().out == ""
    StreamOperator.execute()
    assert capsys.readouterr().out == "id|s\n1|null\n2|b\n"


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [-0.1, 1.1, "x", None])
def test_a_sample_is_a_share(ratio: Any) -> None:
    with pytest.raises(ConfigError, match=f"sample: ratio={ratio!r}: give 0 to 1"):
        stream((1, "a")).sample(ratio)
    all_, none = stream((1, "a")).sample(1).link(Sink()), stream((1, "a")).sample(0).link(Sink())
    StreamOperator.execute()
    assert (all_.rows, none.rows) == ([(1, "a")], [])


def test_the_number_of_tasks_is_that_of_batches_too() -> None:
    StreamOperator.setParallelism(3)
    assert current().parallelism == 3
    with pytest.raises(ConfigError, match="parallelism"):
        BatchOperator.setParallelism(0)


class Room(StreamOperator):
    """Takes rows only once its own thread has given some: as a job whose queue is full until what it wrote is taken."""

    WAITS = True

    def __init__(self) -> None:
        super().__init__()
        self.taking, self.given = threading.Event(), threading.Event()
        self.made_room = False

    def _compute(self, inputs: list[Any], dry: bool) -> Any:
        return inputs[0]

    def _start(self, flow: Flow) -> None:
        def run() -> None:
            self.taking.wait(60)
            flow.give(self, pa.record_batch({"id": [7]}))
            self.given.set()
            flow.end(self)

        flow.thread("room", run)

    def _take(self, flow: Flow, batch: pa.RecordBatch) -> None:
        self.taking.set()
        self.made_room = self.given.wait(10)

    def _end(self, flow: Flow) -> None:
        """Its own thread says when it ends."""


def test_an_operator_that_waits_for_its_own_thread_keeps_nobody_from_the_lock() -> None:
    room, sink = Room(), Sink()
    stream((1, "a")).select("id").link(room).link(sink)
    StreamOperator.execute()
    assert room.made_room and sink.rows == [(7,)]
