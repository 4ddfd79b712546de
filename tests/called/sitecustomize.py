"""A shell script's call of odpscmd that a test has forked (`tests/client_forks.py`): this process only asks for the fork, and ends as it does.
`tests/forked/sitecustomize.py` does so for workers.

Python imports this file when it starts, as its directory is on PYTHONPATH. The fork is started as this process was.
"""

from __future__ import annotations

import os
import sys


def _ask(place: str) -> None:
    """Args: place: the socket where forks are asked for."""
    import json
    import socket

    order = json.dumps({"words": sys.orig_argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}).encode()
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(place)
        socket.send_fds(asked, [len(order).to_bytes(8, "little")], [0, 1, 2])
        asked.sendall(order)
        # nothing comes if pytest's process has died
        os._exit(int(asked.recv(16) or b"70"))


if [os.path.basename(word) for word in sys.orig_argv[1:2]] == ["client.py"]:
    _ask(os.environ["AKRUNNER_TESTS_CALLS"])
