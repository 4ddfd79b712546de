"""The lines of a run's series: what each file has, and in which units. `Record.version` counts for them, too.

Counters grow while an attempt runs, and begin anew with the next one. So a line says as much about the time before it however many lines
between them were left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict


class Reported(TypedDict, total=False):
    """A line of `metrics.jsonl`: what a task has reported. The metrics stand beside these.

    Attributes:
        task: the task's name.
        step: the step that it named; None: none.
        time_ns: when it did, in nanoseconds since 1970.
    """

    task: str
    step: int | None
    time_ns: int


class Change(TypedDict):
    """A line of `states.jsonl`: a task does something else from now on.

    Attributes:
        time_ns: when, in nanoseconds since 1970.
        attempt: how often the tasks had been started before.
        task: the task's name.
        state: starting, importing (the script, or taking its rows), ready (waiting for the others), running (in main), serving, finished,
            failed, ended.
    """

    time_ns: int
    attempt: int
    task: str
    state: str


class Host(TypedDict):
    """The process that runs the job. Attributes: memory: its bytes; cpu_seconds: user and system, since the process began."""

    memory: int
    cpu_seconds: float


class Sample(TypedDict):
    """A line of `progress.jsonl`: how far the job was. Memory and processor time are those of a task's own process.

    Attributes:
        time_ns: when, in nanoseconds since 1970.
        attempt: how often the tasks had been started before.
        seconds: since this attempt began.
        rows_in, bytes_in: sent to the tasks.
        rows_out, bytes_out: received from the tasks.
        states: task -> what it does, as in `Change`.
        task_bytes_in, task_rows_out: task -> what it was sent, and has written.
        memory: task -> bytes that its process has now.
        rss: task -> the largest so far, in bytes.
        cpu_seconds: task -> user and system.
        host: the same of the process that runs the job; None: the system did not say.
    """

    time_ns: int
    attempt: int
    seconds: float
    rows_in: int
    bytes_in: int
    rows_out: int
    bytes_out: int
    states: Mapping[str, str]
    task_bytes_in: Mapping[str, int]
    task_rows_out: Mapping[str, int]
    memory: Mapping[str, int]
    rss: Mapping[str, int]
    cpu_seconds: Mapping[str, float]
    host: Host | None
