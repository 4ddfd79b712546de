"""Processes that read and write one local table at the same time, and one that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from akrunner.tables import statements
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
from tests import hosts
from tests.conftest import ENDS

pytestmark = pytest.mark.slow

NAME = TableName.parse("odps://demo/tables/t")


@pytest.fixture
def root(tmp_path: Path, leaves_nothing: Path) -> Iterator[Path]:
    root = tmp_path / "tables"
    yield root
    assert not list(root.rglob("*.partial"))


@pytest.fixture
def store(root: Path) -> LocalTables:
    """Of one table, `t`."""
    store = LocalTables(str(root))
    statements.run("create table t (id bigint); insert into t values (1)", lambda project: store, "demo")
    return store


def _process(store: LocalTables, body: str) -> hosts.Popen:
    begin = f"""
    import sys, time
    import numpy as np, pyarrow as pa
    from akrunner.tables.local import LocalTables
    from akrunner.tables.names import TableName
    store, name = LocalTables({store.place!r}), TableName.parse("odps://demo/tables/t")
    """
    code = textwrap.dedent(begin) + textwrap.dedent(body)
    return hosts.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_process_reads_while_another_writes(store: LocalTables) -> None:
    output = store.output(NAME)
    output.part("0").write(pa.record_batch({"id": np.zeros(20_000, np.int64)}))
    output.commit()
    writer = _process(
        store,
        """
        import select
        number = 0
        while not select.select([sys.stdin], [], [], 0)[0]:
            number += 1
            output = store.output(name)
            for key in ("a", "b"):
                output.part(key).write(pa.record_batch({"id": np.full(10_000, number)}))
            output.commit()
        print(number)
        """,
    )
    seen = set()
    with writer:
        deadline = time.monotonic() + ENDS
        while len(seen) < 4 and time.monotonic() < deadline:
            ids = np.concatenate([batch["id"].to_numpy() for batch in store.read(NAME)])
            assert len(ids) == 20_000 and (ids == ids[0]).all()
            seen.add(int(ids[0]))
        last, _ = writer.communicate()
    assert writer.returncode == 0 and len(seen) == 4
    assert next(store.read(NAME))["id"][0].as_py() == int(last)


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_killed_writer_leaves_the_table_as_it_was(store: LocalTables, root: Path, overwrite: bool) -> None:
    writer = _process(
        store,
        f"""
        output = store.output(name, {overwrite})
        output.part("0").write(pa.record_batch({{"id": np.arange(100_000)}}))
        print("written", flush=True)
        sys.stdin.read()
        """,
    )
    with writer:
        assert writer.stdout is not None and writer.stdout.readline() == "written\n"
        assert list(root.rglob("*.partial"))
        writer.kill()
    deadline = time.monotonic() + ENDS
    while list(root.rglob("*.partial")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [batch.to_pydict() for batch in store.read(NAME)] == [{"id": [1]}]
    assert sorted(os.listdir(root / "demo" / "t")) == ["_table.sql", "part-00000.parquet"]


KILLS = """
import os, random, shutil, signal, sys, time
import pyarrow as pa
from akrunner.tables import renames, statements
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName

ROOT, SWAPS = sys.argv[1], sys.argv[2] == "swaps"
store = LocalTables(ROOT)
swap = renames.swap

def run(sql):
    return statements.run(sql, lambda project: LocalTables(ROOT), "demo")

def counted(call, left):
    def counting(*given, **named):
        done = call(*given, **named)
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done
    return counting

def killed_at(number, body, before=lambda: None):
    # a child that is killed behind its call of that number, of those that change a directory, or sync a file
    child = os.fork()
    if child == 0:
        left, given = [number], before()
        for name in ("rename", "mkdir", "rmdir", "link", "fsync", "chmod"):
            setattr(os, name, counted(getattr(os, name), left))
        renames.swap = counted(swap if SWAPS else lambda one, other: False, left)
        code = 1
        try:
            body(given) if given else body()
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return status != 0

def names():
    return [TableName.parse(text, "demo") for text in ("u/p=1", "u/p=2", "u/p=new", "t")]

def written(value):
    outputs = []
    for name in names():
        outputs.append(store.output(name))
        outputs[-1].part("0").write(pa.record_batch({"id": [value]}))
    return outputs

def anew():
    shutil.rmtree(ROOT)
    shutil.copytree(ROOT + "-base", ROOT)

def state():
    found = []
    for name in names():
        found.append([x for b in store.read(name) for x in b["id"].to_pylist()] if store.exists(name) else None)
    return found

def is_clean():
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        left = [n for folder, below, files in os.walk(ROOT) for n in below + files if n[0] == "." and n != ".lock"]
        if not left:
            return
        time.sleep(0.01)
    raise AssertionError(left)

chance = random.Random(17)
base = [[0], [0], None, [0]]
seen = set()
run("create table t (id bigint); create table u (id bigint) partitioned by (p string); alter table u add partition (p='1') partition (p='2')")
store.commit(written(0))
run("alter table u drop partition (p='new')")
shutil.copytree(ROOT, ROOT + "-base")
for at in range(1000):
    anew()
    was_killed = killed_at(at, store.commit, lambda: written(at + 1))
    # and whoever finishes it is killed, too
    for number in chance.sample(range(40), 3):
        if os.path.exists(os.path.join(ROOT, ".commit")):
            killed_at(number, state)
    now = state()
    assert now in (base, [[at + 1]] * 4), (at, now)
    seen.add(now == base)
    is_clean()
    if not was_killed:
        assert now != base
        break
assert seen == {True, False}, seen

for sql in ("alter table u drop partition (p='1') partition (p='2') partition (p='new')",
            "alter table u add partition (p='1') partition (p='2') partition (p='new')"):
    counts = set()
    for at in range(1000):
        anew()
        run("alter table u add partition (p='new')" if "drop" in sql else "alter table u drop partition (p='1'), partition (p='2')")
        was_killed = killed_at(at, lambda: run(sql))
        counts.add(len(store.partitions(TableName.parse("u", "demo"))))
        is_clean()
        if not was_killed:
            break
    assert counts == {0, 3}, counts

# what is dropped first of all behind a writer that was killed does not come back
for at in range(chance.randrange(4), 1000, 4):
    anew()
    was_killed = killed_at(at, store.commit, lambda: written(at + 1))
    run("drop table t; alter table u drop if exists partition (p='1')")
    assert [one is None for one in state()][::3] == [True, True], (at, state())
    run("create table t (id bigint); alter table u add partition (p='1')")
    assert state()[::3] == [[], []], (at, state())
    is_clean()
    if not was_killed:
        break
print("fine")
"""


@pytest.mark.parametrize("swaps", ["swaps", "renames"])
def test_a_writer_of_several_outputs_that_is_killed(tmp_path: Path, leaves_nothing: Path, swaps: str) -> None:
    """Behind any of the steps of a commit: every table and partition is as it was, or every one as it was to be, for whoever looks next."""
    found = hosts.run(
        [sys.executable, "-c", KILLS, str(tmp_path / "tables"), swaps],
        capture_output=True,
        text=True,
        timeout=ENDS * 4,
        check=False,
    )
    assert found.stdout == "fine\n", found.stderr[-3000:]
