"""What the pages name and do not show: tables, scripts and models that lie there when a page's blocks are run, and what becomes of it.

A page that is not in `SETTINGS` runs beside the iris table and `score.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import akrunner
from tests.docs.pages import ROOT

EXAMPLES = ROOT / "examples"
SCORE = """
def main(task_config):
    for batch in task_config.batches(64):
        task_config.output_writer.write_batch({"id": batch["id"], "p": batch["x"] * 0.5})
"""
#: rows without end come from lists that have one
BEFORE = """
import akrunner

def kafka_rows():
    return [{"id": number, "x": number / 2} for number in range(300)]

published = []
publish = published.append
"""


class Setting(NamedTuple):
    """Attributes:
    lays: puts files into the page's directory.
    before: what stands before each program of the page.
    ahead: file -> what stands before its text.
    instead: a name of the page -> what the test has in its place.
    behind: a program that runs what no command of the page does.
    checks: asked when all is done; takes the directory and all that was printed.
    marks: of the test; keras: as of `tests.warmth.Kind`, for the page's jobs.
    """

    lays: Callable[[Path], None] = lambda folder: None
    before: str = BEFORE
    ahead: Mapping[str, str] = {}
    instead: Mapping[str, str] = {}
    behind: str = ""
    checks: Callable[[Path, str], None] = lambda folder, said: None
    marks: tuple[str, ...] = ("tensorflow",)
    keras: str = ""


def lay(folder: Path) -> None:
    """What any page may name."""
    shutil.copy(EXAMPLES / "iris" / "iris.csv", folder)
    (folder / "score.py").write_text(SCORE)


def numbers(rows: int = 60) -> pa.Table:
    return pa.table({"id": range(rows), "x": [number / 2 for number in range(rows)]})


# -- README.md


def _readme(folder: Path) -> None:
    # of a stream, a batch comes when it is full
    shutil.copy(EXAMPLES / "digits" / "digits.parquet", folder)
    (folder / "events.jsonl").write_text("".join(json.dumps({"id": number, "x": 1.5}) + "\n" for number in range(200)))


def _readme_said(folder: Path, said: str) -> None:
    table = pq.read_table(folder / "out.parquet")
    assert table.schema.names == ["id", "p"] and sorted(table["id"].to_pylist()) == list(range(1, 151))
    # rows come out of a stream while it flows, and its end by Ctrl-C is said
    assert '{"id": 0, "p": 0.75}' in said or '{"id":0,"p":0.75}' in said, said
    predicted = pq.read_table(folder / "predictions.parquet")
    assert predicted.num_rows == 1797 and "digit" in predicted.schema.names


#: the model that the page says is made in that directory
_DIGITS = f'akrunner.train({str(EXAMPLES / "digits" / "train.py")!r}, "digits.parquet", user_params={{"epochs": 1}}).model.save("model.zip")\n'

# -- docs/scripts.md


def _scripts(folder: Path) -> None:
    pa_csv.write_csv(
        pa.table({"x": [float(number) for number in range(64)], "y": [number % 2 for number in range(64)]}),
        folder / "table.csv",
    )
    pa_csv.write_csv(pa.table({"x": [0.5, 1.5], "y": [1.0, 3.0]}), folder / "points.csv")
    pixels = pa.FixedSizeListArray.from_arrays(pa.array([(n % 7) / 7 for n in range(64 * 16)], pa.float32()), 16)
    pq.write_table(pa.table({"pixels": pixels, "y": [number % 2 for number in range(64)]}), folder / "mnist.parquet")
    (folder / "linear.py").write_text(LINEAR)


#: as Deep Learning on Flink's own example of that name
LINEAR = """
from dl_on_flink_tensorflow.tensorflow_context import TFContext

def map_func(context):
    task = TFContext(context)
    assert context.get_property("model_save_path") == "saved"
    import tensorflow as tf
    rows = task.get_tfdataset_from_flink().map(lambda line: tf.io.decode_csv(line, [0.0, 0.0]))
    writer = task.get_row_writer_to_flink()
    for x, y in rows:
        writer.write([float(x), float(y)])
"""
_MODEL = """
import tensorflow as tf
import keras

model = keras.Sequential([keras.layers.Dense(2, activation="softmax")])
model.compile("sgd", "sparse_categorical_crossentropy")
"""
_BUILDS = """
import tensorflow as tf

def build():
    pixels = tf.keras.Input((16,), name="pixels")
    model = tf.keras.Model(pixels, tf.keras.layers.Dense(2, activation="softmax")(pixels))
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model
"""
_ARGUMENTS = """
import argparse as _argparse

def train(batch, lr):
    assert lr == 0.1 and len(batch["x"])

parser = _argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--lr", type=float)
"""
_STEPS = """
from akrunner.worker import current

def step(x):
    current().output_writer.write_batch({"x": x})
"""
_RUNS_SCRIPTS = """
result = akrunner.train("tutorial.py", "mnist.parquet", keras="legacy")
assert result.model.path
assert akrunner.run("steps.py", "table.csv").table.num_rows == 64
"""


def _scripts_said(folder: Path, said: str) -> None:
    assert (folder / "model.zip").stat().st_size > 0


# -- docs/pack.md


def pictures(folder: Path, names: tuple[str, ...] = ("cat", "dog", "owl"), each: int = 14) -> None:
    from PIL import Image

    for number, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for one in range(each):
            Image.new("RGB", (32, 24), (80 * number, 3 * one, 100)).save(folder / name / f"{one}.png")


def _photos(folder: Path) -> None:
    pictures(folder / "photos")


def _packed_said(folder: Path, said: str) -> None:
    told = json.loads((folder / "packed" / "dataset.json").read_text())
    assert told["labels"] == ["cat", "dog", "owl"] and list(told["splits"]) == ["train", "validation", "test"]
    assert "image" in said, "the program that reads it elsewhere has printed a row"


# -- docs/reading.md


def clicks(folder: Path) -> None:
    pq.write_table(
        pa.table({"user": [number % 40 for number in range(400)], "x": [float(number) for number in range(400)], "bought": [number % 2 for number in range(400)]}),
        folder / "clicks.parquet",
    )  # fmt: skip


def _reading(folder: Path) -> None:
    clicks(folder)
    _photos(folder)


_FITS = """
import tensorflow as tf

class Model(tf.Module):
    def fit(self, train, validation_data):
        users, others = ({int(user) for columns, _ in rows for user in columns["user"]} for rows in (train, validation_data))
        assert users and others and not users & others

model = Model()
"""
_READS = """
import akrunner
akrunner.pack("photos", "packed")
script = open("scaled.py").read() + '''
    sizes = [len(y) for x, y in rows.take(3)]
    task_config.output_writer.write_batch({"n": sizes})
'''
open("scaled.py", "w").write(script)
assert akrunner.run("scaled.py", "iris.csv").table["n"].to_pylist() == [512, 512, 476]
open("images.py", "a").write('''
    images, labels = next(iter(images))
    task_config.output_writer.write_batch({"shape": [list(images["image"].shape)]})
''')
shapes = akrunner.run("images.py", "packed/all").table["shape"].to_pylist()
assert shapes == [[64, 224, 224, 3]], shapes
"""

# -- docs/clusters.md

_COORDINATES = (EXAMPLES / "cluster" / "parameter_server.py").read_text()
_SET_UP = _COORDINATES.partition("    import tensorflow as tf\n")[2].partition("    def rows():")[0]
_NAMES = _COORDINATES.rpartition('"""\n')[2].partition("def main")[0]
_RUNS_CLUSTER = """
script = open("train.py").read() + '''
    coordinator.schedule(tf.function(lambda: tf.constant(1)))
    coordinator.join()
    task_config.report({"loss": 0.5})
'''
open("train.py", "w").write(script)
akrunner.run("train.py", "iris.csv", num_workers=1, num_ps=1, coordinator=True)
"""

# -- docs/bad_rows.md


def _orders(folder: Path) -> None:
    (folder / "score.py").write_text(SCORE)
    (folder / "orders.csv").write_text("id,x\n1,2.5\ntwo,3\n3,4.5,6\n4,1.5\n")


# -- docs/outputs.md

_COLUMNS = """
import akrunner, numpy, pyarrow, pandas
frame = pandas.DataFrame({"id": [1], "p": [0.5]})
"""
_COPIES = """
import pyarrow
i = pyarrow.array([1, None, 3], "int32")
table = pyarrow.table({"i": i, "x": [None, 0.1, float("nan")], "b": [True, None, False], "t": ["a", None, ""], "v": [[1], None, []]})
for data_format, types in (("columns", ["int32", "double", "bool"]), ("examples", ["int64", "float", "int64"])):
    copied = akrunner.run("copy_rows.py", table, data_format=data_format).table
    assert copied["i"].to_pylist() == [1, None, 3] and copied["t"].to_pylist() == ["a", None, ""], copied
    assert [str(one) for one in copied.schema.types[:3]] == types, copied.schema
    assert abs(copied["x"][1].as_py() - 0.1) < (1e-300 if data_format == "columns" else 1e-8), copied
"""

# -- docs/jobs.md


def _jobs(folder: Path) -> None:
    (folder / "data").mkdir()
    pq.write_table(numbers(), folder / "data" / "a.parquet")


def _job_says(folder: Path, said: str) -> None:
    assert sorted(path.name for path in (folder / "scores").iterdir()) == ["2026-11-25.parquet"]
    assert "output: the job file" in said, "a plan says where its values come from"


# -- docs/tables.md, docs/pai.md


def _folders(folder: Path) -> None:
    _iris(folder)
    _photos(folder)
    for name in ("good", "bad"):
        (folder / "reviews" / name).mkdir(parents=True)
        for number in range(3):
            (folder / "reviews" / name / f"{number}.txt").write_text(f"{name}\nfilm {number}\n")
    (folder / "sentences.txt").write_text("well done\nno\n")
    (folder / "labels.txt").write_text("1\n0\n")


def _tables_said(folder: Path, said: str) -> None:
    assert pq.read_table(folder / "sizes.parquet").column("height").to_pylist() == [24] * 42
    assert [
        len((folder / name).read_text().splitlines()) for name in ("labels.csv", "reviews.csv", "lines.csv", "pairs.csv")
    ] == [4, 7, 13, 3]
    assert pq.read_table(folder / "scored.parquet").num_rows == 150
    assert sorted(path.name for path in (folder / "tables" / "demo").iterdir() if path.name[0] != ".") == ["iris", "scored"]


def _pai(folder: Path) -> None:
    shutil.copytree(EXAMPLES / "pai", folder / "examples" / "pai")
    shutil.copy(EXAMPLES / "pai" / "iris.py", folder)
    flowers = pa_csv.read_csv(
        EXAMPLES / "pai" / "iris.csv", pa_csv.ReadOptions(column_names=[f"f{number}" for number in range(1, 6)])
    )
    for name, table in (("iris_data", flowers), ("iris_output", flowers.slice(0, 0))):
        (folder / "tables" / "p" / name).mkdir(parents=True)
        pq.write_table(table, folder / "tables" / "p" / name / "part-00000.parquet")


def _pai_said(folder: Path, said: str) -> None:
    assert (folder / "examples" / "pai" / "bucket" / "model" / "model.ckpt-200.index").exists()


# -- docs/doctor.md, docs/machine.md, docs/warm.md

_LOOPS = """
def main(task_config):
    import tensorflow as tf

    rows = task_config.dataset(10)
    task_config.output_writer.write_batch({"x": [float(tf.reduce_sum(row["x"])) for row in rows]})
"""


def _doctor(folder: Path) -> None:
    clicks(folder)
    (folder / "train.py").write_text(_LOOPS)


def _machine(folder: Path) -> None:
    (folder / "fails.py").write_text("def main(task_config):\n    raise ValueError('no column')\n")
    with contextlib.suppress(akrunner.ScriptFailedError):
        akrunner.run(folder / "fails.py", {"a": [1]}, work_dir=folder / "kept")


def _iris(folder: Path) -> None:
    (folder / "train.py").write_text(SCORE.replace('batch["x"]', 'batch["petal_length"]'))


# -- docs/alink.md


def _alink(folder: Path) -> None:
    # as its own, which needs a TensorFlow with Estimators, would write
    (folder / "tf_dnn_batch.py").write_text(WRITES_MODEL)


WRITES_MODEL = """
import json

def main(task_config):
    columns = json.loads(task_config.user_params["featureCols"])
    rows = sum(len(batch[columns[0]]) for batch in task_config.batches(16))
    task_config.output_writer.write_batch({"model_id": [0], "model_info": [str(rows)]})
"""
_ALINK = """
import json, random, akrunner
names = ["col0", "col1", "col2"]
table = {**{name: [random.random() for _ in range(40)] for name in names}, "label": [float(n % 2) for n in range(40)]}
userParams = {"featureCols": json.dumps(names), "labelCol": "label", "batch_size": 16, "num_epochs": 1}
"""

# -- docs/databases.md


def _databases(folder: Path) -> None:
    import duckdb

    for name in ("shop.duckdb", "server.duckdb"):
        with duckdb.connect(str(folder / name)) as connection:
            connection.execute("CREATE TABLE sales AS SELECT range AS id, range / 2 AS x FROM range(60)")
            connection.execute(
                "CREATE TABLE orders AS SELECT range AS id, (range / 2)::DECIMAL(10, 2) AS price, current_date AS day FROM range(7)"
            )
    akrunner.run(
        str(folder / "score.py"),
        numbers(),
        output=f"sqlite:///{folder}/shop.db?table=sales",
        output_schema="id bigint, p double",
    )
    with contextlib.closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.execute("ALTER TABLE sales RENAME COLUMN p TO x")


def _databases_said(folder: Path, said: str) -> None:
    with contextlib.closing(sqlite3.connect(folder / "scored.db")) as connection:
        assert connection.execute("SELECT count(*), sum(p) FROM scored").fetchall() == [(60, sum(range(60)) / 4)]
    assert (pq.read_table(folder / "out.parquet").num_rows, pq.read_table(folder / "recent.parquet").num_rows) == (7, 60)


# -- docs/lakehouse.md


def _lakehouse(folder: Path) -> None:
    from deltalake import write_deltalake
    from pyiceberg.catalog.sql import SqlCatalog

    sales = numbers().append_column("day", pa.array(["2026-01-01", "2026-01-02"] * 30))
    write_deltalake(folder / "lake" / "sales", sales)
    days = pa.table({"id": pa.array([-1], pa.int64()), "p": [0.0], "day": ["2026-01-01"]})
    write_deltalake(folder / "lake" / "daily", days, partition_by=["day"])
    place = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/ice"}
    lines = "".join(f"    {name}: {value}\n" for name, value in {**place, "type": "sql"}.items())
    (folder / ".pyiceberg.yaml").write_text(f"catalog:\n  prod:\n{lines}")
    catalog = SqlCatalog("prod", **place)
    catalog.create_namespace("shop")
    catalog.create_table("shop.sales", numbers().schema).append(numbers())
    catalog.close()


def _lakehouse_said(folder: Path, said: str) -> None:
    from deltalake import DeltaTable

    found = {name: DeltaTable(folder / "lake" / name) for name in ("scored", "daily")}
    assert {name: (table.version(), table.count()) for name, table in found.items()} == {"scored": (1, 60), "daily": (1, 31)}
    assert len(list((folder / "ice").rglob("scored/data/*.parquet"))) == 1


# -- docs/operations.md


def _operations_said(folder: Path, said: str) -> None:
    assert "was not told of the end of the job" in said and "True nightly.py 150" in said
    assert 'akrunner_job_exit_code{name="nightly"} 0.0' in (folder / "nightly.prom").read_text()
    assert "INFO akrunner: run nightly.py has succeeded" in said


# -- docs/tracking.md


def _tracking_said(folder: Path, said: str) -> None:
    for name in ("slow", "fast"):
        [path] = (folder / "boards" / name).rglob("events.*")
        assert b"_hparams_/session_end_info" in path.read_bytes()


# -- docs/start.md, docs/tutorials, docs/moving


def _start_said(folder: Path, said: str) -> None:
    assert pq.read_table(folder / "areas.parquet").num_rows == 150
    assert len((folder / "flowers" / "predictions.csv").read_text().splitlines()) == 7
    assert "KeyError: 'petal_lenght'" in said


def _tabular_said(folder: Path, said: str) -> None:
    leaving = pa_csv.read_csv(folder / "leaving.csv")
    assert leaving.schema.names == ["id", "p"] and leaving.num_rows == 100
    # of the customers that it has not seen, more than the share of those that stay
    assert max(map(float, re.findall(r"test_accuracy=(0\.\d+)", said))) > 0.7


def _images_said(folder: Path, said: str) -> None:
    right = re.search(r"^(\d+)% of \d+ are right$", said, re.MULTILINE)
    assert right and int(right[1]) > 80, said
    assert pa_csv.read_csv(folder / "new.csv").num_rows == 9


def _streaming_said(folder: Path, said: str) -> None:
    sizes = {
        name: len((folder / f"{name}.jsonl").read_text().splitlines()) for name in ("high", "high-again", "monday", "again")
    }
    assert sizes["high"] > sizes["high-again"] > sizes["again"] == 0 and sizes["monday"] == sizes["high"], sizes
    assert "are too high" in said and '"expected"' in said


def _ps_said(folder: Path, said: str) -> None:
    errors = {name: list(map(float, re.findall(rf"\b{name}[= ](\d\.\d+)", said))) for name in ("error", "test_error")}
    # whoever guesses is off by a star
    assert errors["error"] and errors["test_error"] and max(errors["test_error"]) < 0.8, said
    assert "SIGKILL" in said and (folder / "model.zip").exists() and (folder / "again.zip").exists(), said


def _points(folder: Path) -> None:
    pq.write_table(
        pa.table({"x": pa.array([n / 64 for n in range(65)], pa.float32()), "y": [n / 32 for n in range(65)]}),
        folder / "points.parquet",
    )


_BUILD = """
def build():
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    model.compile("sgd", "mse")
    return model

"""


def _moved(folder: Path, said: str) -> None:
    assert (folder / "model.zip").exists() or (folder / "exported" / "saved_model.pb").exists()


SETTINGS: dict[str, Setting] = {
    "docs/start.md": Setting(checks=_start_said),
    "docs/tutorials/tabular.md": Setting(checks=_tabular_said),
    "docs/tutorials/images.md": Setting(checks=_images_said),
    "docs/tutorials/streaming.md": Setting(checks=_streaming_said),
    "docs/tutorials/ps.md": Setting(checks=_ps_said, marks=("tensorflow", "slow")),
    "docs/moving/plain.md": Setting(checks=_moved),
    "docs/moving/ray.md": Setting(_points, ahead={"train.py": _BUILD}, checks=_moved, keras="legacy"),
    "docs/moving/tensorflowonspark.md": Setting(_points, ahead={"train.py": _BUILD}, checks=_moved, keras="legacy"),
    # nobody listens there, which changes nothing
    "docs/operations.md": Setting(
        instead={"https://hooks.example.com/akrunner/T0KEN": "http://127.0.0.1:1/T0KEN"}, checks=_operations_said, marks=("slow",)
    ),
    "docs/tracking.md": Setting(checks=_tracking_said, marks=("slow",)),
    "docs/lakehouse.md": Setting(_lakehouse, checks=_lakehouse_said),
    # a server is in tests/e2e/test_systems.py
    "docs/databases.md": Setting(
        _databases,
        instead={
            "postgresql://me@db.example.org/shop?table=scored": "duckdb:///from-server.duckdb?table=scored",
            "postgresql://me@db.example.org/shop": "duckdb:///server.duckdb",
        },
        checks=_databases_said,
    ),
    "README.md": Setting(
        _readme,
        instead={'result = akrunner.predict("model.zip"': _DIGITS + 'result = akrunner.predict("model.zip"'},
        checks=_readme_said,
    ),
    "docs/scripts.md": Setting(
        _scripts,
        before=BEFORE + 'frame = {"id": [1, 2], "x": [0.5, 1.5]}\npath = "saved"\n',
        ahead={"train.py": _ARGUMENTS + _BUILDS, "tutorial.py": _MODEL, "steps.py": _STEPS},
        behind=_RUNS_SCRIPTS,
        # the page's cluster needs it, so all of its jobs with TensorFlow have it: they take the same warm workers. `_MODEL` imports Keras 3 nevertheless
        instead={
            "akrunner run train.py ": "akrunner run train.py --keras legacy ",
            '"linear.py", "points.csv",': '"linear.py", "points.csv", keras="legacy",',
        },
        keras="legacy",
        checks=_scripts_said,
    ),
    "docs/pack.md": Setting(_photos, instead={"        ...\n": "        assert rows['image'].shape[1:] == (224, 224, 3)\n"}, checks=_packed_said),
    "docs/reading.md": Setting(_reading, ahead={"train.py": _FITS}, behind=_READS),
    "docs/clusters.md": Setting(ahead={"train.py": _NAMES}, instead={"    ...\n": "    import tensorflow as tf\n" + _SET_UP}, behind=_RUNS_CLUSTER),
    "docs/bad_rows.md": Setting(_orders),
    "docs/outputs.md": Setting(before=_COLUMNS, behind=_COPIES),
    "docs/jobs.md": Setting(_jobs, checks=_job_says),
    "docs/tables.md": Setting(_folders, checks=_tables_said),
    "docs/pai.md": Setting(_pai, instead={"akrunner pai ": f"akrunner pai --python-env {sys.executable} ", "file:///work/": "file://"}, checks=_pai_said),
    "docs/doctor.md": Setting(_doctor),
    # the first command imports the TensorFlow of this interpreter; the other one gets the interpreter behind the venv's, which has none to import
    "docs/machine.md": Setting(_machine, before=BEFORE, instead={"tf1.15": os.path.realpath(sys.executable), "HOST:8081": "127.0.0.1:9", "WORK_DIR": "kept"}),
    "docs/warm.md": Setting(_iris),
    "docs/alink.md": Setting(_alink, before=_ALINK, instead={'"https://.../tf_dnn_batch.py"': '"tf_dnn_batch.py"', '"tf1.15"': "None"}),
}  # fmt: skip


def of(page: str) -> Setting:
    return SETTINGS.get(page, Setting())
