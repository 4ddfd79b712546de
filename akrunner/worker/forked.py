"""Children that the script forks: what they may not do in their task's name, and how the task comes to know that they have tried."""

from __future__ import annotations

import mmap
from typing import List, Set

ROWS, REPORTS, READING, TABLES, ENDING = range(5)

#: what is said to a child that wants to speak for the task
WHY = (
    "this process was forked from the task's: rows and reports are sent by the task's own process only; hand it what it shall send, "
    "by a multiprocessing.Pool, say, or a pipe"
)
#: what is said to a child that wants rows of a stream
WHY_NOT_READ = (
    "this process was forked from the task's: the rows of a stream arrive in the task's own process only; read them there, and hand "
    "them on, by a multiprocessing.Pool, say, or a pipe"
)
_HAND_IT = "(only the task's own process can: hand it what the others have, by a multiprocessing.Pool, say, or a pipe)"
_TOLD = {
    ROWS: "a process that the script has forked tried to write rows, which was refused: they are not in the result " + _HAND_IT,
    REPORTS: "a process that the script has forked tried to report to the job, which was refused " + _HAND_IT,
    READING: "a process that the script has forked tried to read the stream, which was refused (only the task's own process can, and hands "
    "on what it reads)",
    TABLES: "a process that the script has forked tried to use the job's tables, which was refused " + _HAND_IT,
    ENDING: "a process that the script has forked went on as if it were the task, which was refused (it should end by os._exit, as those of "
    "multiprocessing do)",
}


class Refused(object):
    """What children have tried, in memory that they share with the task."""

    def __init__(self) -> None:
        # not a file: it goes with the last of these processes
        self._seen = mmap.mmap(-1, len(_TOLD))
        self._told: Set[int] = set()

    def note(self, what: int) -> None:
        """In a child. Args: what: ROWS, REPORTS, READING, TABLES or ENDING."""
        self._seen[what] = 1

    def news(self) -> List[str]:
        """In the task. Returns: what was tried and was not told yet, in sentences."""
        new = [what for what in sorted(_TOLD) if self._seen[what] and what not in self._told]
        self._told.update(new)
        return [_TOLD[what] for what in new]
