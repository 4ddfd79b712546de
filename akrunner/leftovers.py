"""Files and directories that must go if this process dies before it can remove them itself.

::

    register(path)  ...  forget(path)      the process lives: whoever made it removes it, and forgets it
    register(path)  ...  x                 the process dies: the guard process removes it; failing that, the next start of akrunner
"""

from __future__ import annotations

import threading
from typing import Set

_lock = threading.Lock()
_paths: Set[str] = set()


def register(path: str) -> None:
    """Have a local file or directory removed if this process dies before `forget`. Call it before the path is made."""
    with _lock:
        _paths.add(path)


def forget(path: str) -> None:
    """It has been removed, or has become something to keep."""
    with _lock:
        _paths.discard(path)
