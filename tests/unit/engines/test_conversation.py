"""What the host answers a task that asks for tables: readers that end early, slices that are opened twice, what no script can be given."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner import codec
from akrunner.engines.conversation import Conversation
from akrunner.engines.tables import JobTables
from akrunner.errors import InputLostError, ProtocolError, WriteError
from akrunner.spec import TablesSpec, TaskSpec
from akrunner.tables.chosen import store_for
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo, TableStore
from akrunner.wire import frames
from akrunner.wire import tables as wire

TABLE, OUT = "odps://p/tables/t", "odps://p/tables/out"
COLUMNS = pa.schema([("x", pa.int64()), ("m", pa.map_(pa.string(), pa.binary()))])
ROWS = 100


class Worker:
    """The other end. Attributes: tables; asked: the host's end; failed: what it has said that ends the job."""

    def __init__(self, store: TableStore) -> None:
        read, write = os.pipe()
        self.tables = JobTables(TablesSpec((TABLE,), (OUT,), store, "p"), 10, 1 << 20)
        self.failed: list[tuple[BaseException, str]] = []
        self.writer = frames.FrameWriter(write)
        self.asked = Conversation(
            self.tables, TaskSpec("chief", 0), self.writer, lambda error, what: self.failed.append((error, what))
        )
        self._reader = frames.FrameReader(read, frames.TO_WORKER)

    def say(self, kind: int, **body: Any) -> None:
        self.asked.take(frames.Frame(kind, 0, bytearray(json.dumps(body).encode())))

    def rows(self, request: int, first: int, count: int = 1) -> None:
        payload = codec.encode_columns(pa.record_batch({"x": list(range(first, first + count))}))
        self.asked.take(
            frames.Frame(frames.ADD_ROWS, count, bytearray(b"".join(map(bytes, wire.with_request(request, payload)))))
        )

    def heard(self) -> tuple[int, Any]:
        """The next frame: (kind, body, or number of rows)."""
        frame = self._reader.read()
        assert frame is not None
        return frame.kind, frame.count if frame.kind == frames.TABLE_ROWS else json.loads(bytes(frame.payload))

    def open(self, request: int, slice_id: int = 0, process: str = "1:a") -> tuple[int, dict[str, Any]]:
        self.say(frames.WRITE_TABLE, request=request, table=OUT, slice=slice_id, process=process)
        return self.heard()

    def close(self, request: int, rows: int) -> int:
        """What it is answered, when its rows were taken."""
        self.say(frames.CLOSE_TABLE, request=request, rows=rows, whole=True)
        while (kind := self.heard()[0]) == frames.WRITE_MORE:
            pass
        return kind

    def end(self) -> None:
        self.asked.stop()
        self.asked.join()
        self.tables.close()
        self.writer.close()
        self._reader.close()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableStore:
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path))
    made = store_for("p")
    for name in (TABLE, OUT):
        made.create(TableName.parse(name), TableInfo(COLUMNS))
    output = made.output(TableName.parse(TABLE))
    output.part("a").write(pa.record_batch([list(range(ROWS)), [[("k", b"\xff")]] * ROWS], schema=COLUMNS))
    made.commit([output])
    return made


@pytest.fixture
def worker(store: TableStore) -> Iterator[Worker]:
    made = Worker(store)
    yield made
    made.end()
    assert not [one for one in threading.enumerate() if one.name.startswith("akrunner-table-")]


def read(worker: Worker, columns: list[str], credits: int = 8) -> None:
    worker.say(frames.READ_TABLE, request=1, table=TABLE, columns=columns, start=0, stop=ROWS, credits=credits)


def written(store: TableStore) -> list[Any]:
    return [row["x"] for batch in store.read(TableName.parse(OUT)) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "whole, rows, lost", [(False, 30, False), (True, 30, True), (True, ROWS, False), (False, ROWS + 1, True)]
)
def test_a_reader_that_ends_before_all_rows_have_arrived(worker: Worker, whole: bool, rows: int, lost: bool) -> None:
    """All are written to the pipe when a script that wants no more ends: not yet read there, they are not lost."""
    read(worker, ["x"])
    worker.say(frames.READ_MORE, request=1, chunks=8)
    assert [worker.heard() for _ in range(8)] == [(frames.TABLE_ROWS, 10)] * 8
    worker.say(frames.READ_MORE, request=1, chunks=8)
    while worker.heard()[0] != frames.TABLE_DONE:
        pass
    worker.say(frames.CLOSE_TABLE, request=1, rows=rows, whole=whole)
    assert [type(error) for error, _ in worker.failed] == [InputLostError] * lost


def test_what_a_script_cannot_be_given(worker: Worker) -> None:
    """It is the reader's error, which names the table and its column, and no fault of the host's."""
    read(worker, ["m"])
    kind, body = worker.heard()
    assert kind == frames.TABLE_FAILED and body["type"] == "ReadError" and not worker.failed
    assert f"table {TABLE}: column 'm' (map<string,binary>) has a value that a script cannot be given" in body["message"]


def test_a_slice_that_is_opened_again_is_written_anew(worker: Worker, store: TableStore) -> None:
    assert worker.open(1)[1]["replaces"] == []
    worker.rows(1, 10)
    kind, body = worker.open(2)
    while kind == frames.WRITE_MORE:
        kind, body = worker.heard()
    assert kind == frames.TABLE_OPENED and body["replaces"] == [1]
    # of a child that has the earlier writer, under way when it was opened again
    worker.rows(1, 20)
    assert worker.close(1, 2) == frames.TABLE_DONE
    worker.rows(2, 30)
    assert worker.close(2, 1) == frames.TABLE_DONE and worker.open(3, 1)[1]["replaces"] == []
    assert worker.close(3, 0) == frames.TABLE_DONE and worker.open(4, 1)[1]["replaces"] == [], "it was closed"
    assert worker.asked.unfinished() == [OUT] and worker.close(4, 0) == frames.TABLE_DONE
    assert worker.asked.unfinished() == [] and not worker.failed
    worker.tables.commit()
    assert written(store) == [30] and worker.tables.told()[OUT]["rows_written"] == 1


def test_two_processes_of_a_task_have_no_slice_together(worker: Worker, store: TableStore) -> None:
    assert worker.open(1, process="1:a")[0] == frames.TABLE_OPENED
    worker.rows(1, 10)
    kind, body = worker.heard()
    assert worker.close(1, 1) == frames.TABLE_DONE
    # also after the first has closed it: its rows would go without a word
    for process in ("2:b", "1:another one of that number"):
        kind, body = worker.open(2 + len(process), process=process)
        assert (kind, body["type"]) == (frames.TABLE_FAILED, "ConfigError")
        assert f"slice_id=0 of table {OUT} is written by another process of chief:0 already (process 1)" in body["message"]
    worker.tables.commit()
    assert written(store) == [10]


def test_a_part_that_was_not_closed_is_not_committed(worker: Worker, store: TableStore) -> None:
    """As of an evaluator that was killed past its time: some of its rows may be missing."""
    worker.open(1, 3)
    worker.rows(1, 10)
    worker.heard()
    with pytest.raises(WriteError, match=r"chief:0 was ended before it had closed its TableWriter\(\.\.\., slice_id=3\)"):
        worker.tables.commit()
    assert written(store) == []


def test_who_has_too_many_tables_open(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_REQUESTS", 2)
    for number in range(2):
        worker.open(number, number)
    kind, body = worker.open(2, 2)
    assert (
        kind == frames.TABLE_FAILED
        and body["message"] == f"table {OUT}: this task has 2 tables open already; close those that are done"
    )
    assert [worker.close(number, 0) for number in range(2)] == [frames.TABLE_DONE] * 2
    assert worker.open(3, 2)[0] == frames.TABLE_OPENED


@pytest.mark.parametrize("column, end", [("x", frames.TABLE_DONE), ("m", frames.TABLE_FAILED)])
def test_a_table_is_no_longer_open_when_that_is_said(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, column: str, end: int
) -> None:
    """A task at the limit may open the next one at once, whatever the thread that said so does then."""
    monkeypatch.setattr(wire, "MOST_REQUESTS", 1)
    opened, say = threading.Event(), worker.writer.write_json

    def and_wait(kind: int, body: dict[str, Any]) -> None:
        say(kind, body)
        if kind == end:
            opened.wait()

    monkeypatch.setattr(worker.writer, "write_json", and_wait)
    try:
        read(worker, [column], wire.CREDITS)
        worker.say(frames.READ_MORE, request=1, chunks=wire.CREDITS)
        while (kind := worker.heard()[0]) == frames.TABLE_ROWS:
            worker.say(frames.READ_MORE, request=1, chunks=wire.CREDITS)
        assert kind == end and worker.open(2)[0] == frames.TABLE_OPENED
        if end == frames.TABLE_DONE:
            assert worker.close(2, 0) == end and worker.open(3, 1)[0] == frames.TABLE_OPENED
    finally:
        opened.set()


def test_what_is_under_way_of_a_table_that_is_refused_is_passed_over(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_REQUESTS", 0)
    read(worker, ["x"])
    worker.say(frames.READ_MORE, request=1, chunks=1)
    worker.say(frames.CLOSE_TABLE, request=1, rows=0, whole=False)
    assert worker.heard()[0] == frames.TABLE_FAILED and not worker.failed
    with pytest.raises(ProtocolError, match="which is none"):
        worker.say(frames.CLOSE_TABLE, request=2, rows=0, whole=False)


def test_who_asks_too_much_before_it_is_answered(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_REQUESTS", 3)
    told, reading, asked = threading.Event(), worker.tables.reading, []
    monkeypatch.setattr(worker.tables, "reading", lambda text: reading(text) if told.wait() else None)
    try:
        with pytest.raises(ProtocolError, match="it asked 4 things about tables before one was answered"):
            for number in range(6):
                worker.say(frames.LOOK_TABLE, request=number, table=TABLE)
                asked.append(number)
    finally:
        told.set()
    assert [worker.heard()[1]["request"] for _ in asked] == asked and not worker.failed
