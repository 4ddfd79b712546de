"""Processes that the script forks: what they may not do in the name of the task, and how the task learns that one has tried."""

from __future__ import annotations

import mmap
from typing import List, Set

ROWS, REPORTS, READING, TABLES, ENDING = range(5)

#: the error for a forked process that tries to send rows or reports for the task
WHY = (
    "this process was forked from the task's: rows and reports are sent by the task's own process only; hand it what it shall "
    "send, by a multiprocessing.Pool, say, or a pipe"
)
#: the error for a forked process that tries to read rows of a stream
WHY_NOT_READ = (
    "this process was forked from the task's: the rows of a stream arrive in the task's own process only; read them there, "
    "and hand them on, by a multiprocessing.Pool, say, or a pipe"
)
_HAND_IT = "(only the task's own process can: hand it what the others have, by a multiprocessing.Pool, say, or a pipe)"
_TOLD = {
    ROWS: "a process that the script has forked tried to write rows, which was refused: they are not in the result " + _HAND_IT,
    REPORTS: "a process that the script has forked tried to report to the job, which was refused " + _HAND_IT,
    READING: "a process that the script has forked tried to read the stream, which was refused (only the task's own process "
    "can, and hands on what it reads)",
    TABLES: "a process that the script has forked tried to use the job's tables, which was refused " + _HAND_IT,
    ENDING: "a process that the script has forked went on as if it were the task, which was refused (it should end by "
    "os._exit, as those of multiprocessing do)",
}


class Refused(object):
    """A record of what forked processes have tried, in memory that they share with the task."""

    def __init__(self) -> None:
        # anonymous memory, not a file: it is freed when the last of these processes ends
        self._seen = mmap.mmap(-1, len(_TOLD))
        self._told: Set[int] = set()

    def note(self, what: int) -> None:
        """Record an attempt; called in the forked process. Args: what: ROWS, REPORTS, READING, TABLES or ENDING."""
        self._seen[what] = 1

    def news(self) -> List[str]:
        """Return a sentence for each kind of attempt that was not returned before; called in the task."""
        new = [what for what in sorted(_TOLD) if self._seen[what] and what not in self._told]
        self._told.update(new)
        return [_TOLD[what] for what in new]
