"""Which rows of Parquet files are read where."""

from __future__ import annotations

from pathlib import Path
from typing import List

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from akrunner import codec
from akrunner.engines.flink.feed import FileFeed
from akrunner.engines.flink.files import GROUPS_EACH, Part, SharedFiles, dealt
from akrunner.io.sources import open_source


def written(path: Path, values: List[int], group: int) -> Path:
    pq.write_table(pa.table({"i": values}), path, row_group_size=group)
    return path


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 6))
def test_shares_are_even_and_complete(rows: List[int], tasks: int) -> None:
    groups = [Part("a", group, 0, count) for group, count in enumerate(rows)]
    shares = dealt(groups, tasks)
    counts = [sum(part.rows for part in share) for share in shares]
    assert sum(counts) == sum(rows) and max(counts) - min(counts) <= 1
    seen = [(part.group, row) for share in shares for part in share for row in range(part.start, part.stop)]
    assert sorted(seen) == [(group, row) for group, count in enumerate(rows) for row in range(count)]


def test_what_the_shares_read_is_the_table(tmp_path: Path) -> None:
    first, second = (
        written(tmp_path / "a.parquet", list(range(95)), 10),
        written(tmp_path / "b.parquet", list(range(95, 200)), 7),
    )
    source = open_source([first, second], read_examples=codec.read_examples)
    files = SharedFiles.of(source, 3)
    assert files is not None and files.sizes == tuple((str(path), path.stat().st_size) for path in (first, second))
    seen = []
    for share in range(3):
        order = {"files": files.order(share), "chunk_rows": 4, "chunk_bytes": 1 << 20}
        rows = [value for batch in FileFeed()._chunks(order) for value in batch["i"].to_pylist()]
        assert len(rows) in (66, 67)
        seen += rows
    assert sorted(seen) == list(range(200))


def test_what_the_submitter_reads(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", list(range(80)), 10)
    few = written(tmp_path / "few.parquet", list(range(80)), 80)
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"i": [1.5] * 80}), other, row_group_size=10)
    csv = tmp_path / "a.csv"
    csv.write_text("i\n1\n")

    def shared(source: object, **options: object) -> object:
        return SharedFiles.of(open_source(source, read_examples=codec.read_examples, **options), 2)  # type: ignore[arg-type]

    assert shared(path) is not None and 8 == 2 * GROUPS_EACH
    assert shared(few) is None, "one row group"
    assert shared([path, other]) is None, "of two schemas"
    assert shared(csv) is None and shared({"i": [1]}) is None
    assert shared(path, select="SELECT i FROM input") is None


def test_a_file_that_has_gone_is_named(tmp_path: Path) -> None:
    order = {"files": {"parts": [[str(tmp_path / "gone.parquet"), 0, 0, 1]]}, "chunk_rows": 4, "chunk_bytes": 1 << 20}
    with pytest.raises(Exception, match="cannot read .*gone.parquet on "):
        list(FileFeed()._chunks(order))
