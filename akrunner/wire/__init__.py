"""The frames and messages that cross the pipes between a host and a worker process.

Runs on Python 3.7 with the standard library only.

::

    host                              worker process
    FrameWriter  --- input pipe  --->  FrameReader     CONTEXT, DATA..., END, START; STOP
                                                       (stream: CONTEXT, START, ROWS..., END; STOP)
    FrameReader  <-- output pipe ---   FrameWriter     HELLO, OPENED, READY, ENTERED, SERVING, EXAMPLES/COLUMNS..., CLOSED, LEFT

If the rows have splits, a MARKS frame precedes each DATA frame. REPORT (metrics) and REACHED (how far it is) may come while the script runs, and REFUSED in
place of the answers to a chunk of rows that a server could not give. PASSED comes only from an agent on Flink, which has taken the output
rows away, and tells how many there were.

A script's requests for tables (LOOK_TABLE, READ_TABLE, WRITE_TABLE, TAKE_WORK; see `tables`) are answered by TABLE_OPENED,
TABLE_ROWS..., TABLE_DONE (or TABLE_FAILED) and WORK, each with the number of its request. Rows that the script writes to a table
go as ADD_ROWS; READ_MORE and WRITE_MORE tell the other end how much more it may send; CLOSE_TABLE ends a request. From OPENED on,
these frames may come between any two of the others.

A BARRIER among a stream's ROWS comes back as ANSWERED when the script asks for the first row behind it. If the script saves by
`task_config.checkpoint()`, only a barrier to save at comes back, when it has saved there; by DUE it asks for such a barrier.
The worker half owns these formats; the host imports them from here.
"""

import signal
from typing import Sequence

#: version of the frames and messages in this package; it is independent of akrunner's own version
PROTOCOL_VERSION = 4

#: the host sends it to a worker process to have every thread's stack printed to the log
STACKS_SIGNAL = signal.SIGUSR2

#: command-line flags that ask a program about itself
_ASKS_ABOUT = frozenset({"-h", "--help", "--helpfull", "--helpshort", "--version"})


def asks_about(arguments: Sequence[str]) -> bool:
    """Whether a command line asks the program about itself: it has such a flag without a value (`--version 3` has one)."""
    following = [*arguments[1:], "-"]
    return any(one in _ASKS_ABOUT and after.startswith("-") for one, after in zip(arguments, following))
