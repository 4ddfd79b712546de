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
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import hosts

_CALLED = Path(__file__).parent / "called"


@contextlib.contextmanager
def forking(folder: Path) -> Iterator[None]:
    """Have all scripts fork their calls meanwhile. Args: folder: gets the socket where they ask for it."""
    place = str(folder / "calls")
    with pytest.MonkeyPatch.context() as patch, socket.socket(socket.AF_UNIX) as server:
        server.bind(place)
        server.listen(64)
        patch.setenv("AKRUNNER_TESTS_CALLS", place)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(_CALLED), *filter(None, [os.environ.get("PYTHONPATH")])]))
        serving = threading.Thread(target=_serve, args=(server,))
        serving.start()
        try:
            yield
        finally:
            # `accept` returns
            server.shutdown(socket.SHUT_RDWR)
            serving.join()


def _serve(server: socket.socket) -> None:
    calls: list[threading.Thread] = []
    with contextlib.suppress(OSError):
        while True:
            calls.append(threading.Thread(target=_answer, args=(server.accept()[0],)))
            calls[-1].start()
    for call in calls:
        call.join()


def _answer(asked: socket.socket) -> None:
    with asked:
        size, descriptors, _, _ = socket.recv_fds(asked, 8, 3)
        if not size:
            return  # who asks has been killed
        order = json.loads(asked.recv(int.from_bytes(size, "little"), socket.MSG_WAITALL))
        given, out, err = descriptors
        words = [sys.executable, *order["words"]]
        call = hosts.Popen(words, env=order["env"], cwd=order["cwd"], stdin=given, stdout=out, stderr=err)
        for descriptor in descriptors:
            os.close(descriptor)
        code = call.wait()
        # who asks may have been killed meanwhile
        with contextlib.suppress(OSError):
            asked.sendall(b"%d" % (128 - code if code < 0 else code))
