"""What a plan knows of a table without reading it, and what it says of a script that was not run."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import akrunner
from akrunner.planning.known import known_nulls, known_rows
from akrunner.trial import Trial

FRAME = pd.DataFrame({"a": [1, 2, 3]})


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        (pa.table({"a": [1, 2, 3]}), 3),
        (pa.table({"a": []}), 0),
        (FRAME, 3),
        (pl.DataFrame({"a": [1, 2, 3]}), 3),
        (pl.LazyFrame({"a": [1, 2, 3]}), None),
        (np.zeros(3, [("a", "i8")]), 3),
        ({"a": [1, 2, 3]}, 3),
        ({"a": FRAME["a"], "b": [1, 2, 3]}, 3),
        ([{"a": 1}, {"a": 2}], 2),
        (["a.csv", "b.csv"], None),
        ("a.csv", None),
        (iter([{"a": 1}]), None),
        (None, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rows_in_memory_are_known(source: Any, rows: int | None) -> None:
    assert known_rows(source, None) == rows


@pytest.mark.parametrize(
    ("source", "nulls"),
    [
        (pa.table({"a": [1, None], "b": [1, 2]}), {"a": 1, "b": 0}),
        (pd.DataFrame({"a": [1, None], "b": ["x", "y"]}), {"a": 1, "b": 0}),
        (pl.DataFrame({"a": [1, None], "b": [1, 2]}), {"a": 1, "b": 0}),
        (pl.LazyFrame({"a": [1]}), {}),
        (FRAME["a"], {}),
    ],
    ids=["arrow", "pandas", "polars", "lazy", "series"],
)
def test_nulls_in_memory_are_known(source: Any, nulls: dict[str, int]) -> None:
    assert known_nulls(source, None) == nulls


WRITES = "def main(task_config):\n    task_config.output_writer.write({'a': 1})\n"
NOTHING = "def main(task_config):\n    pass\n"


def script(folder: Path, text: str) -> str:
    (folder / "s.py").write_text(text)
    return str(folder / "s.py")


def test_a_script_that_writes_nothing_is_told_of(tmp_path: Path) -> None:
    def warned(text: str, **options: Any) -> str:
        return "\n".join(akrunner.plan(script(tmp_path, text), {"a": [1]}, **options).warnings)

    out = str(tmp_path / "mine.csv")
    assert "never mentions output_writer" in warned(NOTHING, output=out) and "mine.csv is not made" in warned(
        NOTHING, output=out
    )
    assert warned(WRITES, output=out) == warned(NOTHING) == ""
    (tmp_path / "helper.py").write_text(WRITES)
    assert warned("import helper\n" + NOTHING, output=out, user_files=[str(tmp_path / "helper.py")]) == ""
    exports = "def main(task_config):\n    model.save(task_config.saved_model_dir)\n"
    assert "never mentions task_config.saved_model_dir" in warned(NOTHING, verb="train") and warned(exports, verb="train") == ""


def test_what_the_script_left_out_over_a_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tried(written: pa.Table, *exported: str) -> None:
        rows = written.num_rows if written is not None else 0
        monkeypatch.setattr("akrunner.planning.making.tried", lambda *_: Trial(5, rows, 0.1, written, "", exported))

    out = str(tmp_path / "mine.csv")
    tried(None)
    plan = akrunner.plan(script(tmp_path, WRITES), {"a": [1]}, output=out, try_rows=5)
    assert plan.warnings == (
        f"the script wrote no row over these 5 rows, and output='{out}' (--output) is given; a job that writes none fails at its end, as nobody knows the "
        "columns",
    )
    assert "exported nothing" in akrunner.plan(script(tmp_path, NOTHING), {"a": [1]}, verb="train", try_rows=5).warnings[0]
    tried(pa.table({"a": [1], "p": [0.5]}), "saved_model.pb")
    plan = akrunner.plan(script(tmp_path, NOTHING), {"a": [1]}, output=out, try_rows=5)
    assert plan.warnings == () and "decides:      a int64, p double" in str(plan)
    assert akrunner.plan(script(tmp_path, NOTHING), {"a": [1]}, verb="train", try_rows=5).warnings == ()


def test_the_format_of_the_output_is_said(tmp_path: Path) -> None:
    def form(output: str, **options: Any) -> str:
        plan = akrunner.plan(script(tmp_path, WRITES), {"a": [1]}, output=str(tmp_path) + "/" + output, **options)
        assert f"format:       {plan.output_format}\n" in str(plan)
        return plan.output_format

    assert (form("o.csv"), form("o/"), form("o", output_format="jsonl")) == ("csv", "parquet", "jsonl")
    assert akrunner.plan(script(tmp_path, WRITES), {"a": [1]}).output_format == ""


def test_a_file_that_is_given_twice_is_told_of(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("a\n1\n")
    one, two = str(tmp_path / "a.csv"), str(tmp_path / "b.csv")

    def warned(*source: str) -> tuple[str, ...]:
        return akrunner.plan(script(tmp_path, NOTHING), list(source)).warnings

    assert warned(one, two) == ()
    assert warned(one, two, one) == (
        f"source: {one} is given twice, so its rows are read twice: name each file once (--input)",
    )
    assert warned(one, str(tmp_path / "*.csv"), one)[0].startswith(f"source: {one} is given 3 times, so its rows")
    assert "twice, and one more file is, so" in warned(str(tmp_path / "*.csv"), str(tmp_path / "?.csv"))[0]


def test_where_values_come_from_is_said_beside_a_job_file(tmp_path: Path) -> None:
    script(tmp_path, NOTHING)
    (tmp_path / "job.toml").write_text('script = "s.py"\nscript_args = ["a"]\n[user_params]\nlr = 1\n')
    plan = akrunner.plan(tmp_path / "job.toml", {"a": [1]}, num_workers=1, user_params={"lr": 2})
    more = akrunner.plan(tmp_path / "job.toml", {"a": [1]}, user_params={"batch": 2})
    assert "user_params: the call (batch) and the job file (lr)" in more.given
    assert plan.given == (
        "script: the job file", "script_args: the job file", "user_params: the call", "source: the call",
        "num_workers: the call",
    )  # fmt: skip
    assert str(plan).endswith("given:        " + "; ".join(plan.given))
    assert akrunner.plan(script(tmp_path, NOTHING), {"a": [1]}).given == ()


def test_rows_of_a_trial_keep_their_narrow_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    written = pa.table({"id": [1, 2], "name": ["", None], "v": [[0.5] * 64] * 2, "w": [[0.5] * 64] * 2, "digit": [7, 8]})
    monkeypatch.setattr("akrunner.planning.making.tried", lambda *_: Trial(5, 2, 0.1, written, "", ()))
    lines = str(akrunner.plan(script(tmp_path, WRITES), {"a": [1]}, try_rows=5)).splitlines()
    first, second = lines[-2:]
    assert first.split()[0] == "1" and first.endswith("  7") and second.split()[:2] == ["2", "NULL"] and len(second) <= 80
    monkeypatch.setenv("COLUMNS", "50")
    lines = str(akrunner.plan(script(tmp_path, WRITES), {"a": [1]}, try_rows=5)).splitlines()
    assert lines[-1].strip() == "... 1 more column (digit); --json has them all"
