"""What is packed already, and what is added to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.folders.gathered import NAME
from akrunner.packing.given import Earlier, files_of, holding


@pytest.mark.parametrize(
    ("home", "ups", "lies", "fits"),
    [
        ("/d/a", 0, "/d/a", True),
        ("/d/a", 0, "/d/a/b", True),
        ("/d/a", 0, "/d", True),
        ("/d/a", 0, "/d/ab", False),
        ("/d/a", 1, "/d/b", True),
        (None, 0, "/d", False),
    ],
)
def test_the_directory_that_names_were_relative_to(home: str | None, ups: int, lies: str, fits: bool) -> None:
    assert Earlier("out", {"source": home}, ups).home_of(lies) == (home if fits else None)


def test_files_are_known_by_their_names_below_a_directory(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/x.csv", "y.csv"):
        (tmp_path / name).write_text(name)
    paths = [str(tmp_path / name) for name in ("a/x.csv", "y.csv")]
    assert files_of(paths, str(tmp_path)).column(NAME).to_pylist() == [b"a/x.csv", b"y.csv"]
    assert files_of(paths).column(NAME).to_pylist() == [b"x.csv", b"y.csv"]
    assert holding(paths) == str(tmp_path)
    assert holding(["s3://bucket/d/x.csv", "s3://bucket/d/e/y.csv"]) == "s3://bucket/d"
