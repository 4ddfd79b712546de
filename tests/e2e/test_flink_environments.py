"""A packed environment on a cluster: unpacked by the TaskManagers, once for a machine."""

from __future__ import annotations

import sys
import tarfile
import venv
from pathlib import Path

import pytest

import akrunner
from akrunner.engines.flink import FlinkEngine
from akrunner.engines.flink.host import cluster
from tests.conftest import Script, nothing_is_left

SAYS = """
    import sys

    def main(task_config):
        task_config.output_writer.write_batch({"prefix": [sys.prefix]})
    """


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A virtual environment as conda-pack leaves one."""
    folder = tmp_path / "venv"
    venv.create(folder, symlinks=True)
    # numpy is what a worker needs of it
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "here.pth").write_text(next(path for path in sys.path if path.endswith("site-packages")))
    (folder / "bin" / "conda-unpack").write_text("import sys, pathlib; pathlib.Path(sys.prefix, 'mended').write_text('x')")
    archive = tmp_path / "env.tar.gz"
    with tarfile.open(archive, "w:gz") as out:
        out.add(folder, "env")
    return archive


def test_it_is_unpacked_there(
    flink_cluster: cluster.Cluster, flink: FlinkEngine, leaves_nothing: Path, script: Script, packed: Path
) -> None:
    unpacked = Path(flink_cluster.folder) / "cache" / "akrunner" / "unpacked"
    options = dict(engine=flink, output_schema="prefix string", num_workers=2, data_format="columns")
    for _ in range(2):
        result = akrunner.run(script(SAYS), {"a": [1, 2]}, python_env=packed, **options)
        (prefix,) = set(result.table["prefix"].to_pylist())
        assert Path(prefix).is_relative_to(unpacked) and (Path(prefix) / "mended").exists()
    assert len([path for path in unpacked.iterdir() if path.is_dir()]) == 1
    nothing_is_left(flink_cluster)


def test_one_that_is_none(
    flink_cluster: cluster.Cluster, flink: FlinkEngine, leaves_nothing: Path, script: Script, tmp_path: Path
) -> None:
    empty = tmp_path / "empty.tar.gz"
    with tarfile.open(empty, "w:gz") as out:
        out.add(__file__, "notes.txt")
    for archive, words in (
        (empty, r"no bin/python in it \(there is notes.txt\)"),
        (tmp_path / "none.zip", "there is no .*none.zip"),
    ):
        with pytest.raises(akrunner.PythonEnvError, match=words):
            akrunner.run(script(SAYS), {"a": [1]}, python_env=archive, engine=flink, output_schema="prefix string")
    nothing_is_left(flink_cluster)
