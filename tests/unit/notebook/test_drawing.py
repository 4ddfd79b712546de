"""What is drawn of a job."""

from __future__ import annotations

from akrunner.notebook import drawing
from akrunner.progress.views import READING, RUNNING, TaskView, View
from tests.unit.engines.test_base import stats
from tests.unit.test_markup import HOSTILE, read


def test_a_job_that_reads() -> None:
    view = View(
        12.0,
        READING,
        share=0.45,
        rows=450_000,
        rows_total=1_000_000,
        rows_per_second=120_000.0,
        seconds_left=4.6,
        rows_in=450_000,
    )
    html, plain = drawing.running("run t.py", view)
    assert read(html).endswith("run t.py reading, 12 s45 %, 450k of 1M rows, 120k rows/s, 5 s left") and "width:45.0%" in html
    assert plain == "run t.py: 12 s: reading 45 %, 450k of 1M rows, 120k rows/s, 5 s left"


def test_metrics_tasks_and_warnings() -> None:
    tasks = tuple(TaskView(f"worker:{at}", "importing", "importing", 3.0, differs="importing" if at else "") for at in range(9))
    view = View(3.0, RUNNING, metrics={"loss": 0.25}, step=20, steps_per_second=2.0, tasks=tasks)
    html, _ = drawing.running("run t.py", view, ["it is slow"], "<pre>last</pre>")
    text = read(html)
    assert "loss 0.252 step/sstep 20" in text and "[worker:5] importing for 3.0 s" in text and "[worker:6]" not in text
    assert "and 3 more tasks differ from the others" in text and text.endswith("it is slowlast") and "height:6px" not in html


def test_a_job_that_has_succeeded() -> None:
    told = stats({"task": "chief:0", "step": 7, "time_ns": 1, "loss": 0.5})
    told.warnings.append("w")
    html, plain = drawing.succeeded("run t.py", vars(told), "r7", "<details></details>")
    assert plain == "run t.py: done in 0.0 s: 0 rows in, 0 rows out"
    assert "chief:0: loss 0.5step 7w" in read(html) and read(html).endswith("kept as r7: akrunner.runs.get('r7')")


def test_whatever_names_and_words_are() -> None:
    view = View(1.0, RUNNING, metrics={HOSTILE: 1.0}, metrics_of=HOSTILE, tasks=(TaskView(HOSTILE, "running", HOSTILE),))
    odd = stats({"task": HOSTILE, "step": None, "time_ns": 1, HOSTILE: 0.5})
    odd.warnings.append(HOSTILE)
    odd.input_verdict.append(HOSTILE)
    for drawn in (
        drawing.preparing(HOSTILE, 1.0),
        drawing.running(HOSTILE, view, [HOSTILE]),
        drawing.succeeded(HOSTILE, vars(odd), HOSTILE, ""),
        drawing.ended(HOSTILE, HOSTILE, "failed"),
    ):
        read(drawn.html)
