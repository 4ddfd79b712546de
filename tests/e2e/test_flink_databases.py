"""Tables of a real PostgreSQL, which a cluster's machines read themselves."""

from __future__ import annotations

import importlib.util
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner.engines.feeder import Feeder
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host import cluster, databases
from akrunner.engines.flink.host.databases import SharedTable
from tests.conftest import FLINK, NOT_RUN, Script, nothing_is_left
from tests.e2e.test_flink_files import COPIES, ROWS, host_reads_nothing
from tests.e2e.test_flink_stores import is_kept_nowhere
from tests.servers.postgres import PASSWORD, Postgres

SCHEMA = "i bigint, task string"
#: which columns are read: of the other one's type there is none here
COLUMNS = ["s", "i"]


@pytest.fixture(scope="module")
def with_driver(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python of TaskManagers, with the driver that this one has."""
    folder = tmp_path_factory.mktemp("driver")
    for name in ("adbc_driver_manager", "adbc_driver_postgresql"):
        found = importlib.util.find_spec(name)
        assert found is not None and found.origin is not None
        (folder / name).symlink_to(Path(found.origin).parent)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec {FLINK} "$@"\n')
    python.chmod(0o755)
    if subprocess.run([python, "-c", "import adbc_driver_postgresql.dbapi"], capture_output=True).returncode:
        pytest.skip(f"{NOT_RUN}the driver of PostgreSQL in Flink's Python: it is of another version than this one")
    return str(python)


@pytest.fixture
def table(postgres: Postgres) -> str:
    """The URL of a table, of which some rows were deleted, and some pages have none."""
    postgres.sql(
        "CREATE TABLE t (s text, i bigint, d interval)",
        f"INSERT INTO t SELECT repeat('ä', (i % 90)::int), i, '1 day' FROM generate_series(-1000, {ROWS + 99}) AS i",
        f"DELETE FROM t WHERE i < 0 OR i >= {ROWS}",
    )
    return postgres.url + "?table=t"


def run(script: str, source: str, engine: FlinkEngine, **options: Any) -> akrunner.Result:
    how: dict[str, Any] = {"num_workers": 2, "output_schema": SCHEMA, "data_format": "columns", "columns": COLUMNS}
    return akrunner.run(script, source, engine=engine, **how, **options)


def is_left_alone(postgres: Postgres) -> None:
    """No connection of a job is left."""
    deadline = time.monotonic() + 10
    while (
        left := postgres.sql("SELECT query FROM pg_stat_activity WHERE application_name = 'akrunner'")
    ) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left


def ordered(monkeypatch: pytest.MonkeyPatch, postgres: Postgres, *statements: str) -> None:
    """Run statements once the rows are counted, and before they are read."""
    order = SharedTable.order

    def changed(shared: SharedTable, share: int) -> Any:
        told = order(shared, share)
        postgres.sql(*statements)
        return told

    monkeypatch.setattr(SharedTable, "order", changed)


def test_it_is_read_there(
    flink_cluster: cluster.Cluster, with_driver: str, leaves_nothing: Path, script: Script, postgres: Postgres, table: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    host_reads_nothing(monkeypatch)
    ordered(
        monkeypatch,
        postgres,
        "UPDATE t SET i = -i",
        "INSERT INTO t VALUES ('', 7777, '1 day')",
        "DELETE FROM t WHERE i % 2 = 0",
    )
    engine = FlinkEngine(flink_cluster.address, python=str(FLINK), python_executable=with_driver, files_there=True)
    result = run(script(COPIES), table, engine, user_params={"fails": 1}, max_restarts=1)
    assert sorted(result.table["i"].to_pylist()) == list(range(ROWS)), "the state before it was changed, in both attempts"
    assert result.stats.rows_in == ROWS and sorted(result.stats.shares) == [1000, 1001]
    assert not [warning for warning in result.stats.warnings if warning.startswith("source")]
    nothing_is_left(flink_cluster)
    is_left_alone(postgres)
    is_kept_nowhere(flink_cluster, PASSWORD)


def test_a_state_that_is_lost_is_told(
    flink_cluster: cluster.Cluster, with_driver: str, leaves_nothing: Path, script: Script, postgres: Postgres, table: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    lose = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'akrunner'"
    ordered(monkeypatch, postgres, lose)
    engine = FlinkEngine(flink_cluster.address, python=str(FLINK), python_executable=with_driver)
    with pytest.raises(
        akrunner.ReadError, match=r"source: cannot read postgresql://akr@127.0.0.1:\d+/postgres\?table=t on .*snapshot"
    ):
        run(script(COPIES), table, engine)
    nothing_is_left(flink_cluster)
    is_left_alone(postgres)


@pytest.mark.parametrize("must", [False, True])
def test_machines_without_the_driver_do_not_read_it(
    flink_cluster: cluster.Cluster, flink: FlinkEngine, leaves_nothing: Path, script: Script, postgres: Postgres, table: str,
    monkeypatch: pytest.MonkeyPatch, must: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(databases, "WORTH", 100)
    monkeypatch.setattr(flink, "files_there", True if must else None)
    held: list[Any] = []
    start = Feeder.start

    def counted(feeder: Feeder) -> None:
        held.append(postgres.sql("SELECT query FROM pg_stat_activity WHERE application_name = 'akrunner'"))
        start(feeder)

    monkeypatch.setattr(Feeder, "start", counted)
    if must:
        with pytest.raises(
            akrunner.ConfigError, match=r"^files_there=True .*: on .*, Flink's Python has no driver of PostgreSQL: pip"
        ):
            run(script(COPIES), table, flink)
    else:
        result = run(script(COPIES), table, flink)
        assert held == [[]], "no state is held while the submitter reads another one"
        lie = [i for (i,) in postgres.sql("SELECT i FROM t ORDER BY ctid")]
        assert result.table["i"].to_pylist() == lie[::2] + lie[1::2], "row by row"
        (told,) = result.stats.warnings
        assert told.startswith("source: the TaskManagers do not read the table themselves (on ") and "pip install" in told
    nothing_is_left(flink_cluster)
    is_left_alone(postgres)
