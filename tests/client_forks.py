"""Calls of odpscmd in shell scripts that do not begin with 0.7 s of imports: they are forked from what hosts are forked from (`tests/hosts.py`).

::

    bash -- Python, which begins with `tests/called/sitecustomize.py`  -- arguments, environment, descriptors -->  pytest's process -- hosts.Popen -->  the call
            and waits for the end of the call                          <-- how it has ended -----------------

For tests of what a script and its calls come to. Another test of the same file has bash start them as it does for users.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import hosts

_CALLED = Path(__file__).parent / "called"
#: how long calls may go on when the scripts have ended: who asked for one may have been killed
_ENDS = 60.0


@contextlib.contextmanager
def forking(folder: Path) -> Iterator[None]:
    """Have all scripts fork their calls meanwhile: at least one, or else they were started as for users, and nobody would notice it.

    Args:
        folder: gets the socket where they ask for it.
    Raises: AssertionError: no call was forked, or one goes on for a minute when the scripts have ended; it is killed then.
    """
    place = str(folder / "calls")
    with pytest.MonkeyPatch.context() as patch, socket.socket(socket.AF_UNIX) as server:
        server.bind(place)
        server.listen(64)
        patch.setenv("AKRUNNER_TESTS_CALLS", place)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(_CALLED), *filter(None, [os.environ.get("PYTHONPATH")])]))
        forked: list[hosts.Popen] = []
        answering: list[threading.Thread] = []
        serving = threading.Thread(target=_serve, args=(server, answering, forked))
        serving.start()
        try:
            yield
        finally:
            # `accept` returns
            server.shutdown(socket.SHUT_RDWR)
            serving.join()
            _end(answering, forked)
    assert forked, "no call was forked"


def _end(answering: list[threading.Thread], forked: list[hosts.Popen]) -> None:
    """Wait for the calls. Raises: AssertionError: one did not end; it is killed."""
    deadline = time.monotonic() + _ENDS
    for thread in answering:
        thread.join(max(0.0, deadline - time.monotonic()))
    late = [call for call in list(forked) if call.poll() is None]
    for call in late:
        with contextlib.suppress(ProcessLookupError):
            os.kill(call.pid, signal.SIGKILL)
    assert not late, f"{len(late)} calls of odpscmd went on when their scripts had ended"


def _serve(server: socket.socket, answering: list[threading.Thread], forked: list[hosts.Popen]) -> None:
    with contextlib.suppress(OSError):
        while True:
            thread = threading.Thread(target=_answer, args=(server.accept()[0], forked), daemon=True)
            answering.append(thread)
            thread.start()


def _answer(asked: socket.socket, forked: list[hosts.Popen]) -> None:
    with asked:
        size, descriptors, _, _ = socket.recv_fds(asked, 8, 3)
        if not size:
            return  # who asks has been killed
        order = json.loads(asked.recv(int.from_bytes(size, "little"), socket.MSG_WAITALL))
        given, out, err = descriptors
        words = [sys.executable, *order["words"]]
        call = hosts.Popen(words, env=order["env"], cwd=order["cwd"], stdin=given, stdout=out, stderr=err)
        forked.append(call)
        for descriptor in descriptors:
            os.close(descriptor)
        code = call.wait()
        # who asks may have been killed meanwhile
        with contextlib.suppress(OSError):
            asked.sendall(b"%d" % (128 - code if code < 0 else code))
