"""Processes that read and write one local table at the same time, and one that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Iterator

import numpy as np
import pyarrow as pa
import pytest

from akrunner.tables import layout, statements
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName
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


def _process(store: LocalTables, body: str) -> "subprocess.Popen[str]":
    begin = f"""
    import sys, time
    import numpy as np, pyarrow as pa
    from akrunner.tables.local import LocalTables
    from akrunner.tables.names import TableName
    store, name = LocalTables({store.place!r}), TableName.parse("odps://demo/tables/t")
    """
    code = textwrap.dedent(begin) + textwrap.dedent(body)
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


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


@pytest.mark.parametrize(("text", "at"), [("t", 1), ("u/p=1", 1), ("u/p=1", 2), ("u/p=1", 3)])
def test_a_writer_that_is_killed_where_directories_cannot_be_swapped(
    store: LocalTables, root: Path, text: str, at: int
) -> None:
    """Between any two of the renames: the table is as it was, or as it was to be, for whoever looks next."""
    statements.run(
        "create table u (id bigint) partitioned by (p string); insert into u partition (p='1') values (1)",
        lambda project: store,
        "demo",
    )
    name = TableName.parse(text, "demo")
    writer = _process(
        store,
        f"""
        import os, signal
        from akrunner.tables import layout
        layout.swap = lambda one, other: False
        rename, done = os.rename, []
        def killed(source, target):
            rename(source, target)
            if ".new" not in source:
                done.append(target)
            if len(done) == {at}:
                os.kill(os.getpid(), signal.SIGKILL)
        output = store.output(TableName.parse({text!r}, "demo"))
        output.part("0").write(pa.record_batch({{"id": [2]}}))
        os.rename = killed
        output.commit()
        """,
    )
    with writer:
        assert writer.wait(ENDS) == -9
    deadline = time.monotonic() + ENDS
    while list(root.rglob("*.partial")) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [batch.to_pydict() for batch in store.read(name)] == [{"id": [1 if at == 1 else 2]}]
    assert name.table in store.tables("demo") and bool(list(root.rglob(".*.aside"))) == (at == 2)
    output = store.output(name)
    output.part("0").write(pa.record_batch({"id": [3]}))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(layout, "swap", lambda one, other: False)
        output.commit()
    assert [batch.to_pydict() for batch in store.read(name)] == [{"id": [3]}] and not list(root.rglob(".*.aside"))
