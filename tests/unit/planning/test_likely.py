"""What is likely to go wrong with a job, told before it starts. What a script leaves unwritten is in `tests/unit/test_planning.py`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from akrunner.launch import capacity, devices, imported
from akrunner.planning.likely import warnings_of
from akrunner.planning.plan import UNREAD, PlannedColumn
from akrunner.planning.tasks import PlannedTask
from akrunner.schema import Schema
from akrunner.spec import JobSpec, ResourceSpec, ScriptSpec
from akrunner.trial import Trial

WRITES = "def main(task_config):\n    task_config.output_writer.write({'a': 1})\n"
NOTHING = "def main(task_config):\n    pass\n"
SCHEMA = Schema.parse("a bigint", "x")
COLUMN = PlannedColumn("a", "int64", "int64, one value", 2, UNREAD)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores, room for ten tasks, and an interpreter that has all modules and is not asked."""
    monkeypatch.setattr(devices, "cpus", lambda: [0, 1])
    monkeypatch.setattr(capacity, "most_tasks", lambda: (10, "so much memory"))
    monkeypatch.setattr(imported, "missing", lambda job, code: [])


@pytest.fixture
def job(tmp_path: Path) -> Any:
    """(text of the script, fields) -> a job."""

    def made(text: str = NOTHING, **fields: Any) -> JobSpec:
        (tmp_path / "s.py").write_text(text)
        real = str(tmp_path / "s.py")
        script = ScriptSpec(real, "s.py", ((real, "s.py"),), program=fields.pop("program", False))
        return JobSpec(script, Schema(()), "python", **fields)

    return made


def told(job: JobSpec, **given: Any) -> list[str]:
    tasks = tuple(PlannedTask(f"worker:{i}", True, (), {}, None) for i in range(given.pop("workers", 1)))
    given = {"output": None, "columns": (), "rows": 100, "requirements": None, "trial": None, **given}
    return warnings_of(job, tasks=tasks, **given)


def test_a_job_that_is_right_is_warned_of_nothing(job: Any) -> None:
    assert told(job()) == [] == told(job(), rows=None)


def test_what_was_noted_of_the_job_comes_first(job: Any) -> None:
    assert told(job(notes=("a note",)), rows=0)[0] == "a note"


def test_an_input_without_rows_is_told_with_what_becomes_of_its_output(job: Any) -> None:
    (only,) = told(job(), rows=0)
    assert only == "the input has no rows: the script runs, and gets none"
    (fails,) = told(job(WRITES, output_inferred=True), rows=0, output="o.csv")
    assert "o.csv is not made" in fails and "output_schema= (--output-schema)" in fails
    assert told(job(WRITES, output_schema=SCHEMA), rows=0, output="o.csv") == [only]


@pytest.mark.parametrize("rows, warned", [(1, True), (2, False), (None, False)])
def test_more_workers_than_rows(job: Any, rows: int | None, warned: bool) -> None:
    assert any("for 2 workers" in one for one in told(job(), rows=rows, workers=2)) == warned


@pytest.mark.parametrize(
    "column, words",
    [
        (COLUMN, "column 'a' has 2 nulls: a script that reads it needs defaults={'a': ...}"), (dataclasses.replace(COLUMN, nulls=1), "column 'a' has 1 null:"),
        (dataclasses.replace(COLUMN, nulls=1234), "has 1,234 nulls"), (dataclasses.replace(COLUMN, nulls=0), ""), (dataclasses.replace(COLUMN, nulls=None), ""),
        (dataclasses.replace(COLUMN, null="NaN"), ""),
    ],
)  # fmt: skip
def test_nulls_that_a_script_may_stumble_over(job: Any, column: PlannedColumn, words: str) -> None:
    found = told(job(), columns=(column,))
    assert words in found[0] if words else found == []


def test_nulls_that_the_script_has_met_in_a_trial_are_no_news(job: Any) -> None:
    assert told(job(), columns=(COLUMN,), trial=Trial(5, 0, 0.1, None, "", (), nulls=("a",))) == []
    assert len(told(job(), columns=(COLUMN,), trial=Trial(5, 0, 0.1, None, "", (), nulls=("b",)))) == 1


@pytest.mark.parametrize("workers, cpus, warned", [(8, None, False), (9, None, True), (9, 1, False)])
def test_many_workers_on_few_cores(job: Any, workers: int, cpus: int | None, warned: bool) -> None:
    found = told(job(resources=ResourceSpec(cpus_per_worker=cpus)), workers=workers)
    assert any(one.startswith(f"{workers} workers share 2 cores") for one in found) == warned


@pytest.mark.parametrize("workers, warned", [(10, False), (11, True)])
def test_more_tasks_than_fit_are_told_with_the_reason(job: Any, workers: int, warned: bool) -> None:
    wanted = f"{workers} tasks are more than the 10 that fit here (so much memory)"
    assert (wanted in told(job(), workers=workers)) == warned


def test_a_module_that_is_missing_may_lie_beside_the_script(job: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(imported, "missing", lambda job, code: [("helper", 3), ("torch", 4)])
    (tmp_path / "helper.py").write_text("")
    beside, elsewhere = told(job())
    assert "imports helper in line 3" in beside and "user_files=['helper.py'] (--user-file helper.py)" in beside
    assert "imports torch in line 4" in elsewhere and "requirements= (--requirements)" in elsewhere
    assert told(job(), requirements="r.txt") == [], "what is installed first may have them"


@pytest.mark.parametrize(
    "text, fields, given, word",
    [
        (NOTHING, {"output_schema": SCHEMA}, {}, "never calls output_writer"), (WRITES, {"output_schema": SCHEMA}, {}, ""),
        (NOTHING, {"output_schema": SCHEMA, "program": True}, {}, ""), (NOTHING, {"output_schema": SCHEMA, "mode": "stream"}, {}, ""),
        (NOTHING, {"output_inferred": True}, {"output": "o.csv"}, "never mentions output_writer"), (NOTHING, {"output_inferred": True}, {}, ""),
        ("import akdl\n" + NOTHING, {"output_inferred": True}, {"output": "o.csv"}, ""),
        (NOTHING, {"mode": "train", "model_dir": "m"}, {}, "never mentions task_config.saved_model_dir"),
        ("# saved_model_dir\n" + NOTHING, {"mode": "train", "model_dir": "m"}, {}, ""),
    ],
)  # fmt: skip
def test_what_a_script_seems_not_to_write(job: Any, text: str, fields: Any, given: Any, word: str) -> None:
    found = told(job(text, **fields), **given)
    assert word in found[0] if word else found == []


def test_a_file_that_goes_with_the_script_may_write(job: Any, tmp_path: Path) -> None:
    made = job(output_inferred=True)
    (tmp_path / "lib.py").write_text(WRITES)
    files = (*made.script.files, (str(tmp_path / "lib.py"), "lib.py"), (str(tmp_path / "gone.py"), "gone.py"))
    assert told(dataclasses.replace(made, script=dataclasses.replace(made.script, files=files)), output="o.csv") == []


def test_a_trial_that_wrote_nothing_says_more_than_the_scripts_text(job: Any) -> None:
    trial = Trial(5, 0, 0.1, None, "", ())
    (one,) = told(job(WRITES, output_schema=SCHEMA), trial=trial)
    assert one == "the script wrote no row over these 5 rows, and output_schema= (--output-schema) is given"
    assert told(job(WRITES, output_schema=SCHEMA), trial=Trial(1, 1, 0.1, None, "", ())) == []
    (train,) = told(job(mode="train", model_dir="m"), trial=trial)
    assert train.startswith("the script exported nothing to task_config.saved_model_dir over these rows: ")
    single = Trial(1, 0, 0.1, None, "", ())
    (one,) = told(job(WRITES, output_schema=SCHEMA), trial=single)
    assert one == "the script wrote no row over this 1 row, and output_schema= (--output-schema) is given"
    (train,) = told(job(mode="train", model_dir="m"), trial=single)
    assert "over this row: " in train


def test_a_password_of_the_output_is_not_shown(job: Any) -> None:
    url = "ftp://me:secret@host/o.csv"
    for given in ({"rows": 0}, {}, {"trial": Trial(1, 0, 0.1, None, "", ())}):
        found = " ".join(told(job(output_inferred=True), output=url, **given))
        assert "o.csv" in found and "secret" not in found
