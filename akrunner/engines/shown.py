"""Numbers of a job, and the result of a task, as HTML for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from akrunner import markup

if TYPE_CHECKING:
    from akrunner.engines.base import Stats, TaskResult

_MB = 1e6


def stats(told: Stats) -> str:
    """Return the HTML of a job's numbers: where its time went, and what slows it down first."""
    return markup.block(
        markup.head("Stats", f"{told.seconds:.1f} s, {_BOUND.get(told.bound, told.bound)}"),
        *(markup.line(markup.text(words)) for words in told.input_verdict),
        markup.warned(told.warnings),
        numbers(told),
        _reported(told),
    )


_BOUND = {"input": "input-bound", "compute": "compute-bound", "unknown": "it is not known what holds it up"}


def numbers(told: Stats) -> str:
    """Return the HTML of a table of a job's numbers."""
    bad = f"{told.bad_rows:,}" + (f", in {told.bad_rows_file}" if told.bad_rows_file is not None else "")
    return markup.facts(
        {
            "rows": f"{told.rows_in:,} in ({told.bytes_in / _MB:,.1f} MB), {told.rows_out:,} out ({told.bytes_out / _MB:,.1f} MB)",
            "rows of each worker": ", ".join(f"{share:,}" for share in told.shares) if 1 < len(told.shares) <= _FEW else "",
            "until main()": f"{told.start_seconds:.1f} s",
            "sending rows": f"{told.feed_seconds:.1f} s",
            "in main()": f"{told.main_seconds:.1f} s",
            "waiting for rows": f"{told.input_wait_seconds:.1f} s",
            "attempts": f"{told.attempt + 1}" if told.attempt else "",
            "bad rows": markup.text(bad) if told.bad_rows else "",
            "tables": markup.text(
                "; ".join(
                    f"{name}: {rows['rows_read']:,} rows read, {rows['rows_written']:,} written"
                    for name, rows in told.tables.items()
                )
            ),
        }
    )


#: how many shares of workers are shown, and how many reports
_FEW, _REPORTS = 16, 20


def _reported(told: Stats) -> str:
    """Return the HTML of what the tasks have reported last."""
    last = told.reports[-_REPORTS:]
    names = list(dict.fromkeys(name for one in last for name in one if name not in ("task", "step", "time_ns")))
    rows = [[one["task"], "" if one["step"] is None else one["step"], *map(_number, map(one.get, names))] for one in last]
    title = f"reports: the last {len(last)} of {len(told.reports):,} (report_table has all)"
    return markup.folded(title, markup.table(["task", "step", *names], rows)) if last else ""


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def task(told: TaskResult) -> str:
    """Return the HTML of a task's result: what it did, and the last lines that it printed."""
    dropped = [f"{told.rows_dropped:,} left out"] if told.rows_dropped else []
    padded = [f"{told.rows_padded:,} added"] if told.rows_padded else []
    uneven = f" (uneven=: {', '.join([*dropped, *padded])})" if dropped or padded else ""
    return markup.block(
        markup.head(told.name, told.exit),
        markup.facts(
            {
                "rows": f"{told.rows_in:,} in, {told.rows_out:,} out{uneven}",
                "in main()": f"{told.main_seconds:.1f} s, and waited {told.input_wait_seconds:.1f} s for rows",
                "memory": f"{told.peak_rss / _MB:,.0f} MB at most",
                "processor": f"{told.cpu_seconds:.1f} s",
                "Python": markup.text(told.python),
                "whole log": markup.text(told.log_path or ""),
            }
        ),
        printed([told]),
    )


def printed(tasks: list[TaskResult]) -> str:
    """Return the HTML of the last lines that each task has printed, folded."""
    return "".join(markup.folded(f"{one.name} printed", markup.lines(one.log_tail)) for one in tasks[:_FEW])
