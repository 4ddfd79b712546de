"""Tables in an object store, which a cluster's machines read themselves, from a real S3 server."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import akrunner
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host import cluster, files, stores
from akrunner.engines.flink.host.files import SharedFiles
from tests.conftest import Script, nothing_is_left, of_jobs
from tests.e2e.test_flink_files import COPIES, ROWS, host_reads_nothing
from tests.servers.s3 import ENVIRONMENT, S3

SCHEMA = "i bigint, task string"
TABLE = pa.table({"i": range(ROWS), "s": ["ä" * (i % 9) + '"\n,' * (i % 2) for i in range(ROWS)]})


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=100)
    return out.getvalue()


def arrow(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table, 100)
    return out.getvalue()


def csv(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pa_csv.write_csv(table, out)
    return out.getvalue()


def jsonl(table: pa.Table) -> bytes:
    return "\n".join(json.dumps(row) for row in table.to_pylist()).encode()


def stored(s3: S3, form: Callable[[pa.Table], bytes]) -> str:
    """Store the table in two files; returns the URL of their directory."""
    for name, rows in (("a", TABLE.slice(0, 950)), ("b", TABLE.slice(950))):
        s3.put(f"table/{name}.{form.__name__}", form(rows))
    return f"s3://{s3.bucket}/table/"


def run(script: str, source: str, engine: FlinkEngine, **options: Any) -> akrunner.Result:
    return akrunner.run(script, source, engine=engine, num_workers=2, output_schema=SCHEMA, data_format="columns", **options)


def is_kept_nowhere(running: cluster.Cluster, secret: str) -> None:
    """A secret went to the machines, and is in no file, argument or environment there."""
    assert not [path for path in Path(running.folder).rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    there = psutil.Process(max(running.processes)).children(recursive=True)
    for process in [*there, *of_jobs(os.path.join(running.folder, "tmp"))]:
        # one that has ended has neither
        with contextlib.suppress(psutil.NoSuchProcess):
            assert secret not in " ".join([*process.cmdline(), *process.environ().values()])


@pytest.mark.parametrize("form", [parquet, arrow, csv, jsonl], ids=lambda form: form.__name__)
def test_they_are_read_there(
    flink_cluster: cluster.Cluster, flink: FlinkEngine, leaves_nothing: Path, script: Script, s3: S3,
    monkeypatch: pytest.MonkeyPatch, form: Callable[[pa.Table], bytes],
) -> None:  # fmt: skip
    host_reads_nothing(monkeypatch)
    monkeypatch.setattr("akrunner.io.formats.lines.LINES_BYTES", 1000)
    monkeypatch.setattr("akrunner.io.formats.lines.AWAY", 1)
    result = run(script(COPIES), stored(s3, form), flink, user_params={"fails": 1}, max_restarts=1)
    assert sorted(result.table["i"].to_pylist()) == list(range(ROWS))
    assert result.stats.rows_in == ROWS and sorted(result.stats.shares) == [1000, 1001]
    assert not [warning for warning in result.stats.warnings if warning.startswith("source")]
    nothing_is_left(flink_cluster)
    is_kept_nowhere(flink_cluster, ENVIRONMENT["AWS_SECRET_ACCESS_KEY"])


@pytest.mark.parametrize("must", [False, True])
def test_a_store_that_they_do_not_reach(
    flink_cluster: cluster.Cluster, flink: FlinkEngine, leaves_nothing: Path, script: Script, s3: S3,
    monkeypatch: pytest.MonkeyPatch, must: bool,
) -> None:  # fmt: skip
    # where nothing listens
    nowhere = {"endpoint_override": "127.0.0.1:1", "scheme": "http", "region": "us-east-1"}
    monkeypatch.setattr(stores, "_s3_address", lambda *_: nowhere)
    monkeypatch.setattr(files, "WORTH", 100)
    source = stored(s3, parquet)
    if must:
        monkeypatch.setattr(flink, "files_there", True)
        with pytest.raises(
            akrunner.ConfigError, match=r"^files_there=True .*: on .*, cannot read s3://b-.*/a.parquet: .*; leave"
        ):
            run(script(COPIES), source, flink)
    else:
        result = run(script(COPIES), source, flink)
        assert result.table["i"].to_pylist() == [*range(0, ROWS, 2), *range(1, ROWS, 2)], "row by row"
        (told,) = result.stats.warnings
        assert told.startswith("source: the TaskManagers do not read the table themselves (on ") and "a.parquet" in told
    nothing_is_left(flink_cluster)


def test_an_object_that_was_replaced_is_noticed(
    flink_cluster: cluster.Cluster, flink: FlinkEngine, leaves_nothing: Path, script: Script, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    source, order = stored(s3, arrow), SharedFiles.order

    def replaced(shared: SharedFiles, share: int) -> Any:
        told = order(shared, share)
        # as long as before
        other = TABLE.slice(0, 950).set_column(0, "i", pa.array(range(1, 951)))
        assert len(arrow(other)) == shared.sizes[0][1]
        s3.put("table/a.arrow", arrow(other))
        return told

    monkeypatch.setattr(SharedFiles, "order", replaced)
    with pytest.raises(akrunner.ReadError, match=r"s3://b-.*/table/a.arrow was changed while the job ran, as .* sees it"):
        run(script(COPIES), source, flink)
    nothing_is_left(flink_cluster)
