"""The last lines that each task of a job has printed."""

from __future__ import annotations

import threading
from collections import deque

from akrunner import markup

#: of how many tasks a notebook shows lines, how many of each, and how many while the job runs; characters of a line
_TASKS, _LINES, _NEWEST, _CHARACTERS = 8, 100, 4, 300


class Printed:
    """Keeps these lines, which come from several threads: a notebook that is saved has them, so they are few."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tails: dict[str, deque[str]] = {}
        self._counts: dict[str, int] = {}
        self._newest: deque[str] = deque(maxlen=_NEWEST)

    def add(self, task: str, line: str) -> None:
        """Take a line that a task has printed."""
        short = line if len(line) <= _CHARACTERS else line[: _CHARACTERS - 3] + "..."
        with self._lock:
            self._tails.setdefault(task, deque(maxlen=_LINES)).append(short)
            self._counts[task] = self._counts.get(task, 0) + 1
            self._newest.append(f"[{task}] {short}")

    def newest(self) -> str:
        """Return the HTML of the newest lines; "" if there are none."""
        with self._lock:
            told = "\n".join(self._newest)
        return markup.lines(told)

    def folded(self, first: str | None = None, others: str = "") -> str:
        """Return the HTML of all lines that are kept, folded by task; "" if there are none.

        Args: first: the task that comes first; others: where those of other tasks are, in words.
        """
        with self._lock:
            names = sorted(self._tails, key=lambda name: name != first)
            tails = {name: "\n".join(self._tails[name]) for name in names[:_TASKS]}
            counts = dict(self._counts)
        told = ""
        for name, tail in tails.items():
            last = f"the last {_LINES} of " if counts[name] > _LINES else ""
            lines = f"{counts[name]:,} line{'s' * (counts[name] != 1)}"
            told += markup.folded(f"{name} printed {last}{lines}", markup.lines(tail), is_open=name == first)
        if len(names) > _TASKS:
            told += markup.line(markup.text(f"{len(names) - _TASKS:,} more tasks have printed something{others}"), small=True)
        return told
