"""What a run relies on that an earlier one has left in `OUT/.pack`."""

from __future__ import annotations

import errno
import os
import random
import shutil
from pathlib import Path
from typing import Any

import PIL.Image
import pyarrow as pa
import pyarrow.csv as pc_csv
import pytest

from akrunner import ConfigError, ReadError, SinkError, WriteError, pack
from akrunner.packing import sealed
from akrunner.packing.state import State

FORMS = ["tfrecord", "parquet", "arrow"]


class Stopped(Exception):
    pass


def files(folder: Path, count: int = 40) -> Path:
    folder.mkdir()
    for i in range(count):
        (folder / f"{i}.bin").write_bytes(bytes([i]) * 4000)
    return folder


def table(folder: Path) -> Path:
    folder.mkdir()
    # texts that no format makes smaller
    made = random.Random(1)
    pc_csv.write_csv(pa.table({"a": range(5000), "b": [made.randbytes(30).hex() for _ in range(5000)]}), folder / "a.csv")
    return folder


def stopped(monkeypatch: pytest.MonkeyPatch, source: Path, out: Path, **options: Any) -> Path:
    """A run that ends before anything is moved into its place. Returns: the directory of its part."""

    def stops(*_: Any) -> None:
        raise Stopped

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(State, "publish", stops)
        pack(source, out, **options)
    return out / ".pack" / "0001"


def flipped(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)


def packed(out: Path) -> list[tuple[str, bytes]]:
    return [(str(path.relative_to(out)), path.read_bytes()) for path in sorted(out.glob("all/*"))]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", [files, table])
def test_a_shard_of_which_a_bit_has_changed_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, make: Any
) -> None:
    source = make(tmp_path / "in")
    options: dict[str, Any] = {"format": form, "shard_size": 64 << 10, "kind": "files" if make is files else None}
    pack(source, tmp_path / "right", **options)
    part = stopped(monkeypatch, source, tmp_path / "out", **options)
    shards = sorted(path for path in part.iterdir() if path.name.startswith("all-") and path.suffix != ".json")
    assert len(shards) > 1
    for path in shards[:2]:
        flipped(path, path.stat().st_size // 2)
    pack(source, tmp_path / "out", **options)
    assert packed(tmp_path / "out") == packed(tmp_path / "right") != []


@pytest.mark.slow
def test_rows_of_which_a_bit_has_changed_before_they_are_written_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = table(tmp_path / "in")
    pack(source, tmp_path / "right", format="arrow")
    part = stopped(monkeypatch, source, tmp_path / "out", format="arrow")
    (shard,) = part.glob("all-*.arrow")
    shard.unlink()
    for path in part.glob("buckets/*"):
        flipped(path, path.stat().st_size // 2)
    next(part.glob("buckets/*")).unlink()
    pack(source, tmp_path / "out", format="arrow")
    assert packed(tmp_path / "out") == packed(tmp_path / "right") != []


@pytest.mark.slow
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("how", ["skip", "a directory"])
def test_a_part_without_a_good_file_is_told_as_where_nothing_was_begun(tmp_path: Path, how: str, overwrite: bool) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    if overwrite:
        PIL.Image.new("RGB", (4, 4)).save(source / "good.png")
        pack(source, out)
        (source / "good.png").unlink()
    (source / "x.jpg").touch()
    bad = how if how == "skip" else str(tmp_path / "bad")
    for options in ({}, {"bad_rows": bad}, {"bad_rows": bad}):
        with pytest.raises(ReadError, match=r"the only image is broken|1 broken image"):
            pack(source, out, overwrite=overwrite, **options)
    # what comes then is packed, also by the run that goes on
    with pytest.raises(ReadError):
        pack(source, out, overwrite=overwrite)
    PIL.Image.new("RGB", (4, 4)).save(source / "y.png")
    done = pack(source, out, overwrite=overwrite, bad_rows=bad)
    assert (done.rows, done.skipped_rows, done.total_rows) == (1, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("what", ["result", "index", "plan", "clear", "_numbers", "finished", "publish", "_harm"])
def test_whatever_fails_of_the_output_is_told_as_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, number: int
) -> None:
    source, out = files(tmp_path / "in", 3), tmp_path / "out"
    pack(source, out, kind="files")
    (source / "new.bin").write_bytes(b"x")

    def fails(*_: Any) -> None:
        # as `read` and `close` do, which name no file
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(State, what, fails)
    with pytest.raises((WriteError, SinkError), match=f"output: cannot .*{out}.*: the disk"):
        pack(source, out, kind="files")


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_copy_of_a_part_is_refused(tmp_path: Path, form: str) -> None:
    source, out = files(tmp_path / "in", 3), tmp_path / "out"
    pack(source, out, kind="files", format=form)
    shutil.copytree(out / ".pack" / "0001", out / ".pack" / "0002")
    for dry_run in (True, False):
        with pytest.raises(SinkError, match=r"0002 is a copy of another directory of \.pack, .* remove it"):
            pack(source, out, kind="files", format=form, dry_run=dry_run)
    shutil.rmtree(out / ".pack" / "0002")
    assert pack(source, out, kind="files", format=form).total_rows == 3
    # of a plan that does not say its number, by the names of its files
    shutil.copytree(out / ".pack" / "0001", out / ".pack" / "0002")
    plan = sealed.read(str(out / ".pack" / "0002" / "plan.json")) or {}
    sealed.write(str(out / ".pack" / "0002"), "plan.json", {name: value for name, value in plan.items() if name != "part"})
    with pytest.raises(SinkError, match="0002 is a copy"):
        pack(source, out, kind="files", format=form)
    assert pack(source, out, kind="files", format=form, overwrite=True).total_rows == 3


@pytest.mark.parametrize(
    "name",
    ["dataset.json", "labels.json", ".pack/dataset.json", ".pack/lock", ".pack/0001/plan.json", ".pack/0001/index.arrow"],
)
def test_a_directory_in_a_files_place_is_damage(tmp_path: Path, name: str) -> None:
    source, out = files(tmp_path / "in", 3), tmp_path / "out"
    pack(source, out, kind="files")
    (out / name).unlink()
    (out / name).mkdir()
    for dry_run in (True, False):
        with pytest.raises(SinkError, match=rf"{name} is damaged.*bring"):
            pack(source, out, kind="files", dry_run=dry_run)
    if "0001" in name:
        assert pack(source, out, kind="files", overwrite=True).total_rows == 3
        return
    (out / name).rmdir()
    assert pack(source, out, kind="files").total_rows == 3


def test_a_link_in_the_locks_place_is_damage(tmp_path: Path) -> None:
    source, out = files(tmp_path / "in", 3), tmp_path / "out"
    pack(source, out, kind="files")
    (out / ".pack" / "lock").unlink()
    (out / ".pack" / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SinkError, match="lock is damaged: it is a link; .*remove this"):
        pack(source, out, kind="files")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "name",
    ["dataset.json", "labels.json", ".pack/dataset.json", ".pack/lock", ".pack/0001/plan.json", ".pack/0001/index.arrow"],
)
def test_nobody_waits_for_a_pipe_in_a_files_place(tmp_path: Path, name: str) -> None:
    source, out = files(tmp_path / "in", 3), tmp_path / "out"
    pack(source, out, kind="files")
    (out / name).unlink()
    os.mkfifo(out / name)
    with pytest.raises(SinkError, match=rf"{name} is damaged.*bring"):
        pack(source, out, kind="files")


@pytest.mark.parametrize("name", ["dataset.json", "labels.json"])
def test_a_link_at_the_path_of_a_partial_file_leads_nowhere(tmp_path: Path, name: str) -> None:
    source, out, other = files(tmp_path / "in", 3), tmp_path / "out", tmp_path / "other"
    pack(source, out, kind="files")
    other.write_text("kept")
    (out / name).unlink()
    (out / f".{name}.partial").symlink_to(other)
    pack(source, out, kind="files")
    assert other.read_text() == "kept" and (out / name).is_file() and not (out / name).is_symlink()


def test_what_a_run_that_was_killed_while_it_published_left_is_removed(tmp_path: Path) -> None:
    source, out = files(tmp_path / "in", 3), tmp_path / "out"
    pack(source, out, kind="files")
    part = out / ".pack" / "0001"
    (part / "all-00000.tfrecord.json").write_text("{}")
    (part / "buckets").mkdir()
    assert pack(source, out, kind="files").rows == 0
    assert sorted(path.name for path in part.iterdir()) == ["index.arrow", "plan.json"]


@pytest.mark.slow
@pytest.mark.parametrize("make", [files, table])
@pytest.mark.parametrize("name", ["all-00000.arrow", "all-00000.arrow.json", "plan.json", "index.arrow"])
def test_one_in_a_part_that_was_begun_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, make: Any) -> None:
    source, out = make(tmp_path / "in"), tmp_path / "out"
    options: dict[str, Any] = {"format": "arrow", "kind": "files" if make is files else None}
    part = stopped(monkeypatch, source, out, **options)
    (part / name).unlink()
    (part / name).mkdir()
    assert pack(source, out, **options).rows == (40 if make is files else 5000)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_verify_finds_a_bit_of_what_is_packed(tmp_path: Path, form: str) -> None:
    source, out = files(tmp_path / "in"), tmp_path / "out"
    options: dict[str, Any] = {"kind": "files", "format": form, "shard_size": 64 << 10}
    pack(source, out, **options)
    assert pack(source, out, verify=True, **options).total_rows == 40
    path = sorted(out.glob("all/*"))[-1]
    flipped(path, path.stat().st_size // 2)
    assert pack(source, out, **options).total_rows == 40
    for dry_run in (True, False):
        with pytest.raises(
            SinkError, match=f"{path.name} is damaged: its bytes are not those that were written; bring it back"
        ):
            pack(source, out, verify=True, dry_run=dry_run, **options)
    with pytest.raises(ConfigError, match="give one of them"):
        pack(source, out, verify=True, overwrite=True, **options)


@pytest.mark.parametrize("what", ["bad", "unfetched", "kept"])
def test_the_record_of_a_shard_tells_whether_files_were_left_out(tmp_path: Path, what: str) -> None:
    state = State(str(tmp_path / "out"))
    state.begin(1)
    shard = {"file": "all/00000.tfrecord"}
    assert not state.has_left_out(1, shard)
    state.finished(1, shard, {"rows": 0, what: [["a", "why"]]})
    assert state.has_left_out(1, shard) is (what != "kept") and state.is_done(1, shard)
