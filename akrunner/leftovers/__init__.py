"""Files, directories and processes that must go even if this process dies before it can end and remove them itself.

::

    register(path)  ...  forget(path)      the process lives: the code that made the path removes it, and forgets it
    register(path)  ...  x                 the process dies: its guard removes the path (`akrunner.wire.ending`)
                         x  guard x        ... a worker process of the job removes it, if it was told of it
                         x  guard x  ...   ... the next start of akrunner removes it, by the journal in the state directory

A process has one guard while anything is registered, or while a block of `together` runs. Threads may call all of these
functions; a child made by fork starts with nothing registered.
"""

from akrunner.leftovers.keeper import (
    drop,
    forget,
    guards,
    keep_awake,
    mark,
    register,
    temp_folder,
    together,
    unmark,
    unwatch,
    watch,
)
from akrunner.leftovers.private import state_dir, temp_directory
from akrunner.wire.ending import remove, started

__all__ = [
    "drop",
    "forget",
    "guards",
    "keep_awake",
    "mark",
    "register",
    "remove",
    "started",
    "state_dir",
    "temp_directory",
    "temp_folder",
    "together",
    "unmark",
    "unwatch",
    "watch",
]
