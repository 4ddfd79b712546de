"""Pass 2 of packing tables: the rows of the buckets are written to shards, in the order of their ranks."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner import foreign
from akrunner.errors import WriteError
from akrunner.io.table import TableSource
from akrunner.packing.dealing import Before, deal
from akrunner.packing.progress import Meter
from akrunner.packing.rows import RowPacker
from akrunner.packing.settings import PackArguments, Settings, settings_of
from akrunner.packing.shards import PARTIAL, ShardFile
from akrunner.packing.state import State

TABLE = pa.table({"n": range(200), "kind": ["ba"[i % 2] for i in range(200)], "s": ["x" * (i % 50) for i in range(200)]})


def begun(folder: Path, **given: Any) -> tuple[State, Settings]:
    """A part whose rows are in buckets."""
    settings = settings_of(PackArguments("in", "out", **{"format": "arrow", "split": "0.7,0.3", "shard_size": 2000, **given}))
    state = State(str(folder))
    table = TableSource(TABLE.schema, lambda: iter(TABLE.to_batches(max_chunksize=70)), "t", True)
    about = {"alone": False, "kind": "rows", "settings": {}}
    assert deal(state, 1, settings, Meter(), [(b"t", table)], "kind", Before([], []), None, about)
    return state, settings


def rows(state: State) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for shard in state.plan(1)["shards"]:
        with pa.ipc.open_file(state.shard_path(1, shard)) as reader:
            found.setdefault(shard["split"], []).extend(reader.read_all().to_pylist())
    return found


@pytest.mark.slow
def test_each_row_is_in_one_shard_of_its_split_and_shuffled(tmp_path: Path) -> None:
    state, settings = begun(tmp_path / "out")
    meter = Meter()
    RowPacker(state, 1, settings, meter).run()
    found = rows(state)
    numbers = [row["n"] for some in found.values() for row in some]
    assert sorted(numbers) == list(range(200)) and numbers != sorted(numbers) and meter.rows == 200
    assert {name: len(some) for name, some in found.items()} == dict(
        zip(["train", "test"], [sum(row) for row in state.plan(1)["buckets"]])
    )
    for row in (row for some in found.values() for row in some):
        assert (row["label"], row["label_name"], len(row["s"])) == (1 - row["n"] % 2, "ba"[row["n"] % 2], row["n"] % 50)
    for shard in state.plan(1)["shards"]:
        done = state.result(1, shard)
        assert done is not None and done["rows"] == shard["end"] - shard["first"] and state.is_done(1, shard)


@pytest.mark.slow
def test_the_order_of_rows_is_that_of_their_ranks_whatever_the_memory_is(tmp_path: Path) -> None:
    state, settings = begun(tmp_path / "a")
    RowPacker(state, 1, settings, Meter()).run()
    small, _ = begun(tmp_path / "b")
    # room for all buckets but the two largest, which are dealt again into smaller ones
    sizes = sorted(small.plan(1)["bucket_bytes"].values())
    assert sizes[-2] > sizes[-3]
    RowPacker(small, 1, dataclasses.replace(settings, memory=3 * sizes[-3]), Meter()).run()
    assert rows(small) == rows(state)
    assert not list(Path(small.folder(1)).glob("**/*.parts"))


@pytest.mark.slow
def test_a_run_goes_on_behind_the_shards_that_are_finished(tmp_path: Path) -> None:
    state, settings = begun(tmp_path / "out", seed=6, shard_size=13_000)
    RowPacker(state, 1, settings, Meter()).run()
    whole = rows(state)
    shards = [shard for shard in state.plan(1)["shards"] if shard["split"] == "train"]
    assert len(shards) > 2
    lost = Path(state.shard_path(1, shards[1]))
    lost.unlink()
    files = {shard["file"]: os.stat(state.shard_path(1, shard)).st_ino for shard in shards[:1]}
    (Path(state.folder(1)) / f"abc{PARTIAL}").touch()
    # with less memory now, so that the bucket in which the lost shard begins is dealt again
    sizes, first = state.plan(1)["bucket_bytes"], shards[1]["first"]
    before = list(itertools.accumulate(state.plan(1)["buckets"][0]))
    number = next(i for i, end in enumerate(before) if end > first)
    assert before[number - 1] < first < before[number] - 1
    meter = Meter()
    RowPacker(state, 1, dataclasses.replace(settings, memory=3 * sizes[str(number)] - 3), meter).run()
    assert rows(state) == whole and meter.rows == 200
    assert {shard["file"]: os.stat(state.shard_path(1, shard)).st_ino for shard in shards[:1]} == files
    # only what was lost is told, and not those behind it, which are written again, too
    (told,) = state.redone()
    assert told.startswith("1 file ") and told.endswith(shards[1]["file"])


def fails_after(count: int, function: Callable[..., Any], error: BaseException) -> Callable[..., Any]:
    def called(*given: Any) -> Any:
        nonlocal count
        count -= 1
        if count < 0:
            raise error
        return function(*given)

    return called


@pytest.mark.slow
def test_an_error_leaves_finished_shards_and_no_half_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, settings = begun(tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(State, "finished", fails_after(2, State.finished, OSError(28, "No space left on device")))
        with pytest.raises(WriteError, match=f"output: cannot write {tmp_path}/out: the disk is full"):
            RowPacker(state, 1, settings, Meter()).run()
    assert not list(Path(state.folder(1)).glob(f"*{PARTIAL}"))
    assert sum(state.is_done(1, shard) for shard in state.plan(1)["shards"]) == 2
    RowPacker(state, 1, settings, Meter()).run()
    assert sorted(row["n"] for some in rows(state).values() for row in some) == list(range(200))


def test_the_error_about_a_full_disk_has_the_room_beside_the_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, settings = begun(tmp_path / "out")
    there: list[int] = []

    def looked(path: str | None, number: int | None = None) -> str:
        there.append(len(list(Path(state.folder(1)).glob(f"*{PARTIAL}"))))
        return "the disk is full"

    monkeypatch.setattr(foreign, "disk_full", looked)
    monkeypatch.setattr(ShardFile, "commit", fails_after(0, ShardFile.commit, OSError(28, "No space left on device")))
    with pytest.raises(WriteError, match="the disk is full"):
        RowPacker(state, 1, settings, Meter()).run()
    assert there and min(there) >= 1 and not list(Path(state.folder(1)).glob(f"*{PARTIAL}"))
