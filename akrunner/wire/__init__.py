"""L0: what crosses the pipes between a host and a worker process. Python 3.7, standard library only.

::

    host                                   worker process
    FrameWriter  --- input pipe  --->      FrameReader     CONTEXT, DATA... (each behind its MARKS, if rows are split), END, START (stream: START, ROWS..., END); STOP
    FrameReader  <-- output pipe ---       FrameWriter     HELLO, OPENED, READY, ENTERED, SERVING, EXAMPLES/COLUMNS..., CLOSED, LEFT

    TABLE_OPENED, TABLE_ROWS..., TABLE_DONE (or TABLE_FAILED); WORK: answers to LOOK_TABLE, READ_TABLE, WRITE_TABLE, TAKE_WORK
    (`tables`), each with the number of its request; from OPENED on, between any two of the others

A stream's BARRIER among its ROWS comes back as ANSWERED, when whoever draws the rows asks for the first behind it.
The worker half owns these shapes; the host imports them from here.
"""

import signal
from typing import Sequence

#: of the frames and messages in this package, apart from the package's own version
PROTOCOL_VERSION = 2

#: the host sends it to a worker process to have every thread's stack printed to the log
STACKS_SIGNAL = signal.SIGUSR2

#: words of a command line that ask a program about itself
_ASKS_ABOUT = frozenset({"-h", "--help", "--helpfull", "--helpshort", "--version"})


def asks_about(arguments: Sequence[str]) -> bool:
    """Whether a program's command line asks it about itself: with such a word and no value of it, which `--version 3` has."""
    following = [*arguments[1:], "-"]
    return any(one in _ASKS_ABOUT and after.startswith("-") for one, after in zip(arguments, following))
