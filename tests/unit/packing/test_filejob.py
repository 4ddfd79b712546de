"""A run that packs files: what of them is new, what an earlier run has left out, and what the result says."""

from __future__ import annotations

import errno
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner import foreign
from akrunner.errors import ConfigError, ReadError, WriteError
from akrunner.packing import filejob, files, shards
from akrunner.packing.filejob import Bad
from akrunner.packing.leftout import LeftOut
from akrunner.packing.progress import Meter
from akrunner.packing.result import Packed
from akrunner.packing.settings import PackArguments, settings_of
from akrunner.packing.shards import PARTIAL
from akrunner.packing.source import given_of
from akrunner.packing.state import State
from tests import pngs


class Run:
    """Runs over one directory of texts, into one output."""

    def __init__(self, folder: Path) -> None:
        self.source, self.out = folder / "in", folder / "out"
        self.source.mkdir()

    def put(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.source / f"{name}.txt").write_text(text)

    def __call__(self, dry: bool = False, overwrite: bool = False, source: Any = None, **options: Any) -> Packed:
        asked = PackArguments(source or self.source, self.out, **{"kind": "texts", **options})
        settings, state = settings_of(asked), State(str(self.out))
        given = given_of(asked, settings)
        if dry:
            return filejob.planned_only(given, settings, state, overwrite)
        with state.held():
            return filejob.packed(given, settings, state, overwrite, Meter())


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_shards_that_are_removed_meanwhile_are_missed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.put(a="1", b="2")
    real = files.FilePacker.run

    def and_removed(self: files.FilePacker) -> None:
        real(self)
        shutil.rmtree(run.out / ".pack")

    with monkeypatch.context() as patch:
        patch.setattr(files.FilePacker, "run", and_removed)
        words = "files that were packed are gone from .*out: something else has removed them, .*run the same command again"
        with pytest.raises(WriteError, match=words):
            run()
    assert run().rows == 2


def test_only_new_files_are_packed(run: Run) -> None:
    run.put(a="1", b="2")
    first = run()
    assert (first.rows, first.total_rows, first.shards, first.splits, first.kind) == (2, 2, 1, {"all": 2}, "texts")
    assert first.bytes == sum(path.stat().st_size for path in (run.out / "all").iterdir())
    again = run()
    assert (again.rows, again.total_rows, again.warnings) == (0, 2, [])
    run.put(c="3")
    assert run(dry=True).rows == 1 and run(dry=True).total_rows == 3 and run(dry=True).shards == 2
    third = run()
    assert (third.rows, third.total_rows, third.shards) == (1, 3, 2)
    assert run(overwrite=True).rows == 3 and run().shards == 1


def test_what_has_changed_or_gone_stays_as_it_was_packed_and_is_told(run: Run) -> None:
    run.put(a="1", b="2", c="3")
    run()
    run.put(a="another")
    (run.source / "b.txt").unlink()
    for dry in (True, False):
        found = run(dry=dry)
        changed, gone = found.warnings[:2]
        assert changed == "1 file has changed since, and is as packed (a.txt); --overwrite packs all anew"
        assert gone.startswith("1 file that was packed is gone, and the rows are still there (b.txt)")
        assert (found.rows, found.total_rows) == (0, 3)


def test_a_dry_run_writes_nothing(run: Run) -> None:
    run.put(a="1", b="")
    found = run(dry=True, bad_rows="skip")
    assert (found.rows, found.splits, found.shards) == (1, {"all": 1}, 1) and not run.out.exists()
    (told,) = found.warnings
    assert told.startswith("1 of 2 files would not be packed (b.txt: ")


def test_broken_files_are_refused_skipped_or_copied(run: Run, tmp_path: Path) -> None:
    run.put(a="1", b="")
    with pytest.raises(ReadError, match="source: 1 broken text; mend it, .*\n  b.txt: "):
        run()
    found = run(bad_rows="skip")
    assert (found.rows, found.skipped_rows, found.skipped_before, found.skipped[0][0]) == (1, 1, 0, "b.txt")
    again = run(bad_rows="skip")
    assert (again.rows, again.skipped_rows, again.skipped_before) == (0, 1, 1)
    with pytest.raises(ReadError, match="1 broken text that an earlier run left out is still there"):
        run(dry=True)
    with pytest.raises(ReadError, match="1 broken text that an earlier run left out is still there"):
        run()
    copied = run(bad_rows=tmp_path / "bad")
    assert (tmp_path / "bad" / "b.txt").exists() and "says why each was left out" in copied.warnings[0]
    # one that is mended is new
    run.put(b="2")
    mended = run()
    assert (mended.rows, mended.total_rows, mended.skipped_rows) == (1, 2, 0)


def test_where_all_files_are_broken_nothing_is_written_of_them(run: Run) -> None:
    run.put(a="", b="")
    with pytest.raises(ReadError, match="source: all of 2 texts are broken: nothing was packed"):
        run(bad_rows="skip")
    assert not (run.out / "dataset.json").exists()


def test_classes_that_look_alike_and_splits_without_a_row_are_told(run: Run) -> None:
    for name in ("Cat", "cat", "dog"):
        (run.source / name).mkdir()
        (run.source / name / "a.txt").write_text(name)
    found = run(split="a=0.999999,b=0.000001")
    alike, none = found.warnings
    assert "'Cat', 'cat'" in alike and "dog" not in alike and found.labels == ["Cat", "cat", "dog"]
    assert none.startswith(
        "no row fell into b, so there is no such directory: more rows, or a larger share, or split_by='exact'"
    )
    assert found.splits == {"a": 3, "b": 0}
    exact = run(split="a=0.999999,b=0.000001", split_by="exact", overwrite=True)
    assert exact.warnings[-1].endswith("a larger share fill it")


def test_an_input_with_classes_is_not_added_to_one_without(run: Run) -> None:
    run.put(a="1")
    run()
    (run.source / "a.txt").unlink()
    (run.source / "cat").mkdir()
    (run.source / "cat" / "b.txt").write_text("2")
    with pytest.raises(ConfigError, match=f"source: it has classes, and {run.out} was packed without; --overwrite"):
        run()


def test_a_list_that_names_a_file_twice_or_otherwise_than_before_is_told(run: Run, tmp_path: Path) -> None:
    run.put(a="1", b="2")
    (tmp_path / "in" / "l.csv").write_text("path,label,n\na.txt,x,1\na.txt,y,2\nb.txt,x,3\n")
    found = run(source=run.source / "l.csv", paths="path")
    unlike, several = found.warnings
    assert unlike.startswith(
        "1 file has different classes in different rows of the list, and is packed with each of them (a.txt: x and y)"
    )
    assert several.startswith("1 row of the list names a file that another row names, too")
    assert found.rows == 3 and [field.name for field in filejob.extra_of(State(str(run.out))) or ()] == ["n"]
    (tmp_path / "in" / "l.csv").write_text("path,label,n\na.txt,x,1\na.txt,y,2\nb.txt,x,4\n")
    told = run(source=run.source / "l.csv", paths="path").warnings
    assert told == [
        "1 row of the list says another thing of its file than when that was packed (b.txt); --overwrite packs all anew"
    ]


def test_an_output_of_a_directory_has_no_other_columns(run: Run) -> None:
    assert filejob.extra_of(State(str(run.out))) is None
    run.put(a="1")
    run()
    assert filejob.extra_of(State(str(run.out))) is None


def test_a_directory_for_broken_files_lies_apart(run: Run, tmp_path: Path) -> None:
    run.put(a="1")
    (tmp_path / "file").touch()
    (tmp_path / "list").mkdir()
    (tmp_path / "list" / "bad_rows.csv").write_text("mine")
    (tmp_path / "link").symlink_to(run.source)
    asked = PackArguments(run.source, run.out, kind="texts")
    given, state = given_of(asked, settings_of(asked)), State(str(run.out))
    for folder, words in {
        "file": "is a file; give fail, skip, or a directory",
        "in": "lies in the input",
        "in/deep/er": "lies in the input",
        "link/x": "lies in the input",
        "out/bad": "lies in the output; name a directory beside it",
        "file/below": "is a file, so that there can be no",
        "list": "is not pack's, and stays as it is; name another directory",
        "../../../../../../../proc/x": "nothing may be written in",
    }.items():
        with pytest.raises(ConfigError, match=rf"bad_rows \(--bad-rows\): .*{words}"):
            filejob.check_bad_place(os.path.join(tmp_path, folder), given, state)
    filejob.check_bad_place(str(tmp_path / "new" / "one"), given, state)


def test_a_directory_with_files_that_a_list_names_takes_no_broken_ones(run: Run, tmp_path: Path) -> None:
    (tmp_path / "apart").mkdir()
    (tmp_path / "apart" / "a.txt").write_text("1")
    table = pa.table({"path": [str(tmp_path / "apart" / "a.txt")]})
    asked = PackArguments(table, run.out, kind="texts")
    given = given_of(asked, settings_of(asked))
    with pytest.raises(ConfigError, match=rf"files that are packed lie in .*\({tmp_path}/apart\)"):
        filejob.check_bad_place(str(tmp_path / "apart"), given, State(str(run.out)))


def test_of_broken_files_a_thousand_are_named_and_all_are_counted() -> None:
    bad = Bad()
    bad.some = [("+", "cut")] * 999
    bad.before([LeftOut(b"%d" % i, "cut", False, "cut") for i in range(5)])
    assert (bad.rows, bad.earlier, len(bad.some), bad.some[-1]) == (5, 5, 1000, ("0", "cut"))


def test_the_result_of_an_output_that_is_not_there_yet(run: Run) -> None:
    found = filejob.result(State(str(run.out)), "texts", 0, Bad(), ["w"])
    assert (found.splits, found.total_rows, found.shards, found.bytes, found.warnings) == ({}, 0, 0, 0, ["w"])


def test_a_finished_shard_without_its_broken_files_does_not_count_if_these_are_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.put(**{f"t{i}": "x" * 1000 for i in range(8)}, bad="")
    real, over = State.finished, []

    def finished(self: State, part: int, shard: dict[str, Any], result: dict[str, Any]) -> None:
        real(self, part, shard, result)
        over.append(shard)
        if result["bad"]:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(State, "finished", finished)
        with pytest.raises(KeyboardInterrupt):
            run(bad_rows="skip", shard_size=1000)
    assert over and not (run.out / "dataset.json").exists()
    for _ in range(2):
        with pytest.raises(ReadError, match="source: 1 broken text; mend it, .*\n  bad.txt: it is empty"):
            run(shard_size=1000)
    assert not (run.out / "dataset.json").exists()
    # what was finished still counts where such files are left out, and nothing was damaged
    found = run(bad_rows="skip", shard_size=1000)
    assert (found.rows, found.skipped_rows, found.warnings) == (8, 1, [])


def test_a_file_that_was_too_large_is_new_where_a_larger_one_may_be_packed(run: Run) -> None:
    run.put(a="1", b="2" * 100)
    found = run(bad_rows="skip", max_file_size=50)
    assert (found.rows, found.skipped_rows) == (1, 1)
    assert run(bad_rows="skip", max_file_size=99).skipped_before == 1
    with pytest.raises(ReadError, match="1 broken text that an earlier run left out is still there"):
        run(max_file_size=99)
    assert run(dry=True).rows == 1
    found = run()
    assert (found.rows, found.total_rows, found.skipped_rows) == (1, 2, 0)
    assert run().rows == 0


def _killed_before_it_is_published(run: Run, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(State, "publish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(**options)


def test_a_file_that_was_too_large_is_tried_also_beside_a_part_that_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.put(a="1", b="2" * 100)
    run(bad_rows="skip", max_file_size=50)
    run.put(c="3")
    _killed_before_it_is_published(run, monkeypatch, bad_rows="skip", max_file_size=50)
    found = run()
    assert (found.rows, found.total_rows, found.skipped_rows) == (2, 3, 0)


@pytest.mark.parametrize("listed", [False, True])
def test_a_run_that_goes_on_packs_what_was_too_large_for_the_killed_one(
    run: Run, monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    run.put(a="1", b="2" * 100)
    names = [str(run.source / "a.txt"), str(run.source / "b.txt")]
    options: dict[str, Any] = {"source": pa.table({"path": names}), "paths": "path"} if listed else {}
    _killed_before_it_is_published(run, monkeypatch, **options, bad_rows="skip", max_file_size=50)
    found = run(**options, bad_rows="skip")
    assert (found.rows, found.skipped_rows, found.shards, found.warnings) == (2, 0, 1, [])
    assert run(**options).rows == 0


def test_a_run_that_goes_on_writes_no_shard_again_whose_files_stay_too_large(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.put(a="1", b="2" * 100)
    _killed_before_it_is_published(run, monkeypatch, bad_rows="skip", max_file_size=50)
    monkeypatch.setattr(files.FilePacker, "_write", lambda *_: pytest.fail("a shard was written"))
    found = run(bad_rows="skip", max_file_size=99)
    assert (found.rows, found.skipped_rows) == (1, 1)


def test_a_reason_with_the_name_of_the_option_in_it_is_not_that_of_a_large_file(run: Run) -> None:
    run.put(a="1")
    (run.source / "b.txt").symlink_to("max_file_size")
    assert run(bad_rows="skip").skipped_rows == 1
    parts = sorted(path.name for path in (run.out / ".pack").iterdir())
    found = run(bad_rows="skip")
    assert (found.skipped_rows, found.skipped_before) == (1, 1)
    assert sorted(path.name for path in (run.out / ".pack").iterdir()) == parts


def test_images_that_are_tried_again_are_not_told_to_stay_left_out(run: Run) -> None:
    picture = pngs.header() + pngs.chunk(b"IDAT", zlib.compress(pngs.rows())) + pngs.chunk(b"IEND")
    (run.source / "a.png").write_bytes(picture)
    (run.source / "b.png").write_bytes(picture + b"\0" * 1000)
    most = len(picture)
    assert run(kind="images", bad_rows="skip", check="whole", max_file_size=most).skipped_rows == 1
    for dry in (True, False):
        found = run(dry, kind="images", check="header")
        assert found.rows == 1 and not any("stay left out" in one for one in found.warnings)


def test_images_that_a_stricter_check_left_out_are_told_to_stay_so(run: Run) -> None:
    (run.source / "a.jpg").write_bytes(b"no image")
    (run.source / "b.png").write_bytes(pngs.header() + pngs.chunk(b"IDAT", zlib.compress(pngs.rows())) + pngs.chunk(b"IEND"))
    assert run(kind="images", bad_rows="skip").skipped_rows == 1
    for dry in (True, False):
        told = run(dry, kind="images", bad_rows="skip", check="none").warnings
        assert any(one.startswith("check='none' (--check none) is for what is new: images that an earlier run") for one in told)
    assert not any("check=" in one for one in run(kind="images", bad_rows="skip").warnings)


@pytest.mark.slow
@pytest.mark.parametrize("sampled", [0, 8])
@pytest.mark.parametrize("listed", [False, True])
def test_a_dry_run_says_what_a_file_is_that_cannot_be_packed(
    run: Run, monkeypatch: pytest.MonkeyPatch, listed: bool, sampled: int
) -> None:
    run.put(a="1")
    with open(run.source / "large.txt", "wb") as stream:
        stream.truncate(3 << 30)
    os.mkfifo(run.source / "pipe.txt")
    (run.source / "link.txt").symlink_to("nowhere.txt")
    source: Any = None
    if listed:
        source = pa.table({"path": [str(run.source / f"{name}.txt") for name in ("a", "large", "pipe", "link")]})
    # of a few files of unknown size it looks what they are
    monkeypatch.setattr(files, "_SAMPLE", sampled)
    found = run(dry=True, bad_rows="skip", source=source)
    told = "\n".join(found.warnings)
    assert "large.txt: it has 3,221,225,472 bytes; the most is 256,000,000" in told
    assert f"pipe.txt: it is {'a pipe, not a' if sampled else 'no plain'} file" in told
    assert f"link.txt: there is no such file{'' if sampled else ', or it cannot be looked at'}" in told
    assert (found.rows, found.shards) == (1, 1) and "nearly no file" not in told
    packed = run(bad_rows="skip", source=source)
    assert (packed.rows, packed.skipped_rows, packed.shards) == (1, 3, 1)


def test_the_error_about_a_full_disk_has_the_room_beside_the_shard(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.put(a="1")
    there: list[list[str]] = []

    def no_room(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def looked(path: str | None, number: int | None = None) -> str:
        there.append([one.name for one in (run.out / ".pack" / "0001").iterdir() if one.name.endswith(PARTIAL)])
        return "the disk is full"

    monkeypatch.setattr(shards, "_write_all", no_room)
    monkeypatch.setattr(foreign, "disk_full", looked)
    with pytest.raises(WriteError, match="the disk is full"):
        run()
    assert [len(names) for names in there] == [1]
    assert not [one for one in (run.out / ".pack").rglob(f"*{PARTIAL}")]


@pytest.mark.slow
def test_a_list_whose_columns_are_read_in_other_types_begins_anew(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.put(a="1", b="2")
    listed = run.source / "l.csv"
    listed.write_text("path,n\na.txt,1\nb.txt,2\n")
    _killed_before_it_is_published(run, monkeypatch, source=listed, paths="path")
    # the texts are equal to the numbers that are in the plan
    assert run(source=listed, paths="path", input_schema="path string, n string").rows == 2
    assert filejob.extra_of(State(str(run.out))) == pa.schema([("n", pa.string())])
