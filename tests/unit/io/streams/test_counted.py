"""Tables and growing files whose place is a number of rows."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SourceError
from akrunner.io import follow as follow_module
from akrunner.io.follow import open_text
from akrunner.io.formats import LINES, lines_of
from akrunner.io.streams.counted import counted
from akrunner.io.table import TableSource
from akrunner.schema import Schema

SCHEMA = pa.schema({"i": pa.int64()})


def table(*sizes: int) -> TableSource:
    def batches() -> list[pa.RecordBatch]:
        first, found = 0, []
        for size in sizes:
            found.append(pa.record_batch([pa.array(range(first, first + size), pa.int64())], SCHEMA))
            first += size
        return found

    return TableSource(SCHEMA, lambda: iter(batches()), "t.csv")


def test_it_goes_on_behind_so_many_rows() -> None:
    opened = counted(table(3, 4), "/data/t.csv", lambda: table(3, 4))
    assert opened.arriving is not None and not opened.replayable
    source = opened.arriving._source
    sent: list[object] = []
    opened.arriving.marking(("w",), lambda number, save, place: sent.append((number, save, place["rows"])))
    rows = [value for batch in opened.batches() for value in batch.column(0).to_pylist()]
    assert rows == list(range(7)) and sent[-1] == (len(sent), True, 7)
    assert source.position() is None
    place = {"table": "/data/t.csv", "rows": 5}
    opened.arriving.begin(place)
    assert [value for batch in opened.batches() for value in batch.column(0).to_pylist()] == [5, 6]
    assert source.reached() == {**place, "rows": 7, "columns": ["i int64"], "leaves_out": False, "read_as": {}}
    with pytest.raises(ConfigError, match="saves are of the table '/data/t.csv', and the source is the table '/data/u.csv'"):
        counted(table(1), "/data/u.csv", table).arriving.begin(place)  # type: ignore[union-attr]
    opened.arriving.begin(None)
    assert sum(batch.num_rows for batch in opened.batches()) == 7
    opened.arriving.close()


READ_AS = {"input_format": "", "header": "yes", "quote": '"', "comment": "", "skip": 0, "encoding": ""}


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ({"skip": 1}, "made with skip=0, and now it is 1, so that"),
        ({"header": "no", "quote": ""}, "made with header='yes', and now it is 'no', quote='\"', and now it is '', so that"),
        ({"input_format": "jsonl"}, ""),
        ({}, ""),
    ],
)
def test_a_text_that_is_read_in_another_way_is_told(now: dict[str, object], words: str) -> None:
    arriving = counted(table(7), "/data/t.csv", lambda: table(7), {**READ_AS, **now}).arriving
    assert arriving is not None
    place = {"table": "/data/t.csv", "rows": 5, "columns": ["i int64"], "leaves_out": False}
    # a save of an earlier version does not say it
    arriving.begin(place)
    if words:
        with pytest.raises(SourceError, match=words):
            arriving.begin({**place, "read_as": READ_AS})
    else:
        arriving.begin({**place, "read_as": READ_AS})
    with pytest.raises(SourceError, match="input_format='csv', and now it is 'jsonl'"):
        counted(table(7), "/data/t.csv", table, {"input_format": "jsonl"}).arriving.begin(  # type: ignore[union-attr]
            {**place, "read_as": {"input_format": "csv"}}
        )
    arriving.close()


def test_fewer_rows_than_there_were_are_told() -> None:
    arriving = counted(table(3), "/data/t.csv", lambda: table(3)).arriving
    assert arriving is not None
    arriving.begin({"table": "/data/t.csv", "rows": 5})
    with pytest.raises(SourceError, match="it has 3 rows, and the save was made behind 5.*No row was trained on"):
        list(arriving.batches())
    arriving.close()


@pytest.mark.parametrize(
    "then, words",
    [("i\n0\n", "it has 4 bytes, and had 8: it was cut off"), ("i\n5\n6\n7\n8\n", "its first 8 bytes are not those")],
    ids=["truncated", "rotated"],
)
def test_a_file_that_is_not_what_it_was(tmp_path: Path, then: str, words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("i\n0\n1\n2\n")
    arriving = counted(table(3), str(path), lambda: table(3)).arriving
    assert arriving is not None
    list(arriving.batches())
    place = arriving.source.reached()
    path.write_text("i\n0\n1\n2\n3\n")
    arriving.begin(place)
    path.write_text(then)
    with pytest.raises(SourceError, match=words):
        arriving.begin(place)
    path.unlink()
    assert arriving.source.reached() == place, "these are the rows of the file that was there"
    with pytest.raises(SourceError, match="cannot read t.csv: .*No such file"):
        arriving.begin(place)
    arriving.close()


def rotate(path: Path, text: str) -> None:
    path.rename(path.with_suffix(".1"))
    path.write_text(text)


def cut_off(path: Path, text: str) -> None:
    # as logrotate's copytruncate does: it is the same file
    os.truncate(path, 0)
    path.write_text(text)


@pytest.mark.parametrize("then", ["", "i\n7\n", "i\n7\n8\n9\n10\n11\n"], ids=["empty", "shorter", "longer"])
@pytest.mark.parametrize("instead", [rotate, cut_off])
def test_a_save_is_of_the_file_whose_rows_were_counted(tmp_path: Path, instead: Callable[[Path, str], None], then: str) -> None:
    path = tmp_path / "app.csv"
    path.write_text("i\n0\n1\n2\n")
    arriving = counted(table(3), str(path), lambda: table(5)).arriving
    assert arriving is not None
    list(arriving.batches())
    was = arriving.source.reached()
    # the job is behind with its reading, and saves once more
    instead(path, then)
    place = arriving.source.reached()
    assert place == was
    with pytest.raises(SourceError, match="rotated"):
        arriving.begin(place)
    arriving.close()


def test_rows_that_the_old_file_gets_after_it_was_renamed_are_in_the_save(tmp_path: Path) -> None:
    path = tmp_path / "app.csv"
    path.write_text("i\n")
    arriving = counted(table(3), str(path), lambda: table(3)).arriving
    assert arriving is not None
    list(arriving.batches())
    rotate(path, "i\n")
    path.with_suffix(".1").write_text("i\n0\n1\n2\n")
    place = arriving.source.reached()
    assert place["bytes"] == 8
    with pytest.raises(SourceError, match="rotated"):
        arriving.begin(place)
    path.with_suffix(".1").rename(path)
    arriving.begin(place)
    arriving.close()


@pytest.mark.parametrize("saved", [False, True])
def test_a_file_that_is_rotated_while_a_job_begins(tmp_path: Path, saved: bool) -> None:
    path = tmp_path / "app.csv"
    path.write_text("i\n0\n1\n2\n")
    arriving = counted(table(3), str(path), lambda: table(5)).arriving
    assert arriving is not None
    if saved:
        list(arriving.batches())
        arriving.begin(arriving.source.reached())
    rotate(path, "i\n7\n8\n9\n10\n11\n")
    with pytest.raises(SourceError, match="another file was put in the place of t.csv while the job began"):
        list(arriving.batches())
    arriving.close()


@pytest.mark.parametrize("there", ["", "i\n", "i\n0\n"], ids=["empty", "names", "a row"])
def test_a_file_that_was_empty_when_it_was_opened_is_known_by_what_was_read(
    tmp_path: Path, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "app.csv"
    path.write_text(there)
    waits, go_on, look = threading.Event(), threading.Event(), follow_module._check_there

    def stop_behind_the_rows(fd: int, name: str) -> None:
        look(fd, name)
        if os.lseek(fd, 0, os.SEEK_CUR) == len("i\n0\n1\n2\n"):
            waits.set()
            go_on.wait(60)

    # or else who reads on may see the file while it is empty, or read some bytes of what is written anew
    monkeypatch.setattr(follow_module, "_check_there", stop_behind_the_rows)

    def follow() -> TableSource:
        fd = os.open(path, os.O_RDONLY)
        fds.append(fd)
        return open_text(fd, lines_of(".csv") or LINES[0], Schema.from_arrow(SCHEMA), True, str(path))

    fds: list[int] = []
    arriving = counted(follow(), str(path), follow).arriving
    assert arriving is not None
    source = arriving.source
    source.connect()
    with path.open("a") as file:
        # it grows: it is never shorter than it was
        file.write("i\n0\n1\n2\n".removeprefix(there))
    taken: list[int] = []
    while len(taken) < 3:
        batch = source.take(0.1)
        taken += batch.column(0).to_pylist() if batch is not None else []
    assert waits.wait(60)
    path.write_text("i\n5\n6\n7\n8\n9\n")
    place = source.reached()
    assert place["rows"] == 3 and source.reached() == place
    with pytest.raises(SourceError, match="rotated"):
        arriving.begin(place)
    path.write_text("i\n0\n1\n2\n3\n")
    arriving.begin(place)
    go_on.set()
    arriving.close()
    for fd in fds:
        os.close(fd)


def test_a_file_that_is_written_anew_before_its_rows_are_asked_for_is_known_by_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "app.csv"
    path.write_text("i\n0\n1\n2\n")

    def follow() -> TableSource:
        return open_text(fd, lines_of(".csv") or LINES[0], None, True, str(path))

    fd = os.open(path, os.O_RDONLY)
    # without a schema its lines are read when it is opened
    arriving = counted(follow(), str(path), follow).arriving
    assert arriving is not None
    path.write_text("i\n" + "".join(f"{one}\n" for one in range(5, 1000)))
    arriving.source.connect()
    batch = arriving.source.take(5.0)
    assert batch is not None and batch.column(0).to_pylist()[:3] == [0, 1, 2]
    place = arriving.source.reached()
    with pytest.raises(SourceError, match="rotated"):
        arriving.begin(place)
    arriving.close()
    os.close(fd)
