"""Many small files as a table: its rows, their order, what is read for them, and the words for what cannot be one."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from akrunner.errors import SourceError
from akrunner.folders import pool, tables
from akrunner.folders.gathered import SIZE
from akrunner.folders.tables import SCHEMAS, open_folder
from akrunner.io.paths import check_apart
from tests.unit.folders.test_images import made


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Photos of two cats and a dog, among what is no photo."""
    for name, size in (("dog/1.jpg", (9, 8)), ("cat/2.jpg", (7, 6)), ("cat/10.PNG", (5, 4))):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(made("PNG" if name.endswith("PNG") else "JPEG", size))
    (tmp_path / "cat" / "notes.md").write_text("no photo")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "3.jpg").write_bytes(b"hidden")
    (tmp_path / "cat" / ".4.jpg").write_bytes(b"hidden")
    (tmp_path / "empty").mkdir()
    return tmp_path


def write(folder: Path, **texts: str | bytes) -> Path:
    for name, text in texts.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True, parents=True)
        path.with_suffix(".txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def rows(source: Any, form: str, *columns: str, read: set[str] | None = None) -> list[tuple[Any, ...]]:
    table = open_folder(source, form, columns or None, read)
    assert table.replayable and table.files is None
    found = pa.Table.from_batches(table.batches(), table.schema)
    assert pa.Table.from_batches(table.batches(), table.schema) == found
    return [tuple(row.values()) for row in found.to_pylist()]


def test_each_image_is_a_row_in_the_order_of_names(photos: Path) -> None:
    found = rows(photos, "images")
    assert [row[:2] + row[3:] for row in found] == [
        ("cat/10.PNG", "cat", 4, 5, "png"),
        ("cat/2.jpg", "cat", 6, 7, "jpeg"),
        ("dog/1.jpg", "dog", 8, 9, "jpeg"),
    ]
    assert [row[2] for row in found] == [(photos / row[0]).read_bytes() for row in found]
    assert rows([str(photos)], "images") == found


def test_the_batches_of_files_are_bounded(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "BATCH_ROWS", 2)
    assert [batch.num_rows for batch in open_folder(photos, "images").batches()] == [2, 1]
    monkeypatch.setattr(pool, "BATCH_BYTES", 1)
    assert [batch.num_rows for batch in open_folder(photos, "images").batches()] == [1, 1, 1]
    monkeypatch.setattr(tables, "BATCH_ROWS", 2)
    write(photos / "t", a="1\n2\n3\n", b="4\n5\n")
    batches = list(open_folder(photos / "t", "lines").batches())
    assert [batch.num_rows for batch in batches] == [2, 3]
    assert [line for batch in batches for line in batch["line"].to_pylist()] == [1, 2, 3, 1, 2]


def test_no_file_is_read_for_columns_that_names_tell(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (photos / "cat" / "2.jpg").write_bytes(b"broken")
    monkeypatch.setattr(pool.Pool, "read", lambda *_: pytest.fail("a file was read"))
    assert rows(photos, "images", "label", "path")[-1] == ("dog", "dog/1.jpg")
    # columns that a query does not need are there, and null
    assert rows(photos, "images", read={"label"})[-1] == ("dog/1.jpg", "dog", None, None, None, None)
    assert len(rows(photos, "images", read=set())) == 3
    assert rows(write(photos / "t", a__1="x"), "texts", "path") == [("a/1.txt",)]


def test_bytes_are_left_out_of_what_is_read_if_only_sizes_are_wanted(photos: Path) -> None:
    assert rows(photos, "images", "height", "width") == [(4, 5), (6, 7), (8, 9)]
    assert rows(photos, "images", read={"format"})[0] == ("cat/10.PNG", "cat", None, 4, 5, "png")


def test_columns_that_are_not_there_leave_all_of_them_for_the_error(photos: Path) -> None:
    assert open_folder(photos, "images", ["nonsense"]).schema == SCHEMAS["images"]


def test_images_without_a_folder_have_no_label(photos: Path) -> None:
    assert rows(photos / "cat", "images", "path", "label") == [("10.PNG", None), ("2.jpg", None)]
    (photos / "0.jpg").write_bytes(made("JPEG"))
    assert rows(photos, "images", "label")[0] == (None,)


def test_a_broken_image_is_named_and_what_to_do(photos: Path) -> None:
    (photos / "cat" / "2.jpg").write_bytes(b"<html>")
    with pytest.raises(
        SourceError,
        match=rf"^source: {photos}/cat/2\.jpg: an HTML page, no image: mend or remove it; `akrunner pack {photos} OUT --bad-rows skip`",
    ):
        rows(photos, "images")
    for number in range(4):
        (photos / "dog" / f"b{number}.jpg").write_bytes(b"II*\0" + bytes(50))
    with pytest.raises(
        SourceError,
        match=r"cat/2\.jpg: an HTML .*; .*/b0\.jpg: a TIFF.*; .*/b1\.jpg: .*; and 2 more: remove the files, or `akrunner pack .* --resize",
    ) as e:
        rows(photos, "images", "height")
    assert "resize= (" not in str(e.value)


def test_what_the_listing_shows_is_told_before_anything_is_read(photos: Path) -> None:
    (photos / "dog" / "2.jpg").symlink_to("nowhere")
    with pytest.raises(SourceError, match=r"dog/2\.jpg: a link that leads to nothing: mend or remove it"):
        open_folder(photos, "images")
    (photos / "dog" / "2.jpg").unlink()
    os.mkfifo(photos / "dog" / "2.jpg")
    with pytest.raises(SourceError, match=r"dog/2\.jpg: it is a pipe, not a file"):
        open_folder(photos, "images")
    (photos / "dog" / "2.jpg").unlink()
    (photos / "dog" / "2.jpg").touch()
    with pytest.raises(SourceError, match=r"dog/2\.jpg: it is empty"):
        open_folder(photos, "images")


def test_a_link_is_followed_and_a_directory_that_is_met_twice_is_an_error(photos: Path) -> None:
    (photos / "owl").mkdir()
    (photos / "owl" / "5.jpg").symlink_to("../dog/1.jpg")
    assert rows(photos, "images", "path", "label")[-1] == ("owl/5.jpg", "owl")
    (photos / "again").symlink_to("cat")
    with pytest.raises(SourceError, match=r"again leads to .*/cat, whose files would be there twice; remove the link"):
        open_folder(photos, "images")


def test_a_file_that_may_not_be_read_is_named(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuses(path: Any, *rest: Any, **options: Any) -> int:
        if path == b"dog/1.jpg":
            raise PermissionError(13, "Permission denied")
        return real(path, *rest, **options)

    monkeypatch.setattr(os, "open", refuses)
    with pytest.raises(
        SourceError, match=rf"^source: {photos}/dog/1\.jpg: Permission denied: if that passes, run the job again$"
    ):
        rows(photos, "images")


def test_a_directory_without_such_files_says_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=rf"source: there are no files in {tmp_path}$"):
        open_folder(tmp_path, "images")
    (tmp_path / "a.md").touch()
    with pytest.raises(
        SourceError, match=r"there are no images in .* \(a\.md\): such names end with \.jpg .*; a pattern takes"
    ):
        open_folder(tmp_path, "images")
    with pytest.raises(SourceError, match=r"there are no texts in .*'.*/\*\*/\*\.ENDING'"):
        open_folder(tmp_path, "texts")
    with pytest.raises(SourceError, match=r"there is no file .*/nowhere"):
        open_folder(tmp_path / "nowhere", "texts")


def test_names_without_an_ending_are_taken_if_there_are_no_others(tmp_path: Path) -> None:
    (tmp_path / "0a1b").write_bytes(made("GIF", mode="P"))
    (tmp_path / "a.md").touch()
    assert rows(tmp_path, "images", "path", "format") == [("0a1b", "gif")]


def test_a_pattern_takes_what_it_matches(photos: Path) -> None:
    assert rows(f"{photos}/*/*.jpg", "images", "path", "label") == [("cat/2.jpg", "cat"), ("dog/1.jpg", "dog")]
    assert rows(photos / "dog" / "1.jpg", "images", "path", "label", "width") == [("1.jpg", None, 9)]
    assert rows(f"{photos}/**/*.md", "texts") == [("cat/notes.md", "cat", "no photo")]


def test_folders_that_are_splits_are_no_labels(tmp_path: Path) -> None:
    write(tmp_path, train__cat__1="x", test__cat__2="y")
    with pytest.raises(
        SourceError, match=rf"the folders test, train of {tmp_path} are splits by their names.*\({tmp_path}/train\)"
    ):
        open_folder(tmp_path, "texts")
    assert rows(tmp_path, "texts", "path", "text") == [("test/cat/2.txt", "y"), ("train/cat/1.txt", "x")]
    assert rows(tmp_path / "train", "texts", "label") == [("cat",)]


def test_each_text_is_a_row_also_an_empty_one(tmp_path: Path) -> None:
    write(tmp_path, neg__1="bad\n", pos__1="\ufeffgut: \u00e4", pos__2="", pos__3="\ufeff")
    assert rows(tmp_path, "texts") == [
        ("neg/1.txt", "neg", "bad\n"),
        ("pos/1.txt", "pos", "gut: \u00e4"),
        ("pos/2.txt", "pos", ""),
        ("pos/3.txt", "pos", ""),
    ]
    write(tmp_path, pos__4=b"\xff\xfea\0")
    with pytest.raises(
        SourceError, match=r"pos/4\.txt: it is no UTF-8 text \(byte 0\) \(it begins as UTF-16\): mend or remove it"
    ):
        rows(tmp_path, "texts")


@pytest.mark.parametrize("large", [tables._LARGE, 3])
def test_each_line_is_a_row(tmp_path: Path, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_LARGE", large)
    write(tmp_path, a="1\r\n\n3", b="", c="\ufeff", d="\ufeffx\n")
    (tmp_path / "e.txt.gz").write_bytes(gzip.compress(b"y\nz\n"))
    assert rows(tmp_path, "lines") == [
        ("a.txt", 1, "1"),
        ("a.txt", 2, ""),
        ("a.txt", 3, "3"),
        ("d.txt", 1, "x"),
        ("e.txt.gz", 1, "y"),
        ("e.txt.gz", 2, "z"),
    ]
    assert rows(tmp_path, "lines", "line", "text")[-1] == (2, "z")
    assert rows(tmp_path, "lines", read={"text"})[0] == (None, None, "1")
    write(tmp_path, a=b"1\n\xff\n")
    with pytest.raises(SourceError, match=r"a\.txt: line 2 is no UTF-8 text"):
        rows(tmp_path, "lines")


def test_files_of_lines_stand_side_by_side(tmp_path: Path) -> None:
    write(tmp_path, sentences="good\nbad\n", labels="1\n0")
    names = [tmp_path / "sentences.txt", tmp_path / "labels.txt"]
    table = open_folder(names, "lines")
    assert table.schema.names == ["sentences", "labels"] and table.read_from is not None
    assert pa.Table.from_batches(table.batches()).to_pylist()[1] == {"sentences": "bad", "labels": "0"}
    write(tmp_path, labels="1\n")
    with pytest.raises(SourceError, match=r"side by side need as many lines each.*sentences\.txt 2, .*labels\.txt 1"):
        open_folder(names, "lines")
    with pytest.raises(SourceError, match=rf"of several sources of lines each is a file.*{tmp_path} is none"):
        open_folder([names[0], tmp_path], "lines")


@pytest.mark.slow
def test_other_sources_are_refused(photos: Path) -> None:
    with pytest.raises(SourceError, match=r"input_format='images' .* is for a directory; the source is dict"):
        open_folder({"a": [1]}, "images")
    with pytest.raises(SourceError, match=r"takes one directory or pattern, and 2 are given"):
        open_folder([photos / "cat", photos / "dog"], "images")
    with pytest.raises(SourceError, match=r"a web server does not list its files"):
        open_folder("http://example.com/photos/", "images")


@pytest.fixture
def bucket(photos: Path) -> Iterator[str]:
    fs = fsspec.filesystem("memory")
    for path in photos.rglob("*"):
        if path.is_file():
            fs.pipe(f"/test_tables/photos.v1/{path.relative_to(photos)}", path.read_bytes())
    yield "memory://test_tables/photos.v1"
    fs.rm("/test_tables", recursive=True)


def test_a_url_has_the_same_rows(photos: Path, bucket: str) -> None:
    assert rows(bucket, "images") == rows(photos, "images")
    assert rows(f"{bucket}/*/*.jpg", "images") == rows(f"{photos}/*/*.jpg", "images")
    assert rows(f"{bucket}/cat/notes.md", "lines") == [("notes.md", 1, "no photo")]
    fsspec.filesystem("memory").pipe("/test_tables/photos.v1/cat/2.jpg", b"{}")
    with pytest.raises(SourceError, match=r"source: memory:///test_tables/photos\.v1/cat/2\.jpg: JSON, no image"):
        rows(bucket, "images")


def test_a_signature_is_no_part_of_a_path() -> None:
    found = tables._of_web("https://host/a/b.txt?sig=secret", "texts")
    assert found.inside(0, 1).to_pylist() == ["b.txt"] and "secret" not in found.words(0)


def test_an_output_must_not_replace_the_folder(photos: Path) -> None:
    files = open_folder(photos, "images").read_from
    assert files is not None
    check_apart(files, photos / "scores.parquet")
    with pytest.raises(Exception, match="is, or holds, the input"):
        check_apart(files, photos)


def test_a_name_that_is_no_text_is_shown(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.txt")
    path.write_text("x\n")
    assert rows(tmp_path, "texts", "path", "text") == [(r"caf\xe9.txt", "x\n")]
    assert rows(tmp_path, "lines") == [(r"caf\xe9.txt", 1, "x")]


@pytest.mark.parametrize("pattern", ["", "/*.txt"])
def test_a_file_that_is_too_large_for_a_row_is_known_by_its_size(tmp_path: Path, pattern: str) -> None:
    with open(tmp_path / "a.txt", "wb") as stream:
        stream.truncate(5 << 30)
    found, _ = tables._found(f"{tmp_path}{pattern}", "texts")
    assert found.table.column(SIZE).to_pylist() == [5 << 30]
    with pytest.raises(SourceError, match=r"a\.txt: it has 5,368,709,120 bytes; a row can have 2,146,435,072: "):
        open_folder(f"{tmp_path}{pattern}", "texts")
