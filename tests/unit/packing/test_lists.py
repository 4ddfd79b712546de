"""A list, a table with a column of paths: which columns it has for what, and the index of the files that it names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, DataError, SchemaError, SourceError
from akrunner.folders.gathered import MTIME, NAME, SIZE
from akrunner.io.table import TableSource
from akrunner.packing import lists
from akrunner.packing.index import CLASS, ROW, TEXT, Index


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})


def source(*batches: pa.RecordBatch) -> TableSource:
    return TableSource(batches[0].schema, lambda: iter(batches), "list.csv", True)


def index(table: TableSource, base: str | None, label: str | None = None, empty: bool = False) -> Index:
    return lists.index_of(table, "path", label, base, 2, "tfrecord", empty)


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"path": ["a.jpg", "b.PNG", None, ""]}, "path"),
        ({"Image_URL": ["http://h/a.jpg?x=1#y"]}, "Image_URL"),
        ({"path": ["a.jpg"] * 9 + ["b.txt"]}, "path"),
        ({"path": ["a.jpg"] * 8 + ["b.txt"] * 2}, None),
        ({"text": ["a.jpg"]}, None),
        ({"path": [1, 2]}, None),
        ({"path": [None, ""]}, None),
        ({"path": ["b.txt"], "file": ["a.jpg"]}, "file"),
    ],
)
def test_the_column_of_paths_is_found_by_its_name_and_values(columns: dict[str, Any], found: str | None) -> None:
    first = batch(**columns)
    assert lists.column_of_paths(first.schema, first) == found
    assert lists.column_of_paths(first.schema, None) is None and lists.column_of_paths(first.schema, first[:0]) is None


def test_a_column_that_is_half_of_paths_is_asked_for() -> None:
    first = batch(path=["a.jpg", "b.jpg", "c.txt"])
    with pytest.raises(ConfigError, match=r"2 of 3 values of column 'path' .*paths='path' .*kind='rows' \(--kind rows\)"):
        lists.check_meant(first.schema, first)
    for other in (batch(path=["a.jpg", "b.txt"]), batch(text=["a.jpg"])):
        lists.check_meant(other.schema, other)
    lists.check_meant(first.schema, None)


def test_a_column_of_urls_in_a_table_is_told() -> None:
    first = batch(n=[1, 2], where=["s3://b/x", "y"])
    assert "of column 'where' 1 of 2 values look like paths or URLs: --paths where" in lists.half_paths(first.schema, first)
    other = batch(where=["s3://b/x", "y", "z"])
    assert lists.half_paths(other.schema, other) == lists.half_paths(first.schema, None) == ""


def test_a_column_that_names_files_that_are_there_is_told(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt", "c.bin"):
        (tmp_path / name).touch()
    texts, files = batch(t=["a.txt", "b.txt", "gone"]), batch(t=["c.bin", "\0"], n=[1, 2])
    assert lists.named_files(texts.schema, texts, str(tmp_path)).endswith("--paths t --kind texts packs these")
    both = batch(t=["c.bin"])
    assert lists.named_files(both.schema, both, str(tmp_path)).endswith("--paths t --kind files packs these")
    # half of them is not enough
    assert lists.named_files(files.schema, files, str(tmp_path)) == "" and lists.named_files(texts.schema, None, "/") == ""


@pytest.mark.parametrize(
    ("schema", "given", "found"),
    [
        ([("x", pa.int64()), ("label", pa.string())], None, "label"),
        ([("Category", pa.string()), ("LABELS", pa.int32())], None, "LABELS"),
        ([("label", pa.float64()), ("class", pa.bool_())], None, "class"),
        ([("label", pa.float64())], None, None),
        ([("label", pa.string())], "none", None),
        ([("x", pa.int64()), ("label", pa.string())], "x", "x"),
    ],
)
def test_the_column_of_classes(schema: list[tuple[str, pa.DataType]], given: str | None, found: str | None) -> None:
    assert lists.label_of(pa.schema(schema), given) == found


def test_a_column_of_classes_that_cannot_be_one_is_an_error() -> None:
    schema = pa.schema([("kind", pa.string()), ("x", pa.float64())])
    with pytest.raises(
        ConfigError, match=r"label \(--label\): there is no column 'knd' \(there are kind, x\); did you mean 'kind'"
    ):
        lists.label_of(schema, "knd")
    with pytest.raises(
        ConfigError, match=r"label \(--label\): column 'x' is double; classes are texts, whole numbers or booleans"
    ):
        lists.label_of(schema, "x")
    # left out, it would clash with the column that `pack` makes of the other one
    schema = pa.schema([("class", pa.string()), ("label", pa.float64())])
    with pytest.raises(ConfigError, match=r"booleans, as 'class' has them\. label='none' \(--label none\) packs no classes"):
        lists.label_of(schema, "label")


def test_a_usual_name_whose_type_is_not_one_of_classes_is_told() -> None:
    schema = pa.schema([("label", pa.float64()), ("labels", pa.list_(pa.int64()))])
    first, second = lists.no_classes(pa.schema(reversed(list(schema))), None, None)
    assert first.startswith("column 'label' is double, and packed as it is") and "--select" in first
    assert second.startswith("column 'labels' is list<") and "--select" not in second
    assert lists.no_classes(schema, "label", "label") == lists.no_classes(pa.schema([("label", pa.null())]), None, None) == []


def test_a_usual_name_before_that_of_the_column_of_classes_is_told_too() -> None:
    schema = pa.schema([("category", pa.string()), ("Class", pa.date32()), ("labels", pa.float64())])
    told = lists.no_classes(schema, None, "category")
    assert [one.partition(", and packed as it is: classes are texts, whole numbers or booleans, and ")[0] for one in told] == [
        "column 'Class' is date32[day]",
        "column 'labels' is double",
    ]
    assert all("and 'category' has them; select=" in one for one in told)
    # what would come behind the column of classes is a column like the others
    assert lists.no_classes(schema, None, "Class") == []


def test_what_is_packed_decides_which_column_has_the_classes() -> None:
    schema = pa.schema([("class", pa.string()), ("labels", pa.string()), ("category", pa.float64())])
    assert lists.label_of(schema, None, "labels") == "labels" and lists.label_of(schema, "class", "labels") == "class"
    assert lists.label_of(schema, "none", "labels") is None
    # of a column that is not there, or cannot be one of classes, later errors tell more
    assert lists.label_of(schema, None, "gone") == lists.label_of(schema, None, "category") == "class"


@pytest.mark.parametrize(
    ("data_type", "can"),
    [
        (pa.string(), True),
        (pa.large_string(), True),
        (pa.binary(), True),
        (pa.null(), True),
        (pa.int64(), False),
        (pa.bool_(), False),
    ],
)
def test_paths_are_texts(data_type: pa.DataType, can: bool) -> None:
    assert lists.can_be_paths(data_type) is can


def test_columns_that_pack_makes_are_found_in_a_list() -> None:
    schema = pa.schema([(name, pa.string()) for name in ("file", "path", "image", "text", "label", "kind", "\x1fx")])
    assert lists.made_twice(schema, "file", None, "images") == ["path", "image", "\x1fx"]
    assert lists.made_twice(schema, "file", "kind", "texts") == ["path", "text", "label", "\x1fx"]
    assert lists.made_twice(schema, "path", "label", "files") == ["\x1fx"]


def test_an_index_has_what_the_list_says_and_what_the_disk_says(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"12345")
    (tmp_path / "sub").mkdir()
    table = source(
        batch(path=["a.jpg", "./a.jpg"], label=["cat", None], x=[1, 2]),
        batch(path=[f"{tmp_path}/a.jpg", "sub"], label=["dog", ""], x=[3, 4]),
        batch(path=[None, "file://" + str(tmp_path) + "/a.jpg"], label=["dog", "cat"], x=[5, 6]),
    )
    found = index(table, str(tmp_path), "label")
    rows = found.table.to_pylist()
    assert found.listed and found.base == str(tmp_path) and [field.name for field in found.extra] == ["x"]
    assert [row[NAME] for row in rows] == [b"a.jpg", b"a.jpg", b"a.jpg", b"sub", b"", b"a.jpg"]
    assert [row[SIZE] for row in rows] == [5, 5, 5, -1, -1, 5]
    assert rows[0][MTIME] == (tmp_path / "a.jpg").stat().st_mtime_ns and rows[3][MTIME] == 1
    assert [row[CLASS] for row in rows] == ["cat", None, "dog", "", "dog", "cat"]
    assert [row[ROW] for row in rows] == [0, 1, 2, 3, 4, 5] and [row["x"] for row in rows] == [1, 2, 3, 4, 5, 6]
    # the path as it stands there, where it is another than the name
    assert [row[TEXT] for row in rows] == [
        None, "./a.jpg", f"{tmp_path}/a.jpg", None, None, "file://" + str(tmp_path) + "/a.jpg",
    ]  # fmt: skip


def test_relative_paths_below_a_url_become_urls() -> None:
    table = source(batch(path=["a.jpg", "http://other/b.jpg", ""]))
    found = index(table, "http://h/data/")
    assert found.base is None
    assert found.table.column(NAME).to_pylist() == [b"http://h/data/a.jpg", b"http://other/b.jpg", b""]


def test_classes_that_are_numbers_stay_numbers(tmp_path: Path) -> None:
    found = index(source(batch(path=["a"], label=[7])), str(tmp_path), "label")
    assert found.table.column(CLASS).to_pylist() == [7]


def test_a_column_of_classes_that_is_none_by_its_type_may_only_be_empty(tmp_path: Path) -> None:
    empty, odd = (batch(path=["a"], label=pa.array([one], pa.float64())) for one in (None, 1.5))
    assert index(source(empty), str(tmp_path), "label").table.column(CLASS).to_pylist() == [None]
    with pytest.raises(SourceError, match=r"list\.csv: column 'label' has the classes, and is double; .*--input-schema"):
        index(source(empty, odd), str(tmp_path), "label")


def test_a_list_without_rows_is_an_error_unless_it_may_be_empty(tmp_path: Path) -> None:
    none = source(batch(path=pa.array([], pa.string()), x=pa.array([], pa.int64())))
    with pytest.raises(SourceError, match=r"source: there are no rows in list\.csv"):
        index(none, str(tmp_path))
    found = index(none, str(tmp_path), empty=True)
    assert len(found) == 0 and [field.name for field in found.extra] == ["x"]


def test_other_columns_that_cannot_be_packed_are_errors(tmp_path: Path) -> None:
    odd = source(batch(path=["a"], m=pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))))
    with pytest.raises(SchemaError, match="'m'.*format='parquet'"):
        index(odd, str(tmp_path))
    large = source(batch(path=["a", "b"], x=[0.5, 1.0]), batch(path=["c"], x=[1e300]))
    with pytest.raises(DataError, match=r"list\.csv: row 2, column 'x'") as caught:
        index(large, str(tmp_path))
    assert caught.value.row == 2


def test_one_value_is_enough_in_a_column_whose_name_says_that_it_holds_paths(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    few = batch(path=["a.jpg", "b", "c", "d"])
    assert "of column 'path' 1 of 4 values look like paths or URLs: --paths path" in lists.half_paths(few.schema, few)
    there = batch(File=["a.txt", "b", "c", "d"])
    assert "--paths File --kind texts" in lists.named_files(there.schema, there, str(tmp_path))
    for columns in ({"where": ["a.jpg", "b", "c"]}, {"path": ["b", "c"]}, {"where": ["a.txt", "b", "c"]}):
        other = batch(**columns)
        assert lists.half_paths(other.schema, other) == lists.named_files(other.schema, other, str(tmp_path)) == ""


def test_a_path_that_is_no_text_is_an_error_that_names_its_row() -> None:
    table = pa.table({"p": pa.array([b"a", None, b"b\xff"], pa.binary()), "n": [1, 2, 3]})
    source = TableSource(table.schema, lambda: iter(table.to_batches(max_chunksize=2)), "l.parquet", True)
    with pytest.raises(
        SourceError, match=r"source: l\.parquet: row 2, column 'p': it is no UTF-8 text \(byte 1\), and paths are"
    ):
        lists.index_of(source, "p", None, "/", 1, "tfrecord", False)


def test_what_is_no_plain_file_has_no_size_but_a_time_and_what_is_large_has_its_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "large", "wb") as stream:
        stream.truncate(5 << 30)
    found = {name: lists._stat(os.fsencode(tmp_path / name), None) for name in ("pipe", "large", "gone")}
    assert found["pipe"] == (-1, 1) and found["gone"] == (-1, 0)
    assert found["large"] == (5 << 30, os.stat(tmp_path / "large").st_mtime_ns)
