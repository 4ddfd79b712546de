"""The HTML of a job that runs, and of one that has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from akrunner import markup
from akrunner.notebook.live import Drawn
from akrunner.progress import words
from akrunner.progress.views import View, last_metrics

#: how many tasks that differ from the others have a line, and how many metrics are shown
_TASKS, _METRICS = 5, 12


def preparing(title: str, seconds: float) -> Drawn:
    """Draw a job whose tasks have not started. Args: title: what runs; seconds: since when."""
    told = f"preparing, {words.seconds(seconds)}"
    return Drawn(markup.block(markup.head(title, told, "running")), f"{title}: {told}")


def running(title: str, view: View, warnings: Sequence[str] = (), printed: str = "") -> Drawn:
    """Draw a job that runs.

    Args: title: what runs; view: how far it is; warnings: those so far; printed: the HTML of what was printed last.
    """
    share = [words.percent(view.share)] if view.share is not None else []
    going = ", ".join(
        part for part in (*share, words.epoch(view), words.rows(view), *words.rates(view), words.left(view)) if part
    )
    different = words.different(view)
    odd = [words.difference(one) for one in different[:_TASKS]]
    odd += [f"and {len(different) - _TASKS:,} more tasks differ from the others"] if len(different) > _TASKS else []
    html = markup.block(
        markup.head(title, f"{words.doing(view)}, {words.seconds(view.seconds)}", "running"),
        _metrics(words.metrics(view)),
        markup.bar(view.share) if view.share is not None else "",
        markup.line(markup.text(going)),
        markup.line(markup.text(words.all_tasks(view)), small=True),
        markup.warned(odd),
        markup.warned(warnings),
        printed,
    )
    return Drawn(html, f"{title}: {words.line(view)}")


def succeeded(title: str, stats: Mapping[str, Any], run: str | None, printed: str) -> Drawn:
    """Draw a job that has succeeded. Args: stats: the fields of its `Stats`; run: its run; printed: as HTML, what was printed."""
    task, step, metrics = last_metrics(stats["reports"])
    told = [*words.named(metrics), *([f"step {step:,}"] if step is not None else [])]
    rows = ", ".join(
        f"{stats[key]:,} row{'s' * (stats[key] != 1)} {way}" for key, way in (("rows_in", "in"), ("rows_out", "out"))
    )
    done = f"done in {words.seconds(stats['seconds'])}: {rows}"
    html = markup.block(
        markup.head(title, done, "succeeded"),
        _metrics(told, f"{task}: " if told else ""),
        *(markup.line(markup.text(f"input: {verdict}")) for verdict in stats["input_verdict"][:_TASKS]),
        markup.warned(stats["warnings"]),
        printed,
        _kept(run),
    )
    return Drawn(html, f"{title}: {done}")


def ended(title: str, how: str, state: str, run: str | None = None, printed: str = "") -> Drawn:
    """Draw what has ended. Args: how: how it has ended, in words; state: in a word; the others: as for `succeeded`."""
    return Drawn(markup.block(markup.head(title, how, state), printed, _kept(run)), f"{title}: {how}")


def _metrics(told: Sequence[str], of: str = "") -> str:
    parts = "".join(f'<b style="margin-right:1.5em">{markup.text(one)}</b>' for one in told[:_METRICS])
    return markup.line(f"{markup.text(of)}{parts}" if told else "")


def _kept(run: str | None) -> str:
    if run is None:
        return ""
    return markup.line(
        f"kept as <code>{markup.text(run)}</code>: <code>akrunner.runs.get({markup.text(repr(run))})</code>", small=True
    )
