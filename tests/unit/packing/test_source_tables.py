"""What `pack` takes a table for: rows, or the files that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SourceError
from akrunner.folders.gathered import SIZE
from akrunner.packing.given import Earlier
from akrunner.packing.index import CLASS
from akrunner.packing.settings import PackArguments, settings_of
from akrunner.packing.source_tables import of_table
from tests.unit.packing.sources import files, given, names, rows


def test_a_table_in_memory_is_rows_and_has_its_column_of_classes() -> None:
    found = given({"x": [1.5, 2.5], "label": ["a", "b"]})
    assert (found.kind, found.label, found.place, found.files, found.is_files) == ("rows", "label", None, None, False)
    assert rows(found) == [{"x": 1.5, "label": "a"}, {"x": 2.5, "label": "b"}]
    assert given({"x": [1], "label": ["a"]}, label="none").label is None
    with pytest.raises(ConfigError, match=r"label \(--label\): there is no column 'lable'"):
        given({"x": [1], "label": ["a"]}, label="lable")


def test_a_column_without_a_value_is_packed_as_double() -> None:
    table = pa.table({"a": pa.nulls(2), "b": pa.array([[], None], pa.list_(pa.null())), "c": [1, 2]})
    found = given(table)
    assert found.tables[0][1].schema.types == [pa.float64(), pa.list_(pa.float64()), pa.int64()]
    assert [row["a"] for row in rows(found)] == [None, None]
    assert found.said == ["'a', 'b': without a value yet, and packed as double; input_schema= (--input-schema) says otherwise"]


def test_a_list_of_images_is_found_and_its_paths_are_relative_to_it(tmp_path: Path) -> None:
    files(tmp_path, lists__images_csv="path,label,x\na.jpg,cat,1\nsub/b.jpg,dog,2\n", lists__a_jpg="12345")
    found = given(tmp_path / "lists" / "images.csv")
    assert found.index is not None and found.index.base == str(tmp_path / "lists")
    assert (found.kind, found.label, names(found)) == ("images", "label", [b"a.jpg", b"sub/b.jpg"])
    assert found.index.table.column(SIZE).to_pylist() == [5, -1] and found.index.table.column(CLASS).to_pylist() == [
        "cat",
        "dog",
    ]
    assert found.asked == {"label": "label", "paths": "path", "select": None, "decimals": "refuse"}
    assert "--kind rows" in found.said[0]
    assert [field.name for field in found.index.extra] == ["x"]
    elsewhere = given(tmp_path / "lists" / "images.csv", paths_in=tmp_path)
    assert elsewhere.index is not None and elsewhere.index.base == str(tmp_path)
    assert given(tmp_path / "lists" / "images.csv", kind="rows").index is None


def test_a_list_of_other_files_says_its_kind(tmp_path: Path) -> None:
    files(tmp_path, l_csv="file,n\na.txt,1\n", a_txt="x")
    found = given(tmp_path / "l.csv", kind="texts")
    assert (found.kind, names(found)) == ("texts", [b"a.txt"])
    assert found.said == ["column 'file' has the paths, by its name: the files it names are packed"]
    with pytest.raises(ConfigError, match=r"kind='files' \(--kind\): which column has the paths\? .* there are a, b"):
        given({"a": ["x"], "b": ["y"]}, kind="files")


@pytest.mark.parametrize(
    ("source", "options", "kind", "words"),
    [
        ({"pth": ["a"]}, {"paths": "path"}, ConfigError, r"paths \(--paths\): there is no column 'path' .*did you mean 'pth'"),
        ({"n": [1], "s": ["a"]}, {"paths": "n"}, ConfigError, r"column 'n' is int64, and paths are texts \(of these there is s\)"),
        ({"s": ["a"]}, {"paths": "s", "label": "s", "kind": "files"}, ConfigError, r"label \(--label\): 's' is the column of paths"),
        ({"s": ["a"]}, {"columns": "b"}, ConfigError, r"columns= \(--columns\) is for text files"),
        ({"s": ["a"], "path": ["b"]}, {"paths": "s", "kind": "files"}, SourceError, "column 'path' has the name of one that pack"),
        ({"s": ["a"], "label": ["b"]}, {"label": "s"}, SourceError, "column 'label' has the name of one that pack makes of 's'"),
        ({"s": ["a"]}, {"paths_in": "/"}, ConfigError, r"paths_in= \(--paths-in\) is for a table with a column of paths"),
        ({"s": ["a"]}, {"paths_in": "/no/where"}, ConfigError, r"paths_in \(--paths-in\): there is no directory /no/where"),
    ],
)  # fmt: skip
def test_errors_of_tables(source: Any, options: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        given(source, **options)


def test_each_file_of_a_table_is_known_by_its_own_name(tmp_path: Path) -> None:
    files(tmp_path, day__1_csv="n\n1\n", day__2_csv="n\n2\n")
    found = given(tmp_path / "day")
    assert [name for name, _ in found.tables] == [b"1.csv", b"2.csv"] and rows(found) == [{"n": 1}, {"n": 2}]
    assert found.home == found.lies == str(tmp_path / "day")
    one = str(tmp_path / "day" / "1.csv")
    with pytest.raises(SourceError, match=f"source: {one} is named twice"):
        given([one, tmp_path / "day" / "1.csv"])
    with pytest.raises(SourceError, match=f"source: {one} is named twice"):
        given([one, one])
    (tmp_path / "link.csv").symlink_to(one)
    with pytest.raises(SourceError, match="are one file, and its rows would be packed twice"):
        given([one, tmp_path / "link.csv"])


def test_new_files_keep_the_names_that_they_would_have_had_before(tmp_path: Path) -> None:
    files(tmp_path, a__1_csv="n\n1\n")
    earlier = Earlier("out", {"source": str(tmp_path), "kind": "rows"}, 0, pa.schema([("n", pa.float64())]))
    found = given(tmp_path / "a", earlier)
    assert [name for name, _ in found.tables] == [b"a/1.csv"] and found.home == str(tmp_path)
    # and the types of what is packed
    assert found.tables[0][1].schema == earlier.table


def test_images_themselves_are_no_table() -> None:
    settings = settings_of(PackArguments(["a.jpg"], "out"))
    with pytest.raises(SourceError, match="give the directory that holds the images, or a table with a column of their paths"):
        of_table(["a.jpg"], ["a.jpg", "b.PNG"], {"input_format": None}, None, None, None, None, settings, None)


def test_columns_that_pack_makes_beside_the_column_of_classes_are_refused_with_all_ways_out() -> None:
    table = pa.table({"label": [1.5], "category": ["a"]})
    with pytest.raises(SourceError, match=r"column 'label' has the name of one that pack makes of 'category'; .*label='none'"):
        given(table)
    found = given(table, label="none")
    assert found.label is None and rows(found) == [{"label": 1.5, "category": "a"}]
    # without classes the path stays twice
    with pytest.raises(SourceError, match="column 'path' has the name") as caught:
        given({"s": ["a"], "path": ["b"]}, paths="s", kind="files")
    assert "label=" not in str(caught.value)


def test_a_column_that_would_have_the_classes_by_its_name_is_told() -> None:
    found = given(pa.table({"class": pa.array([0], pa.date32()), "category": ["a"]}))
    assert found.label == "category" and found.said[0].startswith("column 'class' is date32[day], and packed as it is")


def test_the_column_of_classes_that_is_packed_is_taken_also_without_a_value(tmp_path: Path) -> None:
    files(tmp_path, l_csv="p,class,labels\na,,x\n", odd_csv="p,class,labels\na,1.5,x\n")
    earlier = Earlier("out", {"label": "class", "kind": "files", "paths": "p"})
    found = given(tmp_path / "l.csv", earlier)
    assert found.label == "class" and found.index is not None
    assert [field.name for field in found.index.extra] == ["labels"]
    with pytest.raises(SourceError, match="column 'class' has the classes, and is double"):
        given(tmp_path / "odd.csv", earlier)
    files(tmp_path, l_csv="p,n\na,1\n")
    with pytest.raises(SourceError, match="has no column 'class', which has the classes of what is packed in out"):
        given(tmp_path / "l.csv", earlier)


@pytest.mark.parametrize("paths", [None, "p"])
def test_new_rows_have_their_classes_in_the_column_that_is_packed(paths: str | None) -> None:
    table = pa.table({"p": ["a"], "class": ["x"], "labels": ["y"]})
    settings = {"label": "labels", "kind": "files" if paths else "rows", "paths": paths}
    options = {"paths": paths, "kind": "files"} if paths else {}
    assert given(table, Earlier("out", settings), **options).label == "labels"
    assert given(table, **options).label == "class"
