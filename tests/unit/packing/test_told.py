"""What somebody is told of an input, an option or an output that is not as it has to be."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import akrunner
from akrunner.packing import sealed
from akrunner.packing.rows import RowPacker

pytestmark = pytest.mark.slow


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


def _texts(folder: Path, *names: str) -> Path:
    for name in names or ("a/1.txt", "b/2.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


HARMS: dict[str, Callable[[Path], None]] = {
    "index.arrow is damaged": lambda part: os.truncate(part / "index.arrow", 400),
    "index.arrow is gone": lambda part: (part / "index.arrow").unlink(),
    "plan.json is damaged": lambda part: (part / "plan.json").write_text('{"a": 1}') and None,
    "plan.json is gone": lambda part: (part / "plan.json").unlink(),
    "plan.json  is gone": lambda part: shutil.rmtree(part),
}


@pytest.mark.parametrize("words", HARMS)
@pytest.mark.parametrize("kind", ["texts", "rows"])
def test_what_pack_keeps_and_is_damaged_is_told_and_packed_anew(tmp_path: Path, words: str, kind: str) -> None:
    source, out = _texts(tmp_path / "in"), tmp_path / "out"
    if kind == "rows":
        source = tmp_path / "t.csv"
        source.write_text("a\n1\n")
    akrunner.pack(source, out)
    HARMS[words](out / ".pack" / "0001")
    for dry_run in (True, False):
        with pytest.raises(akrunner.SinkError, match=f"0001/{words.replace('  ', ' ')}; bring it back, or .* overwrite=True"):
            akrunner.pack(source, out, dry_run=dry_run)
    assert akrunner.pack(source, out, overwrite=True).rows
    assert akrunner.pack(source, out).rows == 0


@pytest.mark.parametrize("harm", ["index.arrow is damaged", "plan.json is damaged"])
def test_what_was_begun_and_is_damaged_is_begun_anew(tmp_path: Path, harm: str) -> None:
    source, out = _texts(tmp_path / "in"), tmp_path / "out"
    (source / "a" / "3.txt").write_bytes(b"\xff")
    with pytest.raises(akrunner.ReadError):
        akrunner.pack(source, out)
    HARMS[harm](out / ".pack" / "0001")
    (source / "a" / "3.txt").write_text("good")
    assert akrunner.pack(source, out).rows == 3


@pytest.mark.parametrize("kind", ["texts", "rows"])
def test_no_changed_bit_of_what_is_kept_goes_unnoticed(tmp_path: Path, kind: str) -> None:
    source, out, rng = _texts(tmp_path / "in"), tmp_path / "out", random.Random(7)
    if kind == "rows":
        source = tmp_path / "t.csv"
        source.write_text("a\n1\n")
    akrunner.pack(source, out)
    for name in ("index.arrow", "plan.json"):
        path = out / ".pack" / "0001" / name
        whole = path.read_bytes()
        places = [rng.randrange(len(whole)) for _ in range(25)]
        # of the name of a file
        places += [at for at in (whole.find(b"a/1.txt"), whole.find(b"t.csv")) if at >= 0]
        for at in places:
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :])
            # a bit of the word "checksum" makes it look like a file of an earlier akrunner
            odd = rf"{name} (is damaged|has no checksum, .*); bring it back, or .* overwrite=True"
            with pytest.raises(akrunner.SinkError, match=odd):
                akrunner.pack(source, out)
        path.write_bytes(whole)
        assert akrunner.pack(source, out).warnings == []


def test_what_an_earlier_akrunner_has_packed_is_told(tmp_path: Path) -> None:
    source, out = _texts(tmp_path / "in"), tmp_path / "out"
    akrunner.pack(source, out)
    plan = out / ".pack" / "0001" / "plan.json"
    plan.write_text(json.dumps({key: one for key, one in json.loads(plan.read_text()).items() if key != "checksum"}))
    with pytest.raises(akrunner.SinkError, match="plan.json has no checksum, as an earlier akrunner .* overwrite=True"):
        akrunner.pack(source, out)


def test_a_shard_whose_record_is_damaged_is_written_again(tmp_path: Path) -> None:
    source, out = _texts(tmp_path / "in", *(f"a/{i}.txt" for i in range(40))), tmp_path / "out"
    (source / "a" / "40.txt").write_bytes(b"\xff")
    with pytest.raises(akrunner.ReadError):
        akrunner.pack(source, out, split="0.5,0.5")
    (record,) = (out / ".pack" / "0001").glob("*.tfrecord.json")
    record.write_bytes(record.read_bytes().replace(b'"rows": ', b'"rows": 9'))
    (source / "a" / "40.txt").write_text("good")
    assert akrunner.pack(source, out, split="0.5,0.5").total_rows == 41
    other = akrunner.pack(source, tmp_path / "other", split="0.5,0.5")
    assert akrunner.pack(source, out, split="0.5,0.5").splits == other.splits


DESCRIPTIONS: dict[str, Callable[[Path], object]] = {
    "gone": lambda path: path.unlink(),
    "cut short": lambda path: os.truncate(path, 300),
    "empty": lambda path: path.write_text(""),
    "other": lambda path: path.write_text("[1]"),
    "no words": lambda path: path.write_text("{}"),
    "another maker": lambda path: path.write_text(path.read_text().replace("akrunner pack", "akrunner pbck")),
    "another version": lambda path: path.write_text(path.read_text().replace('"version": 1', '"version": 3')),
    "another number": lambda path: path.write_text(path.read_text().replace('"rows": 2', '"rows": 6')),
}


@pytest.mark.parametrize("harm", DESCRIPTIONS)
def test_the_description_is_written_again_and_nothing_is_packed_twice(tmp_path: Path, harm: str) -> None:
    source, out = _texts(tmp_path / "in"), tmp_path / "out"
    akrunner.pack(source, out)
    path = out / "dataset.json"
    whole, shard = path.read_bytes(), (out / "all" / "00000.tfrecord").stat()
    DESCRIPTIONS[harm](path)
    harmed = path.read_bytes() if path.exists() else None
    what = "was gone" if harm == "gone" else "was damaged"
    dry = akrunner.pack(source, out, dry_run=True)
    assert dry.rows == 0 and any(f"dataset.json {what}; a run writes it again" in one for one in dry.warnings)
    assert (path.read_bytes() if path.exists() else None) == harmed, "a dry run writes nothing"
    done = akrunner.pack(source, out)
    assert done.rows == 0 and any(f"dataset.json {what}, and was written again" in one for one in done.warnings)
    assert path.read_bytes() == whole and (out / "all" / "00000.tfrecord").stat().st_mtime_ns == shard.st_mtime_ns
    assert akrunner.pack(source, out).warnings == []
    _texts(source, "a/3.txt")
    assert (akrunner.pack(source, out).rows, akrunner.pack(source, out).total_rows) == (1, 3)


@pytest.mark.parametrize("harm", ["gone", "cut short"])
def test_a_description_that_nothing_can_write_again_is_told(tmp_path: Path, harm: str) -> None:
    source, out = _texts(tmp_path / "in"), tmp_path / "out"
    akrunner.pack(source, out)
    (out / ".pack" / "dataset.json").unlink()
    (warning,) = akrunner.pack(source, out).warnings
    assert warning.endswith(".pack/dataset.json was gone, and was written again") and akrunner.pack(source, out).warnings == []
    os.truncate(out / ".pack" / "dataset.json", 100)
    (warning,) = akrunner.pack(source, out).warnings
    assert warning.endswith(".pack/dataset.json was damaged, and was written again")
    DESCRIPTIONS[harm](out / "dataset.json")
    os.truncate(out / ".pack" / "dataset.json", 100)
    what = "is gone" if harm == "gone" else "is damaged"
    for overwrite in (False, True):
        with pytest.raises(
            akrunner.SinkError, match=rf"dataset\.json {what}, and \.pack has nothing .* bring it back, or name another"
        ):
            akrunner.pack(source, out, overwrite=overwrite)


def test_what_pack_keeps_and_is_gone_as_a_whole_is_told_so(tmp_path: Path) -> None:
    source, out = _texts(tmp_path / "in"), tmp_path / "out"
    akrunner.pack(source, out)
    shutil.rmtree(out / ".pack")
    with pytest.raises(akrunner.SinkError, match=r"what pack keeps in .*/\.pack is gone, .* bring it back, or name another"):
        akrunner.pack(source, out)


def test_a_description_that_was_edited_is_packs_all_the_same(tmp_path: Path) -> None:
    source, out = _texts(tmp_path / "in"), tmp_path / "out"
    akrunner.pack(source, out)
    shutil.rmtree(out / ".pack")
    path = out / "dataset.json"
    path.write_text(path.read_text().replace('"a"', '"kitty"', 1))
    with pytest.raises(
        akrunner.SinkError, match=r"dataset\.json was edited \(its checksum .* bring that back, or pack into another directory"
    ):
        akrunner.pack(source, out)
    path.write_text("{")
    with pytest.raises(akrunner.SinkError, match=r"dataset\.json is damaged, or not pack's; name another"):
        akrunner.pack(source, out)
    path.write_text('{"made_by": "me"}')
    with pytest.raises(akrunner.SinkError, match=r"dataset\.json is not pack's; name another"):
        akrunner.pack(source, out)


def test_a_description_in_another_layout_is_written_again_as_readers_want_it(tmp_path: Path) -> None:
    source, out = _texts(tmp_path / "in"), tmp_path / "out"
    akrunner.pack(source, out)
    path = out / "dataset.json"
    whole = path.read_bytes()
    path.write_text(json.dumps(json.loads(whole)))
    (warning,) = akrunner.pack(source, out).warnings
    assert warning.endswith("dataset.json was edited, and was written again") and path.read_bytes() == whole


def test_a_description_that_was_edited_is_not_believed_alone(tmp_path: Path) -> None:
    source, out = _texts(tmp_path / "in"), tmp_path / "out"
    akrunner.pack(source, out)
    (out / ".pack" / "dataset.json").unlink()
    path = out / "dataset.json"
    path.write_text(path.read_text().replace('"a"', '"kitty"', 1))
    with pytest.raises(akrunner.SinkError, match=r"dataset\.json is damaged, and \.pack has nothing"):
        akrunner.pack(source, out)


@pytest.mark.parametrize("left", [None, "", "{}", '["b", "a"]', '["a", "c"]'])
def test_the_names_of_classes_are_written_again(tmp_path: Path, left: str | None) -> None:
    source, out = _texts(tmp_path / "in"), tmp_path / "out"
    akrunner.pack(source, out)
    (out / "labels.json").unlink() if left is None else (out / "labels.json").write_text(left)
    done = akrunner.pack(source, out)
    assert done.rows == 0 and any("labels.json " in one and "written again" in one for one in done.warnings)
    assert json.loads((out / "labels.json").read_text()) == ["a", "b"]
    assert akrunner.pack(source, out).warnings == []

    about = json.loads((out / "dataset.json").read_text())
    (out / "dataset.json").write_text(json.dumps({**about, "labels": None}))
    (out / ".pack" / "dataset.json").unlink()
    (out / "labels.json").unlink()
    with pytest.raises(akrunner.SinkError, match=r"dataset\.json is damaged, and \.pack has nothing"):
        akrunner.pack(source, out)


def test_nothing_is_published_where_every_file_is_broken(tmp_path: Path) -> None:
    source, out = _texts(tmp_path / "in"), tmp_path / "out"
    for path in source.rglob("*.txt"):
        path.write_bytes(b"\xff")
    for bad_rows in ("skip", tmp_path / "broken"):
        with pytest.raises(
            akrunner.ReadError, match=r"all of 2 texts are broken: nothing was packed(?s:.*)a/1\.txt: it is no UTF-8"
        ) as caught:
            akrunner.pack(source, out, bad_rows=bad_rows)
        assert [path for path, _ in sorted(caught.value.broken)] == ["a/1.txt", "b/2.txt"] and not out.exists()
    assert len((tmp_path / "broken" / "bad_rows.csv").read_text().splitlines()) == 3
    (source / "a" / "1.txt").write_text("good")
    assert akrunner.pack(source, out, bad_rows="skip").rows == 1
    before = (out / "dataset.json").read_bytes()
    (source / "a" / "1.txt").write_bytes(b"\xff")
    with pytest.raises(akrunner.ReadError, match="all of 2 texts are broken"):
        akrunner.pack(source, out, bad_rows="skip", overwrite=True)
    assert (out / "dataset.json").read_bytes() == before


def test_what_may_be_a_list_of_images_and_a_table_is_asked_for(tmp_path: Path) -> None:
    lines = "000.jpg,1\n001.JPG?v=2,0\n002,1\n"
    (tmp_path / "t.csv").write_text("path,label\n" + lines)
    with pytest.raises(akrunner.ConfigError, match=r"2 of 3 values of column 'path' .* \(--paths path\) .* \(--kind rows\)"):
        akrunner.pack(tmp_path / "t.csv", tmp_path / "out")
    # who has said what is meant is not asked, nor is a later run
    assert akrunner.pack(tmp_path / "t.csv", tmp_path / "out", kind="rows").rows == 3
    assert akrunner.pack(tmp_path / "t.csv", tmp_path / "out").rows == 0
    with pytest.raises(akrunner.ReadError, match="3 broken images"):
        akrunner.pack(tmp_path / "t.csv", tmp_path / "images", kind="images")

    # of a column whose name says nothing a word is enough, also where an option is refused
    (tmp_path / "t.csv").write_text("picture,label\n" + lines.replace("?v=2", ""))
    with pytest.raises(akrunner.ConfigError, match="bad_rows=.* the input is rows.* --paths picture packs"):
        akrunner.pack(tmp_path / "t.csv", tmp_path / "other", bad_rows="skip")
    (said,) = akrunner.pack(tmp_path / "t.csv", tmp_path / "other").warnings
    assert "--paths picture packs the files they name" in said
    # pages are no images
    (tmp_path / "t.csv").write_text("url,text\nhttp://a/b.html,x\nhttp://a/c.html,y\n")
    assert akrunner.pack(tmp_path / "t.csv", tmp_path / "pages").rows == 2


def test_a_dry_run_counts_what_it_knows_to_be_broken_and_says_what_it_does_not_know(tmp_path: Path) -> None:
    source = _texts(tmp_path / "in", *(f"{i}.txt" for i in range(40)))
    (source / "list.csv").write_text("path,label\n" + "".join(f"{i}.txt,x\n" for i in range(50)) + "1.txt,\n")
    (source / "2.txt").write_bytes(b"")
    given = {"paths": "path", "kind": "texts", "split": "0.5,0.5"}
    dry = akrunner.pack(source / "list.csv", tmp_path / "out", dry_run=True, **given)
    said = dry.warnings[1]
    assert said.startswith("12 of 51 files would not be packed (") and "(--bad-rows fail) nothing at all" in said
    assert "a dry run looks into no other file but 32 to learn their sizes: what else is broken" in said
    done = akrunner.pack(source / "list.csv", tmp_path / "out", bad_rows="skip", **given)
    assert (dry.rows, dry.splits) == (done.rows, done.splits) == (39, done.splits)


def test_broken_rows_of_a_list_are_told_with_their_rows_and_blanks_can_be_seen(tmp_path: Path) -> None:
    source = _texts(tmp_path / "in", "0.txt")
    (source / "list.csv").write_text('path,n\n0.txt,1\n,2\n" 4.txt",3\n"4.txt ",4\n" http://nowhere.invalid/x.txt",5\n')
    told = {
        "(no path)": "its path is empty (row 1 of the list)",
        " 4.txt": "there is no such file (row 2 of the list, where a blank stands before the path)",
        "4.txt ": "there is no such file (row 3 of the list, where a blank stands behind the path)",
        " http://nowhere.invalid/x.txt": "it is no URL (row 4 of the list, where a blank stands before the path)",
    }
    given = {"paths": "path", "kind": "texts"}
    with pytest.raises(akrunner.ReadError) as caught:
        akrunner.pack(source / "list.csv", tmp_path / "out", **given)
    assert dict(caught.value.broken) == told and f"\n  ' 4.txt': {told[' 4.txt']}" in str(caught.value)
    bad_rows = tmp_path / "broken"
    assert dict(akrunner.pack(source / "list.csv", tmp_path / "out", bad_rows=bad_rows, **given).skipped) == told

    # of a later list the rows are those of that one, and nothing is new
    (source / "list.csv").write_text('path,n\n,2\n0.txt,1\n" 4.txt",3\n')
    done = akrunner.pack(source / "list.csv", tmp_path / "out", bad_rows=bad_rows, **given)
    assert (done.rows, done.skipped_rows, done.skipped_before) == (0, 2, 2)
    assert dict(done.skipped)["(no path)"] == "its path is empty (row 0 of the list)"
    assert "row 1" not in (bad_rows / "bad_rows.csv").read_text()


def test_paths_are_as_the_list_has_them_and_splits_as_the_files_are_called(tmp_path: Path) -> None:
    source = _texts(tmp_path / "in", "sub/x.txt", *(f"{i}.txt" for i in range(20)))
    spelt = {
        "plain": [f"{i}.txt" for i in range(20)],
        "odd": [(f"./{i}.txt", str(source / f"{i}.txt"), f"sub/../{i}.txt", f".//{i}.txt")[i % 4] for i in range(20)],
    }
    splits = {}
    for name, paths in spelt.items():
        (source / "list.csv").write_text("path\n" + "\n".join(paths))
        akrunner.pack(source / "list.csv", tmp_path / name, kind="texts", format="parquet", split="0.5,0.5")
        found = {
            split: pq.read_table(tmp_path / name / split).select(["path", "text"]).to_pylist() for split in ("train", "test")
        }
        assert sorted(row["path"] for rows in found.values() for row in rows) == sorted(paths)
        splits[name] = {row["text"]: split for split, rows in found.items() for row in rows}
    assert splits["plain"] == splits["odd"]
    # spelt otherwise, they are not new
    assert akrunner.pack(source / "list.csv", tmp_path / "plain", kind="texts", format="parquet", split="0.5,0.5").rows == 0


def test_what_pack_has_written_is_packed_again_from_what_it_was_made_of(tmp_path: Path) -> None:
    out = tmp_path / "out"
    akrunner.pack(_texts(tmp_path / "in", "a/1.txt", "b/2.txt"), out)
    for given in ({"kind": "texts", "paths": "path"}, {}):
        with pytest.raises(akrunner.SourceError, match=r"out/all is what pack has written.* \(--kind rows --label none\)"):
            akrunner.pack(out / "all", tmp_path / "again", format="parquet", **given)
    assert akrunner.pack(out / "all", tmp_path / "again", format="parquet", kind="rows", label="none").rows == 2
    (tmp_path / "t.csv").write_text("a,label,label_name\n1,x,y\n")
    with pytest.raises(akrunner.SourceError, match="'label_name' has the name of one that pack makes of 'label'"):
        akrunner.pack(tmp_path / "t.csv", tmp_path / "other")


def test_a_column_of_numbers_has_no_paths(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("score,path\n1,a.txt\n")
    with pytest.raises(
        akrunner.ConfigError, match=r"paths \(--paths\): column 'score' is int64, .* there is path\); .*CAST\(score"
    ):
        akrunner.pack(tmp_path / "t.csv", tmp_path / "out", paths="score")


def test_nothing_to_pack_is_told_in_packs_own_words(tmp_path: Path) -> None:
    with pytest.raises(akrunner.SourceError, match=r"nothing is given: akrunner\.pack\(source, output\) takes a directory"):
        akrunner.pack(None, tmp_path / "out")


def test_files_that_are_nearly_as_large_as_a_shard_are_not_cut(tmp_path: Path) -> None:
    """As docs/pack.md says: of ten of 100 MB, eight files."""
    source = tmp_path / "in"
    source.mkdir()
    for i in range(10):
        (source / f"{i}.txt").write_bytes(b"x" * 100_000)
    akrunner.pack(source, tmp_path / "out", shard_size=128_000)
    (split,) = json.loads((tmp_path / "out" / "dataset.json").read_text())["splits"].values()
    assert sorted(one["rows"] for one in split["files"]) == [1] * 6 + [2] * 2


@pytest.mark.parametrize("form", ["tfrecord", "arrow"])
def test_bytes_are_those_of_the_output_also_of_a_dry_run(tmp_path: Path, form: Literal["tfrecord", "arrow"]) -> None:
    source, out = _texts(tmp_path / "in"), tmp_path / "out"
    for path in source.rglob("*.txt"):
        path.write_bytes(b"x" * 100_000)
    would = akrunner.pack(source, out, format=form, dry_run=True)
    done = akrunner.pack(source, out, format=form)
    there = [path.stat().st_size for path in (out / "all").iterdir()]
    assert done.bytes == sum(there) and abs(would.bytes - done.bytes) < 3000
    assert (
        akrunner.pack(source, out, format=form, dry_run=True).bytes
        == akrunner.pack(source, out, format=form).bytes
        == done.bytes
    )
    _texts(source, "a/3.txt")
    (source / "a" / "3.txt").write_bytes(b"x" * 100_000)
    assert (
        abs(akrunner.pack(source, out, format=form, dry_run=True).bytes - akrunner.pack(source, out, format=form).bytes) < 3000
    )
    assert abs(akrunner.pack(source, out, format=form, dry_run=True, overwrite=True).bytes - 300_000) < 3000


def test_a_path_that_is_empty_is_told_with_its_row(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "l.csv").write_text('path,x\na.txt,1\n"",2\n"  ",3\nfile://,4\nb.txt,5\n')
    done = akrunner.pack(tmp_path / "l.csv", tmp_path / "out", kind="texts", bad_rows="skip")
    assert done.rows == 1 and sorted(done.skipped) == [
        ("  ", "there is no such file (row 2 of the list, where the path is nothing but blanks)"),
        ("(no path)", "its path is empty (row 1 of the list)"),
        ("(no path)", "its path is empty (row 3 of the list)"),
        ("b.txt", "there is no such file (row 4 of the list)"),
    ]
    # also where paths are below a URL, and before anything is read
    (tmp_path / "l.csv").write_text('path,x\n"",2\ns3://,3\n')
    for dry_run in (True, False):
        with contextlib.nullcontext() if dry_run else pytest.raises(akrunner.ReadError) as caught:
            done = akrunner.pack(
                tmp_path / "l.csv",
                tmp_path / "o",
                kind="texts",
                paths="path",
                paths_in="http://127.0.0.1:9/d",
                bad_rows="skip",
                dry_run=dry_run,
            )
        said = str(caught.value) if caught is not None else " ".join(done.warnings)
        assert "(no path): its path is empty (row 0 of the list)" in said


def test_a_text_without_a_character_is_broken_with_and_without_a_byte_order_mark(tmp_path: Path) -> None:
    source = _texts(tmp_path / "in")
    (source / "a" / "3.txt").write_bytes(b"")
    (source / "a" / "4.txt").write_bytes(b"\xef\xbb\xbf")
    (source / "a" / "5.txt").write_bytes(b"\xef\xbb\xbfx")
    (source / "a" / "6.txt").write_bytes(b"\n")
    done = akrunner.pack(source, tmp_path / "out", bad_rows="skip")
    assert sorted(done.skipped) == [("a/3.txt", "it is empty"), ("a/4.txt", "it is empty, but for a byte order mark")]
    assert done.rows == 4


def test_old_lines_are_told_by_pack(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a\rb\rc\r")
    done = akrunner.pack(tmp_path / "a.txt", tmp_path / "out")
    assert done.rows == 1 and any("CR alone" in one for one in done.warnings)


@pytest.mark.parametrize(
    ("table", "given", "words"),
    [
        (
            {"a": ["x"], "b": [1]},
            {},
            r"of its columns \('a', 'b'\) none has a name of such a column \(path, .*paths= \(--paths\) names",
        ),
        (
            {"path": ["x.txt"], "b": [1]},
            {},
            "'path' has a name of such a column, and values that do not look like images.* kind='texts'",
        ),
        ({"path": ["x.jpg"]}, {"kind": "rows"}, "packs the table itself"),
    ],
)
def test_where_paths_in_is_for_nothing_the_columns_are_named(
    tmp_path: Path, table: dict[str, Any], given: dict[str, Any], words: str
) -> None:
    with pytest.raises(akrunner.ConfigError, match=f"paths_in= .*{words}"):
        akrunner.pack(pa.table(table), tmp_path / "out", paths_in=tmp_path, **given)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            pa.array([1, 2], pa.date32()),
            r"column 'label' is date32\[day\], and packed as it is: classes are .*CAST\(label AS VARCHAR\)",
        ),
        (pa.array([b"a", b"b"]), "column 'label' is binary"),
        (pa.array([1.0, 0.0], pa.float32()), "column 'label' is float"),
        (pa.array([[1], [2]]), "column 'label' is list"),
        (pa.array([1, 2]), None),
        (pa.array(["a", "b"]), None),
    ],
)
def test_a_column_of_classes_of_which_none_are_made_is_told(tmp_path: Path, values: pa.Array, words: str | None) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    pq.write_table(pa.table({"path": ["a.txt", "b.txt"], "label": values}), tmp_path / "t.parquet")
    for number, kind in enumerate(("rows", "texts")):
        done = akrunner.pack(tmp_path / "t.parquet", tmp_path / f"out{number}", kind=kind)  # type: ignore[arg-type]
        told = [one for one in done.warnings if "column 'label'" in one]
        assert bool(done.labels) == (words is None) and len(told) == (words is not None)
        assert all(re.search(str(words), one) for one in told)
        assert (
            akrunner.pack(tmp_path / "t.parquet", tmp_path / f"out{number}", kind=kind, label="none", overwrite=True).labels
            == []
        )  # type: ignore[arg-type]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("what", ["first", "new files", "anew"])
def test_stopped_between_the_copy_of_the_description_and_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, again: bool
) -> None:
    source, out, other = _texts(tmp_path / "in"), tmp_path / "out", tmp_path / "other"
    if what != "first":
        akrunner.pack(source, out)
        _texts(source, "a/3.txt")
    overwrite = what == "anew"

    def stopped(folder: str, name: str, value: Any, public: bool = False) -> None:
        if public:
            raise KeyboardInterrupt
        written(folder, name, value)

    written = sealed.write
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sealed, "write", stopped)
        akrunner.pack(source, out, overwrite=overwrite)
    akrunner.pack(source, out, overwrite=overwrite and again)
    expected = akrunner.pack(source, other)
    done = akrunner.pack(source, out)
    assert (done.rows, done.total_rows, done.splits, done.warnings) == (0, expected.total_rows, expected.splits, [])
    assert (out / "all").is_dir() and len(list((out / "all").iterdir())) == done.shards
    assert json.loads((out / "dataset.json").read_text())["splits"]["all"]["rows"] == expected.total_rows


@pytest.mark.parametrize("kind", [None, "rows"])
def test_two_columns_of_one_name_are_told(tmp_path: Path, kind: Literal["rows"] | None) -> None:
    pq.write_table(pa.table([pa.array(["x"]), pa.array(["y"])], names=["a", "a"]), tmp_path / "t.parquet")
    with pytest.raises(akrunner.SourceError, match=r"two columns of .*t\.parquet are called 'a'; rename one"):
        akrunner.pack(tmp_path / "t.parquet", tmp_path / "out", kind=kind)
    with pytest.raises(akrunner.SourceError, match=r"two columns of .*t\.parquet are called 'a'; rename one"):
        akrunner.plan("def main(task_config): pass", tmp_path / "t.parquet")


def test_folders_of_classes_one_level_deeper_are_told_below_several_folders(tmp_path: Path) -> None:
    source = _texts(tmp_path / "in", *(f"{a}/{b}/1.txt" for a in "xy" for b in ("cat", "dog")))
    words = r"first folders are the classes \(x, y\), and each .* same folders \(cat, dog\): .*/in/x .*split='folders'"
    for dry_run in (True, False):
        (told,) = [one for one in akrunner.pack(source, tmp_path / "out", dry_run=dry_run).warnings if "same folders" in one]
        assert re.search(words, told)
    assert akrunner.pack(source, tmp_path / "splits", split="folders").warnings == []
    # folders of a class that have other names, or files beside them, say nothing of classes
    for name in ("x/0.txt", "x/owl/1.txt"):
        other = _texts(tmp_path / name.replace("/", "-"), *(f"{a}/{b}/1.txt" for a in "xy" for b in ("cat", "dog")), name)
        assert akrunner.pack(other, tmp_path / f"out-{other.name}").warnings == []
    one = _texts(tmp_path / "one", "x/cat/1.txt", "y/cat/1.txt")
    assert akrunner.pack(one, tmp_path / "out-one").warnings == []


@pytest.mark.parametrize("label", [None, "none"])
def test_a_file_beside_the_folders_of_splits_is_named_at_once(tmp_path: Path, label: str | None) -> None:
    source = _texts(tmp_path / "in", "train/a/1.txt", "test/a/2.txt", "train/3.txt", "stray.txt")
    with pytest.raises(
        akrunner.SourceError, match=r"1 file lies beside the folders of splits in .*in \(stray\.txt\): move it"
    ) as caught:
        akrunner.pack(source, tmp_path / "out", split="folders", label=label)
    assert "label=" not in str(caught.value)
    (source / "stray.txt").unlink()
    if label is None:
        with pytest.raises(akrunner.SourceError, match=r"beside the folders of classes .*\(train/3\.txt\).*label='none'"):
            akrunner.pack(source, tmp_path / "out", split="folders")
    assert akrunner.pack(source, tmp_path / "out", split="folders", label="none").splits == {"test": 1, "train": 2}


def test_folders_behind_a_url_are_splits_and_classes_as_on_the_disk(tmp_path: Path) -> None:
    files = fsspec.filesystem("memory")
    for name in ("train/a/1", "train/b/2", "test/a/3", "test/b/4"):
        files.pipe(f"/{tmp_path.name}/{name}.txt", b"x")
    try:
        done = akrunner.pack(f"memory://{tmp_path.name}", tmp_path / "out", split="folders")
        assert (done.splits, done.labels) == ({"test": 2, "train": 2}, ["a", "b"])
        with pytest.raises(akrunner.SourceError, match="are splits by their names"):
            akrunner.pack(f"memory://{tmp_path.name}", tmp_path / "other")
    finally:
        files.rm(f"/{tmp_path.name}", recursive=True)


@pytest.mark.parametrize("kind", ["texts", "files", "images"])
def test_lines_of_text_files_are_not_of_a_kind_of_files(tmp_path: Path, kind: Any) -> None:
    source = _texts(tmp_path / "in", "s.txt", "l.txt")
    given = [source / "s.txt", source / "l.txt"]
    with pytest.raises(
        akrunner.ConfigError, match=rf"kind='{kind}' .* takes a directory.*row a line of .*s\.txt and .*l\.txt .*rows"
    ):
        akrunner.pack(given, tmp_path / "out", kind=kind)


@pytest.mark.parametrize("kind", [None, "texts", "files"])
def test_several_directories_are_told_to_be_put_below_one(tmp_path: Path, kind: Any) -> None:
    given = [_texts(tmp_path / "a"), _texts(tmp_path / "b")]
    with pytest.raises(akrunner.SourceError, match=r"/a is a directory of .* one at a time.* put all below one directory"):
        akrunner.pack(given, tmp_path / "out", kind=kind)
    for one in given:
        shutil.rmtree(one)
        one.mkdir()
        (one / "t.csv").write_text("n\n1\n")
    assert akrunner.pack(given, tmp_path / "out").rows == 2


def test_names_of_columns_that_pack_makes_are_told_all_at_once(tmp_path: Path) -> None:
    _texts(tmp_path, "a.txt")
    (tmp_path / "list.csv").write_text("file,label,label_name,text,path,text_1\na.txt,x,1,2,3,4\n")
    for select, names in (
        ("* EXCLUDE (label_name, text, path)", {"text_1"}),
        (
            "* RENAME (label_name AS label_name_1, text AS text_2, path AS path_1)",
            {"label_name_1", "text_2", "path_1", "text_1"},
        ),
    ):
        given: dict[str, Any] = {"kind": "texts", "paths": "file"}
        with pytest.raises(akrunner.SourceError, match=r"'label_name', 'text', 'path' have names") as caught:
            akrunner.pack(tmp_path / "list.csv", tmp_path / "out", **given)
        assert f"select={select!r}" in str(caught.value)
        done = akrunner.pack(tmp_path / "list.csv", tmp_path / select[2:4], **given, select=select)
        columns = {one["name"] for one in json.loads((Path(done.path) / "dataset.json").read_text())["columns"]}
        assert columns == {"text", "path", "label", "label_name", *names}


def test_an_output_below_a_file_is_told_so(tmp_path: Path) -> None:
    source = _texts(tmp_path / "in")
    (tmp_path / "file.x").write_text("x")
    with pytest.raises(akrunner.SinkError, match=r"/file\.x is a file, so that there can be no .*/file\.x/y/z; name another"):
        akrunner.pack(source, tmp_path / "file.x" / "y" / "z")
    with pytest.raises(akrunner.ConfigError, match=r"--bad-rows.*/file\.x is a file, so that there can be no .*/file\.x/y"):
        akrunner.pack(source, tmp_path / "out", bad_rows=tmp_path / "file.x" / "y")


def _list(folder: Path, *rows: str) -> Path:
    for number in (1, 2, 3):
        (folder / f"{number}.txt").write_text(str(number))
    (folder / "list.csv").write_text("\n".join(["path,label", *rows, ""]))
    return folder / "list.csv"


def test_classes_that_look_the_same_are_told_and_not_merged(tmp_path: Path) -> None:
    source = _list(tmp_path, "1.txt, cat", "2.txt,Cat", "3.txt,cat")
    for dry_run in (True, False):
        done = akrunner.pack(source, tmp_path / "out", kind="texts", dry_run=dry_run)
        assert done.labels == [" cat", "Cat", "cat"]
        assert [one for one in done.warnings if "only by blanks, case or" in one and "' cat', 'Cat', 'cat'" in one]
    (tmp_path / "t.csv").write_text("n,label\n1,cat\n2,cat \n3,dog\n")
    (told,) = akrunner.pack(tmp_path / "t.csv", tmp_path / "rows").warnings
    assert "own: 'cat', 'cat ';" in told


def test_a_file_that_a_list_names_with_two_classes_is_told(tmp_path: Path) -> None:
    source = _list(tmp_path, "1.txt,cat", "1.txt,dog", "2.txt,cat", "./2.txt,cat", "3.txt,owl", "./1.txt,owl", ",cat", ",dog")
    for dry_run in (True, False):
        done = akrunner.pack(source, tmp_path / "out", kind="texts", dry_run=dry_run, bad_rows="skip")
        (told,) = [one for one in done.warnings if "different classes" in one]
        assert told.startswith("1 file has different classes") and told.endswith("(1.txt: cat and dog and owl)")
    source = _list(tmp_path, "1.txt,cat", "./1.txt,cat")
    assert not [one for one in akrunner.pack(source, tmp_path / "same", kind="texts").warnings if "classes" in one]


@pytest.mark.parametrize("harm", ["gone", "another bit", "cut short", "its record"])
def test_a_shard_that_is_made_again_is_told(tmp_path: Path, harm: str) -> None:
    source, out = _texts(tmp_path / "in", *(f"a/{i}.txt" for i in range(40))), tmp_path / "out"
    (source / "a" / "40.txt").write_bytes(b"\xff")
    with pytest.raises(akrunner.ReadError):
        akrunner.pack(source, out, split="0.5,0.5")
    (shard,) = (out / ".pack" / "0001").glob("*.tfrecord")
    data = shard.read_bytes()
    if harm == "gone":
        shard.unlink()
    elif harm == "its record":
        record = shard.with_name(shard.name + ".json")
        record.write_bytes(record.read_bytes().replace(b'"rows": ', b'"rows": 9'))
    else:
        shard.write_bytes(data[:-1] + (bytes([data[-1] ^ 1]) if harm == "another bit" else b""))
    done = akrunner.pack(source, out, split="0.5,0.5", bad_rows="skip")
    name = shard.name.replace("-", "/", 1)
    told = f"1 file that an earlier run had finished was gone or damaged, and was made again: {name}"
    assert [one for one in done.warnings if "made again" in one] == [told]
    assert (out / name).read_bytes() == data
    assert akrunner.pack(source, out, split="0.5,0.5", bad_rows="skip").warnings == []


def test_what_was_begun_and_is_damaged_is_told_to_be_packed_from_its_beginning(tmp_path: Path) -> None:
    source, out = _texts(tmp_path / "in", "a/1.txt", "a/2.txt"), tmp_path / "out"
    (source / "a" / "3.txt").write_bytes(b"\xff")
    with pytest.raises(akrunner.ReadError):
        akrunner.pack(source, out)
    os.truncate(out / ".pack" / "0001" / "index.arrow", 400)
    (source / "a" / "3.txt").write_text("good")
    (told,) = akrunner.pack(source, out).warnings
    assert re.search(r"packed from its beginning: .*index\.arrow is damaged", told)


@pytest.mark.parametrize("harm", ["shard", "buckets"])
def test_of_tables_it_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str) -> None:
    out = tmp_path / "out"
    (tmp_path / "t.csv").write_text("\n".join(["n", *map(str, range(400)), ""]))
    done, count = RowPacker.done, 0

    def stopped(packer: RowPacker, *given: Any) -> None:
        nonlocal count
        count += 1
        if count > 1:
            raise KeyboardInterrupt
        done(packer, *given)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(RowPacker, "done", stopped)
        akrunner.pack(tmp_path / "t.csv", out, shard_size=2000)
    part = out / ".pack" / "0001"
    (shard,) = part.glob("*.tfrecord")
    if harm == "shard":
        shard.unlink()
        words = "1 file that an earlier run had finished was gone or damaged, and was made again: all/00000.tfrecord"
    else:
        for one in (part / "buckets").iterdir():
            os.truncate(one, one.stat().st_size - 1)
        words = "packed from its beginning: rows in .*buckets are gone or damaged"
    (told,) = akrunner.pack(tmp_path / "t.csv", out, shard_size=2000).warnings
    assert re.search(words, told)


def test_which_column_the_classes_are_from_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from akrunner.cli import main

    for name, said in (("class", "; label and label_name stand in place of the column class"), ("label", "")):
        (tmp_path / f"{name}.csv").write_text(f"n,{name}\n1,cat\n2,dog\n")
        assert akrunner.pack(tmp_path / f"{name}.csv", tmp_path / f"{name}_api").label == name
        assert main.main(["pack", str(tmp_path / f"{name}.csv"), str(tmp_path / name)]) == 0
        assert f"classes: 0 cat, 1 dog (labels.json){said}\n" in capsys.readouterr().out
        assert main.main(["pack", str(tmp_path / f"{name}.csv"), str(tmp_path / "other"), "--dry-run"]) == 0
        assert f"classes: of the column {name}\n" in capsys.readouterr().out
    assert akrunner.pack(_list(tmp_path, "1.txt,a"), tmp_path / "none", kind="texts", label="none").label == ""


def test_a_query_over_a_list_counts_in_a_later_run_too(tmp_path: Path) -> None:
    source = _texts(tmp_path / "in", *(f"{i}.txt" for i in range(4)))
    query = "SELECT * FROM input WHERE keep = 1"
    (source / "list.csv").write_text("path,zip,keep\n0.txt,01234,1\n1.txt,01235,0\n")
    given = {"kind": "texts", "format": "parquet", "select": query}
    assert akrunner.pack(source / "list.csv", tmp_path / "out", **given).rows == 1
    # zip was text, and looks like numbers now
    (source / "list.csv").write_text("path,zip,keep\n2.txt,1234,1\n3.txt,1235,0\n")
    with pytest.raises(akrunner.SinkError, match="there 'zip' is string, and now 'zip' is bigint; input_schema= and select="):
        akrunner.pack(source / "list.csv", tmp_path / "out", **given)
    typed = {**given, "input_schema": "path string, zip string, keep bigint"}
    assert akrunner.pack(source / "list.csv", tmp_path / "out", **typed).rows == 1


@pytest.mark.parametrize("times", [1, 2, 3])
def test_exact_shares_are_those_of_files_also_if_a_list_names_them_several_times(tmp_path: Path, times: int) -> None:
    source = _texts(tmp_path / "in", *(f"{i}.txt" for i in range(40)))
    (source / "list.csv").write_text("\n".join(["path", *[f"{i}.txt" for _ in range(times) for i in range(40)], ""]))
    given: Any = {"kind": "texts", "split": {"a": 0.5, "b": 0.25, "c": 0.25}, "split_by": "exact"}
    assert akrunner.pack(source / "list.csv", tmp_path / "out", **given).splits == {
        "a": 20 * times,
        "b": 10 * times,
        "c": 10 * times,
    }
