"""What a display shows of a running job at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from akrunner.history.reported import latest

#: metrics with these words in their names are shown first
_FIRST = ("loss", "acc")

#: what a job may be doing
STARTING, READING, RUNNING, PREDICTING, ENDING, WAITING = "starting", "reading", "running", "predicting", "ending", "waiting"
#: of what a share is known: of the rows that go to the tasks, or come from them; of what the script does with its rows
ROWS, SCRIPT = "rows", "script"


@dataclass(frozen=True)
class TaskView:
    """What is shown of one task.

    Attributes:
        name: its name, such as `worker:0`.
        state: what it is doing: the word of a `TaskState`, or `RESTARTING`.
        doing: the same in words for people.
        seconds: for how long it has been doing that.
        rows_in: rows that it was sent.
        rows_out: rows that came from it.
        step: the newest training step that it has reported; None: none.
        steps_per_second: how many steps it does in a second at the moment; None: not known.
        rows_per_second: how many rows come from it in a second at the moment; None: not known.
        differs: in what it differs from the others, in words; "": in nothing.
    """

    name: str
    state: str
    doing: str
    seconds: float = 0.0
    rows_in: int = 0
    rows_out: int = 0
    step: int | None = None
    steps_per_second: float | None = None
    rows_per_second: float | None = None
    differs: str = ""


@dataclass(frozen=True)
class View:
    """What a display shows at one moment.

    Attributes:
        seconds: time since the job, or its newest attempt, started.
        doing: what the job is doing: starting, reading, running, predicting, ending, or waiting (to be started again);
            or a word of a run that has no tasks, as `akrunner pack` has: listing, writing.
        metrics: the newest metrics of the task that leads (the chief, or the first that reports), those about a loss and an
            accuracy first.
        metrics_of: the name of that task; "" if none has reported any.
        step: its newest training step; None: it reports none.
        steps_per_second: how many steps it does in a second at the moment; None: not known.
        share: which share is done, 0 to 1, of what `share_of` says; None: not known.
        rows: sent to the tasks; of a prediction, answered.
        rows_total: how many rows there are; None: not known.
        rows_in: rows sent to the tasks.
        rows_out: rows that came from the tasks.
        rows_per_second: how many of `rows`, or of `rows_out` once all were sent, are done in a second at the moment; None: not known.
        bytes_per_second: the same in bytes.
        seconds_left: how long the rest of `share` will take; None: not known.
        attempt: how many attempts at the job there were before this one.
        tasks: all tasks, in their order.
        share_of: ROWS; or SCRIPT, once all rows were sent: the share of all epochs, or steps, of the task that has most left to do, or,
            if nobody knows how many epochs there will be, of this one; "": there is no share.
        epoch: in which epoch the script of that task is, from 1; None: not known.
        epochs: how many there will be; None: not known.
    """

    seconds: float
    doing: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    metrics_of: str = ""
    step: int | None = None
    steps_per_second: float | None = None
    share: float | None = None
    rows: int = 0
    rows_total: int | None = None
    rows_in: int = 0
    rows_out: int = 0
    rows_per_second: float | None = None
    bytes_per_second: float | None = None
    seconds_left: float | None = None
    attempt: int = 0
    tasks: Sequence[TaskView] = ()
    share_of: str = ""
    epoch: int | None = None
    epochs: int | None = None


def in_order(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return metrics with those first that people look at first: a loss, an accuracy, then further losses, further accuracies, and all others
    in their order."""

    def place(name: str) -> int:
        return next((at for at, word in enumerate(_FIRST) if word in name.lower()), len(_FIRST))

    ranked = sorted(metrics, key=place)
    # of "val_loss" and "loss" the shorter one is that of the training
    first = [name for at in range(len(_FIRST)) for name in sorted((one for one in ranked if place(one) == at), key=len)[:1]]
    return {name: metrics[name] for name in (*first, *ranked)}


def last_metrics(reports: Sequence[Mapping[str, object]]) -> tuple[str, int | None, dict[str, float]]:
    """Return what the task that leads has reported last of each metric, when the job has ended.

    Args: reports: everything that the tasks have reported (`Stats.reports`).
    Returns: (the task's name, its last step, metrics in order); ("", None, {}) if nothing was reported.
    """
    return leading(latest(reports))


def leading(found: Mapping[str, Mapping[str, Any]]) -> tuple[str, int | None, dict[str, Any]]:
    """Do as `last_metrics`, of what each task has reported last: task -> "step", and its metrics."""
    metrics = {task: {name: value for name, value in told.items() if name != "step"} for task, told in found.items()}
    lead = min(found, key=lambda task: (not metrics[task], not task.startswith("chief"), task), default="")
    return lead, found.get(lead, {}).get("step"), in_order(metrics.get(lead, {}))
