"""Tables in MaxCompute, by the real PyODPS and a server that speaks its protocol."""

from __future__ import annotations

import datetime
import decimal
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import akrunner
from akrunner.tables import maxcompute_output, maxcompute_reading, types
from akrunner.tables.chosen import store_for, told_of
from akrunner.tables.names import TableName
from akrunner.tables.store import TableInfo, TableStore, check_writable
from tests import hosts
from tests.servers.maxcompute import ACCESS_KEY, MaxCompute, Table
from tests.servers.oss import Oss

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def in_one_process() -> None:
    """PyODPS takes more than a second to import: one of pytest's processes does so, and has its hosts forked from one that has it."""


ROWS = 50_000


def name(text: str) -> TableName:
    return TableName.parse(text, "p")


def numbers(rows: int = ROWS, start: int = 0) -> pa.Table:
    ids = pa.array(range(start, start + rows), pa.int64())
    return pa.table({"id": ids, "x": ids.cast(pa.float64()), "s": [f"row {one}" for one in range(start, start + rows)]})


def rows_of(store: TableStore, text: str, *args: Any) -> pa.Table:
    batches = list(store.read(name(text), *args))
    return pa.Table.from_batches(batches)


@pytest.fixture
def store(maxcompute: MaxCompute, monkeypatch: pytest.MonkeyPatch) -> TableStore:
    """Ranges are short, so that there are many of them, and nobody waits long for another try."""
    monkeypatch.setattr(maxcompute_reading, "_FIRST_RANGE", 5_000)
    monkeypatch.setattr(maxcompute_reading, "_LONGEST_RANGE", 5_000)
    monkeypatch.setattr(maxcompute_output, "_BLOCK_BYTES", 200_000)
    return store_for("p")


def test_it_is_taken_and_said(maxcompute: MaxCompute, store: TableStore, tmp_path: Path, monkeypatch: Any) -> None:
    assert store.kind == "maxcompute"
    assert told_of("p", store) == f"tables of project p: MaxCompute at {maxcompute.url} (key found in the environment)"
    assert store_for("p", str(tmp_path)).kind == "local"
    monkeypatch.setenv("AKRUNNER_TABLES", str(tmp_path))
    assert told_of("p", store_for("p")) == f"tables of project p: in {tmp_path}"


def test_read(maxcompute: MaxCompute, store: TableStore) -> None:
    whole = numbers()
    maxcompute.put("t", whole)
    assert store.count(name("t")) == ROWS
    with store.reading(name("t")) as reading:
        assert pa.Table.from_batches(reading.read()).equals(whole)
        some = pa.Table.from_batches(reading.read(["S", "id"], 12_345, 20_000))
        assert some.equals(whole.select(["s", "id"]).slice(12_345, 20_000).rename_columns(["s", "id"]))
        assert list(reading.read(None, ROWS + 5)) == []
    # several at a time, of one session
    assert maxcompute.together > 1 and len(maxcompute.ranges) >= 10
    assert sum("downloads" in path for _, path in maxcompute.requests) == 2
    with pytest.raises(akrunner.SourceError, match=r"has no column 'ids' \(it has id, x, s\); did you mean"):
        store.read(name("t"), ["ids"])


def test_from_many_threads_at_once(maxcompute: MaxCompute, store: TableStore) -> None:
    whole = numbers()
    maxcompute.put("t", whole)
    found: list[Any] = [None] * 6
    with store.reading(name("t")) as reading:

        def slice_of(number: int) -> None:
            found[number] = pa.Table.from_batches(reading.read(["id"], number * 7_000, 7_000))["id"].to_pylist()

        threads = [threading.Thread(target=slice_of, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [list(range(number * 7_000, number * 7_000 + 7_000)) for number in range(6)]
    assert maxcompute.together <= maxcompute_reading.THREADS


def test_one_that_is_left_in_the_middle(maxcompute: MaxCompute, store: TableStore) -> None:
    maxcompute.put("t", numbers())
    batches = store.read(name("t"), ["id"])
    assert next(iter(batches)).num_rows
    batches.close()
    assert sum(count for _, count in maxcompute.ranges) < ROWS


def test_one_that_is_closed_while_others_read(maxcompute: MaxCompute, store: TableStore) -> None:
    maxcompute.put("t", numbers())
    maxcompute.faults.slow = 0.05
    reading = store.reading(name("t"))
    batches = reading.read()
    next(batches)
    reading.close()
    with pytest.raises(akrunner.SourceError, match="closed"):
        list(batches)
    with pytest.raises(akrunner.SourceError, match="closed"):
        list(reading.read())


def test_partitions(maxcompute: MaxCompute, store: TableStore) -> None:
    for day, start in (("20260102", 10), ("20260101", 0)):
        maxcompute.put("t", numbers(10, start), ("dt", "h"), (day, "01"))
    assert store.partitions(name("t")) == [(("dt", "20260101"), ("h", "01")), (("dt", "20260102"), ("h", "01"))]
    assert rows_of(store, "t")["id"].to_pylist() == list(range(20))
    read = rows_of(store, "t/dt=20260102", ["dt", "id"], 2, 3)
    assert read.to_pydict() == {"dt": ["20260102"] * 3, "id": [12, 13, 14]}
    assert rows_of(store, "t", ["h"]).num_rows == 20
    assert store.exists(name("t/dt=20260101")) and not store.exists(name("t/dt=1/h=1")) and not store.exists(name("nix"))
    with pytest.raises(akrunner.SourceError, match="t/dt=1/h=1 does not exist: the table has the partitions dt=20260101/h=01"):
        store.reading(name("t/dt=1/h=1"))
    with pytest.raises(akrunner.SourceError, match="is partitioned by dt, h, not by pt"):
        store.reading(name("t/pt=1"))
    with pytest.raises(akrunner.SinkError, match="name one partition of it"):
        store.output(name("t/dt=20260101"))
    with pytest.raises(akrunner.SourceError, match="there is no table .*/tt: did you mean 't'. the project p has t at "):
        store.describe(name("tt"))


def test_an_output_is_looked_at_and_nothing_is_made(maxcompute: MaxCompute, store: TableStore) -> None:
    maxcompute.put("t", numbers(1), ("dt",), ("1",))
    for text in ("t/dt=1", "t/dt=2"):
        store.check_output(name(text))
    assert not any("uploads" in path or "instances" in path for _, path in maxcompute.requests)
    # what is there is opened, so that who may not write learns it; what is not is not made
    check_writable(store, name("t/dt=1"))
    check_writable(store, name("t/dt=2"))
    assert sum("uploads" in path for _, path in maxcompute.requests) == 1
    assert store.partitions(name("t")) == [(("dt", "1"),)]
    store.add_partitions([name("t/dt=2"), name("t/dt=3")])
    store.drop_partitions([name("t/dt=1"), name("t/dt=2")])
    assert store.partitions(name("t")) == [(("dt", "3"),)]
    with pytest.raises(akrunner.SinkError, match="t/dt=9 does not exist"):
        store.drop_partitions([name("t/dt=3"), name("t/dt=9")])
    with pytest.raises(akrunner.SinkError, match="name one partition of it"):
        store.check_output(name("t"))


VALUES = {
    "a tinyint": [1, None],
    "b int": [-5, 7],
    "c float": [0.5, None],
    "d boolean": [True, None],
    "e binary": [b"\0x", b""],
    "f date": [datetime.date(2026, 1, 2), None],
    "g datetime": [datetime.datetime(2026, 1, 2, 3, 4, 5, 6000), None],
    "h timestamp": [datetime.datetime(2026, 1, 2, 3, 4, 5, 6), None],
    "i decimal(10,2)": [decimal.Decimal("1.50"), None],
    "j array<string>": [["x", "y"], []],
    "k map<string,bigint>": [[("x", 1)], None],
    "l struct<a:bigint,b:string>": [{"a": 1, "b": "z"}, None],
    "m varchar(10)": ["é", ""],
    "n string": ["a\n\"b'", None],
}


def test_every_type_goes_there_and_back(maxcompute: MaxCompute, store: TableStore) -> None:
    fields = [types.field(*one.split(" ")) for one in VALUES]
    store.create(name("t"), TableInfo(pa.schema(fields), comment="it's all", lifecycle=7))
    info = store.describe(name("t"))
    assert [f"{field.name} {types.words_of(field)}" for field in info.columns] == list(VALUES)
    assert (info.comment, info.lifecycle) == ("it's all", 7)
    made = pa.table([pa.array(v, f.type) for v, f in zip(VALUES.values(), fields)], [f.name for f in fields])
    output = store.output(name("t"))
    output.part("worker:0").write(made.to_batches()[0])
    store.commit([output])
    assert rows_of(store, "t").to_pylist() == made.to_pylist()


def write(store: TableStore, text: str, rows: pa.Table, overwrite: bool = True) -> None:
    output = store.output(name(text), overwrite)
    for number in range(2):
        part = output.part(f"worker:{number}")
        for batch in rows.slice(number * rows.num_rows // 2, rows.num_rows // 2).to_batches(1_000):
            part.write(batch)
    store.commit([output])


def ids(maxcompute: MaxCompute, *where: Any) -> list[int]:
    return sorted(maxcompute.rows(*where)["id"].to_pylist())


def test_write(maxcompute: MaxCompute, store: TableStore) -> None:
    maxcompute.put("t", numbers(3, 100_000))
    write(store, "t", numbers(20_000), overwrite=False)
    assert ids(maxcompute, "t") == [*range(20_000), 100_000, 100_001, 100_002]
    write(store, "t", numbers(10))
    assert ids(maxcompute, "t") == list(range(10))
    # nobody sees anything before, or of one that is given up
    output = store.output(name("t"))
    part = output.part("worker:0")
    part.write(numbers(20_000).to_batches()[0])
    part.close()
    assert part.blocks and ids(maxcompute, "t") == list(range(10))
    output.abort()
    assert ids(maxcompute, "t") == list(range(10))
    # opened, and nothing written: it is empty
    store.commit([store.output(name("t"), overwrite=False)])
    assert ids(maxcompute, "t") == list(range(10))
    store.commit([store.output(name("t"))])
    assert ids(maxcompute, "t") == []


def test_a_part_opened_again_and_a_job_that_starts_again(maxcompute: MaxCompute, store: TableStore) -> None:
    maxcompute.put("t", numbers(0))
    output = store.output(name("t"))
    for rows in (30_000, 5):
        part = output.part("worker:0")
        for batch in numbers(rows).to_batches(3_000):
            part.write(batch)
    output.part("worker:1").write(numbers(2, 50).to_batches()[0])
    store.commit([output])
    assert ids(maxcompute, "t") == [0, 1, 2, 3, 4, 50, 51]
    output = store.output(name("t"))
    output.part("worker:0").write(numbers(30_000).to_batches()[0])
    output.restart()
    output.part("worker:0").write(numbers(3).to_batches()[0])
    store.commit([output])
    assert ids(maxcompute, "t") == [0, 1, 2]


def test_columns_by_name_and_a_partition_that_is_not_there_yet(maxcompute: MaxCompute, store: TableStore) -> None:
    maxcompute.put("t", numbers(1), ("pt",), ("old",))
    write(store, "t/pt=new", pa.table({"S": ["a", "b"], "id": pa.array([1, 2], pa.int32())}))
    assert maxcompute.rows("t", ("new",)).to_pydict() == {"id": [1, 2], "x": [None, None], "s": ["a", "b"]}
    assert ids(maxcompute, "t", ("old",)) == [0]
    output = store.output(name("t/pt=new"))
    with pytest.raises(akrunner.DataError, match="has no column 'idd'"):
        output.part("a").write(pa.record_batch({"idd": [1]}))
    with pytest.raises(akrunner.DataError, match=r"column 'id' of .*/t is bigint, and string was written"):
        output.part("a").write(pa.record_batch({"id": ["x"]}))


def test_tables_come_and_go(maxcompute: MaxCompute, store: TableStore) -> None:
    info = TableInfo(pa.schema([types.field("a", "bigint")]), ("pt",))
    store.create(name("t"), info)
    assert store.describe(name("t")) == info and store.tables("p") == ["t"] and store.projects() == ["p"]
    store.create(name("t"), info, if_not_exists=True)
    with pytest.raises(akrunner.SinkError, match="t exists; CREATE TABLE IF NOT EXISTS"):
        store.create(name("t"), info)
    store.add_partitions([name("t/pt=it s")])
    store.add_partitions([name("t/pt=it s")], if_not_exists=True)
    with pytest.raises(akrunner.SinkError, match="Partition already exists"):
        store.add_partitions([name("t/pt=it s")])
    assert store.partitions(name("t")) == [(("pt", "it s"),)]
    store.drop_partitions([name("t/pt=it s")])
    assert store.partitions(name("t")) == []
    store.rename(name("t"), "u")
    assert store.tables("p") == ["u"]
    store.drop(name("u"))
    store.drop(name("u"), if_exists=True)
    with pytest.raises(akrunner.SinkError, match="there is no table .*/u"):
        store.drop(name("u"))


# -- what goes wrong


@pytest.mark.parametrize(
    "fault",
    [{"cut": 3}, {"short": 2}, {"expired": 1}, {"errors": (500, 5)}, {"errors": (503, 4)}, {"slow": 0.3}],
    ids=str,
)
def test_a_read_goes_on(fault: Any, maxcompute: MaxCompute, store: TableStore) -> None:
    maxcompute.put("t", numbers())
    with store.reading(name("t")) as reading:
        for what, value in fault.items():
            setattr(maxcompute.faults, what, value)
        assert pa.Table.from_batches(reading.read()).equals(numbers())


def test_a_table_that_changed_behind_an_expired_session(maxcompute: MaxCompute, store: TableStore) -> None:
    maxcompute.put("t", numbers())
    with store.reading(name("t")) as reading:
        maxcompute.put("t", numbers(7))
        maxcompute.faults.expired = 1
        with pytest.raises(akrunner.SourceError, match=r"t was changed while it was read \(it had 50,000 rows, and has 7\)"):
            list(reading.read())


@pytest.mark.parametrize("fault", [{"errors": (500, 4)}, {"late": 1}], ids=str)
def test_a_write_goes_on(fault: Any, maxcompute: MaxCompute, store: TableStore) -> None:
    maxcompute.put("t", numbers(3))
    for what, value in fault.items():
        setattr(maxcompute.faults, what, value)
    write(store, "t", numbers(20_000))
    assert ids(maxcompute, "t") == list(range(20_000))


def test_a_write_that_cannot_be_leaves_the_table(maxcompute: MaxCompute, store: TableStore) -> None:
    maxcompute.put("t", numbers(3))
    maxcompute.put("u", numbers(3))
    outputs = [store.output(name("t")), store.output(name("u"))]
    for output in outputs:
        output.part("worker:0").write(numbers(10).to_batches()[0])
    maxcompute.forget_sessions()
    with pytest.raises(akrunner.WriteError, match=r"tables/t|t: .*the upload session has expired .* nothing was written"):
        store.commit(outputs)
    maxcompute.faults.refuse = True
    output = store.output(name("t"))
    output.part("worker:0").write(numbers(10).to_batches()[0])
    with pytest.raises(akrunner.WriteError, match=r"cannot send block 0 \(10 rows\): MaxCompute answered .*NO privilege"):
        store.commit([output])
    assert ids(maxcompute, "t") == ids(maxcompute, "u") == [0, 1, 2]


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ALIBABA_CLOUD_ACCESS_KEY_ID", "LTAInobody", "MaxCompute does not know the access key's id"),
        ("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "not-the-secret", "the secret does not fit the access key's id"),
        ("ODPS_ENDPOINT", "http://127.0.0.1:1/api", "cannot connect"),
    ],
)
def test_wrong_credentials(variable: str, value: str, words: str, maxcompute: MaxCompute, monkeypatch: Any) -> None:
    maxcompute.put("t", numbers(1))
    monkeypatch.setenv(variable, value)
    store = store_for("p")
    for does, kind in ((store.reading, akrunner.SourceError), (store.output, akrunner.SinkError)):
        with pytest.raises(kind, match=rf"odps://p/tables/t at http.*: {words}") as raised:
            does(name("odps://p/tables/t"))
        assert ACCESS_KEY not in str(raised.value) and "not-the-secret" not in str(raised.value)
    monkeypatch.delenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET")
    with pytest.raises(akrunner.ConfigError, match="ALIBABA_CLOUD_ACCESS_KEY_SECRET is missing"):
        store_for("p")


def test_another_project(maxcompute: MaxCompute, store: TableStore) -> None:
    maxcompute.tables["q"] = {}
    maxcompute.put("t", numbers(5))
    maxcompute.tables["q"]["t"] = Table([("id", "bigint")], data={(): pa.table({"id": [7]})})
    there = TableName.parse("q.t")
    assert [batch.to_pydict() for batch in store.read(there)] == [{"id": [7]}]
    output = store.output(there, overwrite=False)
    output.part("a").write(pa.record_batch({"id": [8]}))
    store.commit([output])
    assert maxcompute.tables["q"]["t"].data[()].to_pydict() == {"id": [7, 8]} and ids(maxcompute, "t") == list(range(5))
    # of no project, for those that name one
    assert store_for("").count(there) == 2


def test_no_such_project(maxcompute: MaxCompute) -> None:
    with pytest.raises(akrunner.SourceError, match="MaxCompute has no such project at this endpoint"):
        store_for("q").describe(TableName.parse("q.t"))


# -- as users do


def command(*args: str) -> subprocess.CompletedProcess[str]:
    # PyODPS takes 1.3 s to import
    return hosts.run([sys.executable, "-m", "akrunner", *args], capture_output=True, text=True, timeout=300, imported=("odps",))


COPY = """
def main(task_config):
    for columns in task_config.batches(1000):
        task_config.output_writer.write_batch({"id": columns["id"], "s": columns["s"]})
"""


def test_a_job_from_table_to_table(maxcompute: MaxCompute, tmp_path: Path) -> None:
    maxcompute.put("t", numbers(5_000))
    maxcompute.put("out", numbers(3), ("pt",), ("old",))
    (tmp_path / "copy.py").write_text(COPY)
    job = [
        "run",
        str(tmp_path / "copy.py"),
        "--num-workers",
        "2",
        "--data-format",
        "columns",
        "--output-schema",
        "id bigint, s string",
    ]
    ends = ["--input", "odps://p/tables/t?start=1000&end=4000", "--output", "odps://p/tables/out/pt=new"]
    done = command(*job, *ends)
    assert done.returncode == 0, done.stderr
    assert f"tables of project p: MaxCompute at {maxcompute.url} (key found in the environment)" in done.stderr
    assert done.stderr.count("MaxCompute at") == 1 and ACCESS_KEY not in done.stderr + done.stdout
    assert ids(maxcompute, "out", ("new",)) == list(range(1000, 4000)) and ids(maxcompute, "out", ("old",)) == [0, 1, 2]
    (tmp_path / "copy.py").write_text(COPY + "    raise RuntimeError('after all rows')\n")
    done = command(*job, *ends)
    assert done.returncode == 1 and "after all rows" in done.stderr
    assert ids(maxcompute, "out", ("new",)) == list(range(1000, 4000))


def test_the_tables_command(maxcompute: MaxCompute, tmp_path: Path) -> None:
    statements = """
    set odps.sql.allow.fullscan=true;
    create table if not exists iris (f1 double, name string comment 'it''s; a name') partitioned by (pt string) lifecycle 3;
    alter table iris add if not exists partition (pt='a');
    insert overwrite table iris partition (pt='a') select cast(1.5 as double), 'x';
    select f1, name, pt from iris;
    """
    (tmp_path / "job.sql").write_text(statements)
    done = command("tables", "sql", "--project", "p", "-f", str(tmp_path / "job.sql"))
    assert done.returncode == 0, done.stderr
    assert "1.5" in done.stdout and "MaxCompute at" in done.stderr
    assert any("create table if not exists iris" in one for one in maxcompute.statements)
    assert maxcompute.rows("iris", ("a",)).to_pydict() == {"f1": [1.5], "name": ["x"]}
    (tmp_path / "more.csv").write_text("f1,name\n2.5,y\n")
    for args, words in (
        (("put", str(tmp_path / "more.csv"), "odps://p/tables/iris/pt=b"), "added 1 row to odps://p/tables/iris/pt=b"),
        (("ls", "-p", "p"), "odps://p/tables/iris"),
        (("show", "odps://p/tables/iris"), "partitions: pt=a, pt=b"),
        (("get", "odps://p/tables/iris/pt=b", "-"), '"y"'),
        (("drop", "p.iris"), "dropped p.iris"),
    ):
        done = command("tables", *args)
        assert done.returncode == 0 and words in done.stdout, (args, done.stdout, done.stderr)
    assert maxcompute.tables["p"] == {}
    maxcompute.put("t", numbers(12_000))
    done = command("tables", "sql", "-p", "p", "select id from t", "--json")
    found = json.loads(done.stdout)["results"][0]
    assert len(found["rows"]) == 10_000 and found["message"].startswith("the first 10,000 rows")
    done = command("tables", "ls")
    assert done.returncode == 2 and "tables ls: of which project of http" in done.stderr
    done = command("tables", "sql", "-p", "p", "select * from nix")
    assert done.returncode == 2 and "MaxCompute cannot run 'select * from nix': MaxCompute answered" in done.stderr


PAI = """
import argparse, os
import common_io
given = argparse.ArgumentParser()
for name in ("tables", "outputs", "buckets", "checkpointDir"):
    given.add_argument("--" + name)
FLAGS, _ = given.parse_known_args()
more = float(open(os.path.join(FLAGS.buckets, "more.txt")).read())
reader = common_io.table.TableReader(FLAGS.tables, selected_cols="id,x", slice_id=0, slice_count=1)
rows = reader.read(reader.get_row_count())
writer = common_io.table.TableWriter(FLAGS.outputs, slice_id=0)
writer.write([(int(row[0]), float(row[1]) + more) for row in rows], (0, 1))
writer.close()
step = os.path.join(FLAGS.checkpointDir, "step")
before = open(step).read() if os.path.exists(step) else ""
with open(step, "w") as file:
    file.write(before + "1")
"""


def test_a_command_of_pai_over_both(maxcompute: MaxCompute, oss: Oss, tmp_path: Path) -> None:
    maxcompute.put("t", numbers(1_000), ("pt",), ("1",))
    oss.objects["bkt"].update({"code/train.py": PAI.encode(), "data/more.txt": b"0.5"})
    (tmp_path / "job.sql").write_text(
        """
        create table if not exists iris_output (id bigint, f1 DOUBLE, f2 STRING);
        PAI -name tensorflow1150 -project algo_public
            -Dscript="oss://bkt.oss-cn-beijing-internal.aliyuncs.com/code/train.py"
            -Dtables="odps://p/tables/t/pt=1" -Doutputs="odps://p/tables/iris_output"
            -Dbuckets="oss://bkt.oss-cn-beijing-internal.aliyuncs.com/data/?role_arn=acs:ram::1:role/x"
            -DcheckpointDir="oss://bkt.oss-cn-beijing-internal.aliyuncs.com/model/";
        select count(*) as n, sum(f1) as s from iris_output;
        """
    )
    for steps in (b"1", b"11"):
        done = command("pai", "-f", str(tmp_path / "job.sql"), "--project", "p", "--python-env", sys.executable)
        assert done.returncode == 0, done.stderr
        assert oss.objects["bkt"]["model/step"] == steps
    assert "1,000" in done.stdout + done.stderr or "1000" in done.stdout
    assert done.stderr.count("MaxCompute at") == 1 and done.stderr.count("buckets: OSS at") >= 1
    found = maxcompute.rows("iris_output")
    assert found["id"].to_pylist() == list(range(1_000)) and found["f2"].null_count == 1_000
    assert found["f1"].to_pylist() == [number + 0.5 for number in range(1_000)]
    assert ACCESS_KEY not in done.stderr + done.stdout
