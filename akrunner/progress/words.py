"""A `View` in words: numbers short enough for a display, and all of it as one line of text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping

from akrunner.history.words import FOUR_FIGURES, metric, took
from akrunner.progress.views import SCRIPT, TaskView, View

_MINUTE, _THOUSAND = 60, 1000
#: states whose word is not the one that people would use where others stand beside it
_SHORT = {"ready": "waiting", "running": "in main()", "finished": "done"}
#: how many tasks that differ a line names
_NAMED = 3
#: how many metrics stand before the speed of the training
_BEFORE_STEPS = 2
#: a whole number below is shown as it is
_WHOLE = 100_000
_UNITS = ("", "k", "M", "G", "T", "P")
#: a number of a unit that is shown with tenths is below, as 9.95 is shown as 10
_TENTHS = 9.95

#: returns a length of time, as what is kept of a run tells it
seconds = took


def number(value: float) -> str:
    """Return a number with few figures: "0.02913", "12,345", "1.23M", "nan"."""
    if not math.isfinite(value):
        return str(value)
    if round(abs(value)) < _WHOLE:
        whole = float(value).is_integer() or abs(value) >= FOUR_FIGURES
        return f"{value:,.0f}" if whole else f"{value:.4g}"
    power, shown = _scaled(value)
    return f"{value:.3g}" if abs(shown) >= _THOUSAND else f"{shown:.3g}{_UNITS[power]}"


def size(value: float) -> str:
    """Return a number of bytes: "812 kB", "7.5 MB"."""
    power, shown = _scaled(value)
    return f"{shown:.0f} {_UNITS[power]}B" if shown >= _TENTHS or not power else f"{shown:.1f} {_UNITS[power]}B"


def _scaled(value: float) -> tuple[int, float]:
    """Return the power of a thousand whose unit a number of three figures has, and the number in that unit."""
    # rounded first: 999,700 is 1M, not 1000k
    figures = float(f"{value:.3g}")
    power = min((len(str(int(abs(figures)))) - 1) // 3, len(_UNITS) - 1)
    return power, figures / _THOUSAND**power


def percent(share: float) -> str:
    """Return a share as a percentage, which is 100 only if nothing is left: "45 %"."""
    # 29 of 100 is 0.28999999999999998 times 100
    return f"{math.floor(share * 100 + 1e-9)} %"


def doing(view: View) -> str:
    """Return what the job is doing, in a word or two."""
    return f"{view.doing}, attempt {view.attempt + 1}" if view.attempt else view.doing


def metrics(view: View) -> list[str]:
    """Return the newest metrics and the speed of the training, one text for each, what matters most first: "loss 0.291", "12.3 step/s",
    "step 1,200"."""
    found = named(view.metrics)
    told = found[:_BEFORE_STEPS]
    if view.steps_per_second is not None:
        told.append(f"{number(round(view.steps_per_second, 2))} step/s")
    if view.step is not None:
        told.append(f"step {view.step:,}")
    return [*told, *found[_BEFORE_STEPS:]]


def named(found: Mapping[str, float]) -> list[str]:
    """Return each metric with its value: "loss 0.291"."""
    return [f"{metric(name)} {number(value)}" for name, value in found.items()]


def rows(view: View) -> str:
    """Return how many rows are done: "450,000 of 1M rows"; "" if there are none to speak of."""
    if view.share is not None and view.share_of != SCRIPT and view.rows_total is not None:
        return f"{number(view.rows)} of {number(view.rows_total)} rows"
    if view.rows_in and view.rows_out:
        return f"{number(view.rows_in)} rows in, {number(view.rows_out)} out"
    if view.rows_in or view.rows_out:
        return f"{number(view.rows_in)} rows in" if view.rows_in else f"{number(view.rows_out)} rows out"
    return f"{number(view.rows)} rows" if view.rows else ""


def epoch(view: View) -> str:
    """Return in which epoch the script is: "epoch 3 of 10", "epoch 3"; "" if that is not known."""
    if view.epoch is None:
        return ""
    return f"epoch {view.epoch:,}" + (f" of {view.epochs:,}" if view.epochs is not None else "")


def rates(view: View) -> list[str]:
    """Return how fast rows go at the moment: "120,000 rows/s", "7.5 MB/s"; [] if that is not known."""
    told = []
    if view.rows_per_second is not None:
        told.append(f"{number(round(view.rows_per_second, 0 if view.rows_per_second >= 10 else 1))} rows/s")
        if view.bytes_per_second:
            told.append(f"{size(view.bytes_per_second)}/s")
    return told


def left(view: View) -> str:
    """Return how long the rest will take: "5 s left", "5 s left in the epoch"; "" if that is not known."""
    if view.seconds_left is None:
        return ""
    # no tenths: they would change too fast to be read, and be wrong
    whole = max(round(view.seconds_left), 1)
    told = f"{whole} s left" if whole < _MINUTE else f"{seconds(whole)} left"
    return f"{told} in the epoch" if view.epoch is not None and view.epochs is None else told


def all_tasks(view: View, name: Callable[[str], str] = str) -> str:
    """Return what the tasks are doing, all in one: "chief:0 in main()", "8 tasks: 6 waiting, 2 importing"; "" if there are none.

    Args: name: returns the name by which a task is shown.
    """
    if len(view.tasks) == 1:
        one = view.tasks[0]
        return f"{name(one.name)} {one.doing}"
    counted = Counter(_SHORT.get(task.state, task.state) for task in view.tasks).most_common()
    if len(counted) == 1:
        return f"{len(view.tasks)} tasks {view.tasks[0].doing}"
    return f"{len(view.tasks)} tasks: {', '.join(f'{many} {short}' for short, many in counted)}" if counted else ""


def different(view: View) -> list[TaskView]:
    """Return the tasks that differ from the others."""
    return [one for one in view.tasks if one.differs]


def difference(task: TaskView, name: Callable[[str], str] = str) -> str:
    """Return in what a task differs: "[worker:3] importing the script or taking its rows for 12 s". Args: name: as for `all_tasks`."""
    long = "" if task.differs.startswith("slow") else f" for {seconds(task.seconds)}"
    return f"[{name(task.name)}] {task.differs}{long}"


def line(view: View, name: Callable[[str], str] = str) -> str:
    """Return all of it as one line: "42 s: loss 0.291, 12.3 step/s; reading 45 %, 450,000 of 1M rows, 120,000 rows/s, 5 s left; 8 tasks
    in main()". Args: name: as for `all_tasks`."""
    share = [percent(view.share)] if view.share is not None else []
    going = [part for part in (*share, epoch(view), rows(view), *rates(view), left(view)) if part]
    odd = different(view)
    told = [difference(one, name) for one in odd[:_NAMED]]
    if len(odd) > _NAMED:
        told.append(f"and {len(odd) - _NAMED:,} more")
    parts = [
        ", ".join(metrics(view)),
        (" " if share else ", ").join(filter(None, [doing(view), ", ".join(going)])),
        ", ".join([*filter(None, [all_tasks(view, name)]), *told]),
    ]
    return f"{seconds(view.seconds)}: {'; '.join(filter(None, parts))}"
