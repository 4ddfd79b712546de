"""`dataset.json`: which features the shards have, the code that reads them, and how the file is read and written."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.packing import dataset

MANY = pa.schema(
    [
        pa.field("n", pa.int64(), False),
        pa.field("x", pa.float32()),
        pa.field("s", pa.string()),
        pa.field("some", pa.list_(pa.float32())),
        pa.field("three", pa.list_(pa.int64(), 3)),
    ]
)


def test_each_column_is_a_feature_of_its_dtype_and_shape() -> None:
    assert dataset.feature_spec(MANY) == {
        "n": {"dtype": "int64", "shape": [], "optional": False},
        "x": {"dtype": "float32", "shape": [], "optional": True},
        "s": {"dtype": "string", "shape": [], "optional": True},
        "some": {"dtype": "float32", "shape": [None], "optional": True},
        "three": {"dtype": "int64", "shape": [3], "optional": True},
    }


def test_a_column_that_no_feature_holds_is_left_out() -> None:
    schema = pa.schema([("m", pa.map_(pa.string(), pa.int64())), ("n", pa.int64())])
    assert list(dataset.feature_spec(schema)) == ["n"]
    assert dataset.feature_of("m", schema.field("m").type) is None and dataset.feature_of("n", pa.int64()) is not None


def test_code_for_records_has_a_line_for_each_feature() -> None:
    code = dataset.snippet(MANY, False, "train", "tfrecord")
    ast.parse(code)
    for line in (
        '"n": tf.io.FixedLenFeature([], tf.int64),',
        '"x": tf.io.FixedLenFeature([], tf.float32, default_value=0),',
        '"s": tf.io.FixedLenFeature([], tf.string, default_value=""),',
        '"some": tf.io.VarLenFeature(tf.float32),',
        '"three": tf.io.FixedLenFeature([3], tf.int64, default_value=[0, 0, 0]),',
    ):
        assert line in code
    assert 'dataset("train")' in code and "decode_image" not in code


def test_a_name_with_quotes_is_a_text_in_the_code() -> None:
    code = dataset.snippet(pa.schema([pa.field('a "b"\n', pa.int64(), False)]), False, "all", "tfrecord")
    ast.parse(code)
    assert r'"a \"b\"\n": tf.io.FixedLenFeature' in code


@pytest.mark.parametrize("own", [False, True])
def test_code_for_images_decodes_them(own: bool) -> None:
    code = dataset.snippet(pa.schema([pa.field("image", pa.binary(), False)]), True, "all", "tfrecord", own)
    ast.parse(code)
    assert 'row["image"] = tf.image.resize' in code and (r'b"BM\x20"' in code) is own


@pytest.mark.parametrize(
    ("form", "reads"), [("parquet", "pq.read_table(path)"), ("arrow", "pa.ipc.open_file(path).read_all()")]
)
def test_code_for_files_of_columns_reads_what_it_says(tmp_path: Path, form: str, reads: str) -> None:
    code = dataset.snippet(MANY, False, "dev", form)
    assert reads in code and 'tables("dev")' in code
    table = pa.table({"n": [1, 2]})
    (tmp_path / "dev").mkdir()
    path = tmp_path / "dev" / "00000"
    if form == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    (tmp_path / "dataset.json").write_text(json.dumps({"splits": {"dev": {"files": [{"name": "dev/00000"}]}}}))
    names: dict[str, object] = {"__file__": str(tmp_path / "read.py")}
    exec(compile(code, "read.py", "exec"), names)
    assert list(names["tables"]("dev")) == [table]  # type: ignore[operator]


def test_what_is_written_is_read_and_nothing_partial_is_left(tmp_path: Path) -> None:
    dataset.write(str(tmp_path), "dataset.json", {"labels": ["caf\u00e9"], "checksum": "x"})
    assert [path.name for path in tmp_path.iterdir()] == ["dataset.json"]
    assert "caf\u00e9" in (tmp_path / "dataset.json").read_text(encoding="utf-8")
    assert dataset.read(str(tmp_path)) == {"labels": ["caf\u00e9"]}
    dataset.write(str(tmp_path), "dataset.json", {"labels": []})
    assert dataset.read(str(tmp_path)) == {"labels": []}


def test_what_is_no_description_is_told_from_none(tmp_path: Path) -> None:
    assert dataset.read(str(tmp_path)) is None and dataset.read(str(tmp_path / "nowhere")) is None
    path = tmp_path / "dataset.json"
    path.write_text("[1]")
    assert dataset.read(str(tmp_path)) == {}
    path.write_text('{"a": ')
    with pytest.raises(ValueError):
        dataset.read(str(tmp_path))
    path.unlink()
    path.mkdir()
    assert dataset.read(str(tmp_path)) == {}
    path.rmdir()
    os.mkfifo(path)
    assert dataset.read(str(tmp_path)) == {}
