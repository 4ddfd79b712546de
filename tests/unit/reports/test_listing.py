"""The list of runs, as a page."""

from __future__ import annotations

from typing import Any

from akrunner.history import record
from akrunner.history.record import Record
from akrunner.reports.listing import listing
from akrunner.reports.page import page


def run(name: str, **fields: Any) -> Record:
    return Record(
        record.VERSION,
        name,
        **{"verb": "run", "state": record.SUCCEEDED, "began": 0.0, "ended": 5.0, "script": "t.py", **fields},
    )


def test_a_line_for_each_run() -> None:
    failed = run("r2", state=record.FAILED, error="JobError", message="<b>no\nmore", engine="flink")
    made = listing([(failed, None), (run("r1", metrics={"chief:0": {"step": 5, "loss": 0.5}}), (1234, 1))], False)
    assert (
        '<a href="/runs/r2">r2</a>' in made.body and "&lt;b&gt;no" in made.body and "more" not in made.body.partition("r1")[0]
    )
    assert "1,234" in made.body and "loss=0.5" in made.body and "run t.py (flink)" in made.body and not made.again
    text = page(made)
    assert "<script" not in text and "refresh" not in text


def test_while_a_run_goes_on_the_browser_asks_again() -> None:
    made = listing([(run("r1", state=record.RUNNING, ended=None), None)], True)
    assert 'http-equiv="refresh"' in page(made) and "only those that have failed" in made.body
    assert "No run that has failed is kept yet." in listing([], True).body and "No run is kept yet." in listing([], False).body
