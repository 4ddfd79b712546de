"""Pass 1 of packing tables: rows are dealt to splits and buckets, and the plan says how many of each there are."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.errors import DataError, ReadError
from akrunner.io.table import TableSource
from akrunner.packing import sealed
from akrunner.packing.dealing import BITS, RANK, SPLIT, Before, Buckets, Dealing, deal, labelled, path_of, schema_of
from akrunner.packing.described import schema_in
from akrunner.packing.progress import Meter
from akrunner.packing.settings import PackArguments, Settings, settings_of
from akrunner.packing.state import INDEX, State

NONE = Before([], [])


def settings(**given: Any) -> Settings:
    return settings_of(PackArguments("in", "out", **given))


def source(table: pa.Table, rows: int = 100) -> TableSource:
    return TableSource(table.schema, lambda: iter(table.to_batches(max_chunksize=rows)), "t.csv", True)


def read(path: str) -> pa.Table:
    with pa.memory_map(path) as file:
        return pa.ipc.open_stream(file).read_all()


def dealt(folder: Path, table: pa.Table, label: str | None = None, before: Before = NONE, **given: Any) -> Any:
    """Returns: (the plan, all rows of the buckets)."""
    folder.mkdir(exist_ok=True)
    dealing = Dealing(settings(**given), str(folder), label, before, Meter())
    assert dealing.read(b"t.csv", source(table)) == table.num_rows
    plan = dealing.plan(lambda split, number: f"{split}/{number}")
    return plan, pa.concat_tables([read(str(path)) for path in sorted(folder.glob("*.arrows"))])


def test_rows_are_put_into_buckets_by_the_first_bits_of_their_ranks(tmp_path: Path) -> None:
    ranks = [0, 1 << 57, (1 << 58) - 1, 1 << 58, (1 << 64) - 1, 3]
    batch = pa.RecordBatch.from_pydict({"a": list(range(6)), RANK: pa.array(ranks, pa.uint64())})
    buckets = Buckets(str(tmp_path), batch.schema)
    buckets.add(batch[:4])
    buckets.add(batch[4:])
    buckets.close()
    found = {number: read(path_of(str(tmp_path), number)).column("a").to_pylist() for number in buckets.sums}
    assert found == {0: [0, 1, 2, 5], 1: [3], 63: [4]}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00.arrows", "01.arrows", "63.arrows"]
    assert all(sealed.is_of(path_of(str(tmp_path), number), str(one)) for number, one in buckets.sums.items())
    assert buckets.bytes.keys() == buckets.sums.keys() and buckets.bytes[0] > buckets.bytes[1]


def test_a_bucket_that_is_dealt_again_takes_the_next_bits(tmp_path: Path) -> None:
    ranks = [(5 << 58) | (7 << 52), (5 << 58) | (9 << 52)]
    batch = pa.RecordBatch.from_pydict({"a": [1, 2], RANK: pa.array(ranks, pa.uint64())})
    buckets = Buckets(str(tmp_path), batch.schema, BITS)
    buckets.add(batch)
    buckets.close()
    assert sorted(buckets.bytes) == [7, 9]


def test_every_row_is_in_one_bucket_and_the_plan_counts_them(tmp_path: Path) -> None:
    table = pa.table({"n": range(300), "s": [str(i) for i in range(300)]})
    plan, rows = dealt(tmp_path / "a", table, split="0.8,0.2")
    assert sorted(rows.column("n").to_pylist()) == list(range(300)) and plan["rows"] == 300
    counts = np.bincount(rows.column(SPLIT).to_numpy(), minlength=2).tolist()
    assert plan["splits"] == ["train", "test"] and [sum(row) for row in plan["buckets"]] == counts
    assert [sum(row) for row in plan["counts"]] == counts and plan["labels"] == [] and plan["label"] is None
    assert schema_in(plan["table"]) == table.schema and schema_in(plan["columns"]) == table.schema
    assert set(plan["bucket_sums"]) == set(plan["bucket_bytes"])
    # the same rows in batches of another size are dealt alike, and with another seed otherwise
    again = dealt(tmp_path / "b", table.combine_chunks(), split="0.8,0.2")[0]
    assert again["buckets"] == plan["buckets"] and again["bucket_bytes"].keys() == plan["bucket_bytes"].keys()
    assert dealt(tmp_path / "c", table, split="0.8,0.2", seed=1)[0]["buckets"] != plan["buckets"]


def test_shards_of_a_split_differ_by_at_most_one_row(tmp_path: Path) -> None:
    table = pa.table({"s": ["x" * 100] * 1001})
    plan, _ = dealt(tmp_path / "a", table, split="0.7,0.3", shard_size=10_000)
    for name, row in zip(plan["splits"], plan["buckets"]):
        shards = [one for one in plan["shards"] if one["split"] == name]
        assert [one["file"] for one in shards] == [f"{name}/{i}.tfrecord" for i in range(len(shards))] and len(shards) > 1
        assert shards[0]["first"] == 0 and shards[-1]["end"] == sum(row)
        assert all(a["end"] == b["first"] for a, b in itertools.pairwise(shards))
        assert len({one["end"] - one["first"] for one in shards}) <= 2


def test_exact_shares_are_those_of_each_class_with_what_was_dealt_before(tmp_path: Path) -> None:
    table = pa.table({"label": ["b"] * 10 + ["a"] * 30})
    plan, _ = dealt(tmp_path / "a", table, "label", split="0.5,0.5", split_by="exact")
    assert plan["labels"] == ["a", "b"] and plan["dealt"] == [30, 10] and plan["counts"] == [[15, 5], [15, 5]]
    # one of class b is dealt already, so that the next one goes to the other split
    later, _ = dealt(
        tmp_path / "b",
        pa.table({"label": ["b", "c"]}),
        "label",
        Before(["a", "b"], [30, 11]),
        split="0.5,0.5",
        split_by="exact",
    )
    assert later["labels"] == ["a", "b", "c"] and later["dealt"] == [30, 12, 1]
    assert [row[1] for row in later["counts"]] == [0, 1]


def test_new_classes_stand_sorted_behind_those_of_earlier_parts(tmp_path: Path) -> None:
    plan, _ = dealt(tmp_path, pa.table({"label": ["10", "9", "z", "9"]}), "label", Before(["z"], [4]))
    assert plan["labels"] == ["z", "9", "10"] and plan["counts"] == [[1, 2, 1]] and plan["dealt"] == [4, 0, 0]


@pytest.mark.parametrize("empty", [None, ""])
def test_a_row_without_a_class_is_an_error_that_names_it(tmp_path: Path, empty: str | None) -> None:
    table = pa.table({"label": pa.array([*["a"] * 150, empty], pa.string())})
    with pytest.raises(ReadError, match=r"source: t\.csv: row 150 has no 'label': fill it, .*select= \(--select\)"):
        dealt(tmp_path, table, "label")


def test_a_value_that_no_record_holds_is_an_error_before_it_is_shuffled(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"source: t\.csv: row 120, column 'x'"):
        dealt(tmp_path, pa.table({"x": [0.5] * 120 + [1e300]}))
    assert dealt(tmp_path / "a", pa.table({"x": [1e300]}), format="parquet")[0]["rows"] == 1


def test_no_row_makes_no_plan(tmp_path: Path) -> None:
    dealing = Dealing(settings(), str(tmp_path), None, NONE, Meter())
    assert dealing.read(b"t", source(pa.table({"n": pa.array([], pa.int64())}))) == 0
    assert dealing.plan(lambda split, number: split) is None and not list(tmp_path.iterdir())


def run(state: State, tables: list[tuple[bytes, TableSource]], files: pa.Table | None = None) -> bool:
    return deal(state, 1, settings(), Meter(), tables, None, NONE, files, {"alone": False, "kind": "rows", "settings": {}})


def test_files_without_a_row_are_not_in_the_index(tmp_path: Path) -> None:
    state = State(str(tmp_path / "out"))
    some, none = pa.table({"n": [1, 2]}), pa.table({"n": pa.array([], pa.int64())})
    files = pa.table({"\x1fname": pa.array([b"a", b"b"], pa.large_binary())})
    assert run(state, [(b"a", source(some)), (b"b", source(none))], files)
    assert state.index(1).column("\x1fname").to_pylist() == [b"a"] and state.unfinished() == 1
    assert state.plan(1)["indexed"] is True and state.plan(1)["rows"] == 2


def test_a_table_of_no_file_has_no_index(tmp_path: Path) -> None:
    state = State(str(tmp_path / "out"))
    assert run(state, [(b"", source(pa.table({"n": [1]})))])
    assert not os.path.exists(os.path.join(state.folder(1), INDEX)) and state.plan(1)["indexed"] is False


def test_nothing_of_a_part_is_left_without_rows_or_after_an_error(tmp_path: Path) -> None:
    state = State(str(tmp_path / "out"))
    table = pa.table({"n": [1, 2]})

    def breaks() -> Iterator[pa.RecordBatch]:
        yield table.to_batches()[0]
        raise OSError("the disk is gone")

    assert not run(state, [(b"a", source(table[:0]))]) and not os.path.exists(state.folder(1))
    with pytest.raises(ReadError, match=r"source: cannot read t\.csv: .*the disk is gone"):
        run(state, [(b"a", dataclasses.replace(source(table), open=breaks))])
    assert not os.path.exists(state.folder(1))


def test_a_column_of_classes_becomes_their_numbers_and_names() -> None:
    batch = pa.RecordBatch.from_pydict({"x": [1, 2], "kind": pa.array([True, False]), "y": [3, 4]})
    made = labelled(batch, "kind", ["false", "true"])
    assert made.to_pylist() == [
        {"x": 1, "label": 1, "label_name": "true", "y": 3},
        {"x": 2, "label": 0, "label_name": "false", "y": 4},
    ]
    assert labelled(batch, None, []) is batch
    schema = schema_of(batch.schema, "kind")
    assert schema == made.schema and not schema.field("label").nullable and schema_of(batch.schema, None) == batch.schema
