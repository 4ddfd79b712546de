"""What is known of a detached job goes to who asks for its report, among the lines of its log.

::

    engine     --> metrics.jsonl, states.jsonl, progress.jsonl (`akrunner.history`), in the host's directory
    host       `Teller`: what is new there  --> lines of the job's log: "akrunner.kept metrics.jsonl {...}"
    report     `apart`: lines of the log    --> these files and the last record again, and what the tasks have printed
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from akrunner.history.record import plain
from akrunner.history.series import METRICS, PROGRESS, STATES

#: begins such a line; what tasks print begins with their names
MARK = "akrunner.kept "
#: the name under which the end of a job is told
RECORD = "run.json"
#: bytes of these lines in a TaskManager's log, which other jobs use too; of what comes later only the end is told
_MOST = 4 << 20
#: a line is told if so much time has passed since the last one, as a share of all the time until then; and at least so many seconds
_SHARE, _LEAST = 0.02, {METRICS: 0.05, PROGRESS: 1.0}
#: the task of lines that no task has printed
_HOST = "host:0"


class Teller:
    """Tells what an engine keeps of a job. The longer the job runs, the more seldom.

    Args: folder: where the engine keeps it; say: takes a line. Attributes: folder: the same.
    """

    def __init__(self, folder: str, say: Callable[[str], None]) -> None:
        self.folder = folder
        self._say = say
        self._bytes = 0
        self._read = dict.fromkeys((METRICS, STATES, PROGRESS), 0)
        #: (file, task) -> the times of the first line, and of the last one that was told
        self._times: dict[tuple[str, str], tuple[float, float]] = {}
        self._left: dict[tuple[str, str], str] = {}

    def tell(self) -> None:
        """Tell what is new."""
        for name in self._read:
            for line in self._new(name):
                try:
                    told = json.loads(line)
                    key, when = (name, str(told.get("task", ""))), told["time_ns"] / 1e9
                except (ValueError, KeyError, TypeError, AttributeError):
                    continue
                if name == STATES or self._is_due(name, key, when):
                    self._left.pop(key, None)
                    self._put(name, line)
                else:
                    self._left[key] = line

    def end(self, record: Mapping[str, Any]) -> None:
        """Tell the rest, and the end. Args: record: fields of `akrunner.history.record.Record`."""
        self.tell()
        for (name, _), line in self._left.items():
            self._put(name, line)
        self._left.clear()
        self._say(f"{MARK}{RECORD} {json.dumps(plain(record), allow_nan=False, default=str)}")

    def _new(self, name: str) -> list[str]:
        try:
            with open(os.path.join(self.folder, name), "rb") as file:
                file.seek(self._read[name])
                whole, end, _ = file.read().rpartition(b"\n")
        except OSError:
            # nothing is kept yet, or it cannot be read
            return []
        self._read[name] += len(whole + end)
        return whole.decode(errors="replace").splitlines()

    def _is_due(self, name: str, key: tuple[str, str], when: float) -> bool:
        first, last = self._times.setdefault(key, (when, float("-inf")))
        if when - last < max(_LEAST[name], _SHARE * (when - first)):
            return False
        self._times[key] = (first, when)
        return True

    def _put(self, name: str, line: str) -> None:
        self._bytes += len(line)
        if self._bytes <= _MOST:
            self._say(f"{MARK}{name} {line}")


@dataclass
class Told:
    """What the lines of a log have told.

    Attributes:
        files: name of a file of `akrunner.history` -> its lines.
        record: fields of the job's record; {} if its end was not told.
        logs: task -> what it has printed.
    """

    files: dict[str, list[str]] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    logs: dict[str, list[str]] = field(default_factory=dict)


def apart(lines: Iterable[str]) -> Told:
    """Return what lines of a job's log have told."""
    told = Told()
    for line in lines:
        if line.startswith(MARK):
            name, _, text = line.removeprefix(MARK).partition(" ")
            if name == RECORD:
                try:
                    found = json.loads(text)
                except ValueError:
                    continue
                told.record = found if isinstance(found, dict) else {}
            elif name in (METRICS, STATES, PROGRESS):
                told.files.setdefault(name, []).append(text)
            continue
        task, end, text = line.partition("] ")
        by_task = line.startswith("[") and end and ":" in task
        told.logs.setdefault(task[1:] if by_task else _HOST, []).append(text if by_task else line)
    return told
