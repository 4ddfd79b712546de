"""Runs as HTML for notebooks: one, or a list."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from akrunner import markup
from akrunner.foreign import redacted
from akrunner.history import words

if TYPE_CHECKING:
    from akrunner.runs.looking import Run

#: of how many tasks the logs are shown, and how many lines of each; how many runs are listed; characters of an argument
_TASKS, _LINES, _RUNS, _CHARACTERS = 8, 200, 50, 200


def run(told: Run) -> str:
    """Return the HTML of a run: if it has failed, the script's own traceback first."""
    rows = told.rows
    failure = told.failure or {}
    return markup.block(
        markup.head(told.id, f"{told.state}, {_what(told)}, {words.took(told.seconds)}", told.state),
        markup.lines(str(failure.get("traceback", ""))),
        markup.line(markup.text(told.told)),
        markup.warned(told.warnings),
        markup.facts(
            {
                "metrics": "<br>".join(markup.text(f"{task}: {_metrics(last)}") for task, last in told.metrics.items()),
                "rows": f"{rows[0]:,} in, {rows[1]:,} out" if rows is not None else "",
                "began": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(told.began)),
                "engine": markup.text(f"{told.engine}, {len(told.tasks):,} task{'s' * (len(told.tasks) != 1)}"),
                "output": markup.text(redacted(told.output or "")),
            }
        ),
        _logs(told),
        markup.folded("arguments", markup.facts({name: _short(words.value(one)) for name, one in told.arguments.items()})),
        markup.folded("versions", markup.facts({name: markup.text(one) for name, one in told.versions.items()})),
    )


def listed(told: Sequence[Run]) -> str:
    """Return the HTML of a list of runs."""
    rows = [
        (
            one.id,
            one.state,
            time.strftime("%Y-%m-%d %H:%M", time.localtime(one.began)),
            words.took(one.seconds),
            _what(one),
            _cut(one.message.partition("\n")[0] or one.error) if one.error else _metrics(next(iter(one.metrics.values()), {})),
        )
        for one in told[:_RUNS]
    ]
    more = f"and {len(told) - _RUNS:,} more" if len(told) > _RUNS else ""
    shown = markup.table(["run", "state", "began", "took", "what", "last"], rows) if rows else "no run is kept"
    return markup.block(shown, markup.line(more, small=True))


def _what(told: Run) -> str:
    return f"{told.verb} {os.path.basename(told.script)}"


def _metrics(last: Mapping[str, Any]) -> str:
    step = f" step={last['step']}" if last.get("step") is not None else ""
    return " ".join(f"{words.metric(name)}={words.number(last[name])}" for name in words.ranked(last)) + step


def _short(text: str) -> str:
    return markup.text(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 3] + "..."


def _logs(told: Run) -> str:
    if told.detached is not None:
        # its lines are on the cluster, which is not asked because somebody looks at a run
        return markup.line(f"<code>akrunner.runs.logs({markup.text(repr(told.id))})</code> asks the cluster for its lines")
    tails = {task: deque(told.logs(task), _LINES) for task in told.tasks[:_TASKS]}
    return "".join(markup.folded(f"{task} printed", markup.lines("\n".join(tail))) for task, tail in tails.items())
