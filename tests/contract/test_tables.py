"""Tables that a script asks for by name: slices, ranges, threads, children, works, writers; what is there when the job has ended, and what not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import akrunner
from akrunner.tables.chosen import store_for
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo, TableStore
from tests.conftest import Script

pytestmark = pytest.mark.slow

ROWS = 30_000
TABLE, OUT, OTHER = "odps://p/tables/t", "odps://p/tables/out", "odps://p/tables/other"

READS = """
import json, multiprocessing, os, sys, threading
before = "tensorflow" in sys.modules
import common_io
from common_io.exception import OutOfRangeException
from pai.data import WorkQueue

assert ("tensorflow" in sys.modules) == before, "not before the script imports it, but in a warm worker"
TABLE, OUT = "odps://p/tables/t", "odps://p/tables/out"
task = json.loads(os.environ["TF_CONFIG"])["task"]
index = 0 if task["type"] == "chief" else task["index"] + 1

def rows_of(name=TABLE, **given):
    reader = common_io.table.TableReader(name, **given)
    found = []
    try:
        while True:
            found += reader.read(1000)
    except OutOfRangeException:
        return found

def ids(slice_id, count=3):
    return [row[0] for row in rows_of(selected_cols="x", slice_id=slice_id, slice_count=count)]

def in_child(slice_id):
    if slice_id == 2:
        with common_io.table.TableWriter(OUT, slice_id=100 + index) as writer:
            writer.write([(index, None, "child")], range(3))
    return ids(slice_id)

def forked(at):
    # a few rows, by the parent's writer and by one of its own, and an end that closes nothing
    shared.write((at, None, "forked"))
    if at == 5:
        own = common_io.table.TableWriter(OUT, slice_id=200 + index)
        own.write([(at, None, "forked own")])
    if at % 2:
        os._exit(0)

if __name__ == "__main__":
    whole = common_io.table.TableReader(TABLE)
    assert whole.get_row_count() == 30000 and whole.get_schema()["typestr"].tolist() == ["bigint", "double", "string"]
    assert whole.read(2) == [(0, 0.0, "row 0"), (1, None, "row 1")] and whole.offset_pos == 2
    idle = common_io.table.TableReader(TABLE, selected_cols="s")  # opened, and never read: nobody waits for it
    whole.seek(29999)
    assert len(whole.read(10)) == 1
    part = common_io.table.TableReader(TABLE + "?start=100&end=110", selected_cols="s,x", slice_id=2, slice_count=3)
    assert (part.start_pos, part.end_pos) == (107, 110) and part.read(9) == [("row %d" % (i % 7), i) for i in (107, 108, 109)]

    every = list(range(30000))
    found = [None] * 3
    def in_thread(at):
        found[at] = ids(at)
    threads = [threading.Thread(target=in_thread, args=(at,)) for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(found, []) == every and ids(0, 1) == ids(0, 1) == every
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert sum(pool.map(in_child, range(3)), []) == every

    shared = common_io.table.TableWriter(OUT, slice_id=300 + index)
    shared.write((-1, None, "forked"))
    children = [multiprocessing.get_context("fork").Process(target=forked, args=(at,)) for at in range(6)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(forked, [6, 8, 10])
    shared.write((-2, None, "forked"))

    writer = common_io.table.TableWriter(OUT, slice_id=index)
    writer.write((-1, -1.0, "dropped"))
    writer.close()
    writer = common_io.table.TableWriter(OUT, slice_id=index)
    for work in WorkQueue([TABLE], num_slices=20, shuffle=True, seed=3):
        some = rows_of(work)
        writer.write(zip([row[0] for row in some], [index] * len(some)), [0, 1])
"""

FAILS = """
import common_io, json, os, sys, time
index = json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "chief"
writer = common_io.table.TableWriter("odps://p/tables/out", slice_id=int(index))
writer.write([(1, 1.0, "x")] * 5000)
if index:
    writer.close()
    attempts = int(os.environ["ATTEMPTS"])
    mark = os.path.join(os.environ["MARKS"], "begun")
    open(mark, "a").write("x")
    if len(open(mark).read()) <= attempts:
        os.kill(os.getpid(), 9) if sys.argv[1:] == ["kill"] else sys.exit("on purpose")
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableStore:
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path / "tables"))
    kept = store_for("p")
    columns = pa.schema([("x", pa.int64()), ("y", pa.float64()), ("s", pa.string())])
    for name in (TABLE, OUT, OTHER):
        kept.create(TableName.parse(name), TableInfo(columns))
    x = np.arange(ROWS)
    y = pa.array(x / 2, mask=x == 1)
    fill(kept, TABLE, pa.record_batch([pa.array(x), y, pa.array([f"row {i % 7}" for i in x])], schema=columns))
    for name in (OUT, OTHER):
        fill(kept, name, pa.record_batch([pa.array([7]), pa.array([7.0]), pa.array(["before"])], schema=columns))
    return kept


def fill(store: TableStore, name: str, batch: pa.RecordBatch) -> None:
    output = store.output(TableName.parse(name))
    output.part("a").write(batch)
    store.commit([output])


def rows_in(store: TableStore, name: str) -> list[dict[str, Any]]:
    return [row for batch in store.read(TableName.parse(name)) for row in batch.to_pylist()]


def test_tables_are_asked_for(engine: Any, script: Script, store: TableStore, leaves_nothing: Path) -> None:
    result = akrunner.run(script(READS), tables=[TABLE], output_tables=[OUT, OTHER], num_workers=2, engine=engine)
    everything = rows_in(store, OUT)
    forked = sorted(row["x"] for row in everything if row["s"] == "forked")
    assert forked == sorted([-2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 10] * 2), "each once, however its process ended"
    assert [row["x"] for row in everything if row["s"] == "forked own"] == [5, 5]
    written = [row for row in everything if row["s"] not in ("forked", "forked own")]
    assert sorted(row["x"] for row in written if row["s"] is None) == list(range(ROWS))
    assert {row["y"] for row in written} <= {0.0, 1.0, None}
    # in the order of the slices, those of children among them
    assert [row["x"] for row in written if row["s"] == "child"] == [0, 1] == [row["x"] for row in written[-2:]]
    assert rows_in(store, OTHER) == [{"x": 7, "y": 7.0, "s": "before"}], "nobody has opened it"
    assert result.stats.tables[OUT] == {"rows_read": 0, "rows_written": ROWS + 2 + 24}
    # by each task all columns, three of the slice of a range, one column in slices and once more as a whole, however many have read them; all
    # columns by slices of a queue, once
    assert result.stats.tables[TABLE]["rows_read"] == 2 * (3 * ROWS + 3) + ROWS
    # the two children that open a writer of their own, and close nothing
    assert len(result.stats.warnings) == 2
    assert all("ended without closing its TableWriter" in told and "of which 1 rows" in told for told in result.stats.warnings)


#: one task does what is wrong, or odd, in a way of its own
ODD = """
import common_io, multiprocessing, os, sys, threading
OUT = "odps://p/tables/out"

def child():
    try:
        with common_io.table.TableWriter(OUT) as writer:
            writer.write((2, 2.0, "child"))
    except ValueError as e:
        assert "is written by another process of" in str(e), e
        os._exit(7)

if __name__ == "__main__":
    how = sys.argv[1]
    if how == "children":
        # the second has the slice of the first, which is closed by then: its rows would go without a word
        for expected in (0, 7):
            one = multiprocessing.get_context("fork").Process(target=child)
            one.start()
            one.join()
            assert one.exitcode == expected, one.exitcode
    if how == "again":
        stop = threading.Event()
        def write(writer):
            try:
                while not stop.is_set():
                    writer.write([(0, 0.0, "dropped")] * 5000)
            except ValueError as e:
                assert "its slice was opened again" in str(e), e
                ended.append(1)
        ended, threads = [], []
        for at in range(5):
            writer = common_io.table.TableWriter(OUT)
            threads.append(threading.Thread(target=write, args=(writer,)))
            threads[-1].start()
            writer.write((0, 0.0, "dropped"))
        # while rows of the earlier are on their way, and are written
        last = common_io.table.TableWriter("odps://p/tables/out/")
        last.write((1, 1.0, "kept"))
        for thread in threads:
            thread.join()
        assert len(ended) == 5
        last.close()
    if how == "forgotten":
        def main():
            common_io.table.TableWriter(OUT).write([(3, 3.0, "forgotten")] * 10)
        main()
"""


@pytest.mark.parametrize(
    "how, wanted", [("children", [(2, "child")]), ("again", [(1, "kept")]), ("forgotten", [(3, "forgotten")] * 10)]
)
def test_writers_of_one_slice(
    how: str, wanted: Any, engine: Any, script: Script, store: TableStore, leaves_nothing: Path
) -> None:
    result = akrunner.run(script(ODD), output_tables=[OUT], script_args=[how], engine=engine)
    assert [(row["x"], row["s"]) for row in rows_in(store, OUT)] == wanted
    assert result.stats.tables[OUT]["rows_written"] == len(wanted) and result.stats.warnings == []


#: the chief is done when the evaluator has written, and the evaluator never is
STAYS = """
import common_io, json, os, sys, threading, time
from akrunner.worker import current

config = current()
mark = os.path.join(os.environ["MARKS"], "written")
if config.task_type == "evaluator":
    writer = common_io.table.TableWriter("odps://p/tables/out", slice_id=9)
    for i in range(4):
        # fewer together than are sent at a time
        writer.write([(i, 1.0, "held")] * 1000)
    open(mark, "w").close()
    if sys.argv[1] == "stuck":
        writer._lock.acquire()
    threading.Event().wait()
else:
    with common_io.table.TableWriter("odps://p/tables/out") as writer:
        writer.write((-1, 1.0, "chief"))
    while not os.path.exists(mark):
        time.sleep(0.01)
"""


@pytest.mark.parametrize("how", ["waits", "stuck"])
def test_who_is_ended_with_a_writer_open(
    how: str,
    engine: Any,
    script: Script,
    store: TableStore,
    leaves_nothing: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All that it has written is there; if that cannot be had of it, nothing is."""
    given = {"output_tables": [OUT], "evaluator": True, "evaluator_timeout": 0.1, "script_args": [how], "engine": engine}
    env = {"MARKS": str(tmp_path)}
    if how == "waits":
        result = akrunner.run(script(STAYS), env=env, **given)
        assert [row["x"] for row in rows_in(store, OUT)] == [-1] + [i for i in range(4) for _ in range(1000)]
        assert "was ended (evaluator_timeout=)" in "".join(result.stats.warnings)
        return
    with pytest.raises(
        akrunner.WriteError, match=r"evaluator:0 was ended before it had closed its TableWriter\(\.\.\., slice_id=9\)"
    ):
        akrunner.run(script(STAYS), env=env, **given)
    assert rows_in(store, OUT) == [{"x": 7, "y": 7.0, "s": "before"}]


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_a_job_that_fails_leaves_them_as_they_were(
    how: str, engine: Any, script: Script, store: TableStore, leaves_nothing: Path, tmp_path: Path
) -> None:
    given = {
        "output_tables": [OUT],
        "num_workers": 2,
        "script_args": [how],
        "engine": engine,
        "max_restarts": 1,
        "restart_delay": 0,
    }
    env = {"MARKS": str(tmp_path), "ATTEMPTS": "2"}
    with pytest.raises(akrunner.JobError, match="on purpose" if how == "exit" else "killed"):
        akrunner.run(script(FAILS), env=env, **given)
    assert rows_in(store, OUT) == [{"x": 7, "y": 7.0, "s": "before"}]
    (tmp_path / "begun").unlink()
    result = akrunner.run(script(FAILS), env={**env, "ATTEMPTS": "1"}, **given)
    # of the second attempt, and nothing of the first
    assert result.stats.attempt == 1
    assert rows_in(store, OUT) == [{"x": 1, "y": 1.0, "s": "x"}] * 10_000
