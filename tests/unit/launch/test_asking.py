"""Programs that are run for what they print, and do not behave. They are started: what they do to their pipes is the point."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from akrunner.launch.asking import ask


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def test_what_a_program_says(leaves_nothing: Path) -> None:
    told = ask(python("import os, sys; print(os.environ['A']); print('b', file=sys.stderr); sys.exit(3)"), 60, {"A": "a"})
    assert told == (3, "a\n", "b\n")
    assert ask(python("print('x' * (1 << 20) + 'end')"), 60).out[-5:] == "xend\n", "the end of it is kept"


def test_one_that_prints_for_ever(leaves_nothing: Path) -> None:
    with pytest.raises(OSError, match="it printed more than 16 MiB"):
        ask(python("import os\nwhile True: os.write(1, b'x' * 65536)"), 60)


def test_one_that_never_ends(leaves_nothing: Path) -> None:
    with pytest.raises(OSError, match="it had not ended after 0.5 s"):
        ask(python("import os, time; os.close(1); os.close(2); time.sleep(1000)"), 0.5)


def test_what_it_leaves_running_is_not_waited_for_and_ended(leaves_nothing: Path) -> None:
    left = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'], start_new_session=True).pid)"
    pid = int(ask(python(left), 60).out)
    deadline = time.monotonic() + 60
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_one_that_is_not_there() -> None:
    with pytest.raises(FileNotFoundError):
        ask([os.path.join(os.sep, "nowhere", "python")], 1)
