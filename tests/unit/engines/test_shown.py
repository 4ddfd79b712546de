"""Numbers of a job and results of tasks in a notebook."""

from __future__ import annotations

import dataclasses

from akrunner.engines import shown
from tests.unit.engines.test_base import result, stats
from tests.unit.test_markup import HOSTILE, read


def test_numbers_say_first_what_holds_the_job_up() -> None:
    told = stats(*({"task": "chief:0", "step": at, "time_ns": at, "loss": at / 8} for at in range(30)))
    told = dataclasses.replace(told, seconds=3.0, bound="input", rows_in=1500, input_verdict=["[chief:0] waits"], attempt=1)
    assert told._repr_html_() == shown.stats(told)
    text = read(shown.stats(told))
    assert text.startswith("Stats 3.0 s, input-bound[chief:0] waits")
    assert "rows1,500 in (0.0 MB), 0 out (0.0 MB)" in text and "attempts2" in text
    assert "the last 20 of 30 (report_table has all)" in text and text.endswith("chief:0293.625")
    assert repr(told) == "<Stats: 3.0 s, 0.0 s in main; 1,500 rows in, 0 out; 30 reports; bound: input>"


def test_a_task_has_what_it_printed() -> None:
    told = dataclasses.replace(result(False), log_tail="step 1\nstep 2", rows_padded=3, peak_rss=250_000_000)
    text = read(told._repr_html_())
    assert text.startswith("chief:0 exit code 0") and text.endswith("chief:0 printedstep 1\nstep 2")
    assert "0 in, 0 out (uneven=: 3 added)" in text and "250 MB at most" in text
    assert repr(told) == "<TaskResult chief:0: 0 rows in, 0 out; 0.0 s in main; exit code 0>"


def test_whatever_names_are() -> None:
    told = stats({"task": HOSTILE, "step": None, "time_ns": 1, HOSTILE: 1.0})
    read(
        dataclasses.replace(
            told, tables={HOSTILE: {"rows_read": 1, "rows_written": 0}}, bad_rows=1, bad_rows_file=HOSTILE
        )._repr_html_()
    )
    read(
        dataclasses.replace(
            result(False), name=HOSTILE, exit=HOSTILE, python=HOSTILE, log_tail=HOSTILE, log_path=HOSTILE
        )._repr_html_()
    )
