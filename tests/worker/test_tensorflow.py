"""The bundle under real TensorFlow: the one the tests run in, and every one of the matrix that was prepared."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import google_crc32c
import pyarrow as pa
import pytest
from PIL import Image

import akrunner
from akrunner.checkup.advice import advice
from akrunner.engines.inputs.advice import advised
from akrunner.engines.inputs.unseen import wait_share
from akrunner.engines.inputs.wording import verdict
from akrunner.io.splits import Splitter
from akrunner.launch.interpreters import Interpreter
from akrunner.spec import SplitSpec
from tests import models
from tests.conftest import Script
from tests.worker import scripts

pytestmark = pytest.mark.tensorflow


def table() -> pa.Table:
    matrix = pa.FixedSizeListArray.from_arrays(pa.array([1, 2, 3, 4] * 5), 4)
    return pa.table(
        {
            "i": pa.array([1, None, -3, 4, 5]),
            "s": pa.array(["a", None, "é", "", "e"]),
            "f": pa.array([0.5, None, 1.5, 2.5, 3.5]),
            "v": pa.FixedSizeListArray.from_arrays(pa.array([float(i + 1) for i in range(10)], pa.float32()), 2),
            "m": pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int64(), (2, 2)), matrix),
            "ragged": pa.array([[1, 2], [], [3], [4, 5, 6], [7]]),
        }
    )


def check_everything(script: Script, python_env: str | None) -> akrunner.Result:
    result = akrunner.run(
        script(scripts.EVERYTHING),
        table(),
        user_params={"n": 3, "nested": {"a": [1, None]}},
        output_schema="i bigint, p double, s string, v FLOAT_TENSOR",
        chief=True,
        python_env=python_env,
    )
    assert result.table is not None
    assert result.table["i"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert result.table["p"].to_pylist() == [0.0, 0.5, 1.0, None, 0.1, 2.5], "a double is not narrowed on the way back"
    assert result.table["s"].to_pylist() == ["row0", "row1", "row2", None, "row4", "row5"]
    assert result.table["v"].to_pylist() == [[], [1.0], [1.0], None, [1.0] * 3, [1.0] * 2]
    assert [(r["task"], r["step"], r["loss"]) for r in result.stats.reports] == [("chief:0", 10, 0.5)]
    return result


def check_all_reduce(script: Script, python_env: str | None) -> None:
    rows: Any = {"x": [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 2.0], "y": [2.0, 4.0, 6.0, 2.0, 4.0, 6.0, 4.0]}
    result = akrunner.run(
        script(scripts.ALL_REDUCE),
        rows,
        num_workers=2,
        output_schema="rows bigint, w double",
        python_env=python_env,
        timeout=120,
    )
    assert result.table is not None and result.stats.shares == (4, 3)
    assert result.table["rows"].to_pylist() == [7, 7], "each worker saw the sum over both"
    first, second = result.table["w"].to_pylist()
    assert first == second and abs(first - 2.0) < 0.05, "one model, trained on the rows of both"


def check_columns(script: Script, python_env: str | None) -> None:
    options: Any = dict(data_format="columns", python_env=python_env)
    result = akrunner.run(script(scripts.COLUMNS), table(), output_schema="i bigint", **options)
    for noise in ("deprecated", " W tensorflow", "cpu_feature_guard.cc:142"):
        assert noise not in result.tasks[0].log_tail, "what TensorFlow says that the script did not cause is left out"
    assert result.table is not None and result.table["i"].to_pylist() == [5]
    rows = {"i": range(1000), "s": ["x"] * 1000}
    with akrunner.stream(script(scripts.COLUMN_STREAM), pa.table(rows), output_schema="total bigint", **options) as job:
        assert [batch.column("total").to_pylist() for batch in job] == [[sum(range(1000))]]


def test_columns(leaves_nothing: Path, script: Script) -> None:
    check_columns(script, None)


@pytest.mark.matrix
def test_columns_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    check_columns(script, matrix_python.path)


@pytest.mark.matrix
def test_what_a_script_waits_for_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    path = script(scripts.WAITS)
    options: Any = dict(output_schema="total bigint", python_env=matrix_python.path)
    result = akrunner.run(path, {"a": [1]}, user_params={"asked": True}, profile_input=10, **options)
    assert result.table is not None and result.table["total"].to_pylist() == [sum(range(240))]
    told = result.stats.inputs["chief:0"]
    assert told["by"] == ("session" if matrix_python.tensorflow.startswith("1.") else "dataset")
    # making the iterator ready is a call of the session, too, and no batch; 10 are of the loop that is traced
    assert (
        told["batches"] == (120 if told["by"] == "session" else 130)
        and told["looked"] >= 10
        and told["known"]
        and wait_share(told) > 0.5
    )
    first = advised(told)[0]
    assert first.rule == "python_waits" and f"{Path(path).name}:{line_of('py_func', path)}" in first.what
    assert result.stats.bound == "input" and verdict(result.stats)[0].startswith("[chief:0] ")
    check_waits_without_a_look(path, matrix_python.path)


def check_going_on(path: str, python_env: str | None, form: str) -> None:
    given: Any = dict(output_schema="weight float", python_env=python_env, data_format=form, max_restarts=1)
    undisturbed = akrunner.run(path, {"i": list(range(100))}, user_params={"kills": 1000}, **given)
    killed = akrunner.run(path, {"i": list(range(100))}, user_params={"kills": 17}, **given)
    assert killed.stats.attempt == 1 and killed.table is not None
    assert killed.table.equals(undisturbed.table), "the same weights to the last bit"


@pytest.mark.parametrize("form", ["examples", "columns"])
def test_a_killed_training_ends_with_the_weights_of_one_that_was_not(leaves_nothing: Path, script: Script, form: str) -> None:
    check_going_on(script(scripts.GOES_ON), None, form)


@pytest.mark.matrix
def test_a_killed_training_goes_on_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    check_going_on(script(scripts.GOES_ON), matrix_python.path, "columns")


def test_what_a_script_waits_for_without_a_look(leaves_nothing: Path, script: Script) -> None:
    check_waits_without_a_look(script(scripts.WAITS), None)


def test_the_error_of_a_map_that_raises_names_the_scripts_lines_and_none_of_the_doctors(
    leaves_nothing: Path, script: Script
) -> None:
    """TensorFlow's message has a traceback of its own, in which the call of Python went through a clock."""
    path = script("""
    import tensorflow as tf

    def bad(x):
        raise ValueError("bad row")

    def main(task_config):
        rows = tf.data.Dataset.range(4).map(lambda x: tf.compat.v1.py_func(bad, [x], tf.int64))
        for row in rows:
            print(row)
    """)
    with pytest.raises(akrunner.ScriptFailedError) as raised:
        akrunner.run(path, {"a": [1]})
    failure = raised.value.failure
    assert failure is not None
    for text in (str(raised.value), failure.what, failure.traceback):
        assert "<akrunner" not in text and "<bundle>" not in text
    at = f"{Path(path).name}:{line_of('raise ValueError', path)}"
    assert advice({"error": "ScriptFailedError", "failure": vars(failure)}, "").startswith(f"mend {at}: ")


#: seconds that the script of `WAITS` sleeps
SLEPT = 240 * 0.004


def check_waits_without_a_look(path: str, python_env: str | None) -> None:
    """Nobody has asked: TensorFlow's profiler is not started, and what is known all the same is said."""
    result = akrunner.run(path, {"a": [1]}, user_params={"asked": False}, output_schema="total bigint", python_env=python_env)
    told = result.stats.inputs["chief:0"]
    assert (told["looked"], told["nodes"], told["known"]) == (0, [], told["by"] == "dataset")
    first = advised(told)[0]
    assert first.rule == "python_waits" and f"{Path(path).name}:{line_of('py_func', path)}" in first.what
    # on a busy machine the steps themselves may take longer than what they wait for
    waits = told["by"] == "dataset" and wait_share(told) > 0.5
    assert result.stats.bound == ("input" if waits else "unknown") and not first.likely
    assert told["by"] != "dataset" or told["wait"] > 0.9 * SLEPT


def line_of(text: str, path: str) -> int:
    """The first line of a file that has it."""
    return 1 + next(i for i, line in enumerate(Path(path).read_text().splitlines()) if text in line)


def a_png(value: int, width: int = 8, height: int = 6) -> bytes:
    """An image of one colour."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    line = b"\0" + bytes([value, value + 1, value + 2]) * width
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(line * height)) + chunk(b"IEND", b"")


def a_jpeg(value: int, kind: int) -> bytes:
    """The same as a JPEG. Args: kind: 0 a plain one, 1 progressive, 2 grey."""
    pixels = Image.new("L" if kind == 2 else "RGB", (64, 48), value if kind == 2 else (value,) * 3)
    written = io.BytesIO()
    pixels.save(written, "JPEG", progressive=kind == 1)
    return written.getvalue()


def check_reading(script: Script, folder: Path, form: str, python_env: str | None) -> None:
    for i in range(10):
        texts = pa.array([b"%d" % (10 * i + j) for j in range(3)], pa.binary())
        (folder / f"{i}.tfrecord").write_bytes(b"".join(map(framed, texts.to_pylist())))
    colours: dict[str, Any] = {
        "1": 1, "L": 77, "RGB": (9, 20, 30), "RGBA": (9, 20, 30, 40), "CMYK": (246, 235, 225, 0)
    }  # fmt: skip
    for kind, modes in (("PNG", "1 L RGB RGBA"), ("JPEG", "L RGB CMYK"), ("GIF", "L"), ("BMP", "L RGB RGBA")):
        for mode in modes.split():
            Image.new(mode, (8, 6), colours[mode]).save(folder / f"{kind}-{mode}.image", kind)
    pixels = pa.array([a_png(10 * i) for i in range(10)], pa.binary())
    rows = pa.table(
        {"id": range(10), "image": pixels, "label": [i % 2 for i in range(10)], "name": [f"n{i}" for i in range(10)]}
    )
    options: Any = dict(data_format=form, python_env=python_env, user_params={"parts": str(folder)})
    result = akrunner.run(script(scripts.READING), rows, output_schema="id bigint", **options)
    assert result.table is not None and result.table["id"].to_pylist() == [10]
    assert not result.stats.warnings


def check_weights(script: Script, form: str, python_env: str | None) -> None:
    rows: Any = {"x": range(5), "y": [3 * i for i in range(5)], "sample_weight": [0.5 * i for i in range(5)]}
    table = pa.table({**rows, "whole": [10 * i for i in range(5)]})
    options: Any = dict(num_workers=2, chief=False, data_format=form, python_env=python_env)
    assert akrunner.run(script(scripts.WEIGHTS), table, **options).stats.shares == (3, 2)


def check_splits(script: Script, form: str, python_env: str | None) -> None:
    split = SplitSpec(("train", "test", "spare"), (0.75, 0.2, 0.05), "user")
    table = pa.table({"id": range(301), "x": [float(i) for i in range(301)], "user": [f"u{i // 3}" for i in range(301)]})
    numbers = Splitter(split).marks(table.to_batches()[0], 0, 1).tolist()
    params = {"marks": [split.names[number] for number in numbers], "form": form}
    result = akrunner.run(
        script(scripts.SPLITS),
        table,
        num_workers=2,
        chief=False,
        data_format=form,
        python_env=python_env,
        user_params=params,
        output_schema="id bigint",
        split=dict(zip(split.names, split.fractions)),
        split_by="user",
    )
    assert result.table is not None and sorted(result.table["id"].to_pylist()) == [i for i, n in enumerate(numbers) if n == 1]
    assert len(result.table) > 20


def framed(record: bytes) -> bytes:
    """A record of a TFRecord file."""
    length = struct.pack("<Q", len(record))
    return length + _checksum(length) + record + _checksum(record)


def _checksum(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@pytest.mark.matrix
@pytest.mark.parametrize("form", ["examples", "columns"])
def test_how_a_dataset_reads_on_the_matrix(
    leaves_nothing: Path, tmp_path: Path, script: Script, form: str, matrix_python: Interpreter
) -> None:
    check_reading(script, tmp_path, form, matrix_python.path)
    check_weights(script, form, matrix_python.path)
    check_splits(script, form, matrix_python.path)


def check_few(script: Script, python_env: str | None) -> None:
    rows = table().select(["i", "s", "f", "v", "m"]).append_column("w", pa.array([1, 2, 3, 4, 5]))
    rows = pa.concat_tables([*[rows] * 8, rows.slice(0, 3)]).append_column("number", pa.array(range(43)))
    for shares in ((43,), (22, 21)):
        result = akrunner.run(
            script(scripts.FEW), rows, num_workers=len(shares), split={"one": 0.5, "other": 0.5}, python_env=python_env
        )
        assert result.stats.shares == shares


def test_few_rows_come_as_many_do(leaves_nothing: Path, script: Script) -> None:
    check_few(script, None)


@pytest.mark.matrix
def test_few_rows_come_as_many_do_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    check_few(script, matrix_python.path)


def test_fit_with_weights(leaves_nothing: Path, script: Script) -> None:
    rows = {"x": [1.0, 2.0, 1.5, 1.0], "y": [3.0, 6.0, 4.5, 1000.0], "w": [1, 2, 1, 0]}
    akrunner.run(script(scripts.FIT_WEIGHTS), rows)


def test_how_a_stream_reads(leaves_nothing: Path, script: Script) -> None:
    # the same greys as PNG, and as JPEG: a plain, a progressive and a grey one by turns
    forms = {"examples": [a_png(10 * i) for i in range(10)], "columns": [a_jpeg(10 * i, i % 3) for i in range(10)]}
    for form, images in forms.items():
        rows = {"id": range(10), "image": pa.array(images, pa.binary())}
        options: Any = dict(output_schema="id bigint, p double", data_format=form)
        with akrunner.stream(script(scripts.READING_STREAM), pa.table(rows), **options) as job:
            table = pa.Table.from_batches(list(job))
        assert table["id"].to_pylist() == list(range(10))
        assert table["p"].to_pylist() == pytest.approx(
            [20 * i / 255 for i in range(10)], abs=1e-6 if form == "examples" else 0.03
        )


def check_learns_from_a_stream(script: Script, code: str, **options: Any) -> None:
    """y = 3 x, 2,000 rows once: whoever reads them all has learned it."""
    x = [(i % 7 - 3) / 3 for i in range(2000)]
    rows = pa.table({"x": pa.array(x, pa.float32()), "y": pa.array([3 * v for v in x], pa.float32())})
    with akrunner.stream(script(code), rows, output_schema="total bigint", **options) as job:
        assert [batch.column("total").to_pylist() for batch in job] == [[3]]
    assert job.stats is not None and job.stats.rows_in == 2000


@pytest.mark.parametrize("keras", [None, "legacy"])
def test_fit_on_a_stream(leaves_nothing: Path, script: Script, keras: str | None) -> None:
    check_learns_from_a_stream(script, scripts.FIT_STREAM, keras=keras)


@pytest.mark.matrix
@pytest.mark.parametrize("matrix_python", ["tf1.15", "tf2.3"], indirect=True)
def test_estimator_on_a_stream(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    check_learns_from_a_stream(script, scripts.ESTIMATOR_STREAM, python_env=matrix_python.path)


def test_everything_a_batch_script_may_use(leaves_nothing: Path, script: Script) -> None:
    check_everything(script, None)


def test_two_workers_form_a_cluster(leaves_nothing: Path, script: Script) -> None:
    check_all_reduce(script, None)


@pytest.mark.cold
@pytest.mark.matrix
def test_everything_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    result = check_everything(script, matrix_python.path)
    assert f"tensorflow {matrix_python.tensorflow}" in result.tasks[0].log_tail


@pytest.mark.matrix
@pytest.mark.parametrize("matrix_python", ["tf2.3", "newest"], indirect=True)
def test_two_workers_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    check_all_reduce(script, matrix_python.path)


@pytest.mark.matrix
def test_train_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    result = akrunner.train(script(scripts.TRAIN), {"a": [1, 2]}, python_env=matrix_python.path)
    assert result.model is not None and "saved_model.pb" in os.listdir(result.model.path)
    assert result.model.to_table()["model_info"][0].as_py() == "1700000000.zip"
    del result


@pytest.mark.matrix
def test_predict_on_the_matrix(
    leaves_nothing: Path, matrix_python: Interpreter, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A model of every TensorFlow, run by itself and by the one the tests run in."""
    folder = tmp_path_factory.mktemp("models")
    told = {"x": [float(i) for i in range(3000)]}
    saved = models.make(matrix_python.path, models.DOUBLE, folder / "double")
    for python in (matrix_python.path, None):
        result = akrunner.predict(saved, told, output_schema="y double", python_env=python, batch_size=500)
        assert result.table is not None and result.table["y"].to_pylist() == [2 * x for x in told["x"]]
    with akrunner.LocalPredictor(saved, python_env=matrix_python.path) as predictor:
        assert predictor.predict({"x": 4.0}) == {"y": 8.0}
    if matrix_python.tensorflow.startswith("1."):
        return
    keras = models.make(matrix_python.path, models.KERAS, folder / "keras")
    columns = {name: [0.5] * 4 for name in "abcd"}
    options: Any = dict(selected_cols=list("abcd"), output_schema="p FLOAT_TENSOR", reserved_cols=[])
    both = [akrunner.predict(keras, columns, python_env=python, **options).table for python in (matrix_python.path, None)]
    assert all(abs(sum(p) - 1) < 1e-5 for table in both if table is not None for p in table["p"].to_pylist())


@pytest.mark.matrix
def test_stream_on_the_matrix(leaves_nothing: Path, script: Script, matrix_python: Interpreter) -> None:
    table = {"i": list(range(1000)), "s": ["x"] * 1000}
    with akrunner.stream(script(scripts.STREAM), table, python_env=matrix_python.path, output_schema="total bigint") as job:
        assert [batch.column("total").to_pylist() for batch in job] == [[sum(range(1000))]]
