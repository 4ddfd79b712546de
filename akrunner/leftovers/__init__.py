"""Files, directories and processes that must go if this process dies before it can end and remove them itself.

::

    register(path)  ...  forget(path)      the process lives: whoever made it removes it, and forgets it
    register(path)  ...  x                 the process dies: its guard removes it (`akrunner.wire.ending`)
                         x  guard x        ... a worker process of the job does, if it was told of it
                         x  guard x  ...   ... the next start of akrunner does, by the journal in the state directory

There is one guard for a process, while anything is registered, or a block of `together` runs. Threads may call all of this; a child made by fork starts anew.
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
