"""How many bytes a table's rows take in files: shards of a table have about the size that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from akrunner.io.table import TableSource
from akrunner.packing import sizes
from akrunner.packing.dealing import RANK, Before, Buckets, deal, path_of
from akrunner.packing.progress import Meter
from akrunner.packing.rows import RowPacker
from akrunner.packing.settings import PackArguments, settings_of
from akrunner.packing.state import State

pytestmark = pytest.mark.slow

RANDOM = np.random.default_rng(3)
ROWS = 40_000


def flags() -> pa.Table:
    """Columns of a bit a row: 13 bytes in memory, and some 2,000 in an Example."""
    return pa.table({f"flag_{i:03d}": RANDOM.integers(0, 2, 2000).astype(bool) for i in range(100)})


def few_values() -> pa.Table:
    """Columns that Parquet makes much smaller, also if they are sorted only in the table."""
    words = pa.DictionaryArray.from_arrays(pa.array(np.arange(ROWS) // 1000, pa.int32()), [f"word {i}" * 50 for i in range(40)])
    return pa.table({"n": np.arange(ROWS) // 100, "word": words, "text": words.cast(pa.string())})


def lists() -> pa.Table:
    return pa.table({"label": [str(i % 3) for i in range(ROWS)], "x": [[i] * (i % 20) for i in range(ROWS)]})


@pytest.mark.parametrize("form", ["tfrecord", "parquet", "arrow"])
@pytest.mark.parametrize(("table", "size"), [(flags, 400_000), (few_values, 200_000), (lists, 200_000)])
def test_shards_of_a_table_have_the_size_that_was_asked_for(
    tmp_path: Path, form: str, table: Callable[[], pa.Table], size: int
) -> None:
    rows = table()
    settings = settings_of(PackArguments("in", "out", format=form, split="0.8,0.2", shard_size=size))
    state = State(str(tmp_path))
    source = TableSource(rows.schema, lambda: iter(rows.to_batches(max_chunksize=3000)), "t", True)
    label = "label" if "label" in rows.column_names else None
    about = {"alone": False, "kind": "rows", "settings": {}}
    assert deal(state, 1, settings, Meter(), [(b"t", source)], label, Before([], []), None, about)
    RowPacker(state, 1, settings, Meter()).run()
    shards = [shard for shard in state.plan(1)["shards"] if shard["split"] == "train"]
    found = [one["bytes"] for one in state.results(1, shards)]
    # a split has as many shards as its bytes divided by the size, rounded; a tenth is what the sample may be off
    assert abs(sum(found) / size - len(found)) < 0.6 + 0.1 * len(found), found


def test_a_dictionary_is_counted_once_for_a_file_and_not_for_each_row(tmp_path: Path) -> None:
    numbers = RANDOM.integers(0, 20_000, ROWS).astype(np.int32)
    words = pa.DictionaryArray.from_arrays(pa.array(numbers), [f"a word of about 20 {i:05d}" for i in range(20_000)])
    rows = pa.table({"word": words, "x": RANDOM.random(ROWS)})
    settings = settings_of(PackArguments("in", "out", format="arrow", split="1", shard_size=1_000_000))
    source = TableSource(rows.schema, lambda: iter(rows.to_batches(max_chunksize=3000)), "t", True)
    state = State(str(tmp_path))
    assert deal(
        state,
        1,
        settings,
        Meter(),
        [(b"t", source)],
        None,
        Before([], []),
        None,
        {"alone": False, "kind": "rows", "settings": {}},
    )
    # 12 bytes a row: as if each row of the sample had its share of the dictionary there would be six
    assert len(state.plan(1)["shards"]) == 1


def in_buckets(folder: Path, table: pa.Table, rows: int) -> dict[str, int]:
    """Put a table into buckets, in batches. Returns: path of each -> bytes of its rows."""
    buckets = Buckets(str(folder), table.schema)
    for batch in table.to_batches(max_chunksize=rows):
        buckets.add(batch)
    buckets.close()
    return {path_of(str(folder), number): buckets.bytes[number] for number in sorted(buckets.bytes)}


@pytest.mark.parametrize(("rows", "text", "taken"), [(300, "x", 300), (300_000, "x", 4096), (9000, "x" * 4000, 2000)])
def test_some_rows_are_those_of_the_lowest_ranks(tmp_path: Path, rows: int, text: str, taken: int) -> None:
    ranks = RANDOM.permutation(rows).astype(np.uint64) * np.uint64(2**64 // rows)
    table = pa.table({"n": np.arange(rows), "text": pa.array([text]).take(pa.array(np.zeros(rows, np.int64))), RANK: ranks})
    found = []
    for size in (1000, 7000):
        (folder := tmp_path / str(size)).mkdir()
        found.append(sizes.some_rows(in_buckets(folder, table, size), RANK))
    # whatever batches the rows came in
    assert found[0] == found[1]
    assert found[0].column("n").to_pylist() == np.argsort(ranks)[: found[0].num_rows].tolist()
    assert 0.9 * taken <= found[0].num_rows <= 1.1 * taken


def test_memory_counts_rows_and_not_their_dictionary() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), ["a" * 1000, "b"])
    batch = pa.RecordBatch.from_pydict({"a": column, "n": pa.array([1, 2, 3], pa.int64())})
    assert sizes.in_memory(batch) == 3 * 4 + 3 * 8


def test_as_many_rows_are_written_at_once_as_memory_allows() -> None:
    assert sizes.rows_at_once(80_000, 10_000) == 4096 and sizes.rows_at_once(1 << 30, 1) == 1
    assert sizes.rows_at_once(1 << 30, 1 << 10) == 8


def test_what_surrounds_values_grows_with_rows_and_what_packs_them_with_bytes() -> None:
    # 100 rows of 5 bytes take 30 each: a row of a million bytes takes 25 more
    assert sizes.Sizes(100, 500, 3000).of(1_000_000, 1) == 1_000_025
    assert sizes.Sizes(100, 5000, 500).of(1_000_000, 1) == 100_000
