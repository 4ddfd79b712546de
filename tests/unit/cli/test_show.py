"""What a person sees of a table."""

from __future__ import annotations

import pyarrow as pa
import pytest

import akrunner
from akrunner.cli.show import Screen, fitted
from akrunner.engines.base import Outcome, Stats
from akrunner.stream_job import StreamJob

STATS = Stats(1.0, 0.5, 0.1, 0.2, 1, 2, 3, 4, 0.0, 0.0, 0.0, "unknown", (1,))


@pytest.mark.parametrize(
    ("console", "head", "more"),
    [
        ("40", "class  c1   c2   c3   c4   c5   c6   c7", "... 72 more columns (c8, c9, c10, ...); --output keeps them"),
        ("3", "c", "... 79 more columns (c1, c2, c3, ...); --output keeps them"),
    ],
)
def test_of_a_wide_table_as_many_columns_are_shown_as_can_be_read(
    console: str, head: str, more: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", console)
    table = pa.table({"class": ["a"], **{f"c{number}": [0.5] for number in range(1, 80)}})
    Screen(as_json=False, quiet=False, log=False).preview(table, "--output keeps them")
    told = capsys.readouterr()
    assert told.out.splitlines()[0].startswith(head) and "".join(told.err.split("\n")).replace(" ", "") == more.replace(" ", "")


def test_what_fits_is_shown_whole(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    Screen(as_json=False, quiet=False, log=False).preview(pa.table({"id": [1], "text": ["x" * 50]}), "")
    told = capsys.readouterr()
    assert told.out.splitlines()[1].startswith("1   xxxxx") and told.err == ""


@pytest.mark.parametrize("way", ["result", "asked", "streamed"])
@pytest.mark.parametrize(
    ("quiet", "debug", "told"), [(False, True, True), (True, True, True), (False, False, True), (True, False, False)]
)
def test_where_a_directory_is_that_was_kept(
    way: str, quiet: bool, debug: bool, told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody knows the name of what `--debug` has kept; one that was given, a quiet job need not repeat."""
    screen = Screen(as_json=False, quiet=quiet, log=debug)
    if way == "streamed":
        with StreamJob(lambda sink, cancel: Outcome((), STATS, "/kept"), None) as job:
            assert list(job) == [] and job.work_dir == "/kept"
        screen.streamed(job, None)
    else:
        getattr(screen, way)(akrunner.Result(None, None, (), STATS, "/kept"))
    said = capsys.readouterr()
    assert said.err.count("work dir: /kept   (akrunner replay /kept)\n") == told and said.out == ""
    assert said.err.count("\n") == told + (not quiet)


def test_narrow_columns_stand_beside_wide_ones_and_a_null_is_no_empty_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    wide = [[0.5] * 64] * 2
    table = pa.table({"id": [1, 2], "label": ["", None], "image": wide, "probs": wide, "digit": [7, 8]})
    Screen(as_json=False, quiet=False, log=False).preview(table, "")
    title, first, second = capsys.readouterr().out.splitlines()
    assert title.split() == ["id", "label", "image", "probs", "digit"]
    assert first.startswith("1          [0.5") and first.endswith("  7")
    assert second.startswith("2   NULL   [0.5") and second.endswith("  8")


def test_a_closing_line_is_broken_between_words_and_a_path_nowhere() -> None:
    told = "done in 2.0 s: 3 rows in\nchief:0: loss 0.5  acc 0.25  step 7\noutput: /a/very/long/path/to/a/file.parquet\nrun: r4   (akrunner show r4)"
    assert fitted(told, 24).split("\n") == [
        "done in 2.0 s: 3 rows in",
        "chief:0: loss 0.5",
        "  acc 0.25  step 7",
        "output:",
        "  /a/very/long/path/to/a/file.parquet",
        "run: r4",
        "  (akrunner show r4)",
    ]
    assert fitted(told, 200) == told
    assert fitted("it took 2.0 s", 11).split("\n") == ["it took", "  2.0 s"]
