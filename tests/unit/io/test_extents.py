"""How far a table has been read: of files of each kind, as it is read."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner import codec
from akrunner.io.extents import Extent
from akrunner.io.formats.base import Reading
from akrunner.io.paths import expand
from akrunner.io.sources import open_source
from akrunner.io.table import TableSource
from akrunner.schema import Schema

ROWS = 1_000_000
TABLE = pa.table({"a": np.arange(ROWS)})
TEXT = "a\n" + "\n".join(map(str, range(ROWS))) + "\n"


def opened(source: Any, **more: Any) -> TableSource:
    return open_source(source, read_examples=codec.read_examples, **more)


def arrow(path: Path, chunk: int) -> None:
    with pa.ipc.new_file(path, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=chunk)


#: the name of a file -> writes it
FILES: dict[str, Callable[[Path], Any]] = {
    "t.parquet": lambda path: pq.write_table(TABLE, path, row_group_size=100_000),
    "t.arrow": lambda path: arrow(path, 100_000),
    "t.csv": lambda path: path.write_text(TEXT),
    "t.csv.gz": lambda path: path.write_bytes(gzip.compress(TEXT.encode(), 1)),
    "t.jsonl": lambda path: path.write_text("\n".join(f'{{"a": {row}}}' for row in range(ROWS)) + "\n"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.slow
def test_a_file_as_it_is_read(name: str, tmp_path: Path) -> None:
    FILES[name](tmp_path / name)
    table = opened(str(tmp_path / name))
    assert table.extent is not None
    assert table.extent.rows == (ROWS if name == "t.parquet" else None), "Parquet says it before a row is read"
    for _ in range(2):
        shares = [table.extent.share for _ in table.batches()]
        known = [share for share in shares if share is not None]
        assert known == sorted(known) and known[-1] == 1.0
        # a thread reads text ahead, and may be at its end already
        assert 0 < known[0] <= 1 and (known[0] < 1 or name not in ("t.parquet", "t.arrow"))
    if name == "t.arrow":
        assert table.extent.rows == ROWS


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_text_counts_by_the_bytes_of_the_file_as_it_is_stored(name: str, tmp_path: Path) -> None:
    FILES[name](path := tmp_path / name)
    extent = Extent.of_files([str(path)], True)
    extent.begin(str(path))
    with Reading(expand(path, None), None, extent=extent).unpacked(str(path)) as text:
        shares = []
        while text.read(1 << 20):
            shares.append(extent.share or 0)
    assert shares == sorted(set(shares)) and 0 < shares[0] < 0.3 and shares[-1] == 1.0


def test_files_count_by_their_sizes(tmp_path: Path) -> None:
    for number, rows in enumerate((1000, 3000, 1000)):
        pq.write_table(TABLE.slice(0, rows), tmp_path / f"{number}.parquet", compression="none", use_dictionary=False)
    table = opened(str(tmp_path))
    assert table.extent is not None
    shares = [table.extent.share for _ in table.batches()]
    assert table.extent.rows is None, "the footers of the other files were not read for it"
    assert shares[-1] == 1.0 and shares[0] == pytest.approx(0.2, abs=0.05) and shares[1] == pytest.approx(0.8, abs=0.05)


def test_columns_and_types_that_are_asked_for_change_nothing(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2], "b": [None, 1.0]}), tmp_path / "t.parquet")
    table = opened(str(tmp_path / "t.parquet"), input_schema=Schema.parse("b double"), defaults={"b": 0.0})
    assert table.extent is not None and table.extent.rows == 2
    # who knows how many rows a query has
    assert opened(str(tmp_path / "t.parquet"), select="SELECT a FROM input WHERE a > 1").extent is None


def test_files_elsewhere_have_their_sizes_or_none() -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/extents/t.csv", TEXT.encode())
    table = opened("memory://extents/t.csv")
    assert table.extent is not None
    shares = [table.extent.share for _ in table.batches()]
    assert len(shares) > 1 and shares[-1] in (1.0, None)
    memory.rm("/extents", recursive=True)


@pytest.mark.parametrize(
    ("source", "rows"),
    [(TABLE, ROWS), ({"a": np.zeros(7)}, 7), ([{"a": 1}, {"a": 2}], 2), (({"a": n} for n in range(3)), None)],
)
def test_a_table_in_memory_has_its_length(source: Any, rows: int | None) -> None:
    extent = opened(source).extent
    assert (extent.rows if extent is not None else None) == rows and (extent is None or extent.share is None)


def test_examples_are_measured_by_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "t.tfrecord"
    with open(path, "wb") as file:
        for batch in TABLE.to_batches(max_chunksize=50_000):
            codec.write_examples(file, batch)
    table = opened(str(path), input_schema=Schema.parse("a bigint"))
    assert table.extent is not None
    shares = [table.extent.share for _ in table.batches()]
    assert shares[0] is not None and 0 < shares[0] < 1 and shares[-1] == 1.0


def test_a_file_that_is_named_twice_counts_twice() -> None:
    extent = Extent(paths=["a", "b", "a"], sizes=[1, 2, 1])
    for path, share in (("a", None), ("b", 0.25), ("a", 0.75)):
        extent.begin(path)
        assert extent.share == share
    extent.reached(1, 1)
    assert extent.share == 1.0
    # from the start again
    extent.begin("a")
    assert extent.share is None
    extent.begin("c")
    extent.passed(5)
    assert extent.share == 0.25, "another file is none of this table"


def test_files_without_bytes_or_rows_do_not_divide_by_zero(tmp_path: Path) -> None:
    (tmp_path / "e").write_text("")
    for extent in (Extent.of_files([str(tmp_path / "e")], True), Extent.of_files([str(tmp_path / "none")], True), Extent()):
        extent.begin(str(tmp_path / "e"))
        extent.passed(0)
        extent.reached(0, 0)
        assert extent.share in (None, 1.0)
