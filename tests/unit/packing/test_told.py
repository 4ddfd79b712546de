"""What somebody is told of an input, an option or an output that is not as it has to be."""

from __future__ import annotations

from pathlib import Path

import pytest

import akrunner


@pytest.mark.parametrize("source", ["sales/*.csv", "sales/b.csv"])
def test_a_value_that_no_record_holds_is_told_with_its_file_and_row(tmp_path: Path, source: str) -> None:
    (tmp_path / "sales").mkdir()
    for name in ("a", "b"):
        lines = [f"{i},{1e300 if (name, i) == ('b', 40) else i / 2}" for i in range(500)]
        (tmp_path / "sales" / f"{name}.csv").write_text("\n".join(["n,x", *lines]))
    with pytest.raises(akrunner.DataError, match=r"sales/b\.csv: row 40, column 'x': 1e\+300 .* format='parquet'") as caught:
        akrunner.pack(str(tmp_path / source), tmp_path / "out")
    assert (caught.value.row, caught.value.column) == (40, "x")
    assert not (tmp_path / "out").exists()


def test_a_value_of_a_list_of_files_that_no_record_holds_is_told_so_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "list.csv").write_text("path,x\na.txt,1.5\na.txt,1e300\n")
    with pytest.raises(akrunner.DataError, match=r"list\.csv: row 1, column 'x': 1e\+300 .* format='parquet'"):
        akrunner.pack(tmp_path / "list.csv", tmp_path / "out", kind="texts")
    akrunner.pack(tmp_path / "list.csv", tmp_path / "out", kind="texts", format="parquet")
