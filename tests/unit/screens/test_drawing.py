"""What is drawn on a terminal fits it, at any width, and can be read in any colours and without them."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from akrunner.progress.views import PREDICTING, READING, RUNNING, STARTING, TaskView, View
from akrunner.screens.drawing import Frame, bar, drawn


def many(count: int, state: str = "running", doing: str = "in main()") -> tuple[TaskView, ...]:
    return tuple(TaskView(f"worker:{at}", state, doing) for at in range(count))


METRICS = {"loss": 0.29131, "accuracy": 0.871, **{f"metric_of_a_long_name_{n}": n + 0.5 for n in range(8)}}
READS = View(
    42, READING, METRICS, "chief:0", 1200, 12.3, 0.45, 450_000, 1_000_000, 450_000, 0, 120_000, 7.5e6, 5.0, 0, many(64)
)
ODD = TaskView(
    "worker:64", "importing", "importing the script or taking its rows", 12, differs="importing the script or taking its rows"
)
FAILED = TaskView("worker:65", "failed", "failed", 1, differs="failed")
VIEWS = [
    READS,
    View(
        42,
        RUNNING,
        METRICS,
        "chief:0",
        10**9,
        12.3,
        rows_in=10**9,
        rows_out=10**9,
        rows=10**9,
        rows_per_second=1e9,
        tasks=many(1),
    ),
    View(1, PREDICTING, share=1.0, rows=1, rows_total=1, tasks=(*many(3), FAILED, *([ODD] * 20))),
    View(0, STARTING),
    View(9, "listing", rows=12345, share=0.5, rows_total=10**12, seconds_left=1e6),
]


def shown(view: View, width: int, height: int = 25, ascii_only: bool = False) -> list[str]:
    return [line.plain for line in drawn(view, width, height, ascii_only)]


@pytest.mark.parametrize("view", VIEWS)
def test_every_line_fits_every_terminal(view: View) -> None:
    for width in (1, 5, 20, 40, 79, 80, 120, 200, 400):
        for height in (1, 4, 10, 50):
            lines = drawn(view, width, height, False)
            assert all(line.cell_len <= width for line in lines), (width, shown(view, width))
            assert len(lines) <= max(4, height), "no more lines than fit"


def test_a_usual_terminal() -> None:
    assert shown(READS, 80) == [
        "loss 0.2913  accuracy 0.871  12.3 step/s  step 1,200  +8",
        "reading  ━━━━━━╸────────  45 %  450k of 1M rows  120k rows/s  7.5 MB/s  5 s left",
        "42 s  64 tasks in main()",
    ]


def test_a_wide_one_has_all_of_it() -> None:
    metrics, going, _ = shown(READS, 300)
    assert metrics.endswith("metric_of_a_long_name_7 7.5") and "12.3 step/s  step 1,200" in metrics
    assert going.count("━") + going.count("╸") + going.count("─") == 60
    assert going.endswith("  45 %  450k of 1M rows  120k rows/s  7.5 MB/s  5 s left")


def test_metrics_and_share_stay_where_there_is_little_room() -> None:
    metrics, going, tasks = shown(READS, 30)
    assert metrics.startswith("loss 0.2913") and "45 %" in going and "64 tasks" in tasks


def test_only_tasks_that_differ_have_lines_and_no_more_than_fit() -> None:
    assert len(shown(READS, 80)) == 3
    view = View(9, RUNNING, tasks=(*many(60), FAILED, *([ODD] * 9)))
    lines = shown(view, 200)
    assert lines[2:] == [
        "[worker:65] failed for 1.0 s",
        *["[worker:64] importing the script or taking its rows for 12 s"] * 2,
        "and 7 more",
    ]
    assert shown(view, 200, height=7)[2:] == ["[worker:65] failed for 1.0 s", "and 9 more"]


def test_a_bar_grows_and_is_whole_only_at_the_end() -> None:
    lengths = [bar(share / 100, 20, False).plain for share in range(101)]
    assert all(len(one) == 20 for one in lengths) and lengths == sorted(
        lengths, key=lambda one: (one.count("━"), one.count("╸"))
    )
    assert lengths[0] == "─" * 20 and lengths[100] == "━" * 20 and lengths[99] != lengths[100]
    assert bar(0.5, 4, True).plain == "##--"


def test_a_name_of_a_metric_forges_no_line_and_steers_no_terminal() -> None:
    view = View(1, RUNNING, {"a\x1b]0;t\x07\nakrunner: x": 1.0}, "chief:0", tasks=many(1))
    assert shown(view, 80)[0] == "a\\x1b]0;t\\x07\\nakrunner: x 1"


def written(view: View, **options: object) -> str:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, _environ={}, highlight=False, **options)  # type: ignore[arg-type]
    console.print(Frame(view))
    return stream.getvalue()


def test_only_colours_that_the_terminal_chooses_itself() -> None:
    """A colour of its own could not be read on a ground that it was not made for."""
    told = written(VIEWS[2], color_system="truecolor")
    used = {int(code) for codes in re.findall(r"\x1b\[([\d;]*)m", told) for code in codes.split(";") if code}
    assert used <= {0, 1, 2, 22, *range(30, 38)} and used & set(range(30, 38))


def test_without_colours_nothing_is_lost() -> None:
    told = written(READS, no_color=True, color_system="standard")
    assert not re.search(r"\x1b\[[\d;]*3\d", told)
    assert "━" in told and "─" in told


def test_it_says_how_wide_its_lines_are() -> None:
    widths: list[int] = []
    Console(file=io.StringIO(), width=50).print(Frame(READS, str, widths))
    assert len(widths) == 3 and max(widths) <= 50
