"""How a job reads its table: the options of every verb become one opened table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import ConfigError, JobTimeoutError, SourceError
from akrunner.io.limits import limited
from akrunner.prepare.arguments import Arguments
from akrunner.prepare.reading import Reading
from akrunner.serving.arguments import PredictArguments

OPTIONS: dict[str, Any] = {
    "input_schema": "a bigint, b double",
    "select": "select a + 1 as a, b from input",
    "defaults": {"b": 0.5},
}


@pytest.mark.parametrize("kind", [Arguments, PredictArguments])
def test_a_script_and_a_model_get_the_same_rows_from_the_same_options(kind: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,\n2,1.5\nx,2\n")
    given = kind("nothing", str(tmp_path / "t.csv"), bad_rows="skip", **OPTIONS)
    reading = Reading.of(given, arrives=False)
    table = reading.open(given.source)
    assert [row for batch in table.batches() for row in batch.to_pylist()] == [{"a": 2, "b": 0.5}, {"a": 3, "b": 1.5}]
    assert reading.bad is not None and reading.bad.count == 1


def test_only_rows_that_arrive_are_held_back() -> None:
    given = PredictArguments("m", None, flush_seconds=0.5)
    assert [Reading.of(given, arrives).flush_seconds for arrives in (True, False)] == [0.5, None]


@pytest.mark.slow
def test_a_query_that_takes_longer_than_the_job_may_ends_the_job_and_is_no_wrong_input(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    endless = "SELECT sum(x.range * y.range) FROM range(100000000) x, range(10000000) y, input"
    given = PredictArguments("m", None, select=endless, timeout=0.3)
    with (
        limited(0.3, None),
        pytest.raises(JobTimeoutError, match=r"longer than timeout=0.3 s .* waited for the query of select="),
    ):
        Reading.of(given, False).open(str(tmp_path / "t.csv"))
    # in a plan
    with pytest.raises(SourceError, match=r"select: the query had given no row after 0.3 s \(timeout=\)"):
        Reading.of(given, False).open(str(tmp_path / "t.csv"))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"select": 5}, "select must be text"),
        ({"decimals": "no"}, "decimals="),
        ({"input_format": "cvs"}, "input_format="),
        ({"input_csv": "delimeter=;"}, "input_csv"),
        ({"bad_rows": "skip", "max_bad_rows": -1}, "max_bad_rows"),
        ({"defaults": 3}, "defaults"),
    ],
)
def test_a_wrong_value_is_named_before_anything_is_opened(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Reading.of(PredictArguments("m", "/no/such.csv", **wrong), arrives=False)


def test_lines_are_of_one_file_of_text(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n')
    table = Reading.written("a bigint", None, None, "fail", 100).lines(str(path), follow=False)
    assert [row for batch in table.batches() for row in batch.to_pylist()] == [{"a": 1}]
    for reading, source, words in (
        (Reading(), [str(path)], "follow= is for one file; the source is list"),
        (Reading(form="parquet"), str(path), "lines are read as"),
        (Reading.written(None, None, "delimiter=;", "fail", 100), str(path), r"input_csv= \(--input-csv\) is for CSV"),
    ):
        with pytest.raises(ConfigError, match=words):
            reading.lines(source, follow=True)
    with pytest.raises(SourceError, match="No such file"):
        Reading().lines(str(tmp_path / "none.csv"), follow=True)


@pytest.mark.parametrize(
    ("csv", "form", "told"),
    [
        (None, None, {}),
        ("null=NA,decimal=comma,delimiter=;", None, {}),
        ("header=no", "csv", {"header": "no", "input_format": "csv"}),
        ("header=a,b,quote=none,skip=2,comment=hash,encoding=latin-1", None, {"header": "no", "quote": "", "skip": 2, "comment": "#", "encoding": "iso8859-1"}),
    ],
)  # fmt: skip
def test_what_decides_where_rows_begin_is_told_and_nothing_else(
    csv: str | None, form: str | None, told: dict[str, Any]
) -> None:
    plain = {"input_format": "", "header": "yes", "quote": '"', "comment": "", "skip": 0, "encoding": ""}
    assert Reading.written(None, form, csv, "fail", 100).read_as == {**plain, **told}
