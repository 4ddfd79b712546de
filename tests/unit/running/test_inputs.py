"""A source that is no table yet: lines of stdin or of a growing file, and tables of PyFlink."""

from __future__ import annotations

import gc
import json
import os
import types
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.errors import AkrunnerError, ConfigError, SchemaError, SourceError
from akrunner.io.bad_rows import kept
from akrunner.io.limits import in_time
from akrunner.io.streams import files
from akrunner.io.table import Awaited, TableSource
from akrunner.prepare.reading import Reading
from akrunner.running.inputs import arriving_source, lines_source, table_of
from akrunner.spec import Capabilities

BAD_ROWS = {"bad_rows": "fail", "max_bad_rows": 100}


def taken(source: Any, form: Any, schema: Any, follow: Any, csv: Any = None) -> dict[str, Any]:
    given = {"source": source, "input_format": form, "input_schema": schema, "input_csv": csv, "label": "a"}
    return lines_source({**given, **BAD_ROWS}, follow)


def arriving(source: Any, form: Any, follow: Any, engine: Any) -> dict[str, Any]:
    given = {"source": source, "input_format": form, "input_schema": "a bigint", "input_csv": None, "flush_seconds": 0.02}
    return arriving_source({**given, **BAD_ROWS}, follow, engine)


def times_open(path: Path) -> int:
    """How many descriptors of this process are of a file."""
    return [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")].count(str(path))


def rows(source: Any) -> list[dict[str, Any]]:
    """Of a file that is not followed."""
    return [row for batch in source.batches() for row in batch.to_pylist()]


@pytest.mark.parametrize("source", ["a.csv", {"a": [1]}, None, Path("-"), ["-"], b"-"])
def test_any_other_source_stays_as_it_is(source: Any) -> None:
    given = {"source": source, "input_format": "csv", "input_schema": "a bigint", "input_csv": "null=NA"}
    assert lines_source({**given, "label": "a"}, False) == given


def test_lines_of_stdin_are_a_table(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b'{"a": 1}\n{"a": null}\n')
    before, mine = os.dup(0), os.open(tmp_path / "in", os.O_RDONLY)
    try:
        os.dup2(mine, 0)
        found = taken("-", "jsonl", "a bigint", False)
        source = found.pop("source")
        assert found == {"input_format": None, "input_schema": None, "input_csv": None}, "it has them in it"
        assert source.name == "stdin" and source.schema == pa.schema([("a", pa.int64())])
        assert rows(source) == [{"a": 1}, {"a": None}]
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(mine)


@pytest.mark.parametrize(
    "name, form, text", [("t.csv", None, "a\n1\n"), ("t.jsonl", None, '{"a": 1}\n'), ("t.txt", "jsonl", '{"a": 1}\n'), ("t.log", None, '{"a": 1}\n')]
)  # fmt: skip
def test_a_growing_file_is_read_as_its_name_or_its_format_says(tmp_path: Path, name: str, form: str | None, text: str) -> None:
    (tmp_path / name).write_text(text)
    source = taken(str(tmp_path / name), form, "a bigint", True)["source"]
    assert source.name == str(tmp_path / name)
    first = next(iter(source.batches()))
    assert first.to_pylist() == [{"a": 1}]


def test_the_columns_are_guessed_from_the_first_lines(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    source = taken(tmp_path / "t.csv", None, None, True)["source"]
    assert source.schema.names == ["a", "b"] and source.notes == ()


def test_how_lines_are_written_is_said_or_seen(tmp_path: Path) -> None:
    (tmp_path / "t.log").write_text("a;b\n1;NA\n")
    source = taken(tmp_path / "t.log", None, "a bigint, b bigint", True, "delimiter=;,null=NA")["source"]
    assert next(iter(source.batches())).to_pylist() == [{"a": 1, "b": None}]
    source = taken(tmp_path / "t.log", "csv", None, True)["source"]
    assert source.schema.names == ["a", "b"] and "is read as ';'-separated" in source.notes[0]
    with pytest.raises(ConfigError, match=r"^input_csv= \(--input-csv\) is for CSV, and .* is read as jsonl; leave it out$"):
        taken(tmp_path / "t.log", "jsonl", None, True, "null=NA")


@pytest.mark.parametrize(
    "source, form, schema, follow, kind, words",
    [
        ({"a": [1]}, None, None, True, ConfigError, "^follow= is for one file; the source is dict$"), (["t.csv"], None, None, True, ConfigError, "the source is list"),
        ("t.csv", "parquet", None, True, ConfigError, "^input_format='parquet': lines are read as "),
        ("no.csv", None, None, True, SourceError, "^source: no.csv: No such file or directory$"), ("a\0b", None, None, True, SourceError, "source"), ("t.csv", None, None, "yes", ConfigError, "follow"),
        ("t.csv", None, "a bigimt", True, SchemaError, "input_schema"),
    ],
)  # fmt: skip
def test_what_cannot_be_followed(
    source: Any, form: Any, schema: Any, follow: Any, kind: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(kind, match=words):
        taken(source, form, schema, follow)


def test_a_table_of_pyflink_is_for_an_engine_that_reaches_it() -> None:
    table = type("Table", (), {"__module__": "pyflink.table.table"})()
    engine: Any = types.SimpleNamespace(capabilities=Capabilities())
    with pytest.raises(ConfigError, match="^source: a PyFlink table's rows are where Flink is; give engine='flink'$"):
        table_of(table, engine)
    # of any other nobody asks what the engine can do
    for other in ("a.csv", {"a": [1]}, None, type("Table", (), {"__module__": "pyflinks.table"})()):
        assert table_of(other, types.SimpleNamespace()) is other  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "schema"), [("a\n1\n", "a bigimt"), ("a,a\n1,2\n", None)], ids=["schema", "lines"])
def test_a_file_that_cannot_be_followed_is_not_left_open(text: str, schema: str | None, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(AkrunnerError):
        taken(str(tmp_path / "t.csv"), None, schema, True)
    assert times_open(tmp_path / "t.csv") == 0


@pytest.mark.slow
@pytest.mark.parametrize("schema", ["a bigint", None])
def test_a_file_that_was_followed_is_closed(tmp_path: Path, schema: str | None) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    table = taken(path, None, schema, True)["source"]
    batches = table.batches()
    assert next(batches).to_pylist() == [{"a": 1}] and times_open(path) == 1
    # a job that has ended keeps no table, and one that is stopped reads to the end
    stop = table.stop
    del table
    path.write_text("a\n1\n2\n")
    assert next(batches).to_pylist() == [{"a": 2}]
    stop()
    assert list(batches) == [] and times_open(path) == 0
    # nobody has begun to read it
    table = taken(path, None, schema, True)["source"]
    assert times_open(path) == 1
    del table
    gc.collect()
    assert times_open(path) == 0


def test_each_attempt_closes_the_file_that_it_follows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    given = {"source": path, "input_format": None, "input_schema": "a bigint", "input_csv": None, "flush_seconds": 0.02}
    arriving = arriving_source({**given, **BAD_ROWS, "max_restarts": 3}, True, engine(True))["source"].arriving
    for _ in range(3):
        arriving.begin(None)
        arriving.source.connect()
        while arriving.source.take(0.1) is None:
            pass
        assert times_open(path) == 2, "once more to know it again"
    arriving.close()
    assert times_open(path) == 0


def engine(marks: bool) -> Any:
    return types.SimpleNamespace(name="flink", capabilities=Capabilities(marks=marks))


def test_a_stream_is_opened_by_its_url(tmp_path: Path) -> None:
    found = arriving(f"files://{tmp_path}?group=g", "csv", False, engine(True))
    source, form, schema = found["source"], found["input_format"], found["input_schema"]
    assert (form, schema) == (None, None) and source.arriving is not None
    assert source.schema == pa.schema([("a", pa.int64())])
    said = {"source": "t.csv", "input_format": "csv", "input_schema": "a bigint", "input_csv": None}
    assert arriving("t.csv", "csv", False, engine(False)) == said


@pytest.mark.parametrize("again", [{}, {"max_restarts": 1}])
def test_lines_that_tell_the_columns_are_waited_for_when_the_table_is_opened(again: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("")
    given = {
        "source": str(tmp_path / "t.jsonl"),
        "input_format": None,
        "input_schema": None,
        "input_csv": None,
        **BAD_ROWS,
        **again,
    }
    with in_time(5):
        found = arriving_source(given, True, engine(True))
    source = found.pop("source")
    assert isinstance(source, Awaited) and found == {"input_format": None, "input_schema": None, "input_csv": None}
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n')
    table = Reading().open(source)
    try:
        assert table.schema == pa.schema([("a", pa.int64())])
    finally:
        table.stop()
    with pytest.raises(SchemaError, match="^input_schema: no type is called 'bigit'"):
        arriving_source({**given, "input_schema": "a bigit"}, True, engine(True))
    known = arriving_source({**given, "input_schema": "a bigint"}, True, engine(True))["source"]
    assert isinstance(known, TableSource), "a schema leaves nothing to wait for"
    known.stop()


@pytest.mark.slow
def test_what_is_left_out_of_files_that_arrive_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LOOK_SECONDS", 0.0)
    for name, notes in (("a", np.array([{}], object)), ("b", np.array([1, 2]))):
        (tmp_path / name).mkdir()
        # Python's objects are refused, and so are columns of other lengths
        np.savez(tmp_path / name / "a.npz", id=np.array([1, 2, 3]), x=np.array([0.5, 1.5, 2.5]), note=notes)
        want = [{"x": 0.5, "id": 1}, {"x": 1.5, "id": 2}, {"x": 2.5, "id": 3}]
        assert arrived(tmp_path / name, ["x", "id"]) == want
        assert arrived(tmp_path / name, ["x", "id"], "id bigint, x double") == want
        with pytest.raises(SourceError, match="note"):
            arrived(tmp_path / name, None)
        with pytest.raises(SourceError, match="columns: .* has no column 'y'"):
            arrived(tmp_path / name, ["y"])


@pytest.mark.slow
@pytest.mark.parametrize("schema", [None, "f0 bigint, f1 string, f2 double"])
def test_columns_of_files_without_names_are_those_of_their_places(
    schema: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_LOOK_SECONDS", 0.0)
    (tmp_path / "a.csv").write_text("1,u,2.5\n2,v,3.5\n")
    found = arrived(tmp_path, ["f2", "f0"], schema, "header=no")
    assert found == [{"f2": 2.5, "f0": 1}, {"f2": 3.5, "f0": 2}]


def arrived(folder: Path, columns: list[str] | None, schema: str | None = None, csv: str | None = None) -> list[dict[str, Any]]:
    """The rows of the files of a directory that are taken with `columns=`."""
    # another group for each call: what one has read is read by the next one, too
    url = f"files://{folder}?group={uuid.uuid4().hex}&idle=0.2"
    said = {
        "source": url,
        "input_format": None,
        "input_csv": csv,
        "input_schema": schema,
        "flush_seconds": 0.02,
        "columns": columns,
    }
    source: TableSource = arriving_source({**said, **BAD_ROWS}, False, engine(True))["source"]
    source.arriving.begin(None)  # type: ignore[union-attr]
    return rows(Reading(columns=columns).open(source))


@pytest.mark.parametrize(
    ("form", "follow", "marks", "words"),
    [
        (None, True, True, "follow=.*without it"),
        (None, False, False, "read by engine='local'; on flink"),
        ("csv", False, True, "input_format=.*value="),
    ],
)
def test_what_a_stream_does_not_take(form: str | None, follow: bool, marks: bool, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        arriving("kafka://b/t?group=g", form, follow, engine(marks))


@pytest.mark.slow
def test_bad_rows_of_files_that_arrive_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LOOK_SECONDS", 0.0)
    folder, bad = tmp_path / "in put", tmp_path / "bad"
    folder.mkdir()
    (folder / "a.csv").write_text("a\n1\ntwo\n3\n")
    (folder / "b.csv").write_text("a\n4\n5,6\nseven\n")
    given = {"input_format": None, "input_csv": None, "flush_seconds": 0.02, "max_bad_rows": 3}
    url = f"files://{folder}?group=g&idle=0.2".replace(" ", "%20")

    def opened(schema: Any, place: Path) -> TableSource:
        said = {**given, "source": url, "input_schema": schema, "bad_rows": place}
        found: TableSource = arriving_source(said, False, engine(True))["source"]
        return found

    table = opened("a bigint", bad)
    assert table.bad is not None and table.arriving is not None
    with kept(table.bad):
        for _ in range(2):
            # `max_restarts=` begins anew: no row is counted twice
            table.arriving.begin(None)
            assert [row["a"] for batch in table.batches() for row in batch.to_pylist()] == [1, 3, 4]
            assert table.bad.count == 3
        table.bad.commit()
    (file,) = bad.iterdir()
    assert [(one["file"], one["line"], one["text"]) for one in map(json.loads, file.read_bytes().splitlines())] == [
        (str(folder / "a.csv"), 3, "two"),
        (str(folder / "b.csv"), 3, "5,6"),
        (str(folder / "b.csv"), 4, "seven"),
    ]
    # without a schema the first file tells the columns: its bad rows are counted once, too
    (folder / "a.csv").write_text("a,b\n1,x\n2\n3,y\n")
    (folder / "b.csv").unlink()
    table = opened(None, tmp_path / "more")
    assert table.bad is not None and table.bad.count == 0
    assert sum(batch.num_rows for batch in table.batches()) == 2 and table.bad.count == 1
    with pytest.raises(SourceError, match="bad_rows= .*is the directory in which files arrive"):
        opened("a bigint", folder)


def test_a_file_of_which_every_row_is_bad_has_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LOOK_SECONDS", 0.0)
    (tmp_path / "a.csv").write_text("a\nx\n")
    given = {"input_format": None, "input_csv": None, "flush_seconds": 0.02, "max_bad_rows": 3, "input_schema": "a bigint"}
    said = {**given, "source": f"files://{tmp_path}?group=g", "bad_rows": "skip"}
    source = arriving_source(said, False, engine(True))["source"].arriving.source
    source.connect()
    assert source.take(0.0) is None, "it is looked at twice"
    assert source.take(0.0).num_rows == 0, "not None: something has come (idle=)"
    source.commit(source.position())
    assert source.take(0.0) is None and (tmp_path / ".akrunner-read-g").read_text() == '"a.csv"\n'


@pytest.mark.parametrize("schema", ["a bigint", None])
def test_bad_rows_of_a_file_that_is_followed_are_counted_once_and_stay_however_the_job_ends(
    tmp_path: Path, schema: str | None
) -> None:
    path, bad = tmp_path / "t.csv", tmp_path / "bad"
    path.write_text("a\n1\n5,6\n3\n")
    given = {"source": path, "input_format": None, "input_schema": schema, "input_csv": None, "flush_seconds": 0.02}
    given |= {"bad_rows": bad, "max_bad_rows": 2, "max_restarts": 1}
    table: Any = Reading().open(arriving_source(given, True, engine(True))["source"])
    with pytest.raises(KeyboardInterrupt), kept(table.bad):
        for attempt in range(2):
            if attempt:
                path.write_text(path.read_text() + "x,y\n4\n")
            table.arriving.begin(None)
            source = table.arriving.source
            source.connect()
            rows: list[int] = []
            while len(rows) < 2 + attempt:
                batch = source.take(0.1)
                rows += batch.column(0).to_pylist() if batch is not None else []
            assert table.bad.count == 1 + attempt
        raise KeyboardInterrupt
    table.arriving.close()
    (file,) = bad.iterdir()
    assert [json.loads(line)["text"] for line in file.read_bytes().splitlines()] == ["5,6", "x,y"]


@pytest.mark.parametrize(("before", "after"), [("skip", "skip"), ("fail", "skip"), ("skip", "fail")])
def test_a_save_in_the_middle_of_a_file_is_of_rows_that_are_good_with_its_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    monkeypatch.setattr(files, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(files, "TAKEN_ROWS", 2)
    (tmp_path / "a.csv").write_text("id,x\n1,1\n")
    odd = 0.5 if before == "skip" else 0
    (tmp_path / "b.csv").write_text(f"id,x\n2,{2 + odd}\n3,3\n4,4\n5,{5 + odd}\n6,6\n")
    os.utime(tmp_path / "a.csv", (1, 1))
    given = {"source": f"files://{tmp_path}?group=g", "input_format": None, "input_csv": None, "flush_seconds": 0.02}

    def source(bad: str, schema: str | None) -> Any:
        said = {**given, "max_bad_rows": 100, "bad_rows": bad, "input_schema": schema}
        return arriving_source(said, False, engine(True))["source"].arriving.source

    one = source(before, None)
    one.connect()
    ids: list[int] = []
    while len(ids) < 3:
        batch = one.take(0.1)
        ids += batch.column("id").to_pylist() if batch is not None else []
    assert ids == ([1, 3, 4] if odd else [1, 2, 3])
    place = json.loads(json.dumps(one.reached()))
    assert place["half"][1] == "b.csv" and place["rows"] == 2
    again = source(after, "id bigint, x double")
    with pytest.raises(SourceError, match=r"good with the column x int64, and now it is x double.*input_schema= \(--input-sch"):
        again.begin(place)
    # a save between two files, or of an earlier version, counts no rows by their types
    again.begin({**place, "read": ["a.csv", "b.csv"], "half": None})
    (tmp_path / ".akrunner-read-g").unlink()
    again.begin({name: value for name, value in place.items() if name not in ("columns", "leaves_out")})
    if (before, after) == ("skip", "skip"):
        again = source(after, "id bigint, x bigint")
        again.begin(place)
        again.connect()
        assert again.take(0.0).column("id").to_pylist() == [6]


def test_rows_none_of_which_is_left_out_may_get_other_types(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n2\n")
    given = {
        "source": path,
        "input_format": None,
        "input_csv": None,
        "flush_seconds": 0.02,
        "max_bad_rows": 100,
        "resume": True,
    }

    def arriving(bad: str, schema: str) -> Any:
        found = arriving_source({**given, "bad_rows": bad, "input_schema": schema}, True, engine(True))["source"].arriving
        found.source.connect()
        return found

    first = arriving("fail", "a bigint not null")
    while first.source.reached()["rows"] < 2:
        first.source.take(0.1)
    place = json.loads(json.dumps(first.source.reached()))
    for bad, schema, fits in (("fail", "a double", True), ("skip", "a bigint not null", True), ("skip", "a bigint", False)):
        then = arriving(bad, schema)
        if fits:
            then.begin(place)
        else:
            with pytest.raises(SourceError, match="good with the column a int64 not null, and now it is a int64"):
                then.begin(place)
        then.close()
    first.close()


@pytest.mark.parametrize("schema", ["a bigint", None])
def test_a_later_job_that_goes_on_in_a_followed_file_counts_no_old_bad_row(tmp_path: Path, schema: str | None) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n1\nx,y\n2\n")
    given = {"source": path, "input_format": None, "input_csv": None, "flush_seconds": 0.02, "input_schema": schema}
    given |= {"bad_rows": "skip", "max_bad_rows": 2, "resume": True}

    def taken_from(place: Any, count: int) -> tuple[Any, list[int]]:
        found: Any = Reading().open(arriving_source(given, True, engine(True))["source"])
        found.bad.begin()
        found.arriving.begin(place)
        found.arriving.source.connect()
        rows: list[int] = []
        while len(rows) < count:
            batch = found.arriving.source.take(0.1)
            rows += batch.column(0).to_pylist() if batch is not None else []
        return found, rows

    first, rows = taken_from(None, 2)
    place = json.loads(json.dumps(first.arriving.source.reached()))
    assert rows == [1, 2] and first.bad.count == 1 and place["bad_line"] == 3
    first.arriving.close()
    path.write_text(path.read_text() + "5,6\n3\n")
    then, rows = taken_from(place, 1)
    assert (
        rows == [3]
        and then.bad.count == 1
        and [one.partition("t.csv ")[2] for one in then.bad.news()]
        == ["line 5: CSV parse error: Expected 1 columns, got 2: '5,6'"]
    )
    then.arriving.close()


@pytest.mark.parametrize(
    ("again", "option"), [({"resume": True}, "resume"), ({"max_restarts": 2, "resume": True}, "max_restarts")]
)
def test_stdin_that_cannot_go_on_is_told_before_its_first_row(again: dict[str, Any], option: str) -> None:
    given = {
        "source": "-",
        "input_format": None,
        "input_schema": None,
        "input_csv": None,
        "flush_seconds": 0.02,
        **BAD_ROWS,
        **again,
    }
    with pytest.raises(ConfigError, match=f"^{option}: the rows of stdin come once, so that a stream of them cannot go on"):
        arriving_source(given, False, engine(True))
