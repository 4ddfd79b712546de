"""A directory of files: which of them are listed, and what their names say."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from akrunner.arrays import octets_of
from akrunner.errors import SourceError
from akrunner.folders import listing
from akrunner.folders.gathered import MTIME, NAME, SIZE


def tree(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x" * len(name))
    return folder


def test_every_file_is_listed_with_its_size_and_time_and_hidden_ones_are_not(tmp_path: Path) -> None:
    tree(tmp_path, "a.jpg", "b/c/d.jpg", ".hidden.jpg", ".git/e.jpg", "b/.f")
    table, base = listing.listed(str(tmp_path))
    assert base == str(tmp_path)
    rows = {row[NAME]: row for row in table.to_pylist()}
    assert sorted(rows) == [b"a.jpg", b"b/c/d.jpg"]
    assert rows[b"b/c/d.jpg"][SIZE] == 9 and rows[b"a.jpg"][MTIME] == (tmp_path / "a.jpg").stat().st_mtime_ns


def test_a_name_that_is_no_text_is_listed_and_so_is_a_link_to_nothing(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.jpg")).write_bytes(b"x")
    (tmp_path / "lost.jpg").symlink_to("nowhere")
    rows = {row[NAME]: (row[SIZE], row[MTIME]) for row in listing.listed(str(tmp_path))[0].to_pylist()}
    assert rows[b"caf\xe9.jpg"][0] == 1 and rows[b"lost.jpg"] == (-1, 0)


@pytest.mark.parametrize("to", ["a", "."])
def test_a_directory_that_two_paths_lead_to_is_an_error_that_names_the_link(tmp_path: Path, to: str) -> None:
    tree(tmp_path, "a/1.jpg")
    (tmp_path / "b").symlink_to(tmp_path / to)
    with pytest.raises(SourceError, match=rf"source: {tmp_path}/b leads to {tmp_path}.*would be there twice; remove the link"):
        listing.listed(str(tmp_path))


def test_what_cannot_be_looked_into_is_an_error_of_the_source(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="source: cannot look into .*nowhere"):
        listing.listed(str(tmp_path / "nowhere"))


def test_a_dot_of_an_ending_is_a_dot(tmp_path: Path) -> None:
    table, _ = listing.listed(str(tree(tmp_path, "a.txt", "atxt", "a.txt.bin", "b.TXT")))
    wanted = listing.matching(table, (".txt",)).tolist()
    assert {name for name, is_one in zip(table.column(NAME).to_pylist(), wanted) if is_one} == {b"a.txt", b"b.TXT"}


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [("a/b/c.jpg", "a", "b"), ("a/c.jpg", "a", None), ("c.jpg", None, None), ("\u56fe/c", "\u56fe", None)],
)
def test_folders_are_cut_from_names(name: str, first: str | None, second: str | None) -> None:
    names = pa.array([name])
    assert listing.folders_of(names).to_pylist() == [first] and listing.folders_of(names, True).to_pylist() == [second]


def test_a_pattern_of_endings_matches_at_the_end_alone() -> None:
    names = pa.table({NAME: pa.chunked_array([octets_of([b"a.jpg", b"b.jpg/c"], pa.large_binary())])})
    assert listing.matching(names, (".jpg",)).tolist() == [True, False]
    assert listing.matching(names.slice(0, 0), (".jpg",)).tolist() == []
