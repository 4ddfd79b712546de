"""A run that packs tables: which of their files are new, and which cannot be told or taken alone."""

from __future__ import annotations

import re
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akrunner.errors import ReadError, SourceError, WriteError
from akrunner.packing import filejob, rowjob
from akrunner.packing.given import Earlier
from akrunner.packing.progress import Meter
from akrunner.packing.result import Packed
from akrunner.packing.settings import PackArguments, settings_of
from akrunner.packing.source import given_of
from akrunner.packing.state import State


class Run:
    """Runs into one output."""

    def __init__(self, folder: Path) -> None:
        self.source, self.out = folder / "in", folder / "out"
        self.source.mkdir()

    def put(self, **texts: str) -> None:
        for name, text in texts.items():
            (self.source / f"{name}.csv").write_text(text)

    def __call__(self, source: Any = None, dry: bool = False, overwrite: bool = False, **options: Any) -> Packed:
        asked = PackArguments(self.source if source is None else source, self.out, **options)
        settings, state = settings_of(asked), State(str(self.out))
        earlier = None
        if state.about is not None and not overwrite:
            earlier = Earlier(
                state.path, state.about["settings"], rowjob.ups_of(state), rowjob.columns_of(state), filejob.extra_of(state)
            )
        given = given_of(asked, settings, earlier)
        if dry:
            return rowjob.planned_only(given, state, overwrite)
        with state.held():
            return rowjob.packed(given, settings, state, overwrite, Meter())


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_shards_that_are_removed_meanwhile_are_missed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.put(a="n,label\n1,x\n2,y\n")
    real = rowjob.RowPacker.run

    def and_removed(self: rowjob.RowPacker) -> None:
        real(self)
        shutil.rmtree(run.out / ".pack")

    with monkeypatch.context() as patch:
        patch.setattr(rowjob.RowPacker, "run", and_removed)
        with pytest.raises(WriteError, match="files that were packed are gone from .*out: something else has removed them"):
            run()
    assert run().rows == 2


@pytest.mark.slow
def test_only_rows_of_new_files_are_packed(run: Run) -> None:
    run.put(a="n,label\n1,x\n2,y\n")
    first = run()
    assert (first.rows, first.total_rows, first.labels, first.label) == (2, 2, ["x", "y"], "label")
    assert (run().rows, run().total_rows) == (0, 2)
    run.put(b="n,label\n3,w\n")
    second = run()
    assert (second.rows, second.total_rows, second.labels) == (1, 3, ["x", "y", "w"])
    anew = run(overwrite=True)
    assert (anew.rows, anew.total_rows, anew.labels) == (3, 3, ["w", "x", "y"])


def test_a_dry_run_counts_tables_and_writes_nothing(run: Run) -> None:
    run.put(a="n\n1\n", b="n\n2\n")
    found = run(dry=True)
    assert (found.rows, found.warnings) == (0, ["2 tables would be read; the rows are counted then"]) and not run.out.exists()
    run()
    assert run(dry=True).warnings == ["there is nothing new"] and run(dry=True).total_rows == 2


def test_a_file_that_has_changed_is_an_error_and_one_that_is_gone_is_told(run: Run) -> None:
    run.put(a="n\n1\n", b="n\n2\n")
    run()
    (run.source / "b.csv").unlink()
    (told,) = run().warnings
    assert told.startswith("1 file that was packed is not among those given now, and the rows are still there (b.csv)")
    run.put(a="n\n1\n5\n")
    with pytest.raises(
        SourceError, match=r"source: a\.csv has changed since it was packed .*--overwrite packs everything anew"
    ):
        run()


def test_rows_of_no_file_cannot_be_told_from_those_packed(run: Run) -> None:
    run(pa.table({"n": [1]}))
    with pytest.raises(SourceError, match="is not read from files of this machine, so its new rows cannot be told"):
        run(pa.table({"n": [1, 2]}))
    assert run(pa.table({"n": [1, 2]}), overwrite=True).total_rows == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "why"),
    [({"select": "n * 2 AS m"}, r"what select= \(--select\) makes of them depends on all"), ({}, "are packed as a whole")],
)
def test_what_is_packed_as_a_whole_takes_no_new_files(run: Run, options: dict[str, Any], why: str) -> None:
    for name in ("a", "b", "c"):
        (run.source / f"{name}.txt").write_text("1\n")
    run.put(a="n\n1\n", b="n\n2\n")
    source: Any = [run.source / "a.csv"] if options else [run.source / "a.txt", run.source / "b.txt"]
    run(source, **options)
    more = [*source, run.source / ("b.csv" if options else "c.txt")]
    with pytest.raises(SourceError, match=f"source: there are new files, and .*{why}"):
        run(more, **(options or {"columns": "a,b,c"}))


def test_a_table_without_rows_is_an_error_unless_something_is_packed(run: Run) -> None:
    with pytest.raises(SourceError, match="source: there are no rows"):
        run(pa.table({"n": pa.array([], pa.int64())}))
    run.put(a="n\n1\n")
    run()
    run.put(b="n\n")
    assert run().rows == 0
    # one that gets rows later is new
    run.put(b="n\n2\n")
    assert (run().rows, run().total_rows) == (1, 2)


def test_new_files_have_the_types_of_what_is_packed(run: Run) -> None:
    run.put(a="n\n1\n")
    run()
    run.put(b="n\nx\n")
    with pytest.raises((ReadError, SourceError), match=r"What is new is read in the types of what is packed in .*\(n bigint\)"):
        run()
    assert State(str(run.out)).parts() == [1]


def test_columns_are_those_of_the_packed_table(run: Run) -> None:
    assert rowjob.columns_of(State(str(run.out))) is None and rowjob.ups_of(State(str(run.out))) == 0
    run.put(a="n,label\n1,x\n")
    run()
    assert rowjob.columns_of(State(str(run.out))) == pa.schema([("n", pa.int64()), ("label", pa.string())])


def test_names_above_the_directory_are_counted_by_their_levels(run: Run) -> None:
    (run.source / "a").mkdir()
    (run.source / "a" / "1.csv").write_text("n\n1\n")
    run(run.source / "a")
    run.put(b="n\n2\n")
    (run.source.parent / "c.csv").write_text("n\n3\n")
    run([run.source / "a" / "1.csv", run.source / "b.csv", run.source.parent / "c.csv"])
    state = State(str(run.out))
    assert sorted(state.index(2).column("\x1fname").to_pylist()) == [b"../../c.csv", b"../b.csv"]
    assert rowjob.ups_of(state) == 2


class Stopped(Exception):
    pass


@pytest.mark.parametrize("damaged", [False, True])
def test_a_part_that_was_begun_goes_on_if_its_rows_are_as_they_were(
    run: Run, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    def stops(*_: Any) -> None:
        raise Stopped

    run.put(a="n\n1\n2\n")
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(rowjob.RowPacker, "run", stops)
        run()
    buckets = list((run.out / ".pack" / "0001" / "buckets").iterdir())
    if damaged:
        buckets[0].write_bytes(b"")
    else:
        # the rows are not read again
        monkeypatch.setattr(rowjob, "deal", stops)
    found = run()
    assert found.rows == 2 and State(str(run.out)).parts() == [1]
    assert [one for one in found.warnings if "gone or damaged" in one] == (
        [f"what an earlier run had begun was packed from its beginning: rows in {buckets[0].parent} are gone or damaged"]
        if damaged
        else []
    )


def begin(run: Run, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    """Begin a run that is stopped once all rows are in buckets."""

    def stops(*_: Any) -> None:
        raise Stopped

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(rowjob.RowPacker, "run", stops)
        run(**options)


def packed_rows(run: Run) -> list[dict[str, Any]]:
    state = State(str(run.out))
    names = sorted(state.listed())
    return [row for name in names for row in pq.read_table(run.out / name).to_pylist()]


@pytest.mark.slow
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "rows", "why"),
    [
        ({"input_schema": "n string"}, {"input_schema": "n bigint"}, [7], r"input_schema= \(--input-schema\)"),
        ({}, {"input_schema": "n string"}, ["007"], r"input_schema= \(--input-schema\)"),
        ({"input_csv": "null=007"}, {}, ["007"], r"input_csv= \(--input-csv\)"),
        ({}, {"input_format": "csv", "input_csv": "null=007"}, [None], r"input_format= .*, input_csv= \(--input-csv\)"),
    ],
)
def test_rows_that_were_read_otherwise_are_read_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, overwrite: bool, first: dict[str, Any], second: dict[str, Any], rows: list[Any], why: str
) -> None:  # fmt: skip
    run.put(a="n\n007\n")
    if overwrite:
        run(format="parquet")
    begin(run, monkeypatch, format="parquet", overwrite=overwrite, **first)
    found = run(format="parquet", overwrite=overwrite, **second)
    assert [row["n"] for row in packed_rows(run)] == rows
    (told,) = [one for one in found.warnings if "begun" in one]
    assert re.search(f"from its beginning: its rows were read with another {why}", told)


def test_rows_whose_types_are_guessed_otherwise_are_read_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.put(b="n\n1\n")
    begin(run, monkeypatch, format="parquet")
    # the types are guessed from the first file, which is another one now
    run.put(a="n\n0.5\n")
    found = run(format="parquet")
    assert sorted(row["n"] for row in packed_rows(run)) == [0.5, 1.0] and found.rows == 2
    assert any("its rows were read in other types" in one for one in found.warnings)


@pytest.mark.slow
def test_what_is_packed_as_a_whole_begins_again_with_a_new_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.put(a="n\n1\n")
    begin(run, monkeypatch, format="parquet", select="n * 2 AS m")
    run.put(b="n\n2\n")
    found = run(format="parquet", select="n * 2 AS m")
    assert sorted(row["m"] for row in packed_rows(run)) == [2, 4] and found.rows == 2
    assert any("there are new files, and what select= (--select) makes" in one for one in found.warnings)


def test_a_new_file_that_is_refused_is_so_before_what_was_begun_is_published(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.put(a="n\n1\n")
    begin(run, monkeypatch)
    run.put(b="n\nx\n")
    with pytest.raises((ReadError, SourceError), match=r"b\.csv"):
        run()
    state = State(str(run.out))
    assert state.about is None and state.unfinished() == 1
    run.put(b="n\n2\n")
    assert (run().rows, State(str(run.out)).parts()) == (2, [1, 2])


def test_new_files_that_are_read_by_other_rules_are_told(run: Run) -> None:
    run.put(a="n,s\n1,x\n")
    run(format="parquet")
    assert run(format="parquet", input_csv="null=NA").warnings == []
    run.put(b="n,s\n2,NA\n")
    (told,) = run(format="parquet", input_csv="null=NA").warnings
    assert told.startswith("what is new is read with another input_csv= (--input-csv) than what is packed")
    assert [row["s"] for row in packed_rows(run)] == ["x", None]


@pytest.mark.slow
def test_decimals_are_read_as_those_that_are_packed(run: Run) -> None:
    def put(name: str, value: str) -> None:
        column = pa.array([Decimal(value)], pa.decimal128(10, 2))
        pq.write_table(pa.table({"p": column}), run.source / f"{name}.parquet")

    put("a", "12.50")
    run(format="parquet", decimals="int64")
    assert packed_rows(run) == [{"p": 1250}] and State(str(run.out)).about["settings"]["decimals"] == "int64"  # type: ignore[index]
    put("b", "13.00")
    with pytest.raises(
        SourceError, match=r"whose decimals become something else \(decimals=, --decimals\) are packed as a whole"
    ):
        run(format="parquet", decimals="int64")
    run(format="parquet", decimals="int64", overwrite=True)
    assert sorted(row["p"] for row in packed_rows(run)) == [1250, 1300]
