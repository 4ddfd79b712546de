"""`akrunner pack`: what is packed is all there, once, in its split; and whatever stops it, the next run goes on."""

from __future__ import annotations

import contextlib
import csv
import datetime
import decimal
import errno
import functools
import hashlib
import http.server
import importlib.util
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from PIL import Image

import akrunner
from akrunner.codec import read_examples
from akrunner.io.sources import open_source
from akrunner.packing import dealing, pictures
from akrunner.packing import shards as shards_module
from akrunner.packing import state as state_module
from tests import hosts, pngs
from tests.conftest import ENVS, NOT_RUN

pytestmark = [pytest.mark.usefixtures("leaves_nothing"), pytest.mark.slow]


def picture(number: int, form: str = "JPEG", size: Any = (20, 16), mode: str = "RGB", **options: Any) -> bytes:
    image = Image.new("RGB", size, (number * 37 % 256, number * 91 % 256, number % 256)).convert(mode)
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def photos(folder: Path, per_class: int = 10, classes: Any = ("cat", "dog", "owl"), first: int = 0) -> Path:
    for number, name in enumerate(classes):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(first, first + per_class):
            (folder / name / f"{i}.jpg").write_bytes(picture(number * 1000 + i))
    return folder


def rows(path: Any) -> pa.Table:
    """What a verb reads with nothing but the path."""
    source = open_source(path, read_examples=read_examples)
    return pa.Table.from_batches(source.batches(), source.schema)


def everything(out: Path) -> dict[str, dict[str, str]]:
    """split -> path -> class, of all rows."""
    splits = json.loads((out / "dataset.json").read_text())["splits"]
    found: dict[str, dict[str, str]] = {}
    for name, split in splits.items():
        table = rows(out / name) if split["rows"] else None
        found[name] = dict(zip(table["path"].to_pylist(), table["label_name"].to_pylist())) if table is not None else {}
        assert len(found[name]) == split["rows"]
    return found


def digests(out: Path) -> dict[str, str]:
    """Of all that a reader sees."""
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.rglob("*"))
        if path.is_file() and ".pack" not in path.parts
    }


def command(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "akrunner", "pack", *map(str, arguments)]
    # limits are set in a process of its own
    start: Any = subprocess.run if "preexec_fn" in options else hosts.run
    done: subprocess.CompletedProcess[str] = start(words, capture_output=True, text=True, timeout=120, **options)
    return done


@pytest.mark.parametrize("form", ["tfrecord", "parquet", "arrow"])
def test_a_folder_for_each_class(tmp_path: Path, form: str) -> None:
    source, out = photos(tmp_path / "in", 10), tmp_path / "out"
    done = akrunner.pack(source, out, split="0.8,0.1,0.1", split_by="exact", seed=1, format=form, shard_size="4kB")
    assert done.splits == {"train": 24, "validation": 3, "test": 3} and done.labels == ["cat", "dog", "owl"]
    assert json.loads((out / "labels.json").read_text()) == done.labels
    found = everything(out)
    every = {path: name for split in found.values() for path, name in split.items()}
    assert every == {f"{name}/{i}.jpg": name for name in done.labels for i in range(10)}
    for split in found.values():
        counts = [list(split.values()).count(name) for name in done.labels]
        assert len(set(counts)) == 1, "every class has its share"
    train = rows(out / "train")
    assert [done.labels[number] for number in train["label"].to_pylist()] == train["label_name"].to_pylist()
    for row in train.to_pylist():
        assert row["image"] == (source / row["path"]).read_bytes(), "encoded bytes stay as they are"
        assert (row["height"], row["width"]) == (16, 20)
    assert train["label"].to_pylist() != sorted(train["label"].to_pylist()), "shuffled"
    sizes = [path.stat().st_size for path in (out / "train").iterdir()]
    assert len(sizes) > 2 and max(sizes) < 1.5 * min(sizes), "shards are even"


def test_the_same_seed_gives_the_same_files_and_another_seed_another_order(tmp_path: Path) -> None:
    source = photos(tmp_path / "in")
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        akrunner.pack(source, tmp_path / name, seed=seed)
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    assert rows(tmp_path / "a")["path"].to_pylist() != rows(tmp_path / "c")["path"].to_pylist()


@pytest.mark.parametrize("by", ["name", "exact"])
def test_new_files_alone_are_packed_and_none_moves_to_another_split(tmp_path: Path, by: str) -> None:
    source, out = photos(tmp_path / "in", 10), tmp_path / "out"
    akrunner.pack(source, out, split="0.8,0.1,0.1", split_by=by)
    before, files = everything(out), digests(out)
    assert akrunner.pack(source, out, split="0.8,0.1,0.1", split_by=by).rows == 0
    photos(source, 5, ("ant", "dog"), first=10)
    done = akrunner.pack(source, out, split="0.8,0.1,0.1", split_by=by)
    assert done.rows == 10
    # numbers that were given stay as they are
    assert done.labels == ["cat", "dog", "owl", "ant"]
    after = everything(out)
    for split, paths in before.items():
        assert paths.items() <= after[split].items()
    assert sum(map(len, after.values())) == 40
    assert {name: one for name, one in digests(out).items() if name in files and name.endswith("tfrecord")} == {
        name: one for name, one in files.items() if name.endswith("tfrecord")
    }
    dogs = [sum(name == "dog" for name in after[split].values()) for split in ("train", "validation", "test")]
    assert min(dogs) > 0 if by == "name" else dogs in ([12, 2, 1], [12, 1, 2])


def test_a_file_is_in_the_same_split_wherever_it_is_packed(tmp_path: Path) -> None:
    source = photos(tmp_path / "in", 20)
    akrunner.pack(source, tmp_path / "few", split="0.5,0.5")
    photos(source, 20, first=20)
    akrunner.pack(source, tmp_path / "many", split="0.5,0.5")
    few, many = everything(tmp_path / "few"), everything(tmp_path / "many")
    for split, paths in few.items():
        assert paths.items() <= many[split].items()


def test_what_has_changed_or_gone_is_said_and_stays(tmp_path: Path) -> None:
    source, out = photos(tmp_path / "in"), tmp_path / "out"
    akrunner.pack(source, out)
    (source / "cat" / "0.jpg").write_bytes(picture(77, size=(9, 9)))
    (source / "dog" / "1.jpg").unlink()
    done = akrunner.pack(source, out)
    assert done.rows == 0 and done.total_rows == 30
    told = " ".join(done.warnings)
    assert "cat/0.jpg" in told and "dog/1.jpg" in told and "--overwrite" in told
    anew = akrunner.pack(source, out, overwrite=True)
    assert anew.rows == anew.total_rows == 29
    assert len(list(out.rglob("*.tfrecord"))) == 1, "the old files are gone"
    assert akrunner.pack(source, out).rows == 0


def test_broken_files_are_named(tmp_path: Path) -> None:
    source, out = photos(tmp_path / "in"), tmp_path / "out"
    (source / "cat" / "empty.jpg").write_bytes(b"")
    (source / "dog" / "page.jpg").write_bytes(b"<!DOCTYPE html><html>not found</html>")
    (source / "dog" / "short.png").write_bytes(picture(1, "PNG")[:20])
    (source / "owl" / "nothing.jpg").symlink_to(tmp_path / "nowhere")
    os.mkfifo(source / "owl" / "pipe.jpg")
    with pytest.raises(akrunner.ReadError) as caught:
        akrunner.pack(source, out)
    for words in (
        "5 broken images",
        "cat/empty.jpg: it is empty",
        "page.jpg: an HTML page",
        "short.png",
        "nothing.jpg",
        "pipe.jpg: it is a pipe",
        "--bad-rows",
    ):
        assert words in str(caught.value), words
    assert not list(out.glob("*.json")), "nothing counts yet"
    done = akrunner.pack(source, out, bad_rows="skip")
    assert (done.rows, done.skipped_rows) == (30, 5)
    assert {path for path, _ in done.skipped} >= {"cat/empty.jpg", "dog/page.jpg"}
    assert json.loads((out / "dataset.json").read_text())["skipped_rows"] == 5
    # those that are mended are packed the next time, the others not tried again
    (source / "cat" / "empty.jpg").write_bytes(picture(500))
    done = akrunner.pack(source, out, bad_rows="skip")
    # what is still broken is counted in each run, and each says so
    assert (done.rows, done.skipped_rows, done.skipped_before, done.warnings) == (1, 4, 4, [])
    assert "cat/empty.jpg" not in dict(done.skipped) and dict(done.skipped)["dog/page.jpg"] == "an HTML page, no image"
    described = json.loads((out / "dataset.json").read_text())
    assert described["skipped_rows"] == len(described["skipped"]) == 4, "those that were mended are none"
    for dry_run in (False, True):
        again = akrunner.pack(source, out, bad_rows="skip", dry_run=dry_run)
        assert (again.rows, again.skipped_rows, again.skipped_before) == (0, 4, 4)
        with pytest.raises(akrunner.ReadError, match="4 broken images that an earlier run left out are still there") as told:
            akrunner.pack(source, out, dry_run=dry_run)
        assert "dog/page.jpg: an HTML page, no image" in str(told.value)
    assert akrunner.pack(source, out, bad_rows=tmp_path / "bad").skipped_rows == 4
    assert (tmp_path / "bad" / "dog" / "page.jpg").exists(), "a directory for them that was named later"
    # mended, packed, and changed again: it is not packed twice
    (source / "cat" / "empty.jpg").write_bytes(picture(700))
    done = akrunner.pack(source, out, bad_rows="skip")
    assert done.rows == 0 and "1 file has changed since" in done.warnings[0]
    (source / "cat" / "empty.jpg").unlink()
    done = akrunner.pack(source, out, bad_rows="skip")
    assert "1 file that was packed is gone" in done.warnings[0], "though it was left out once, and packed later"
    for path, _ in done.skipped:
        (source / path).unlink()
    done = akrunner.pack(source, out)
    assert done.skipped_rows == 0 and "1 file that was packed is gone" in done.warnings[0], (
        "what was never packed is not missed"
    )


def test_dataset_json_says_what_of_the_input_is_left_out_now(tmp_path: Path) -> None:
    source, out = photos(tmp_path / "in"), tmp_path / "out"
    for name in ("cat/a.jpg", "dog/b.jpg"):
        (source / name).write_bytes(b"<html>")
    akrunner.pack(source, out, bad_rows="skip")
    (source / "cat" / "a.jpg").unlink()
    akrunner.pack(source, out, bad_rows="skip")
    described = json.loads((out / "dataset.json").read_text())
    assert (described["skipped_rows"], [one["path"] for one in described["skipped"]]) == (1, ["dog/b.jpg"])
    (source / "dog" / "b.jpg").unlink()
    assert akrunner.pack(source, out).skipped_rows == 0
    assert json.loads((out / "dataset.json").read_text())["skipped_rows"] == 0


def test_fail_names_what_is_new_beside_what_an_earlier_run_left_out(tmp_path: Path) -> None:
    source, out = photos(tmp_path / "in"), tmp_path / "out"
    (source / "cat" / "a.jpg").write_bytes(b"<html>")
    packed = akrunner.pack(source, out, bad_rows="skip")
    (source / "dog" / "b.jpg").write_bytes(b"")
    photos(source, 2, first=20)
    with pytest.raises(akrunner.ReadError) as told:
        akrunner.pack(source, out)
    for words in ("2 broken images (1 left out by an earlier run)", "cat/a.jpg: an HTML page", "dog/b.jpg: it is empty"):
        assert words in str(told.value), told.value
    # of what has come since that run began its part, too
    (source / "owl" / "c.jpg").write_bytes(b"")
    with pytest.raises(akrunner.ReadError, match=r"3 broken images \(1 left out by an earlier run\)") as told:
        akrunner.pack(source, out)
    assert "owl/c.jpg: it is empty" in str(told.value)
    (source / "owl" / "c.jpg").unlink()
    (source / "dog" / "b.jpg").unlink()
    # what is new is good now, and counts when the other is mended
    with pytest.raises(akrunner.ReadError, match="1 broken image that an earlier run left out is still there; mend it"):
        akrunner.pack(source, out)
    assert json.loads((out / "dataset.json").read_text())["splits"]["all"]["rows"] == packed.total_rows
    (source / "cat" / "a.jpg").write_bytes(picture(900))
    assert akrunner.pack(source, out).total_rows == packed.total_rows + 7


def test_the_list_of_broken_files_says_why_they_are_broken_now(tmp_path: Path) -> None:
    source, bad, out = photos(tmp_path / "in"), tmp_path / "bad", tmp_path / "out"
    page, other = source / "dog" / "page.jpg", source / "dog" / "other.jpg"
    for path in (page, other):
        path.write_bytes(b"<html>first</html>")
    akrunner.pack(source, out, bad_rows=bad)
    page.write_bytes(b"")
    other.write_bytes(b"<html>other</html>")
    akrunner.pack(source, out, bad_rows="skip")
    akrunner.pack(source, out, bad_rows=bad)
    listed = {row["path"]: row for row in csv.DictReader((bad / "bad_rows.csv").read_text().splitlines())}
    assert listed["dog/page.jpg"]["why"] == "it is empty" and (bad / listed["dog/page.jpg"]["copy"]).read_bytes() == b""
    assert (bad / listed["dog/other.jpg"]["copy"]).read_bytes() == b"<html>other</html>"
    before = everything_in(bad)
    akrunner.pack(source, out, bad_rows=bad)
    assert everything_in(bad) == before


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_a_dry_run_and_a_stricter_check_do_not_look_at_is_said(tmp_path: Path) -> None:
    source, out = photos(tmp_path / "in"), tmp_path / "out"
    assert any("a dry run looks into no file" in one for one in akrunner.pack(source, out, dry_run=True).warnings)
    akrunner.pack(source, out)
    assert akrunner.pack(source, out, dry_run=True).warnings == [], "nothing is new"
    for dry_run in (False, True):
        (said,) = akrunner.pack(source, out, check="whole", dry_run=dry_run).warnings
        assert "images that are packed were checked by their headers only" in said and "--overwrite" in said


def test_a_table_that_names_files_is_packed_with_a_word(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"{i}.txt").write_text("words")
    (tmp_path / "list.csv").write_text("file,n\n" + "".join(f"{i}.txt,{i}\n" for i in range(3)))
    (said,) = akrunner.pack(tmp_path / "list.csv", tmp_path / "out").warnings
    assert "column 'file' names files that are there: --paths file --kind texts packs these" in said
    assert akrunner.pack(tmp_path / "list.csv", tmp_path / "rows", kind="rows").warnings == []
    done = akrunner.pack(tmp_path / "list.csv", tmp_path / "texts", paths="file", kind="texts")
    assert done.rows == 3 and done.warnings == []


def test_what_may_not_be_read_today_is_tried_again_and_what_this_process_lacks_is_no_files_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = photos(tmp_path / "in"), tmp_path / "out"
    opened, refused = os.open, {b"cat/1.jpg": errno.EACCES}

    def opening(path: Any, *args: Any, **options: Any) -> int:
        if path in refused:
            raise OSError(refused[path], os.strerror(refused[path]))
        return opened(path, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", opening)
        for again in (False, True):
            done = akrunner.pack(source, out, bad_rows="skip")
            assert (done.rows, done.skipped_rows, done.unfetched_rows) == (0 if again else 29, 0, 1), done
            assert done.unfetched[0][0] == "cat/1.jpg" and "ermission denied" in done.unfetched[0][1]
        assert len(list((out / ".pack").glob("0*"))) == 1, "what is as it was is not noted again"
    assert akrunner.pack(source, out, bad_rows="skip").rows == 1, "no time of the file tells that it may be read now"
    for number in (errno.EMFILE, errno.ENOMEM):
        refused[b"cat/1.jpg"] = number
        other = tmp_path / str(number)
        with monkeypatch.context() as patch, pytest.raises(akrunner.JobError, match="kept, and the next run"):
            patch.setattr(os, "open", opening)
            akrunner.pack(source, other, bad_rows="skip")
        done = akrunner.pack(source, other, bad_rows="skip")
        assert (done.rows, done.skipped_rows, done.unfetched_rows) == (30, 0, 0)


@pytest.mark.parametrize("form", ["tfrecord", "parquet", "arrow"])
def test_rows_of_other_columns_are_not_packed_beside_what_is_there(tmp_path: Path, form: str) -> None:
    photos(tmp_path / "in", 6, ("cat",))
    source, out, table = tmp_path / "list.csv", tmp_path / "out", tmp_path / "table"

    def listed(name: str, *values: str) -> Path:
        source.write_text(f"path,{name}\n" + "".join(f"in/cat/{i}.jpg,{value}\n" for i, value in enumerate(values)))
        return source

    assert akrunner.pack(listed("w", "5", "6"), out, format=form).rows == 2
    before = digests(out)
    for dry_run in (True, False):
        for name, last, words in (
            ("w", "1.5", "'w' is bigint, and now 'w' is"),
            ("w", "abc", "now 'w' is string"),
            ("z", "7", "no 'w'"),
        ):
            with pytest.raises(akrunner.SinkError, match=words):
                akrunner.pack(listed(name, "5", "6", last), out, format=form, dry_run=dry_run)
    assert digests(out) == before
    assert akrunner.pack(listed("w", "5", "6", "7"), out, format=form).total_rows == 3 == rows(out / "all").num_rows
    for values, words in (
        ("597", "1 row of the list says another thing of its file than when that was packed (in/cat/1.jpg);"),
        ("75x", "3 rows of the list say other things of their files than when those were packed (in/cat/0.jpg,"),
        ("567", ""),
    ):
        told = [one for one in akrunner.pack(listed("w", *values), out, format=form).warnings if "of the list" in one]
        assert len(told) == bool(words) and all(one.startswith(words) for one in told)
    # tables of which the first have left the directory
    table.mkdir()
    (table / "1.csv").write_text("id,s\n1,a\n2,b\n")
    (table / "2.csv").write_text("id,s\n3,c\n")
    akrunner.pack(table, tmp_path / "of", format=form)
    for name in ("1.csv", "2.csv"):
        (table / name).unlink()
    for name in ("3.csv", "4.csv"):
        (table / name).write_text("id,s\nx,c\n")
    with pytest.raises(akrunner.SourceError, match=r"line 2: column 'id'.*invalid value 'x'.*in the types of what is packed"):
        akrunner.pack(table, tmp_path / "of", format=form)
    with pytest.raises(akrunner.SinkError, match="there 'id' is bigint, and now 'id' is string"):
        akrunner.pack(table, tmp_path / "of", format=form, input_schema="id string, s string")
    (table / "3.csv").write_text("id,t\n9,c\n")
    with pytest.raises(akrunner.SourceError, match="3.csv has no column 's', which what is packed in .*of has"):
        akrunner.pack(table, tmp_path / "of", format=form, dry_run=True)
    for name in ("3.csv", "4.csv"):
        (table / name).write_text("id,s\n9,c\n")
    assert akrunner.pack(table, tmp_path / "of", format=form).total_rows == 5 == rows(tmp_path / "of" / "all").num_rows
    assert akrunner.pack(listed("z", "5"), out, format=form, overwrite=True).total_rows == 1


def test_tables_come_and_go(tmp_path: Path) -> None:
    table, out = tmp_path / "x", tmp_path / "out"
    table.mkdir()

    def put(name: str, *values: float) -> Path:
        (table / name).write_text("id,p\n" + "".join(f"{i},{value:g}\n" for i, value in enumerate(values)))
        return table / name

    def packed(source: Any) -> tuple[int, int]:
        done = akrunner.pack(source, out, format="parquet")
        return done.rows, done.total_rows

    # a pattern, that of a shell, the directory: one file that is there alone, one that sorts first, that has gone, without rows, with whole numbers only
    assert packed([put("b.csv", 1.5)]) == (1, 1)
    assert packed([put("a.csv", 2.5, 3.5), table / "b.csv"]) == (2, 3)
    (table / "b.csv").unlink()
    (table / "a.csv").unlink()
    assert packed(f"{table}/{put('c.csv', 4).name}") == (1, 4)
    put("0.csv")
    assert packed(f"{table}/*.csv") == (0, 4)
    assert packed(f"{table}/") == (0, 4)
    put("0.csv", 5)
    put("d.csv", 7.5)
    assert packed(table) == (2, 6)
    assert sorted(rows(out / "all").column("p").to_pylist()) == [1.5, 2.5, 3.5, 4, 5, 7.5]
    # one without rows is alone, and which of its columns has classes nobody sees
    (tmp_path / "y").mkdir()
    for name, line in (("b", "cat,1\n"), ("c", "")):
        (tmp_path / "y" / f"{name}.csv").write_text("label,n\n" + line)
        assert akrunner.pack(f"{tmp_path}/y/{name}*.csv", tmp_path / "labelled").total_rows == 1
    # one without rows beside others may be filled yet
    put("f.csv")
    put("g.csv", 8.5)
    assert packed(table) == (1, 7)
    put("f.csv", 9.5)
    assert packed(table) == (1, 8)
    gone = akrunner.pack(table, out, format="parquet").warnings
    assert len(gone) == 1 and gone[0].startswith("2 files that were packed are not among those given now")
    with pytest.raises(akrunner.SourceError, match="no column 'more'"):
        (table / "e.csv").write_text("id,p,more\n1,2,3\n")
        akrunner.pack(table, out, format="parquet")


def test_names_stay_when_one_file_becomes_several_directories(tmp_path: Path) -> None:
    def put(day: int) -> Path:
        path = tmp_path / "in" / f"d={day}" / "x.csv"
        if not path.exists():
            path.parent.mkdir(parents=True)
            path.write_text(f"id\n{day}1\n{day}2\n")
        return path

    def packed(out: str, *source: Path) -> list[int]:
        akrunner.pack(list(source), tmp_path / out, format="parquet", split="0.5,0.5")
        splits = [tmp_path / out / name for name in ("train", "test")]
        return sorted(id for split in splits if split.exists() for id in rows(split).column("id").to_pylist())

    # as a shell gives them
    assert packed("out", put(1)) == [11, 12]
    assert packed("out", put(1), put(2)) == [11, 12, 21, 22]
    assert packed("out", put(2), put(3)) == packed("out", put(3)) == [11, 12, 21, 22, 31, 32]
    assert packed("several", put(1), put(2)) == [11, 12, 21, 22]
    assert packed("several", put(4)) == [11, 12, 21, 22, 41, 42]
    assert packed("other", put(1)) == [11, 12]
    with pytest.raises(
        akrunner.SinkError, match=r"source='.*/in/d=1', not '.*/in/d=2'.*a directory that holds all of them: .*/in\)"
    ):
        packed("other", put(2))
    with pytest.raises(akrunner.SourceError, match="x.csv is named twice, and its rows would be packed twice"):
        packed("twice", put(1), put(1))
    (tmp_path / "in" / "link.csv").symlink_to(put(1))
    with pytest.raises(akrunner.SourceError, match="are one file"):
        packed("twice", put(1), tmp_path / "in" / "link.csv")
    assert not (tmp_path / "twice").exists()


def test_rows_of_no_file_are_packed_once(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert akrunner.pack(pa.table({"id": [1, 2]}), out).rows == 2
    before = digests(out)
    for source in (pa.table({"id": [1, 2]}), {"id": [3]}):
        with pytest.raises(
            akrunner.SourceError, match="is not read from files of this machine, so its new rows cannot be told .*--overwrite"
        ):
            akrunner.pack(source, out)
    (tmp_path / "3.csv").write_text("id\n3\n")
    with pytest.raises(akrunner.SinkError, match="source=None, not"):
        akrunner.pack(tmp_path / "3.csv", out)
    assert digests(out) == before and akrunner.pack({"id": [3]}, out, overwrite=True).total_rows == 1


def test_columns_of_directories_are_those_of_names_in_them(tmp_path: Path) -> None:
    def put(day: str) -> Path:
        path = tmp_path / "in" / f"d={day}" / "x.csv"
        path.parent.mkdir(parents=True)
        path.write_text("id\n1\n")
        return path

    put("a")
    for source in (
        tmp_path / "in",
        [put("b"), put("c")],
        put("d"),
        put("e").parent,
        f"{put('f').parent}/*.csv",
        f"{tmp_path}/in/*/*.csv",
    ):
        akrunner.pack(source, tmp_path / "out", format="parquet")
    assert sorted(rows(tmp_path / "out" / "all").column("d").to_pylist()) == list("abcdef")


def test_new_tables_are_read_as_those_that_are_packed(tmp_path: Path) -> None:
    def packed(folder: str, name: str, text: str) -> int:
        for one in (tmp_path / folder).glob("*") if (tmp_path / folder).exists() else ():
            one.unlink()
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text(text)
        return akrunner.pack(tmp_path / folder, tmp_path / f"{folder}.out").total_rows

    # a column that is null, or left out
    assert packed("j", "1.jsonl", '{"id": 1, "v": "a"}\n') == 1
    assert packed("j", "2.jsonl", '{"id": 2, "v": null}\n') == 2
    assert packed("j", "3.jsonl", '{"id": 3}\n') == 3
    # no bytes, and a header of one column
    assert packed("c", "1.csv", "id\n1\n") == 1
    assert packed("c", "2.csv", "") == packed("c", "3.csv", "id\n") == 1
    # a column without a value yet
    assert packed("n", "1.csv", "id,w\n1,\n") == 1
    assert packed("n", "2.csv", "id,w\n2,7\n3,1.5\n") == 3
    with pytest.raises(
        akrunner.SourceError,
        match=r"invalid value 'abc': '4,abc'. What is new .*what is packed in .*n.out \(id bigint, w float\)",
    ):
        packed("n", "3.csv", "id,w\n4,abc\n")
    assert packed("t", "1.jsonl", '{"id": 1, "t": []}\n') == 1 and packed("t", "2.jsonl", '{"id": 2, "t": [1.5]}\n') == 2
    # whose values would be others
    for folder, first, second in (
        ("zip", ("1.csv", "id,w\n1,\n"), ("2.csv", "id,w\n2,02134\n")),
        ("big", ("1.jsonl", '{"id": 1, "w": null}\n'), ("2.jsonl", '{"id": 2, "w": 9007199254740993}\n')),
    ):
        assert packed(folder, *first) == 1
        (tmp_path / folder / second[0]).write_text(second[1])
        with pytest.raises(akrunner.SourceError, match="02134|9007199254740993"):
            akrunner.pack(tmp_path / folder, tmp_path / f"{folder}.out")
        with pytest.raises(akrunner.SourceError, match="02134|9007199254740993"):
            packed(folder, *second)
    # without the classes, whichever name comes first
    assert packed("l", "2.csv", "id,label\n1,a\n") == 1
    for name in ("1.csv", "3.csv"):
        with pytest.raises(akrunner.SourceError, match=f"{name} has no column 'label', which what is packed in .*l.out has"):
            packed("l", name, "id\n2\n")
    # what somebody is still writing
    assert packed("c", "4.csv", "id\n2\n") == 2
    (tmp_path / "c" / "5.csv.tmp").write_text("id\n3")
    assert akrunner.pack(tmp_path / "c", tmp_path / "c.out").rows == 0


def test_new_lists_are_read_as_those_that_are_packed(tmp_path: Path) -> None:
    photos(tmp_path / "in", 6, ("cat",))
    folder, out = tmp_path / "lists", tmp_path / "out"
    folder.mkdir()

    def packed(*lines: str, head: str = "path,label,w") -> akrunner.Packed:
        (folder / "1.csv").write_text("\n".join([head, *lines, ""]))
        return akrunner.pack(folder, out, format="parquet")

    assert packed("../in/cat/0.jpg,a,0123", "../in/cat/1.jpg,b,x").kind == "images"
    none = packed()
    assert none.rows == 0 and any("2 files that were packed are not on the list now" in one for one in none.warnings)
    assert packed("../in/cat/2.jpg,a,9123").rows == packed("../in/cat/3.jpg,a,").rows == 1
    with pytest.raises(akrunner.SinkError, match="there 'w' is string, and now there is no 'w'"):
        packed("../in/cat/4.jpg,a", head="path,label")
    with pytest.raises(akrunner.SourceError, match="no column 'label', which has the classes of what is packed in"):
        packed("../in/cat/4.jpg,7", head="path,w")
    found = rows(out / "all").select(["label_name", "w"]).sort_by([("w", "ascending")]).to_pylist()
    assert [tuple(one.values()) for one in found] == [("a", ""), ("a", "0123"), ("a", "9123"), ("b", "x")]


def test_a_list_may_spell_a_path_otherwise_each_night(tmp_path: Path) -> None:
    photos(tmp_path / "im", 4, ("cat",))
    (tmp_path / "link").symlink_to(tmp_path / "im")
    listed = tmp_path / "list.csv"
    for form in (
        "im/cat/{}.jpg",
        "./im/cat/{}.jpg",
        f"{tmp_path}/im/cat/{{}}.jpg",
        "im//cat/../cat/{}.jpg",
        f"file://{tmp_path}/im/cat/{{}}.jpg",
    ):
        listed.write_text("path,label\n" + "".join(f"{form.format(number)},a\n" for number in range(4)))
        packed = akrunner.pack(listed, tmp_path / "out", format="parquet", split="0.5,0.5", split_by="exact")
        assert packed.total_rows == 4 and not any("list now" in one for one in packed.warnings), form
    paths = [one for name in ("train", "test") for one in rows(tmp_path / "out" / name).column("path").to_pylist()]
    assert sorted(paths) == [f"im/cat/{number}.jpg" for number in range(4)]


def test_lines_of_json_without_a_line_are_no_rows(tmp_path: Path) -> None:
    table, out = tmp_path / "x", tmp_path / "out"
    table.mkdir()
    for number, text in enumerate(("", '{"id": 1, "s": "a"}\n', "", '{"id": 2}\n')):
        (table / f"{number}.jsonl").write_text(text)
    assert akrunner.pack(table, out).rows == 2
    (table / "4.jsonl").write_text("")
    assert akrunner.pack(table, out).rows == 0
    (table / "5.jsonl").write_text('{"id": 3}\n')
    assert akrunner.pack(table, out).total_rows == 3
    for one in table.iterdir():
        one.unlink()
    (table / "6.jsonl").write_text("")
    assert akrunner.pack(table, out).total_rows == 3
    with pytest.raises(akrunner.SourceError, match="6.jsonl is empty") as raised:
        akrunner.pack(table, tmp_path / "other")
    assert type(raised.value) is akrunner.SourceError, "the name people read"


def test_files_of_several_directories_are_told_apart(tmp_path: Path) -> None:
    for form, content in (("csv", "id\n1\n2\n"), ("txt", "one\ntwo\n")):
        pattern, out = f"{tmp_path}/{form}/*/x.{form}", tmp_path / f"out.{form}"
        for number, folder in enumerate(("b", "a", "c"), 1):
            (tmp_path / form / folder).mkdir(parents=True)
            (tmp_path / form / folder / f"x.{form}").write_text(content)
            assert akrunner.pack(pattern, out, seed=1).total_rows == 2 * number
        assert akrunner.pack(pattern, out, seed=1).rows == 0


def test_broken_files_are_copied_where_they_can_be_looked_at(tmp_path: Path) -> None:
    source, bad = photos(tmp_path / "in"), tmp_path / "bad"
    (source / "dog" / "page.jpg").write_bytes(b"<!DOCTYPE html>")
    assert akrunner.pack(source, tmp_path / "out", bad_rows=bad).skipped_rows == 1
    assert (bad / "dog" / "page.jpg").read_bytes() == b"<!DOCTYPE html>"
    for wrong in (source / "bad", tmp_path / "out" / "bad"):
        with pytest.raises(akrunner.ConfigError, match="bad_rows"):
            akrunner.pack(source, tmp_path / "out", bad_rows=wrong)


def test_what_was_left_out_is_listed_beside_its_copies(tmp_path: Path) -> None:
    source, bad, out = photos(tmp_path / "in"), tmp_path / "bad", tmp_path / "out"
    (source / "dog" / "page.jpg").write_bytes(b"<!DOCTYPE html>")
    (source / "owl" / "lost.jpg").symlink_to(tmp_path / "nowhere")
    (source / "owl" / ("x" * 240 + ".jpg")).write_bytes(b"<html>long</html>")
    warnings = akrunner.pack(source, out, bad_rows=bad).warnings
    (said,) = [one for one in warnings if "bad_rows.csv" in one]
    assert "1 of 3 was not copied there (owl/lost.jpg: a link that leads to nothing" in said

    def listed() -> dict[str, dict[str, str]]:
        return {row["path"]: row for row in csv.DictReader((bad / "bad_rows.csv").read_text().splitlines())}

    assert len(listed()) == 3 and listed()["dog/page.jpg"]["why"] == "an HTML page, no image"
    assert listed()["owl/lost.jpg"]["no_copy"].startswith("a link that leads to nothing")
    for row in listed().values():
        assert bool(row["copy"]) != bool(row["no_copy"])
        assert not row["copy"] or (bad / row["copy"]).read_bytes().startswith(b"<")
    (source / "cat" / "empty.jpg").write_bytes(b"")
    akrunner.pack(source, out, bad_rows=bad)
    assert len(listed()) == 4 and (bad / "cat" / "empty.jpg").read_bytes() == b""


def test_of_a_url_that_is_no_image_what_came_is_copied(tmp_path: Path) -> None:
    source, bad = photos(tmp_path / "in", 2), tmp_path / "bad"
    (source / "page.jpg").write_bytes(b"<html>not here</html>")
    for options in ({}, {"resize": 8}):
        shutil.rmtree(bad, ignore_errors=True)
        with served(source) as url:
            table = pa.table({"url": [f"{url}/cat/0.jpg", f"{url}/page.jpg?token=hidden", f"{url}/none.jpg"]})
            done = akrunner.pack(table, tmp_path / f"out{len(options)}", bad_rows=bad, paths="url", **options)
        assert done.skipped_rows == 2 and "hidden" not in (bad / "bad_rows.csv").read_text()
        (copy,) = [path for path in bad.rglob("*.jpg")]
        assert copy.read_bytes() == b"<html>not here</html>" and "hidden" not in copy.name


def test_packed_anew_names_begin_at_0_and_no_name_means_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = photos(tmp_path / "in"), tmp_path / "out"
    akrunner.pack(source, out, split="0.5,0.5", shard_size="3kB")
    old, before = digests(out), everything(out)

    def listed() -> list[str]:
        splits = json.loads((out / "dataset.json").read_text())["splits"]
        return [one["name"] for split in splits.values() for one in split["files"]]

    first = listed()
    assert first[0] == "train/00000.tfrecord"

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    # killed behind the moment in which the new files begin to count: the next run removes the old ones
    with monkeypatch.context() as patch:
        patch.setattr(state_module.State, "_tidy", lambda self: stopped() if self.generation(False) > 1 else None)
        with pytest.raises(KeyboardInterrupt):
            akrunner.pack(source, out, split="0.5,0.5", shard_size="3kB", overwrite=True)
    assert listed()[0] == "train/00000-2.tfrecord" and not set(listed()) & set(first)
    assert {name: digests(out)[name] for name in first} == {name: old[name] for name in first}, "whoever reads them goes on"
    photos(source, 5, first=20)
    akrunner.pack(source, out, split="0.5,0.5", shard_size="3kB")
    assert {str(path.relative_to(out)) for path in out.rglob("*.tfrecord")} == set(listed())
    for split, paths in before.items():
        assert paths.items() <= everything(out)[split].items()
    akrunner.pack(source, out, overwrite=True)
    assert listed() == ["all/00000-3.tfrecord"] and not (out / "train").exists()


def test_a_file_that_is_named_twice_is_in_one_split(tmp_path: Path) -> None:
    photos(tmp_path / "in", 40, ("cat",))
    for by in ("name", "exact"):
        names = [form.format(i) for i in range(40) for form in ("cat/{}.jpg", "./cat//{}.jpg", f"{tmp_path}/in/cat/{{}}.jpg")]
        done = akrunner.pack(
            pa.table({"path": names}), tmp_path / by, paths_in=tmp_path / "in", split="0.5,0.5", split_by=by, label="none"
        )
        assert done.rows == 120 and "80 rows of the list name a file that another row names, too" in done.warnings[-1]
        splits = [
            {os.path.basename(path) for path in rows(tmp_path / by / name)["path"].to_pylist()} for name in ("train", "test")
        ]
        assert not splits[0] & splits[1]
    odd = pa.table({"path": ["cat/0.jpg", "cat/../cat/0.jpg", "", None]})
    done = akrunner.pack(odd, tmp_path / "odd", paths="path", paths_in=tmp_path / "in", label="none", bad_rows="skip")
    assert (done.rows, done.skipped_rows) == (2, 2), "a row without a path names no file twice"
    assert [one for one in done.warnings if "another row names" in one] == [
        "1 row of the list names a file that another row names, too: it is packed as often as it is named, in one split"
    ]


def test_a_split_without_rows_is_said(tmp_path: Path) -> None:
    done = akrunner.pack(photos(tmp_path / "in", 1, ("cat",)), tmp_path / "out", split="0.8,0.2")
    assert sorted(done.splits.values()) == [0, 1] and "no row fell into" in done.warnings[0]
    table = akrunner.pack(pa.table({"x": [1]}), tmp_path / "table", split="0.8,0.2", split_by="exact")
    assert "no row fell into test" in table.warnings[0] and "exact" not in table.warnings[0]
    with pytest.raises(akrunner.SourceError, match="has no rows"):
        rows(tmp_path / "table" / "test")


def test_odd_trees(tmp_path: Path) -> None:
    inner = photos(tmp_path / "in" / "animals", 2, ("cat", "dog"))
    assert any("pack " in one and "animals" in one for one in akrunner.pack(tmp_path / "in", tmp_path / "one").warnings)
    (inner / "empty").mkdir()
    (inner / "papers").mkdir()
    (inner / "papers" / "a.txt").write_text("x")
    assert any("2 folders" in one and "empty, papers" in one for one in akrunner.pack(inner, tmp_path / "empty").warnings)
    # a link to nothing may have led to a class
    (inner / "owl").symlink_to(tmp_path / "disk that is not there" / "owl")
    (inner / "cat" / "notes.txt").symlink_to(tmp_path / "nowhere")
    (inner / "cat" / "loop").symlink_to("loop")
    with pytest.raises(akrunner.ReadError, match="2 broken images") as caught:
        akrunner.pack(inner, tmp_path / "out")
    assert "owl: a link that leads to nothing" in str(caught.value) and "cat/loop: a link" in str(caught.value)
    done = akrunner.pack(inner, tmp_path / "out", bad_rows="skip")
    assert (done.rows, done.skipped_rows, done.labels) == (4, 2, ["cat", "dog"])


def test_an_image_that_is_cut_short_is_found_when_it_is_decoded(tmp_path: Path) -> None:
    source = photos(tmp_path / "in")
    (source / "cat" / "cut.jpg").write_bytes(picture(3, size=(300, 300), quality=95)[:-700])
    assert akrunner.pack(source, tmp_path / "header").rows == 31
    with pytest.raises(akrunner.ReadError, match=r"cat/cut\.jpg: it cannot be decoded"):
        akrunner.pack(source, tmp_path / "whole", check="whole")


def test_every_format_and_what_resize_makes_of_it(tmp_path: Path) -> None:
    source = tmp_path / "in" / "a"
    source.mkdir(parents=True)
    made = {
        "cmyk.jpg": picture(1, mode="CMYK"), "grey.jpg": picture(2, mode="L"), "progressive.jpg": picture(3, progressive=True),
        "p.png": picture(4, "PNG", mode="P"), "rgba.png": picture(5, "PNG", mode="RGBA"), "one.png": picture(6, "PNG", mode="1"),
        "g.gif": picture(7, "GIF", mode="P"), "b.bmp": picture(8, "BMP"), "w.webp": picture(9, "WEBP"), "l.webp": picture(10, "WEBP", lossless=True),
    }  # fmt: skip
    turned = Image.Exif()
    turned[0x0112] = 6
    made["turned.jpg"] = picture(11, exif=turned)
    for name, data in made.items():
        (source / name).write_bytes(data)
    done = akrunner.pack(tmp_path / "in", tmp_path / "as")
    assert done.rows == len(made) and "WebP" in done.warnings[0]
    as_they_are = {row["path"]: row for row in rows(tmp_path / "as").to_pylist()}
    assert all(as_they_are[f"a/{name}"]["image"] == data for name, data in made.items())
    assert {(row["height"], row["width"]) for row in as_they_are.values()} == {(16, 20)}
    (column,) = [one for one in json.loads((tmp_path / "as" / "dataset.json").read_text())["columns"] if one["kind"] == "image"]
    assert column["encoded"] and column["formats"] == {"jpeg": 4, "png": 3, "gif": 1, "bmp": 1, "webp": 2}
    akrunner.pack(tmp_path / "in", tmp_path / "small", resize="10x6")
    for row in rows(tmp_path / "small").to_pylist():
        image = Image.open(io.BytesIO(row["image"]))
        assert image.size == (10, 6) and (row["height"], row["width"]) == (6, 10)
        assert image.format == ("JPEG" if row["path"].endswith("jpg") else "PNG")
        assert image.mode in ("L", "RGB", "RGBA")


def test_odd_names_and_what_is_no_image(tmp_path: Path) -> None:
    source = tmp_path / "in"
    names = ["Zwölf Katzen", "猫", "a b", "x[1]*?", "-rf", "'q\"", "new\nline"]
    for name in names:
        (source / name).mkdir(parents=True)
        (source / name / "the same.jpg").write_bytes(picture(1))
        (source / name / "UPPER.JPG").write_bytes(picture(2))
    raw = os.path.join(os.fsencode(source), b"a b", b"\xff\xfe.jpg")
    with open(raw, "wb") as stream:
        stream.write(picture(3))
    (source / "a b" / "notes.txt").write_text("x")
    (source / "a b" / ".hidden.jpg").write_bytes(b"x")
    (source / ".git").mkdir()
    (source / "a b" / "link.jpg").symlink_to(source / "猫" / "UPPER.JPG")
    done = akrunner.pack(source, tmp_path / "out")
    assert done.rows == 2 * len(names) + 2 and done.labels == sorted(names)
    assert "1 file is no image by its name, and was passed over: a b/notes.txt" in done.warnings[0]
    paths = rows(tmp_path / "out")["path"].to_pylist()
    assert "猫/the same.jpg" in paths and "a b/\\xff\\xfe.jpg" in paths and len(set(paths)) == len(paths)


def test_a_class_with_one_image_and_images_without_classes(tmp_path: Path) -> None:
    source = photos(tmp_path / "in", 10)
    photos(source, 1, ("unique",))
    found = (akrunner.pack(source, tmp_path / "out", split="0.8,0.1,0.1"), everything(tmp_path / "out"))[1]
    assert "unique" in found["train"].values()
    flat = tmp_path / "flat"
    flat.mkdir()
    for i in range(7):
        (flat / f"{i}.png").write_bytes(picture(i, "PNG"))
    done = akrunner.pack(flat, tmp_path / "plain")
    assert done.labels == [] and "label" not in rows(tmp_path / "plain").column_names
    (source / "beside.jpg").write_bytes(picture(1))
    with pytest.raises(akrunner.SourceError, match=r"beside\.jpg.*--label none"):
        akrunner.pack(source, tmp_path / "mixed")
    assert akrunner.pack(source, tmp_path / "mixed", label="none").rows == 32


def test_folders_that_are_splits(tmp_path: Path) -> None:
    for split in ("train", "test"):
        photos(tmp_path / "in" / split, 4)
    with pytest.raises(akrunner.SourceError, match="--split folders"):
        akrunner.pack(tmp_path / "in", tmp_path / "out")
    done = akrunner.pack(tmp_path / "in", tmp_path / "out", split="folders")
    assert done.splits == {"test": 12, "train": 12} and done.labels == ["cat", "dog", "owl"]
    assert all(path.startswith("train/") for path in everything(tmp_path / "out")["train"])


def test_a_list_of_paths(tmp_path: Path) -> None:
    photos(tmp_path / "in")
    lines = [f"in/{name}/{i}.jpg,{name.upper()},{i / 2}" for name in ("cat", "dog") for i in range(5)]
    listed = tmp_path / "list.csv"
    listed.write_text(
        "\n".join(["file,species,weight", *lines, f"{tmp_path}/in/owl/0.jpg,OWL,7", f"file://{tmp_path}/in/owl/1.jpg,OWL,8"])
    )
    done = akrunner.pack(listed, tmp_path / "out", label="species", split="0.9,0.1")
    assert done.rows == 12 and done.labels == ["CAT", "DOG", "OWL"]
    train = rows(tmp_path / "out" / "train")
    assert train.column_names == ["image", "label", "label_name", "path", "height", "width", "weight"]
    with open(listed, "a") as stream:
        stream.write("\nin/cat/9.jpg,CAT,1\nin/nowhere.jpg,DOG,1\n,DOG,1\nin/dog/9.jpg,,1\n")
    with pytest.raises(akrunner.ReadError, match=r"in/nowhere\.jpg: there is no such file"):
        akrunner.pack(listed, tmp_path / "out", label="species", split="0.9,0.1")
    done = akrunner.pack(listed, tmp_path / "out", label="species", split="0.9,0.1", bad_rows="skip")
    assert (done.rows, done.skipped_rows) == (1, 3)
    table = pa.table({"path": ["cat/1.jpg", "dog/1.jpg"], "class": [4, 7]})
    done = akrunner.pack(table, tmp_path / "memory", paths_in=tmp_path / "in")
    assert done.labels == ["4", "7"] and rows(tmp_path / "memory")["label"].to_pylist() in ([0, 1], [1, 0])


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_list_of_urls(tmp_path: Path) -> None:
    source = photos(tmp_path / "in")
    with served(source) as url:
        listed = tmp_path / "list.jsonl"
        names = [f"{url}/cat/{i}.jpg" for i in range(8)] + [f"{url}/dog/none.jpg"]
        listed.write_text("".join(json.dumps({"url": name, "label": "x"}) + "\n" for name in names))
        done = akrunner.pack(listed, tmp_path / "out", bad_rows="skip", split="0.5,0.5")
    assert (done.rows, done.skipped_rows) == (8, 1) and "none.jpg" in done.skipped[0][0]
    for row in rows(tmp_path / "out" / "train").to_pylist():
        assert row["image"] == (source / row["path"].partition(":")[2].partition("/cat")[2].join(["cat", ""])).read_bytes()


def test_a_directory_that_is_a_url(tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    for i in range(6):
        store.pipe(f"/packed-photos/{'ab'[i % 2]}/{i}.jpg", picture(i))
    assert akrunner.pack("memory://packed-photos", tmp_path / "out", split="0.5,0.5").labels == ["a", "b"]
    store.pipe("/packed-photos/a/new.jpg", picture(9))
    assert akrunner.pack("memory://packed-photos", tmp_path / "out", split="0.5,0.5").rows == 1
    store.rm("/packed-photos", recursive=True)


def test_lines_of_texts_and_pairs_of_files(tmp_path: Path) -> None:
    texts, labels = tmp_path / "sentences.txt", tmp_path / "labels.txt"
    texts.write_bytes("\ufeffone\r\nzwei ü\r\n\r\nfour".encode())
    labels.write_text("a\nb\na\nb\n")
    done = akrunner.pack([texts, labels], tmp_path / "out", columns="text,label")
    assert done.labels == ["a", "b"]
    found = {(row["text"], row["label"], row["label_name"]) for row in rows(tmp_path / "out").to_pylist()}
    assert found == {("one", 0, "a"), ("zwei ü", 1, "b"), ("", 0, "a"), ("four", 1, "b")}
    assert akrunner.pack(texts, tmp_path / "alone").rows == 4
    labels.write_text("a\nb\na\n")
    with pytest.raises(akrunner.SourceError, match=r"sentences\.txt 4, .*labels\.txt 3"):
        akrunner.pack([texts, labels], tmp_path / "uneven", columns="text,label")
    assert not (tmp_path / "uneven").exists()
    several = tmp_path / "several"
    several.mkdir()
    (several / "1.txt").write_text("x\ny\n")
    (several / "2.txt").write_text("z\n")
    assert akrunner.pack(f"{several}/*.txt", tmp_path / "one by one").rows == 3
    (several / "3.txt").write_text("w\n")
    assert akrunner.pack(f"{several}/*.txt", tmp_path / "one by one").rows == 1
    texts.write_bytes(b"good\n\xff\n")
    with pytest.raises(akrunner.ReadError, match="line 2 is no UTF-8"):
        akrunner.pack(texts, tmp_path / "bad")
    folder = tmp_path / "reviews"
    for name in ("pos", "neg"):
        (folder / name).mkdir(parents=True)
        (folder / name / "1.txt").write_text(f"all of it\nis {name}")
    done = akrunner.pack(folder, tmp_path / "texts")
    assert done.kind == "texts" and set(rows(tmp_path / "texts")["text"].to_pylist()) == {
        "all of it\nis pos",
        "all of it\nis neg",
    }


def _table(rows_: int) -> pa.Table:
    random = np.random.default_rng(0)
    kinds = pa.array(["red", "green", "blue"]).take(pa.array(random.integers(0, 3, rows_)))
    return pa.table({"id": np.arange(rows_), "x": random.random(rows_).astype(np.float32), "kind": kinds})


@pytest.mark.parametrize("form", ["tfrecord", "parquet"])
def test_a_table_is_shuffled_as_a_whole_whatever_the_memory_is(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _table(20_000)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2_300)
    again: list[int] = []
    dealt = dealing.Buckets
    monkeypatch.setattr(
        "akrunner.packing.rows.Buckets", lambda folder, schema, used: again.append(used) or dealt(folder, schema, used)
    )
    for name, memory in (("large", 1 << 30), ("small", 16 << 20)):
        assert again == []
        if name == "small":
            # buckets that do not fit are dealt again
            monkeypatch.setattr(
                "akrunner.packing.settings.size_of", lambda what, given, least, most: 29_000 if what == "memory" else 200_000
            )
        done = akrunner.pack(
            tmp_path / "t.parquet",
            tmp_path / name,
            split="0.75,0.25",
            split_by="exact",
            label="kind",
            format=form,
            memory=memory,
            shard_size="200kB",
        )
        assert done.rows == 20_000 and done.labels == ["blue", "green", "red"]
    assert 1 < len(again) < 1 << dealing.BITS
    large, small = rows(tmp_path / "large" / "train"), rows(tmp_path / "small" / "train")
    assert large["id"].to_pylist() == small["id"].to_pylist()
    ids = large["id"].to_numpy()
    every = np.concatenate([ids, rows(tmp_path / "large" / "test")["id"].to_numpy()])
    assert (np.sort(every) == np.arange(20_000)).all() and abs(len(ids) - 15_000) <= 3
    assert abs(np.corrcoef(ids, np.arange(len(ids)))[0, 1]) < 0.02
    for name in done.labels:
        wanted = table["kind"].to_pylist().count(name) * 0.75
        assert abs(large["label_name"].to_pylist().count(name) - wanted) <= 1
    counts = [one["rows"] for one in json.loads((tmp_path / "large" / "dataset.json").read_text())["splits"]["train"]["files"]]
    assert max(counts) - min(counts) <= 1


def test_tables_that_come_later_are_packed_alone(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    table = _table(3_000)
    for i in range(2):
        pa_csv.write_csv(table.slice(i * 1000, 1000), source / f"{i}.csv")
    assert akrunner.pack(source, out, split="0.5,0.5").rows == 2000
    before = {name: set(rows(out / name)["id"].to_pylist()) for name in ("train", "test")}
    pa_csv.write_csv(table.slice(2000, 1000), source / "2.csv")
    assert akrunner.pack(source, out, split="0.5,0.5").rows == 1000
    after = {name: set(rows(out / name)["id"].to_pylist()) for name in ("train", "test")}
    assert before["train"] <= after["train"] and before["test"] <= after["test"]
    assert after["train"] | after["test"] == set(range(3000)) and not after["train"] & after["test"]
    with open(source / "0.csv", "a") as stream:
        stream.write('9,9.0,"red"\n')
    with pytest.raises(akrunner.SourceError, match=r"0\.csv has changed.*--overwrite"):
        akrunner.pack(source, out, split="0.5,0.5")


_KILLED = """
import os, signal, sys
import akrunner
from akrunner.packing import files, shards

files._HELPED = 1
left = int(sys.argv[1])
for holder, name in ((os, "writev"), (os, "fsync"), (os, "replace"), (os, "makedirs")):
    def stopped(*given, _real=getattr(holder, name), **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return _real(*given, **options)
    setattr(holder, name, stopped)
akrunner.pack(sys.argv[2], sys.argv[3], split="0.7,0.3", shard_size="3kB", bad_rows=sys.argv[4])
print("whole")
"""


@pytest.mark.parametrize("kind", ["images", "rows"])
def test_a_run_that_is_killed_anywhere_goes_on_to_the_same_bytes(tmp_path: Path, kind: str) -> None:
    if kind == "images":
        source = photos(tmp_path / "in", 6)
        (source / "cat" / "bad.jpg").write_bytes(b"no")
    else:
        source = tmp_path / "t.csv"
        pa_csv.write_csv(_table(500), source)
    script = tmp_path / "killed.py"
    script.write_text(_KILLED)
    bad, whole = "skip" if kind == "images" else "fail", tmp_path / "whole"
    akrunner.pack(source, whole, split="0.7,0.3", shard_size="3kB", bad_rows=bad)
    wanted = digests(whole)
    kills, at = 0, 1
    while True:
        out = tmp_path / f"out{at}"
        first = hosts.run(
            [sys.executable, str(script), str(at), str(source), str(out), bad], capture_output=True, text=True, timeout=120
        )
        if "whole" in first.stdout:
            break
        assert first.returncode == -signal.SIGKILL, first.stderr
        kills += 1
        seen = {name for name in (digests(out) if out.exists() else {})}
        assert not any(name.endswith(".partial") and "/" in name for name in seen)
        akrunner.pack(source, out, split="0.7,0.3", shard_size="3kB", bad_rows=bad)
        assert digests(out) == wanted, at
        assert not list(out.rglob("*.partial"))
        shutil.rmtree(out)
        at += 1 if at < 6 else 7
    assert kills >= 5


def test_files_that_come_between_two_runs_are_packed_behind_those_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = photos(tmp_path / "in"), tmp_path / "out"

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    real = shards_module.sync
    calls: list[int] = []
    monkeypatch.setattr(shards_module, "sync", lambda stream: full() if len(calls) == 2 else (calls.append(1), real(stream)))
    with pytest.raises(akrunner.WriteError, match="the disk is full"):
        akrunner.pack(source, out, split="0.5,0.5", shard_size="2kB")
    monkeypatch.setattr(shards_module, "sync", real)
    assert not list(out.rglob("*.partial")) and not list(out.rglob("dataset.json"))
    with pytest.raises(akrunner.SourceError, match="goes on"):
        rows(out / "train")
    photos(source, 3, ("yak",))
    done = akrunner.pack(source, out, split="0.5,0.5", shard_size="2kB")
    assert done.rows == 33 and done.labels == ["cat", "dog", "owl", "yak"]
    found = everything(out)
    assert sum(map(len, found.values())) == 33


def test_a_full_disk_ends_with_4_and_the_next_run_goes_on(tmp_path: Path) -> None:
    source, out = photos(tmp_path / "in"), tmp_path / "out"

    def limited() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    # each file of the output may be so long, those of the journal are shorter
    # and Python keeps no compiled file that was cut short
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = command(source, out, "--shard-size", "64kB", "--json", preexec_fn=limited, env=environment)
    assert done.returncode == 4, (done.stdout, done.stderr)
    assert json.loads(done.stdout)["error"] == "WriteError"
    again = command(source, out, "--shard-size", "64kB", "--json")
    assert again.returncode == 0 and json.loads(again.stdout)["rows"] == 30


def test_a_table_on_a_full_disk_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("sync", "_write_all"):
        with monkeypatch.context() as patch:
            patch.setattr(shards_module, name, full)
            with pytest.raises(akrunner.WriteError, match="output: .*the disk is full"):
                akrunner.pack(_table(50), tmp_path / "out")
    assert akrunner.pack(_table(50), tmp_path / "out").rows == 50


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_no_half_shard(tmp_path: Path, number: int) -> None:
    source = photos(tmp_path / "in", 150)
    words = [sys.executable, "-m", "akrunner", "pack", str(source), str(tmp_path / "out"), "--shard-size", "1kB"]
    process = hosts.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("out/.pack/0001/*.tfrecord")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    assert "goes on" in said and not list((tmp_path / "out").rglob("*.partial"))
    assert command(source, tmp_path / "out", "--shard-size", "1kB").returncode == 0
    assert sum(map(len, everything(tmp_path / "out").values())) == 450


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    source = photos(tmp_path / "in", 2)
    held = tmp_path / "held"
    held.mkdir()
    (held / "thesis.doc").write_text("x")
    file = tmp_path / "file"
    file.write_text("x")
    akrunner.pack(source, tmp_path / "out", seed=1)
    cases: Any = [
        (held, {}, "thesis.doc"), (held, {"overwrite": True}, "thesis.doc"), (file, {}, "is a file"), (file / "x", {}, "file is a file"), (source / "out", {}, "lies in the input"),
        (source, {}, "lies in the input|holds what pack"), (tmp_path, {}, "holds what pack"), ("s3://bucket/x", {}, "is a URL"), ("/proc/x", {}, "system"), ("", {}, "empty"),
        (tmp_path / "out", {"seed": 2}, "seed=1"), (tmp_path / "out", {"seed": 1, "split": "0.5,0.5"}, "split="), (tmp_path / "out", {"seed": 1, "format": "arrow"}, "format="),
    ]  # fmt: skip
    for out, options, words in cases:
        with pytest.raises(akrunner.ConfigError, match=words):
            akrunner.pack(source, out, **options)
    idle: Any = [
        ({"resize": 8}, r"resize= \(--resize\) is for images"), ({"check": "whole"}, r"check= \(--check\) is for images"),
        ({"bad_rows": "skip"}, r"bad_rows= \(--bad-rows\) is for files"), ({"max_file_size": "1kB"}, r"max_file_size= \(--max-file-size\) is for files"),
    ]  # fmt: skip
    for options, words in idle:
        with pytest.raises(akrunner.ConfigError, match=words + ".*the input is rows"):
            akrunner.pack({"id": [1]}, tmp_path / "table", **options)
    assert not (tmp_path / "table").exists()
    assert (held / "thesis.doc").read_text() == "x" and sorted(os.listdir(source)) == ["cat", "dog", "owl"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("split", ["", "x", "0.5", "0.5,0.6", "-1,2", "nan,1", "0,1", "a=0.5,a=0.5", "../x=1", "a=0.5,0.5", "dataset.json=0.5,b=0.5", "a.b=0.5,c=0.5", "1,1,1", ",", 5, {"a": None}, {1: 1.0}, [True], "folders=1e999", ["x"]]),
        ("split_by", ["x", None, 3]),
        ("seed", [-1, 1.5, "x", True, None, 2**64]),
        ("shard_size", ["", "x", "-1", "0", 0, "1QB", "9" * 50, 1e9, None, "128 MB MB", True]),
        ("memory", ["1", 0, "x", None]),
        ("format", ["csv", "", None, 3]),
        ("resize", ["", "x", "0x0", "1x", "99999x1", (1,), (0, 1), (1, 2, 3), 1.5, True, "-1x5", [None, 3]]),
        ("check", ["x", None]),
        ("bad_rows", ["", None, 3, "a\0b"]),
        ("kind", ["x", "", 3]),
        ("label", ["", 3, "species"]),
        ("paths", ["", 3]),
        ("paths_in", [3, "/nowhere/at/all"]),
        ("columns", ["a,a", 3]),
        ("max_file_size", [0, "x", None, "3GB", True]),
        ("threads", [0, -1, "x", 10**9, True]),
        ("overwrite", [1, None, "yes"]),
        ("dry_run", [1, None]),
        ("progress", [1, "x"]),
        ("source", [None, 3, "", "/nowhere", b"x", "a\0b", [], ["/nowhere"], {}, object()]),
    ],
)  # fmt: skip
def test_hostile_values_are_refused_before_anything_is_written(tmp_path: Path, name: str, values: list[Any]) -> None:
    source = photos(tmp_path / "in", 1)
    for value in values:
        given: dict[str, Any] = {"source": source, "output": tmp_path / "out", name: value}
        with pytest.raises(akrunner.ConfigError) as caught:
            akrunner.pack(given.pop("source"), given.pop("output"), **given)
        assert str(caught.value) and not (tmp_path / "out").exists(), value


def test_a_read_only_source_and_an_input_of_every_kind_of_nothing(tmp_path: Path) -> None:
    for name in ("empty", "odd"):
        (tmp_path / name).mkdir()
    (tmp_path / "odd" / "program.exe").write_text("x")
    (tmp_path / "none.csv").write_text("path,label\n")
    for name, words in (("empty", "no files"), ("odd", "--kind"), ("none.csv", "no rows")):
        with pytest.raises(akrunner.SourceError, match=words):
            akrunner.pack(tmp_path / name, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    assert akrunner.pack(tmp_path / "odd", tmp_path / "files", kind="files").rows == 1
    loop = photos(tmp_path / "loop", 1)
    (loop / "cat" / "up").symlink_to(loop)
    with pytest.raises(akrunner.SourceError, match="remove the link"):
        akrunner.pack(loop, tmp_path / "out")


def test_a_column_that_looks_like_paths_in_part_is_said_and_what_no_record_holds_is_named(tmp_path: Path) -> None:
    names = [f"a/{i}.jpg" for i in range(14)] + ["x", "y", "z"]
    done = akrunner.pack(pa.table({"picture": names}), tmp_path / "texts")
    assert done.kind == "rows" and "14 of 17" in done.warnings[0] and "--paths picture" in done.warnings[0]
    assert (tmp_path / "texts" / ".pack").stat().st_mode & 0o777 == 0o700
    akrunner.pack(photos(tmp_path / "in", 2), tmp_path / "kept")
    for path in (tmp_path / "kept" / ".pack").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    price = pa.array([1, 2]).cast(pa.decimal128(21, 2))
    with pytest.raises(akrunner.ConfigError, match="column 'price'"):
        akrunner.pack(pa.table({"price": price}), tmp_path / "out")
    with pytest.raises(akrunner.SourceError) as caught:
        rows(tmp_path / "out" / "train")
    assert "not packed to its end" not in str(caught.value)


def _every_type() -> dict[str, Any]:
    """Columns that no feature holds among them: Parquet and Arrow do."""
    when = datetime.datetime(2020, 1, 2, 3, 4, 5)
    return {
        "price": pa.array([decimal.Decimal("1.25"), None]), "large": pa.array([decimal.Decimal(10**40), None], pa.decimal256(50, 3)), "point": pa.array([{"x": 1, "y": None}, None]),
        "nested": pa.array([[[1], [2, 3]], None]), "pairs": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())), "flag": pa.array([True, None]),
        "tiny": pa.array([-1, None], pa.int8()), "big": pa.array([2**64 - 1, None], pa.uint64()), "half": pa.array(np.array([1.5, 2], np.float16)), "x": pa.array([1.5, None], pa.float32()),
        "text": pa.array(["ü", None]), "long": pa.array(["x", None], pa.large_string()), "word": pa.array(["a", "b"]).dictionary_encode(), "blob": pa.array([b"\0", None]),
        "day": pa.array([when.date(), None]), "time": pa.array([when.time(), None]), "when": pa.array([when, None]), "zoned": pa.array([when, None], pa.timestamp("ms", "Europe/Berlin")),
        "span": pa.array([datetime.timedelta(1), None]), "list": pa.array([[1.0, 2.0], None]), "pair": pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)), "none": pa.nulls(2),
    }  # fmt: skip


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_every_column_is_packed_as_it_is(tmp_path: Path, form: str) -> None:
    table = pa.table({"id": [0, 1], **_every_type()})
    done = akrunner.pack(table, tmp_path / "out", format=form)
    assert done.rows == 2
    (file,) = (tmp_path / "out" / "all").iterdir()
    found = pq.read_table(file) if form == "parquet" else pa.ipc.open_file(file).read_all()
    found = found.sort_by("id")
    for name in table.column_names:
        assert found[name].to_pylist() == table[name].to_pylist(), name
    assert "price" not in json.loads((tmp_path / "out" / "dataset.json").read_text())["feature_spec"]
    # read by every verb, as any other file of this format
    query = "id, CAST(price AS DOUBLE) AS price"
    with pytest.raises(akrunner.SourceError, match="Decimal"):
        # DuckDB has none of 256 bits, nor floats of 16
        open_source(tmp_path / "out" / "all", select=query, read_examples=read_examples)
    akrunner.pack(table.drop_columns(["large", "half"]), tmp_path / "usual", format=form)
    assert open_source(tmp_path / "usual" / "all", select=query, read_examples=read_examples).schema.names == ["id", "price"]
    months = pa.table({"span": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    if form == "parquet":
        with pytest.raises(
            akrunner.ConfigError, match=r"column 'span' is month_day_nano_interval, which files of parquet do not hold"
        ):
            akrunner.pack(months, tmp_path / "no", format=form)
        assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_other_columns_of_a_list_may_be_of_any_type_too(tmp_path: Path, form: str) -> None:
    photos(tmp_path / "in", 2)
    listed = pa.table(
        {"path": [f"{name}/{i}.jpg" for name in ("cat", "dog") for i in range(2)], "price": [decimal.Decimal("1.25")] * 4}
    )
    pq.write_table(listed, tmp_path / "in" / "list.parquet")
    assert akrunner.pack(tmp_path / "in" / "list.parquet", tmp_path / "out", format=form).rows == 4
    with pytest.raises(akrunner.ConfigError, match="column 'price'"):
        akrunner.pack(tmp_path / "in" / "list.parquet", tmp_path / "records")


def test_the_command_says_what_it_does(tmp_path: Path) -> None:
    source = photos(tmp_path / "in", 4)
    plan = command(source, tmp_path / "out", "--split", "0.5,0.5", "--dry-run")
    assert plan.returncode == 0 and "would pack 12 images" in plan.stdout and not (tmp_path / "out").exists()
    done = command(source, tmp_path / "out", "--split", "0.5,0.5", "--json")
    told = json.loads(done.stdout)
    assert told["ok"] and told["rows"] == 12 and told["labels"] == ["cat", "dog", "owl"]
    again = command(source, tmp_path / "out", "--split", "0.5,0.5")
    assert again.returncode == 0 and "nothing is new" in again.stdout
    wrong = command(source, tmp_path / "out", "--split", "0.5,0.5", "--seed", "3", "--json")
    assert wrong.returncode == 2 and "seed=0" in json.loads(wrong.stdout)["message"]
    (source / "cat" / "bad.jpg").write_text("x")
    bad = command(source, tmp_path / "out", "--split", "0.5,0.5")
    assert bad.returncode == 3 and "cat/bad.jpg" in bad.stderr
    assert command(source).returncode == 2


def test_a_packed_split_is_an_input_of_a_job(tmp_path: Path, script: Any) -> None:
    akrunner.pack(photos(tmp_path / "in", 10), tmp_path / "out", split="0.8,0.2", split_by="exact")
    path = script(
        """
        def main(task_config):
            for batch in task_config.batches(8):
                task_config.output_writer.write_batch({"label": batch["label"], "size": [len(one) for one in batch["image"]]})
        """
    )
    result = akrunner.run(
        path, tmp_path / "out" / "train", output_schema="label bigint, size bigint", python_env=sys.executable
    )
    assert sorted(result.table["label"].to_pylist()) == [0] * 8 + [1] * 8 + [2] * 8
    with pytest.raises(akrunner.SourceError, match="has the splits train, test"):
        rows(tmp_path / "out")
    with pytest.raises(akrunner.SourceError, match="no split 'trian'.*did you mean 'train'"):
        rows(tmp_path / "out" / "trian")
    assert len(rows(tmp_path / "out" / "test")) == 6
    assert len(rows([tmp_path / "out" / "train", tmp_path / "out" / "test"])) == 30
    (next((tmp_path / "out" / "test").iterdir())).unlink()
    with pytest.raises(akrunner.SourceError, match="is gone"):
        rows(tmp_path / "out" / "test")


_READ = """
import json, os, sys
folder, split = sys.argv[1], sys.argv[2]
with open(os.path.join(folder, "dataset.json"), encoding="utf-8") as f:
    text = json.load(f)["read"]
with open(os.path.join(folder, "read_it.py"), "w") as f:
    f.write(text)
sys.path.insert(0, folder)
import read_it
import tensorflow as tf
if not tf.executing_eagerly():
    tf.compat.v1.enable_eager_execution()
labels, shapes = [], set()
for batch in read_it.dataset(split, batch_size=4):
    labels += batch["label"].numpy().tolist()
    shapes.add(tuple(batch["image"].numpy().shape[1:]))
print(json.dumps([sorted(labels), sorted(shapes)]))
"""


_DECODES = """
import os, sys
import tensorflow as tf
for name in sorted(os.listdir(sys.argv[1])):
    with open(os.path.join(sys.argv[1], name), "rb") as f:
        data = f.read()
    try:
        tf.io.decode_image(data)
        print(name, "read")
    except tf.errors.InvalidArgumentError:
        print(name, "refused")
"""


@pytest.mark.tensorflow
def test_of_pngs_those_are_whole_that_tensorflow_reads(tmp_path: Path, in_warm_worker: Callable[..., str]) -> None:
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("NOT RUN: this interpreter has no TensorFlow")
    pictures.check_there("check")
    datas = [data for data, _ in pngs.cases().values()] + list(pngs.mutated(random.Random(5), 1500))
    (tmp_path / "in").mkdir()
    for number, data in enumerate(datas):
        (tmp_path / "in" / f"{number:05d}").write_bytes(data)
    said = in_warm_worker(_DECODES, str(tmp_path / "in"))
    ours = [f"{i:05d} {'read' if pictures.fault(data) is None else 'refused'}" for i, data in enumerate(datas)]
    assert said.splitlines() == ours


@pytest.mark.tensorflow
@pytest.mark.matrix
@pytest.mark.parametrize("name", ["newest", "tf2.3", "tf1.15"])
def test_the_snippet_reads_it_with_tensorflow_alone(tmp_path: Path, name: str) -> None:
    python = ENVS / name / "bin" / "python"
    if not python.exists():
        pytest.skip(NOT_RUN + name)
    source = photos(tmp_path / "in", 3)
    (source / "cat" / "g.gif").write_bytes(picture(1, "GIF", mode="P"))
    (source / "dog" / "c.jpg").write_bytes(picture(1, mode="CMYK"))
    (source / "dog" / "p.png").write_bytes(picture(1, "PNG", mode="RGBA"))
    # of 8, 24 and 32 bits
    for mode in ("L", "RGB", "RGBA"):
        (source / "owl" / f"{mode}.bmp").write_bytes(picture(1, "BMP", mode=mode))
    if name == "newest":
        (source / "dog" / "w.webp").write_bytes(picture(1, "WEBP", mode="RGBA"))
        (source / "dog" / "x.webp").write_bytes(picture(1, "WEBP"))
    akrunner.pack(source, tmp_path / "out")
    (tmp_path / "reads.py").write_text(_READ)
    done = subprocess.run(
        [str(python), str(tmp_path / "reads.py"), str(tmp_path / "out"), "all"], capture_output=True, text=True, timeout=300,
        # AutoGraph's own modules lie in the temp directory, and what they are compiled to would stay there
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [
        [0] * 4 + [1] * (7 if name == "newest" else 5) + [2] * 6,
        [[224, 224, 3]],
    ]


@pytest.mark.parametrize("harm", ["gone", "cut"])
def test_a_packed_file_that_is_not_what_was_written_is_told(leaves_nothing: Path, tmp_path: Path, harm: str) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "out"
    table.write_text("a\n1\n2\n")
    akrunner.pack(table, out)
    (shard,) = (out / "all").iterdir()
    shard.unlink() if harm == "gone" else os.truncate(shard, 10)
    for dry_run in (True, False):
        with pytest.raises(akrunner.SinkError, match=f"{shard} (is gone|has 10 bytes, and)"):
            akrunner.pack(table, out, dry_run=dry_run)
    assert akrunner.pack(table, out, overwrite=True).rows == 2
    assert akrunner.pack(table, out).rows == 0
