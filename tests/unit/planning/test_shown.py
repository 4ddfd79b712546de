"""A plan in a notebook: what is likely to go wrong first."""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from akrunner.planning import shown
from akrunner.planning.text import line_of
from akrunner.trial import Trial
from tests.unit.planning.test_plan import COLUMN, PLAN
from tests.unit.test_markup import HOSTILE, read


def test_warnings_stand_first_and_columns_in_a_table() -> None:
    text = read(dataclasses.replace(PLAN, warnings=("5 rows for 9 workers",))._repr_html_())
    assert text.startswith("run on engine local nothing was started5 rows for 9 workersscriptjobs/s.py: main(task_config)")
    assert "1 columncolumntypethe script getsnullsa null becomesaint64int64, one value1,200NaN" in text


def test_all_that_the_text_says_is_there() -> None:
    trial = Trial(5, 5, 0.5, pa.table({"id": [1, 2], "p": [0.5, 0.25]}), "one\ntwo", ())
    many = tuple(dataclasses.replace(COLUMN, name=f"c{at}") for at in range(45))
    plan = dataclasses.replace(PLAN, trial=trial, columns=many, given=("num_workers: the call",))
    text = read(plan._repr_html_())
    for words in (
        "and 5 more columns",
        "5 rows in, 5 rows out, 0.5 s; thrown away",
        "0.25",
        "one",
        "two",
        "givennum_workers: the call",
    ):
        assert words in text, words


def test_whatever_names_are() -> None:
    read(
        dataclasses.replace(
            PLAN, script=HOSTILE, warnings=(HOSTILE,), columns=(dataclasses.replace(COLUMN, name=HOSTILE),)
        )._repr_html_()
    )


def test_many_lines_below_a_name_are_folded() -> None:
    lines = ["run; nothing was started", *line_of("tasks", "20"), *(f"{chr(32) * 14}worker:{at}" for at in range(20))]
    text = read(shown.plan(lines, {}))
    assert text.startswith("run nothing was startedtasks2020 more linesworker:0")
