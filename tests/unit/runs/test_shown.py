"""Runs in a notebook."""

from __future__ import annotations

from akrunner.history import record
from akrunner.history.logs import LogCopy
from akrunner.runs import get, listed, shown
from tests.unit.runs.conftest import Make
from tests.unit.test_markup import HOSTILE, read


def test_one_with_its_logs_and_a_list(make: Make) -> None:
    path = make(metrics={"chief:0": {"loss": 0.25, "step": 9}}, arguments={"num_workers": 2}, versions={"akrunner": "1"})
    copy = LogCopy(path, "chief:0")
    copy.write(f"step 1\n{HOSTILE}\n".encode())
    copy.close()
    run = get("last")
    assert run._repr_html_() == shown.run(run)
    text = read(shown.run(run))
    assert text.startswith("● r1 succeeded, run t.py, 3.0 smetricschief:0: loss=0.25 step=9began")
    assert "chief:0 printedstep 1\n<script>" in text and "argumentsnum_workers2versionsakrunner1" in text
    found = listed()
    assert isinstance(found, list)
    assert read(found._repr_html_()).endswith("3.0 srun t.pyloss=0.25 step=9")  # type: ignore[attr-defined]
    assert read(type(found)()._repr_html_()) == "no run is kept"  # type: ignore[attr-defined]


def test_of_one_that_has_failed_the_traceback_comes_first(make: Make) -> None:
    failure = {"task": "chief:0", "what": "it raised", "traceback": "Traceback: x = 1 / 0", "log_tail": ""}
    make(state=record.FAILED, error="ScriptFailedError", message="[chief:0] it raised", failure=failure)
    text = read(get("last")._repr_html_())
    assert text.startswith("● r1 failed, run t.py, 3.0 sTraceback: x = 1 / 0ScriptFailedError: [chief:0] it raised")


def test_the_lines_of_a_detached_run_are_not_asked_for(make: Make) -> None:
    make(detached={"job": "a", "master": "nowhere.invalid:1", "name": "n"})
    assert "akrunner.runs.logs('r1') asks the cluster" in read(get("last")._repr_html_())
