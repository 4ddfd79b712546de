"""Files a cluster's machines read themselves."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import akrunner
from akrunner.engines.feeder import Feeder
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host import cluster
from akrunner.engines.flink.host.files import SharedFiles
from tests.conftest import Script, nothing_is_left

COPIES = """
    def main(task_config):
        if task_config.attempt < task_config.user_params.get("fails", 0):
            raise RuntimeError("the first time")
        for rows in task_config.batches(64):
            task_config.output_writer.write_batch({"i": rows["i"], "task": [task_config.task_type] * len(rows["i"])})
    """
ROWS = 2001


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"i": range(ROWS)}), path, row_group_size=100)
    return path


def host_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(feeder: Feeder) -> None:
        raise AssertionError("the submitter reads")

    class Refuses(Feeder):
        pass

    Refuses.start = start  # type: ignore[method-assign]
    monkeypatch.setattr("akrunner.engines.group.Feeder", Refuses)


@pytest.mark.parametrize(
    "options", [{}, {"data_format": "columns", "num_ps": 1, "user_params": {"fails": 1}, "max_restarts": 1}]
)
def test_they_are_read_there(
    flink_cluster: cluster.Cluster, flink: FlinkEngine, leaves_nothing: Path, script: Script, table: Path, monkeypatch: pytest.MonkeyPatch,
    options: Any,
) -> None:  # fmt: skip
    host_reads_nothing(monkeypatch)
    result = akrunner.run(script(COPIES), table, engine=flink, num_workers=2, output_schema="i bigint, task string", **options)
    assert sorted(result.table["i"].to_pylist()) == list(range(ROWS))
    assert result.stats.rows_in == ROWS and sorted(result.stats.shares) == [1000, 1001]
    # row groups in turn: neither task has the table's beginning to itself
    of_chief = [i for i, task in zip(result.table["i"].to_pylist(), result.table["task"].to_pylist()) if task == "chief"]
    assert of_chief[:201] == [*range(100), *range(200, 300), 400]
    nothing_is_left(flink_cluster)


def test_lines_are_read_there(
    flink_cluster: cluster.Cluster, flink: FlinkEngine, leaves_nothing: Path, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    host_reads_nothing(monkeypatch)
    monkeypatch.setattr("akrunner.io.formats.lines.LINES_BYTES", 500)
    table = tmp_path / "table.csv"
    # of one column, an empty line would be a row: such a table is the submitter's to read
    table.write_text("i,j\n" + "".join(f"{i},x\n" for i in range(ROWS)))
    result = akrunner.run(script(COPIES), table, engine=flink, num_workers=2, output_schema="i bigint, task string")
    assert sorted(result.table["i"].to_pylist()) == list(range(ROWS)) and sorted(result.stats.shares) == [1000, 1001]
    nothing_is_left(flink_cluster)


@pytest.mark.parametrize("why", ["not there", "not wanted"])
def test_otherwise_the_submitter_reads(
    flink_cluster: cluster.Cluster,
    flink: FlinkEngine,
    leaves_nothing: Path,
    script: Script,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    why: str,
) -> None:
    if why == "not there":
        found = SharedFiles.of

        def elsewhere(source: Any, tasks: int, *how: bool) -> SharedFiles | None:
            files = found(source, tasks, *how)
            return dataclasses.replace(files, sizes=(("/only/here.parquet", 1),)) if files is not None else None

        monkeypatch.setattr(SharedFiles, "of", elsewhere)
    else:
        monkeypatch.setattr(flink, "files_there", False)
    result = akrunner.run(
        script(COPIES), table, engine=flink, num_workers=2, output_schema="i bigint, task string", data_format="columns"
    )
    assert result.table["i"].to_pylist() == [*range(0, ROWS, 2), *range(1, ROWS, 2)], "row by row"
    nothing_is_left(flink_cluster)


def test_a_damaged_file_is_named(
    flink_cluster: cluster.Cluster, flink: FlinkEngine, leaves_nothing: Path, script: Script, table: Path
) -> None:
    data = bytearray(table.read_bytes())
    # a page of the second row group: the footer is as it was
    at = pq.ParquetFile(table).metadata.row_group(1).column(0).data_page_offset
    data[at : at + 40] = b"\xff" * 40
    table.write_bytes(bytes(data))
    with pytest.raises(akrunner.ReadError, match=r"cannot read .*table\.parquet on "):
        akrunner.run(
            script(COPIES), table, engine=flink, num_workers=2, output_schema="i bigint, task string", data_format="columns"
        )
    nothing_is_left(flink_cluster)


@pytest.mark.parametrize("there", [True, False])
def test_a_directory_is_written_there(
    flink_cluster: cluster.Cluster, flink: FlinkEngine, leaves_nothing: Path, script: Script, table: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, there: bool,
) -> None:  # fmt: skip
    if there:

        def write(*given: Any) -> None:
            raise AssertionError("the submitter writes")

        monkeypatch.setattr("akrunner.io.sinks.PartsSink.write", write)
    else:
        monkeypatch.setattr(flink, "files_there", False)
    options = dict(output_schema="i bigint, task string", user_params={"fails": 1}, max_restarts=1, data_format="columns")
    result = akrunner.run(script(COPIES), table, engine=flink, num_workers=2, output=f"{tmp_path}/out/", **options)
    assert result.output == f"{tmp_path}/out/" and result.stats.rows_out == ROWS
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["part-chief-0.parquet", "part-worker-0.parquet"]
    for task in ("chief", "worker"):
        assert set(pq.read_table(tmp_path / "out" / f"part-{task}-0.parquet")["task"].to_pylist()) == {task}
    assert sorted(pq.read_table(tmp_path / "out")["i"].to_pylist()) == list(range(ROWS))
    assert not [path.name for path in tmp_path.iterdir() if "partial" in path.name]
    nothing_is_left(flink_cluster)


REMOVES = """
    import glob, shutil

    def main(task_config):
        for path in glob.glob(task_config.user_params["partial"]):
            shutil.rmtree(path)
        task_config.output_writer.write_batch({"i": [1], "task": ["chief"]})
    """


def test_a_directory_that_cannot_be_written_fails_the_job(
    flink_cluster: cluster.Cluster, flink: FlinkEngine, leaves_nothing: Path, script: Script, table: Path, tmp_path: Path
) -> None:
    options = dict(
        output_schema="i bigint, task string", user_params={"partial": f"{tmp_path}/.out.*.partial"}, data_format="columns"
    )
    with pytest.raises(akrunner.WriteError, match=r"cannot write .*part-chief-0.parquet: No such file or directory \(on "):
        akrunner.run(script(REMOVES), table, engine=flink, output=f"{tmp_path}/out/", **options)
    assert not (tmp_path / "out").exists()
    nothing_is_left(flink_cluster)
