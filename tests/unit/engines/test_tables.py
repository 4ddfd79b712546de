"""The tables that a job's tasks share: which may be read and written, who writes a slice, and what is committed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.engines.tables import JobTables
from akrunner.errors import ConfigError, ReadError, SinkError, SourceError, WriteError
from akrunner.spec import TablesSpec, TaskSpec
from akrunner.tables.chosen import store_for
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo

READ, WRITTEN, BOTH = (f"odps://p/tables/{name}" for name in ("a", "b", "c"))


def test_what_is_only_written_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path))
    store = store_for("p")
    for name in (READ, WRITTEN, BOTH):
        store.create(TableName.parse(name), TableInfo(pa.schema([("x", pa.int64())])))
    tables = JobTables(TablesSpec((READ, BOTH), (WRITTEN, BOTH), store, "p"), 10, 1 << 20)
    for name in (READ, BOTH):
        assert tables.reading(name)[1].rows == 0
    with pytest.raises(SourceError, match=f"table {WRITTEN} not predefined: .*: {READ}, {BOTH}; it is one of its outputs"):
        tables.reading(WRITTEN)
    with pytest.raises(SourceError, match="table odps://p/tables/z not predefined: .*, odps://p/tables/c$"):
        tables.reading("odps://p/tables/z")
    tables.close()


# -- with a store that keeps its rows in memory

CHIEF, WORKER = TaskSpec("chief", 0), TaskSpec("worker", 0)
PART = "odps://p/tables/b/day=1/hour=2"
TWO = pa.record_batch({"x": [1, 2]})


class Part:
    """Attributes: lost: rows that are not written, though they came."""

    lost = 0

    def __init__(self) -> None:
        self.rows = 0
        self.closed = False

    def write(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows - self.lost

    def close(self) -> None:
        self.closed = True


class Output:
    """Attributes: parts: by their keys; did: what was done to it."""

    def __init__(self, name: TableName) -> None:
        self.name = name
        self.parts: dict[str, Part] = {}
        self.did: list[str] = []

    def part(self, key: str) -> Part:
        made = self.parts[key] = Part()
        return made

    def restart(self) -> None:
        self.did.append("restart")

    def abort(self) -> None:
        self.did.append("abort")


class Read:
    rows = 100

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


class Store:
    """Attributes: outputs, readings: that were opened; committed: the outputs of each commit; error: raised by whatever is asked."""

    def __init__(self) -> None:
        self.outputs: list[Output] = []
        self.readings: list[Read] = []
        self.committed: list[list[Any]] = []
        self.error: BaseException | None = None

    def reading(self, name: TableName) -> Any:
        if self.error is not None:
            raise self.error
        self.readings.append(Read())
        return self.readings[-1]

    def output(self, name: TableName, overwrite: bool) -> Any:
        if self.error is not None:
            raise self.error
        self.outputs.append(Output(name))
        return self.outputs[-1]

    def commit(self, outputs: list[Any]) -> None:
        if self.error is not None:
            raise self.error
        self.committed.append(list(outputs))


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def tables(store: Store) -> JobTables:
    return JobTables(TablesSpec((READ,), (WRITTEN, PART, BOTH), store, "p"), 10, 1 << 20)


def test_every_task_reads_the_same_state_of_a_table(tables: JobTables, store: Store) -> None:
    name, reading = tables.reading("a?start=3&end=7")
    assert (name.table, name.start, name.end) == ("a", 3, 7)
    # whichever way it is spelt, and whatever rows are asked for
    assert tables.reading(READ.upper().replace("ODPS", "odps"))[1] is reading and tables.reading("p.a")[1] is reading
    assert len(store.readings) == 1
    # a partition is a state of its own
    assert tables.reading(f"{READ}/day=1")[1] is not reading


def test_an_error_of_the_store_is_worded_for_the_author_of_the_script(tables: JobTables, store: Store) -> None:
    store.error = SourceError("source: there is no table odps://p/tables/a")
    with pytest.raises(ReadError, match=r"^-Dtables \(tables=\): there is no table"):
        tables.reading(READ)
    store.error = OSError(5, "Input/output error")
    with pytest.raises(ReadError, match=f"table {READ}: "):
        tables.reading(READ)
    store.error = None
    tables.reading(READ)
    assert len(store.readings) == 1, "what could not be opened is not kept"


def test_a_table_that_is_no_output_is_not_written(tables: JobTables) -> None:
    with pytest.raises(SinkError, match=f"^table {READ} not predefined: .*outputs .*: {WRITTEN}, {PART}, {BOTH}$"):
        tables.output(READ, CHIEF, 0, "1:a", 1)
    # nor a partition of a table that is, or a whole table of which a partition is
    for name in (f"{WRITTEN}/day=1", "odps://p/tables/b/day=1"):
        with pytest.raises(SinkError, match="not predefined"):
            tables.output(name, CHIEF, 0, "1:a", 1)
    assert not tables.has_outputs


def test_no_outputs_at_all_are_said_to_be_none(store: Store) -> None:
    with pytest.raises(SinkError, match=": there are none$"):
        JobTables(TablesSpec((), (), store, "p"), 1, 1).output(WRITTEN, CHIEF, 0, "1:a", 1)
    with pytest.raises(SourceError, match=": there are none$"):
        JobTables(TablesSpec((), (), store, "p"), 1, 1).reading(READ)


def test_tasks_write_slices_of_one_output(tables: JobTables, store: Store) -> None:
    output, _ = tables.output(WRITTEN, CHIEF, 0, "1:a", 1)
    same, _ = tables.output("b", WORKER, 1, "2:b", 1)
    assert output is same and len(store.outputs) == 1 and set(store.outputs[0].parts) == {"slice:0", "slice:1"}
    # the order of a partition's keys says nothing
    assert tables.output(PART, CHIEF, 0, "1:a", 2)[0] is tables.output("b/hour=2/day=1", CHIEF, 1, "1:a", 3)[0]
    assert len(store.outputs) == 2


@pytest.mark.parametrize(
    "task, process, why",
    [(WORKER, "1:a", "is written by chief:0 already: give each task"), (CHIEF, "9:z", r"is written by another process of chief:0 already \(process 1\)")],
)  # fmt: skip
def test_a_slice_has_one_writer(tables: JobTables, task: TaskSpec, process: str, why: str) -> None:
    _, part = tables.output(WRITTEN, CHIEF, 3, "1:a", 1)
    with pytest.raises(ConfigError, match=f"^slice_id=3 of table {WRITTEN} {why}"):
        tables.output(WRITTEN, task, 3, process, 2)
    part.write(TWO)
    assert part.rows == 2, "the first writer goes on"


def test_a_slice_that_is_opened_again_drops_what_was_written_before(tables: JobTables) -> None:
    _, first = tables.output(WRITTEN, CHIEF, 0, "1:a", 1)
    first.write(TWO)
    _, second = tables.output(WRITTEN, CHIEF, 0, "1:a", 5)
    assert first.replaces == [] and second.replaces == [1], "the writer whose rows are dropped is told, as it is not closed"
    first.write(TWO)
    first.close()
    second.write(TWO)
    second.close()
    assert (first.rows, second.rows) == (2, 2)
    _, third = tables.output(WRITTEN, CHIEF, 0, "1:a", 6)
    assert third.replaces == []
    third.close()
    tables.commit()
    assert tables.told() == {WRITTEN: {"rows_read": 0, "rows_written": 0}}


def test_rows_that_came_and_were_not_written_are_an_error(tables: JobTables, store: Store) -> None:
    _, part = tables.output(WRITTEN, CHIEF, 0, "1:a", 1)
    store.outputs[0].parts["slice:0"].lost = 1
    part.write(TWO)
    with pytest.raises(WriteError, match="^2 rows came, and 1 were written$"):
        part.close()
    assert not part.closed


def test_all_outputs_are_committed_at_once_with_those_of_others(tables: JobTables, store: Store) -> None:
    for name, number in ((WRITTEN, 0), (WRITTEN, 1), (BOTH, 0)):
        _, part = tables.output(name, CHIEF, number, "1:a", number + 1)
        part.write(TWO)
        part.close()
    other: Any = object()
    tables.commit([other])
    assert store.committed == [[*store.outputs, other]]
    assert {name: told["rows_written"] for name, told in tables.told().items()} == {WRITTEN: 4, BOTH: 2}


def test_nothing_is_committed_while_a_slice_is_not_whole(tables: JobTables, store: Store) -> None:
    for number in (0, 1):
        _, part = tables.output(WRITTEN, CHIEF, number, "1:a", 1)
        if number == 0:
            part.close()
    with pytest.raises(WriteError, match=f"^table {WRITTEN}: chief:0 was ended before it had closed .*slice_id=1"):
        tables.commit()
    assert store.committed == []


def test_a_job_that_opened_no_output_commits_nothing(tables: JobTables, store: Store) -> None:
    tables.commit()
    assert store.committed == [] and tables.told() == {}


def test_an_error_of_a_commit_is_a_write_error(tables: JobTables, store: Store) -> None:
    tables.output(WRITTEN, CHIEF, 0, "1:a", 1)[1].close()
    store.error = SinkError("the table is gone")
    with pytest.raises(WriteError, match="the table is gone"):
        tables.commit()


def test_a_job_that_starts_again_has_written_and_read_nothing(tables: JobTables, store: Store) -> None:
    tables.output(WRITTEN, CHIEF, 0, "1:a", 1)
    tables.has_read(TableName.parse(READ), 7)
    works = tables.works
    tables.restart()
    assert store.outputs[0].did == ["restart"] and tables.told() == {} and tables.works is not works
    # the slice is anybody's again
    tables.output(WRITTEN, WORKER, 0, "2:b", 1)
    assert len(store.outputs) == 1


def test_rows_of_the_attempt_that_failed_are_not_in_the_next(tables: JobTables, store: Store) -> None:
    _, late = tables.output(WRITTEN, CHIEF, 0, "1:a", 1)
    late.write(TWO)
    tables.restart()
    late.write(TWO)
    assert store.outputs[0].parts["slice:0"].rows == 2


def test_rows_that_were_read_are_counted_by_table(tables: JobTables) -> None:
    for text, rows in ((f"{READ}?start=0&end=5", 5), (READ, 3), (f"{READ}/day=1", 2)):
        tables.has_read(TableName.parse(text), rows)
    tables.has_moved()
    assert {name: told["rows_read"] for name, told in tables.told().items()} == {READ: 8, f"{READ}/day=1": 2}
    assert tables.moved == 4


def test_works_are_cut_by_the_rows_of_their_table(tables: JobTables) -> None:
    asked = {"queue": "q", "works": [READ], "digest": "d", "epochs": 1, "shuffle": False, "seed": None, "slices": 2}
    taken = [tables.works.take(asked) for _ in range(3)]
    assert taken == [f"{READ}?start=0&end=50", f"{READ}?start=50&end=100", None]


def test_what_is_closed_is_given_up_once(tables: JobTables, store: Store) -> None:
    tables.reading(READ)
    tables.output(WRITTEN, CHIEF, 0, "1:a", 1)
    tables.close()
    tables.close()
    assert store.outputs[0].did == ["abort"] and store.readings[0].closed == 1
    assert not tables.has_outputs


def test_all_are_closed_though_one_cannot_be(tables: JobTables, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.reading(READ)
    for number, name in enumerate((WRITTEN, BOTH)):
        tables.output(name, CHIEF, 0, "1:a", number)

    def fails() -> None:
        raise WriteError("the store has gone")

    for output in store.outputs:
        monkeypatch.setattr(output, "abort", fails)
    with pytest.raises(WriteError, match="the store has gone"):
        tables.close()
    assert store.readings[0].closed == 1
