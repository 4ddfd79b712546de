"""A small process beside the host that outlives it by a moment: when the host is gone, so are the job's processes.

A worker process watches the host itself, but a thread can only watch while it gets the interpreter's lock, and a stopped
process not at all. The guard has nothing else to do.

::

    host --- pipe --->  guard        "+PID" a group to end, "-PID" it has ended, "=PATH" a directory to remove
      x (gone) .......  end of file: SIGKILL to every group, the directories removed, exit
"""

from __future__ import annotations

import os
import subprocess
import sys
from types import TracebackType
from typing import Optional, Type

_CODE = """
import os, shutil, signal, sys
groups, folders = set(), []
signal.signal(signal.SIGINT, signal.SIG_IGN)
for line in sys.stdin:
    word, value = line[0], line[1:-1]
    if word == "+": groups.add(int(value))
    elif word == "-": groups.discard(int(value))
    elif word == "=": folders.append(value)
    elif word == "!": sys.exit()
for group in groups:
    try: os.killpg(group, signal.SIGKILL)
    except OSError: pass
for folder in folders: shutil.rmtree(folder, ignore_errors=True)
"""


class Guard:
    """Context manager: the guard lives as long as the block."""

    def __init__(self) -> None:
        self._process: "subprocess.Popen[bytes]" = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={},
            cwd="/",
        )

    def watch(self, group: int) -> None:
        """End this process group when the host is gone."""
        self._say(f"+{group}")

    def forget(self, group: int) -> None:
        """It has ended by itself."""
        self._say(f"-{group}")

    def remove(self, directory: str) -> None:
        """Remove this directory when the host is gone."""
        self._say(f"={directory}")

    def _say(self, line: str) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            os.write(stdin.fileno(), (line + "\n").encode())
        except (OSError, ValueError):
            pass  # somebody killed it; the workers' own watch remains

    def __enter__(self) -> "Guard":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._say("!")
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
        try:
            self._process.wait(0.02)
        except subprocess.TimeoutExpired:
            # it may still be starting up; there is nothing left for it to guard
            self._process.kill()
            self._process.wait(5)
