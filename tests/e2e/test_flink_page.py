"""The blocks of docs/flink.md and docs/tutorials/nightly.md, on the cluster that tests share.

Of docs/flink.md the commands, and all programs as one, so that Java is started once.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from akrunner.engines.flink.host.cluster import Cluster
from akrunner.engines.flink.host.java import java_home
from tests import models
from tests.conftest import FLINK, PROGRAM, need_flink, nothing_is_left
from tests.docs.pages import ROOT, Block, blocks
from tests.docs.running import Runner
from tests.docs.settings import SCORE
from tests.docs.test_pages import run

PAGE = "docs/flink.md"
#: one for every verb; the model is made beforehand, so that no TensorFlow is imported for it
TRAIN = """
import shutil

def main(task_config):
    if getattr(task_config, "saved_model_dir", None):
        shutil.copytree(task_config.user_params.get("model", "MODEL"), task_config.saved_model_dir, dirs_exist_ok=True)
        return
    for batch in task_config.batches(64):
        task_config.output_writer.write_batch({"id": batch["id"], "p": batch["x"] * 0.5})
"""
COUNTS = """
def main(task_config):
    for batch in task_config.batches(64):
        task_config.output_writer.write_batch({"shop": batch["shop"], "items": batch["items"]})
"""
#: what a program of PyFlink's has before it comes to akrunner
BEFORE = """
import functools
import pathlib
import tempfile

from pyflink.common import Configuration
from pyflink.table import StreamTableEnvironment

import akrunner
from akrunner import detached, flink
from akrunner.engines.flink.rest import Address
from akrunner.engines.flink.program.submit import environment_of

# the interpreter of this program has no TensorFlow
for home, names in ((akrunner, ("run", "train", "predict")), (flink, ("stream", "predict")), (detached, ("submit",))):
    for name in names:
        setattr(home, name, functools.partial(getattr(home, name), python_env=TENSORFLOW))

# what submits for one of them submits for the next
warm = akrunner.warm(TENSORFLOW, workers=1, preload=())

def lay(t_env):
    # `from akrunner.alink import *` brings Alink's name
    from pyflink.table import DataTypes

    kinds = {"id": DataTypes.BIGINT(), "x": DataTypes.DOUBLE(), "kind": DataTypes.STRING(), "shop": DataTypes.STRING(), "item": DataTypes.STRING()}
    rows = [(number, number / 2, "buy", f"shop {number % 3}", f"item {number}") for number in range(200)]
    t_env.create_temporary_view("clicks", t_env.from_elements(rows, DataTypes.ROW([DataTypes.FIELD(*one) for one in kinds.items()])))
    t_env.execute_sql("CREATE TEMPORARY TABLE scores (id BIGINT, p DOUBLE) WITH ('connector' = 'blackhole')")

configuration = Configuration()
environment = environment_of(Configuration(), Address.of(MASTER).flink_options, brings_python=False)
environment.set_parallelism(2)
own = environment
t_env = StreamTableEnvironment.create(environment)
lay(t_env)

def rows_of(table):
    # `collect` calls Java thirty times for each row, and asks the cluster every 100 ms
    from pyflink.table import Schema, TableDescriptor

    schema = Schema.new_builder()
    for name, kind in zip(table.get_schema().get_field_names(), table.get_schema().get_field_data_types()):
        schema.column(name, kind)
    with tempfile.TemporaryDirectory() as folder:
        sink = TableDescriptor.for_connector("filesystem").schema(schema.build()).option("path", folder).format("csv")
        table.execute_insert(sink.build()).wait()
        files = [file for file in pathlib.Path(folder).iterdir() if not file.name.startswith(".")]
        return sum(len(file.read_text().splitlines()) for file in files)
"""
#: what begins a block -> what is asked behind it
BEHIND = {
    "from akrunner import detached": "assert detached.wait(MASTER, job.id).error is None",
    "result = akrunner.train": "assert result.model.path",
    "job = flink.predict": "assert rows_of(job.table) == 200 and result.table.num_rows == 200",
    "configuration.set_string": "own.configure(configuration)\nassert rows_of(job.table) == 200",
    "with FlinkEngine": "assert scored.table.num_rows == 150",
}


@pytest.fixture
def folder(tmp_path: Path, saved_model: Callable[[str], str]) -> Path:
    folder = tmp_path / "page"
    folder.mkdir()
    flowers = pa.table({"id": range(150), "x": [number / 2 for number in range(150)]})
    pa_csv.write_csv(flowers, folder / "iris.csv")
    (folder / "store").mkdir()
    pa_csv.write_csv(flowers, folder / "store" / "iris.csv")
    for name in ("table.parquet", "store/iris.parquet"):
        pq.write_table(flowers, folder / name)
    model = saved_model(models.DOUBLE.replace('"y"', '"p"'))
    shutil.make_archive(str(folder / "model"), "zip", model)
    (folder / "train.py").write_text(TRAIN.replace("MODEL", model))
    (folder / "score.py").write_text(SCORE)
    (folder / "counts.py").write_text(COUNTS)
    return folder


def of(language: str) -> list[Block]:
    return [block for block in blocks(PAGE) if block.language == language and "not run" not in block.told]


@pytest.fixture
def names(flink_cluster: Cluster, folder: Path) -> dict[str, str]:
    """Those of the page -> the test's."""
    need_flink(program=True)
    host, _, port = flink_cluster.address.partition(":")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    there = f"--flink-python {FLINK} --flink-worker-python {PROGRAM} --python-env {sys.executable}"
    return {
        "localhost:8081": flink_cluster.address, "cluster:8081": flink_cluster.address, '"cluster", 8081': f'"{host}", {port}',
        "--engine flink": f"--engine flink {there}", "s3://bucket/": f"{folder}/store/", "/shared/": f"{folder}/store/",
        "flink start --taskmanagers 2": f"flink start --port {free} --python {FLINK} --taskmanagers 1",
        'execute_insert("scores")': 'execute_insert("scores").wait()',
        "clicks = BatchOperator": "lay(environment.flink.environment)\nclicks = BatchOperator",
        "TensorFlow2BatchOp(...)": 'TensorFlow2BatchOp(mainScriptFile="counts.py", pythonEnv=TENSORFLOW, outputSchemaStr="shop string, items string", '
        "numWorkers=1, numPSs=0)",
    }  # fmt: skip


@pytest.mark.flink
@pytest.mark.tensorflow
def test_commands(
    leaves_nothing: Path, flink_cluster: Cluster, folder: Path, names: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    runner = Runner(folder, instead=names)
    for block in of("sh"):
        runner.run(block)
    assert pq.read_table(folder / "scored.parquet").num_rows == 150
    assert "succeeded" in runner.said or "FINISHED" in runner.said, runner.said
    nothing_is_left(flink_cluster)


@pytest.mark.flink
@pytest.mark.tensorflow
def test_programs(leaves_nothing: Path, flink_cluster: Cluster, folder: Path, names: dict[str, str], tmp_path: Path) -> None:
    text = f"MASTER, TENSORFLOW = {flink_cluster.address!r}, {sys.executable!r}\n{BEFORE}"
    # a program has checkpoints from its beginning, or none
    for block in sorted(of("python"), key=lambda block: block.text.startswith("configuration.")):
        code = block.text
        for name, other in names.items():
            code = code.replace(name, other)
        asked = [behind for begin, behind in BEHIND.items() if block.text.startswith(begin)]
        text += "\n".join([f"print({block.place!r}, flush=True)", code, *asked, ""])
    (folder / "page.py").write_text(text + "assert warm.status()['submitters'] == 1\n")
    temp = tmp_path / "temp"
    temp.mkdir()
    # PyFlink leaves a directory there
    environ = {
        **os.environ, "JAVA_HOME": java_home(str(FLINK)), "PYTHONPATH": str(ROOT), "TMPDIR": str(temp),
        "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={temp} {os.environ['JAVA_TOOL_OPTIONS']}",
    }  # fmt: skip
    done = subprocess.run([str(PROGRAM), "page.py"], cwd=folder, env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert not list(temp.glob("akrunner-*")), "the programs have left something"
    nothing_is_left(flink_cluster)


@pytest.mark.flink
@pytest.mark.tensorflow
def test_from_a_notebook_to_a_nightly_job(
    leaves_nothing: Path, flink_cluster: Cluster, tmp_path: Path, names: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "nightly"
    page.mkdir()
    monkeypatch.chdir(page)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    runner = Runner(page, instead=names)
    run(runner, [block for block in blocks("docs/tutorials/nightly.md") if block.language != "text"])
    off = [float(one) for one in re.findall(r"'?test_minutes'?[:= ]+(\d+\.\d+)", runner.said)]
    # the mean is off by about 14
    assert off and max(off) < 6, runner.said
    assert "ValueError: the model is off by" in runner.said and "the old model stays" in (page / "why.html").read_text()
    assert {"model.zip", "nightly.html"} < {path.name for path in page.iterdir()}
    nothing_is_left(flink_cluster)
