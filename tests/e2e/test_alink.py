"""Every example of Alink's operators, with real TensorFlow, for what it computed; and Alink's own program as it stands."""

from __future__ import annotations

import contextlib
import datetime
import functools
import http.server
import importlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import akrunner
from akrunner import alink
from akrunner.alink.model_streams import append
from akrunner.alink.streams import SourceStreamOp
from akrunner.engines.flink.host.cluster import Cluster
from akrunner.io.ak import AkSink
from akrunner.io.table import TableSource
from tests.conftest import FLINK, Script, not_run, nothing_is_left
from tests.models import DOUBLE
from tests.worker.conftest import how_to_get, prepared

#: Alink's operators have four threads each, unless they are told otherwise
pytestmark = [pytest.mark.tensorflow, pytest.mark.warm(threads="4")]
TF1 = pytest.mark.warm(python="tf1.15", threads="4")

EXAMPLES = Path(__file__).parents[2] / "examples" / "alink"

#: from Alink's documentation; only the import line is another
PROGRAM = """
from akrunner.alink import *
import json
source = RandomTableSourceBatchOp() \\
    .setNumRows(100) \\
    .setNumCols(10)
colNames = source.getColNames()
label = "label"
userParams = {
    'featureCols': json.dumps(colNames), 'labelCol': label,
    'batch_size': 16, 'num_epochs': 1
}
tensorFlowBatchOp = TensorFlowBatchOp() \\
    .setUserFiles(["https://.../tf_dnn_batch.py"]) \\
    .setMainScriptFile("https://.../tf_dnn_batch.py") \\
    .setUserParams(json.dumps(userParams)) \\
    .setOutputSchemaStr("model_id long, model_info string") \\
    .setNumWorkers(1) \\
    .setNumPSs(0)
source = source.select("*, case when RAND() > 0.5 then 1. else 0. end as label") \\
    .link(tensorFlowBatchOp) \\
    .print()
"""


@pytest.fixture(autouse=True)
def environment(leaves_nothing: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    alink.resetEnv()
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    alink.resetEnv()


@pytest.fixture
def tf1(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow 1.15, where operators of TensorFlow 1 look for it."""
    found = prepared("tf1.15")
    if found is None:
        not_run("TensorFlow tf1.15", how_to_get("tf1.15"))
    monkeypatch.setenv("TF115_PYTHON_ENV_PATH", str(Path(found.path).parents[1]))


@pytest.fixture
def tf2(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow 2.3, where operators of TensorFlow 2 look for it."""
    found = prepared("tf2.3")
    if found is None:
        not_run("TensorFlow tf2.3", "run scripts/test --matrix to prepare it")
    monkeypatch.setenv("TF231_PYTHON_ENV_PATH", str(Path(found.path).parents[1]))


def example(name: str) -> Any:
    """A fresh import of an example."""
    sys.modules.pop(name, None)
    return importlib.import_module(name)


@contextlib.contextmanager
def served(directory: Path) -> Iterator[str]:
    """The files of a directory, by HTTP."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(directory)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@TF1
def test_alinks_own_program(tf1: None, capsys: pytest.CaptureFixture[str]) -> None:
    with served(EXAMPLES / "scripts") as url:
        names: dict[str, Any] = {}
        exec(PROGRAM.replace("https://...", url), names)
    printed = capsys.readouterr().out
    assert "model_id" in printed and "model_info" in printed and ".zip" in printed
    model = akrunner.Model.from_table(names["source"].collectToTable())
    assert (Path(model.path) / "saved_model.pb").exists()


@TF1
def test_tensorflow_batch(tf1: None) -> None:
    model = akrunner.Model.from_table(example("tensorflow_batch").main().collectToTable())
    assert (Path(model.path) / "saved_model.pb").exists()


def test_tensorflow2_batch() -> None:
    assert example("tensorflow2_batch").main().collect() == [(0, 5.0), (1, 10.0), (2, 0.0)]


@TF1
def test_tensorflow_stream(tf1: None, tmp_path: Path) -> None:
    example("tensorflow_stream").main(str(tmp_path / "out.csv"))
    assert (tmp_path / "out.csv").read_text() == "0,5.0\n1,10.0\n"


def test_tensorflow2_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example("tensorflow2_stream").main(str(tmp_path / "out.csv"))
    assert (tmp_path / "out.csv").read_text() == "0,5.0\n1,10.0\n"
    assert capsys.readouterr().out == "id|norm\n0|5.0\n1|10.0\n"


@pytest.mark.cold
def test_tensorflow_2_of_alinks_scripts(tf2: None, script: Script, tmp_path: Path) -> None:
    """Of the shape of Alink's tf_dnn_stream.py: it does not turn eager execution off, and uses placeholders."""
    body = """
        import json, os
        from akdl.engine.inputs import get_dataset_fn, get_feature_placeholders, parse_feature_specs
        from akdl.engine.run_config import generate_run_config
        from akdl.runner import io_helper
        import tensorflow as tf

        if tf.__version__ >= "2.0":
            tf = tf.compat.v1

        def main(task_config):
            assert tf.__version__.startswith("2.3."), tf.__version__
            params = task_config.user_params
            names = json.loads(params["featureCols"])
            columns = [{"name": name, "dtype": "float", "shape": [1]} for name in names]
            columns.append({"name": params["labelCol"], "dtype": "long", "shape": [1]})
            train_config = {"batch_size": int(params["batch_size"]), "num_epochs": int(params["num_epochs"])}
            classifier = tf.estimator.DNNClassifier(
                feature_columns=[tf.feature_column.numeric_column(name) for name in names], hidden_units=[30, 10], n_classes=2,
                config=generate_run_config(**train_config))
            rows = get_dataset_fn(feature_specs=parse_feature_specs(columns), raw_dataset_fn=task_config.dataset_fn,
                                  label_col=params["labelCol"], **train_config)
            tf.estimator.train_and_evaluate(classifier, tf.estimator.TrainSpec(rows), tf.estimator.EvalSpec(rows))
            receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(get_feature_placeholders(columns, params["labelCol"]))
            if task_config.task_type == "chief":
                folder = os.path.join(task_config.work_dir, "saved_model_dir")
                classifier.export_saved_model(folder, serving_input_receiver_fn=receiver)
                io_helper.output_model_to_flink(folder, task_config.output_writer)
        """
    params = {"featureCols": json.dumps(["a", "b"]), "labelCol": "label", "batch_size": 8, "num_epochs": 1}
    rows = [(i / 500, -i / 500, i % 2) for i in range(500)]
    source = alink.MemSourceStreamOp(rows, "a double, b double, label bigint")
    job = alink.TensorFlow2StreamOp(
        mainScriptFile=script(body), userParams=params, outputSchemaStr="model_id bigint, model_info string",
        numWorkers=1, numPSs=0,
    )  # fmt: skip
    source.link(job).link(alink.CsvSinkStreamOp(filePath=str(tmp_path / "model.csv")))
    alink.StreamOperator.execute()
    assert (tmp_path / "model.csv").read_text().partition("\n")[0].endswith(".zip")


def test_table_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example("table_model").main(tmp_path / "model")
    table, directory = (float(line.split(": ")[1]) for line in capsys.readouterr().out.splitlines())
    assert table == directory >= 0.9
    rows = (tmp_path / "model" / "table.csv").read_text().splitlines()
    assert len(rows) == 150 and rows == (tmp_path / "model" / "directory.csv").read_text().splitlines()
    species = ["setosa", "versicolor", "virginica"]
    right = sum(species[int(row.split(",")[2])] == row.split(",")[1] for row in rows)
    assert right / 150 == pytest.approx(table)


@TF1
def test_table_model_of_tensorflow_1(tf1: None) -> None:
    assert example("table_model_tf1").main() >= 0.9


def test_pipeline(tmp_path: Path) -> None:
    accuracy, row = example("pipeline").main(str(tmp_path / "pipeline"))
    assert accuracy >= 0.9
    assert row[:2] == (7, "setosa") and row[3] == 0 and sum(row[2]) == pytest.approx(1.0)
    assert {path.name for path in (tmp_path / "pipeline").iterdir()} == {"pipeline.json", "stage-0.zip"}
    with pytest.raises(akrunner.ModelError, match="holds a pipeline already"):
        alink.PipelineModel.load(str(tmp_path / "pipeline")).save(str(tmp_path / "pipeline"))
    with pytest.raises(akrunner.ModelError, match="is not a saved pipeline"):
        alink.PipelineModel.load(str(tmp_path))


@TF1
def test_pipeline_of_tensorflow_1(tf1: None) -> None:
    assert example("pipeline_tf1").main() >= 0.9


def test_side_inputs() -> None:
    assert example("side_inputs").main().collect() == [("the quick brown fox", 2), ("a lazy dog", 1), ("", 0)]


def test_tables(tmp_path: Path) -> None:
    means, joined, lines = example("tables").main(tmp_path / "tables")
    assert [(row[0], row[1], round(row[2], 3)) for row in means] == [
        ("virginica", 50, 5.552), ("versicolor", 50, 4.26), ("setosa", 50, 1.462),
    ]  # fmt: skip
    assert joined.num_rows == len(lines) == 42


def test_streams(tmp_path: Path) -> None:
    example("streams").main(str(tmp_path / "out.csv"))
    assert len((tmp_path / "out.csv").read_text().splitlines()) > 80


def test_keras_sequential(tmp_path: Path) -> None:
    assert example("keras_sequential").main(str(tmp_path / "out.csv")) > 0.8
    assert (tmp_path / "out.csv").read_text() == "1,setosa\n2,virginica\n"


@pytest.mark.cold
@pytest.mark.matrix
@pytest.mark.parametrize("name", ["tf1.15", "tf2.3"])
def test_keras_sequential_on_the_matrix(name: str, tmp_path: Path) -> None:
    found = prepared(name)
    if found is None:
        not_run(f"TensorFlow {name}", how_to_get(name))
    assert example("keras_sequential").main(str(tmp_path / "out.csv"), found.path) > 0.8
    assert (tmp_path / "out.csv").read_text() == "1,setosa\n2,virginica\n"


def test_keras_pipeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = example("keras_pipeline")
    right, said = module.main(str(tmp_path / "pipeline"))
    assert right > 0.8 and said == "setosa"
    assert {path.name for path in (tmp_path / "pipeline").iterdir()} == {"pipeline.json", "stage-1.ak"}
    assert module.regression() < 1
    assert len([line for line in capsys.readouterr().out.splitlines() if line.startswith("1|")]) == 2


class Patient(SourceStreamOp):
    """Rows until a file says that a new model is in use, and one more."""

    def __init__(self, seen: Path, begun: threading.Event) -> None:
        super().__init__()
        self._seen, self._begun = seen, begun

    def _source(self) -> TableSource:
        schema = pa.schema([("x", pa.float32())])

        def rows() -> Iterator[pa.RecordBatch]:
            while "3.0" not in self._seen.read_text():
                yield pa.record_batch([pa.array([1.0], pa.float32())], schema=schema)
                if "2.0" in self._seen.read_text():
                    self._begun.set()
                threading.Event().wait(0.05)

        return TableSource(schema, rows)


def test_a_stream_takes_a_new_model(saved_model: Callable[[str], str], tmp_path: Path) -> None:
    codes = {"first": DOUBLE, "second": DOUBLE.replace("2.0", "3.0")}
    tables = {name: akrunner.Model(saved_model(code)).to_table() for name, code in codes.items()}
    sink = AkSink(str(tmp_path / "first.ak"), tables["first"].schema)
    for batch in tables["first"].to_batches():
        sink.write(batch)
    sink.commit()
    out, root, begun = tmp_path / "out.csv", tmp_path / "models", threading.Event()
    predictor = alink.TFTableModelPredictStreamOp().setModelFilePath(str(tmp_path / "first.ak")).setOutputSchemaStr("y float")
    predictor.setReservedCols([]).setModelStreamFilePath(str(root)).setModelStreamScanInterval(0.2)
    predictor.linkFrom(Patient(out, begun)).link(alink.CsvSinkStreamOp(filePath=str(out)))

    def put() -> None:
        begun.wait()
        append(str(root), tables["second"], datetime.datetime.now())

    thread = threading.Thread(target=put)
    thread.start()
    try:
        alink.StreamOperator.execute()
    finally:
        begun.set()
        thread.join()
    said = out.read_text().split()
    turn = said.index("3.0")
    assert turn > 0 and set(said[:turn]) == {"2.0"} and set(said[turn:]) == {"3.0"}


def test_small_operators(tmp_path: Path) -> None:
    module = example("small_operators")
    assert module.batch() == [("virginica", 15), ("virginica", 12)]
    module.stream(str(tmp_path / "train.csv"), str(tmp_path / "test.csv"))
    train, test = ((tmp_path / name).read_text().splitlines() for name in ("train.csv", "test.csv"))
    assert 50 < len(train) < 90 and 5 < len(test) < 30


def test_tensor_columns(capsys: pytest.CaptureFixture[str]) -> None:
    rows = example("tensor_columns").main()
    assert rows[0] == (1, [2.0, 3.0], [0.5, 1.5])
    assert capsys.readouterr().out == "id|image|vec\n1|[4.0]|[0.5, 1.5]\n2|[8.0]|[0.0, 2.5]\n"


def test_ak_files(tmp_path: Path) -> None:
    assert len(example("ak_files").main(str(tmp_path / "ak"))) == 42


# -- what examples do not show; no TensorFlow is needed


def test_a_job_runs_once_for_two_sinks(script: Script, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.write_text("")
    body = """
        def main(task_config):
            with open(task_config.user_params["runs"], "a") as f:
                f.write("x")
            for batch in task_config.batches(10):
                task_config.output_writer.write_batch({"a": batch["a"] + 1})
        """
    job = alink.TensorFlow2BatchOp(
        pythonEnv="tf2", mainScriptFile=script(body), userParams={"runs": str(runs)}, outputSchemaStr="a bigint"
    )
    result = alink.MemSourceBatchOp([(1,), (2,)], "a bigint").link(job)
    result.link(alink.CsvSinkBatchOp(filePath=str(tmp_path / "one.csv")))
    result.select("a * 2 AS b").link(alink.CsvSinkBatchOp(filePath=str(tmp_path / "two.csv")))
    assert runs.read_text() == "" and result.getSchemaStr() == "a BIGINT"
    alink.BatchOperator.execute()
    assert (tmp_path / "one.csv").read_text() == "2\n3\n" and (tmp_path / "two.csv").read_text() == "4\n6\n"
    assert result.collect() == [(2,), (3,)]
    assert runs.read_text() == "x"
    assert "<td>2</td>" in result._repr_html_()


def test_what_a_script_is_told(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    body = """
        import json, os

        def main(task_config):
            print("hello from", task_config.task_type)
            told = dict(task_config.user_params, workers=task_config.num_workers, roles=sorted(task_config.cluster),
                        shapes=json.load(open("tensor_shapes.txt")), types=json.load(open("tensor_types.txt")),
                        columns=[c["name"] for c in task_config.schema], threads=os.environ["TF_NUM_INTRAOP_THREADS"])
            if task_config.task_type == "chief":
                task_config.output_writer.write_batch({"told": [json.dumps(told)]})
            if task_config.task_type == "ps":
                import threading
                threading.Event().wait()
        """
    alink.useLocalEnv(4)
    alink.AlinkGlobalConfiguration.setPrintProcessInfo(True)
    try:
        table = alink.MemSourceBatchOp([(1, 2.0)], "a bigint, b double").select("*, [b, b]::FLOAT[2] AS v, [a] AS l")
        job = alink.TensorFlow2BatchOp(
            pythonEnv="tf2", mainScriptFile=script(body), outputSchemaStr="told string", selectedCols=["a", "v", "l"],
            userParams='{"n": 1, "x": 0.5, "t": "text", "b": true, "l": [1, "a"]}', intraOpParallelism=3,
        )  # fmt: skip
        ((told,),) = table.link(job).collect()
    finally:
        alink.AlinkGlobalConfiguration.setPrintProcessInfo(False)
    assert json.loads(told) == {
        "n": "1", "x": "0.5", "t": "text", "b": "true", "l": '[1, "a"]', "workers": 3, "roles": ["chief", "ps", "worker"],
        "shapes": {"v": [2]}, "types": {"v": "float", "l": "long"}, "columns": ["a", "v", "l"], "threads": "3",
    }  # fmt: skip
    assert "[chief:0] hello from chief" in capsys.readouterr().err


def test_shapes_of_tensors_reach_a_script(script: Script) -> None:
    body = """
        import json

        def main(task_config):
            (column,) = task_config.schema
            told = [json.load(open("tensor_shapes.txt")), json.load(open("tensor_types.txt")), column["shape"]]
            task_config.output_writer.write_batch({"told": [json.dumps(told)]})
        """
    rows = alink.MemSourceBatchOp([("FLOAT#2,2#1 2 3 4",)], "v string")
    job = alink.TensorFlow2BatchOp(pythonEnv="tf2", mainScriptFile=script(body), outputSchemaStr="told string")
    ((told,),) = alink.ToTensorBatchOp(selectedCol="v").linkFrom(rows).select("v").link(job).collect()
    assert json.loads(told) == [{"v": [2, 2]}, {"v": "float"}, [2, 2]]


def test_a_failing_script(script: Script) -> None:
    job = alink.TensorFlow2BatchOp(
        pythonEnv="tf2", mainScriptFile=script("def main(c):\n    raise ValueError('no')\n"), outputSchemaStr="a bigint"
    )
    with pytest.raises(akrunner.ScriptFailedError, match="raised ValueError in main"):
        alink.MemSourceBatchOp([(1,)], "a bigint").link(job).collect()


def test_a_failing_script_ends_the_stream(script: Script, tmp_path: Path) -> None:
    job = alink.TensorFlow2StreamOp(
        pythonEnv="tf2",
        mainScriptFile=script("def main(c):\n    next(iter(c.batches(1)))\n    raise ValueError('no')\n"),
        outputSchemaStr="a bigint",
    )
    rows = alink.RandomTableSourceStreamOp(maxRows=100_000, numCols=1)
    rows.link(job).link(alink.CsvSinkStreamOp(filePath=str(tmp_path / "out.csv")))
    with pytest.raises(akrunner.ScriptFailedError, match="raised ValueError in main"):
        alink.StreamOperator.execute()


def test_operators_on_a_flink_cluster(flink_cluster: Cluster, leaves_nothing: Path, script: Script) -> None:
    path = script(
        """
        def main(task_config):
            for batch in task_config.batches(2):
                task_config.output_writer.write_batch({"a": batch["a"], "who": [task_config.task_type] * len(batch["a"])})
        """
    )
    host, _, port = flink_cluster.address.rpartition(":")
    alink.useRemoteEnv(host, int(port), 2, python=str(FLINK))
    table = alink.MemSourceBatchOp([[i] for i in range(6)], "a bigint").select("a * 10 AS a")
    operator = (
        alink.TensorFlow2BatchOp(pythonEnv="tf2")
        .setMainScriptFile(path)
        .setNumPSs(0)
        .setOutputSchemaStr("a bigint, who string")
    )
    rows = operator.linkFrom(table).orderBy("a", 10).collect()
    assert [row[0] for row in rows] == [0, 10, 20, 30, 40, 50] and {row[1] for row in rows} == {"chief", "worker"}
    alink.resetEnv()
    nothing_is_left(flink_cluster)
