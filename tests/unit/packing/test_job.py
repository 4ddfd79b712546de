"""The course of a run of `pack`: arguments that do not fit, settings that changed, and what runs out on the way."""

from __future__ import annotations

import csv
import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import AkrunnerError, ConfigError, JobError, ReadError, SinkError, WriteError
from akrunner.packing import filejob, job, rowjob
from akrunner.packing.job import run_pack
from akrunner.packing.progress import PackProgress
from akrunner.packing.result import Packed
from akrunner.packing.settings import PackArguments


def run(source: Any, out: Any, **options: Any) -> Packed:
    return run_pack(PackArguments(source, out, **options))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.txt").write_text(name)
    return folder


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"verify": True, "overwrite": True}, r"verify= \(--verify\) .* overwrite= \(--overwrite\) .*give one of them"),
        ({"progress": 3}, "progress must be a word, or a function that takes a PackProgress, not 3"),
        ({"overwrite": 1}, "overwrite"),
        ({"dry_run": "yes"}, "dry_run"),
        ({"verify": None}, "verify"),
        ({"resize": 8}, r"resize= \(--resize\) is for images, and the input is texts"),
        ({"check": "whole"}, r"check= \(--check\) is for images, and the input is texts"),
    ],
)
def test_options_that_do_not_fit(texts: Path, tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        run(texts, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_options_of_files_mean_nothing_for_a_table(tmp_path: Path) -> None:
    for options in ({"bad_rows": "skip"}, {"max_file_size": "1MB"}):
        with pytest.raises(ConfigError, match="is for files that are a row each, and the input is rows"):
            run({"n": [1]}, tmp_path / "out", **options)


def test_a_failed_run_gives_its_warnings_too(texts: Path, tmp_path: Path) -> None:
    (texts / "c.txt").write_bytes(b"\xff")
    (texts / "note.md").write_text("passed over")
    with pytest.raises(ReadError) as failed:
        run(texts, tmp_path / "out")
    assert failed.value.__notes__ == ["before that: 1 file is no text by its name, and was passed over: note.md"]


def test_a_warning_that_the_error_contains_is_not_given_twice() -> None:
    with pytest.raises(ReadError) as failed, job._warned(SimpleNamespace(said=["a", "b"])):  # type: ignore[arg-type]
        raise ReadError("no; b")
    assert failed.value.__notes__ == ["before that: a"]


def test_broken_files_are_listed_in_the_order_of_the_list(tmp_path: Path) -> None:
    rows = [f"no/{(7 * row) % 20}.jpg" for row in range(20)]
    bad = tmp_path / "bad"
    (tmp_path / "yes.jpg").write_bytes(b"\xff\xd8\xff no image")
    (tmp_path / "some.csv").write_text("path\n" + "\n".join([*rows, "yes.jpg"]))
    with pytest.raises(ReadError, match=r"is there(?s:.*)they were looked for below .*; paths_in=DIR") as failed:
        run(tmp_path / "some.csv", tmp_path / "out", bad_rows=str(bad))
    assert [path for path, _ in failed.value.broken] == [*rows, "yes.jpg"]
    with open(bad / "bad_rows.csv", encoding="utf-8") as stream:
        assert [row["path"] for row in csv.DictReader(stream)] == [*rows, "yes.jpg"]


def test_a_dry_run_says_so_and_writes_nothing(texts: Path, tmp_path: Path) -> None:
    found = run(texts, tmp_path / "out", dry_run=True)
    assert found.dry_run and found.rows == 2 and found.seconds > 0 and not (tmp_path / "out").exists()
    done = run(texts, tmp_path / "out")
    assert not done.dry_run and done.rows == 2 and done.path == str(tmp_path / "out")


def test_progress_is_told_and_what_its_function_raises_is_named(texts: Path, tmp_path: Path) -> None:
    told: list[PackProgress] = []
    run(texts, tmp_path / "out", progress=told.append)
    assert [told[0].doing, told[-1].doing] == ["listing", "packing"] and told[-1].total == 2

    def raises(_: PackProgress) -> None:
        raise KeyError("mine")

    with pytest.raises(ConfigError, match="progress: the function raised.*mine"):
        run(texts, tmp_path / "other", progress=raises)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ({"seed": 1}, {"seed": 2}, "with seed=1, not 2"),
        ({}, {"split": "0.9,0.1"}, "without split= .--split., and now split='train=0.9,test=0.1' is given"),
        ({"format": "arrow"}, {}, "with format='arrow', not 'tfrecord'"),
        ({}, {"kind": "files"}, "with kind='texts', not 'files'"),
        ({}, {"label": "none"}, "with label=None, not 'none'"),
    ],
)
def test_other_settings_than_before_are_refused(
    texts: Path, tmp_path: Path, before: dict[str, Any], now: dict[str, Any], words: str
) -> None:
    run(texts, tmp_path / "out", **before)
    for dry_run in (True, False):
        with pytest.raises(SinkError, match=f"output: {tmp_path}/out was packed {words}; give the same"):
            run(texts, tmp_path / "out", dry_run=dry_run, **now)
    assert run(texts, tmp_path / "out", overwrite=True, **now).total_rows == 2


def test_another_source_than_before_is_refused_and_the_way_out_is_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.csv").write_text("n\n1\n")
    run(tmp_path / "a" / "1.csv", tmp_path / "out")
    with pytest.raises(SinkError, match=rf"\(of files that come and go a directory that holds all of them: {tmp_path}\)"):
        run(tmp_path / "b" / "1.csv", tmp_path / "out")


def test_the_output_lies_apart_from_the_input(texts: Path) -> None:
    with pytest.raises(SinkError, match="lies in the input .*, and would be packed the next time"):
        run(texts, texts / "out")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.EMFILE, "Too many open files"), r"1024 are enough \(ulimit -n 1024\)"),
        (MemoryError(), r"threads=, shard_size= and memory= \(--threads, --shard-size, --memory\) that are smaller need less"),
        (
            RuntimeError("can't start new thread"),
            r"no more processes or threads .*threads=, shard_size= and memory= .* need less",
        ),
        (
            pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
            r"no more processes or threads .*threads=, shard_size= and memory= .* need less",
        ),
    ],
)
def test_what_this_process_lacks_is_told_with_the_options_that_need_less(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def fails(*_: Any) -> Packed:
        raise error

    monkeypatch.setattr(filejob, "packed", fails)
    with pytest.raises(JobError, match=f"{words}\\. What was packed so far is kept") as caught:
        run(texts, tmp_path / "out")
    assert type(caught.value) is JobError and not (tmp_path / "out").exists()


def test_what_this_process_lacks_while_it_lists_files_is_told_so_too(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(job, "given_of", fails)
    with pytest.raises(JobError, match="not enough memory .*shard_size= and memory="):
        run(texts, tmp_path / "out")


@pytest.mark.parametrize(
    ("place", "kind", "words"),
    [
        ("out/all/x", WriteError, "output: cannot read or write .*/out/all/x"),
        ("in/a.txt", ReadError, "source: cannot read .*/in/a.txt"),
        (None, WriteError, "output: cannot read or write .*/out"),
    ],
)
def test_an_error_of_the_disk_is_one_of_the_output_or_of_the_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str | None, kind: type[AkrunnerError], words: str
) -> None:
    def fails(*_: Any) -> Packed:
        raise OSError(errno.EIO, "Input/output error", *([] if place is None else [str(tmp_path / place)]))

    monkeypatch.setattr(rowjob, "packed", fails)
    with pytest.raises(kind, match=words):
        run({"n": [1]}, tmp_path / "out")


def test_an_error_that_is_no_shortage_passes(texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Packed:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(filejob, "packed", fails)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        run(texts, tmp_path / "out")


def test_a_split_that_was_given_once_and_not_again_is_named_in_the_users_words(tmp_path: Path) -> None:
    rows, split = {"n": [*range(20)]}, "train=0.8,test=0.2"
    run(rows, tmp_path / "a", split=split)
    with pytest.raises(
        SinkError, match=rf"was packed with split='{split}', and now no split is given \(--split\); give the same"
    ):
        run(rows, tmp_path / "a")
    run(rows, tmp_path / "b")
    with pytest.raises(
        SinkError, match=rf"was packed without split= \(--split\), and now split='{split}' is given; give the same"
    ):
        run(rows, tmp_path / "b", split=split)


@pytest.mark.slow
def test_all_settings_that_are_not_those_of_before_are_told_at_once(tmp_path: Path) -> None:
    rows = {"n": [*range(20)]}
    run(rows, tmp_path / "a")
    with pytest.raises(
        SinkError, match=r"packed with format='tfrecord', not 'arrow'; without split= .* is given; with seed=0, not 1; give"
    ):
        run(rows, tmp_path / "a", split="0.8,0.2", format="arrow", seed=1)
    for folder in ("one/x", "two/x"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / "1.txt").write_text("1")
    run(tmp_path / "in", tmp_path / "b", split="folders")
    with pytest.raises(SinkError, match="with split='folders', and now no split is given") as caught:
        run(tmp_path / "in", tmp_path / "b")
    assert "split_by" not in str(caught.value)
