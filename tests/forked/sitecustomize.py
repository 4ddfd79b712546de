"""Flink's Python workers of the clusters that tests share, forked from a process that has imported what they do, where each takes 1.7 s for it.

::

    TaskManager -- Python, which begins here -- arguments, environment, descriptors -->  server -- fork -->  the worker
                   and waits for the end of the worker                                   (one for each TaskManager)

Python imports this file when it starts, as its directory is on PYTHONPATH. The first worker of a TaskManager starts the server, and waits for it as
the others do. A worker that was forked goes on here, too: it is the server's copy, whose next step is the module that each of them was started for.
It takes the parent of the process that asks for its own, so that it finds its TaskManager above it.
"""

from __future__ import annotations

import os
import sys

#: how Flink starts a worker
_WORKER = ["-m", "pyflink.fn_execution.beam.beam_boot"]
#: seconds between two looks at whether the TaskManager is there
_LOOKS = 1.0
#: and between two that gRPC takes by itself; its own are 0.1
_GRPC_LOOKS = 2.0


def _begin() -> None:
    import contextlib
    import socket

    # of one TaskManager, which has a session of its own, and of one interpreter
    name = f"\0akrunner-tests-{os.getsid(0)}-{sys.executable}"
    server = socket.socket(socket.AF_UNIX)
    # another one may be first
    with contextlib.suppress(OSError):
        server.bind(name)
        # who asks meanwhile waits, which is shorter than to import the same
        server.listen(64)
        if os.fork() == 0:
            return _serve(server)
    server.close()
    # without a server it goes on as it would
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asked:
        asked.connect(name)
        if _is_ours(asked):
            _be_forked(asked)


def _is_ours(asked: object) -> bool:
    """Whether the other end is this user's: everybody can find a socket that has no file. Args: asked: the connection."""
    import socket
    import struct

    assert isinstance(asked, socket.socket)
    credentials = asked.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
    return struct.unpack("iII", credentials)[1] == os.geteuid()


def _be_forked(asked: object) -> None:
    """Have the server fork the worker, and wait for it. Returns if there is none. Args: asked: the connection to the server."""
    import json
    import socket

    assert isinstance(asked, socket.socket)
    told = {"argv": sys.argv[1:], "path": sys.path, "environ": dict(os.environ), "cwd": os.getcwd(), "parent": os.getppid()}
    order = json.dumps(told).encode()
    socket.send_fds(asked, [len(order).to_bytes(8, "little")], [0, 1, 2])
    asked.sendall(order)
    # the worker says that it is there, and has the other end until it ends; a server that died has forked nobody
    if asked.recv(1):
        asked.recv(1)
        os._exit(0)


def _serve(server: object) -> None:
    """Fork workers until the TaskManager is gone. Returns in each of them. Args: server: where they are asked for."""
    import atexit
    import gc
    import select
    import signal
    import socket

    assert isinstance(server, socket.socket)
    # the first that is registered is the last that is called
    atexit.register(_end)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.closerange(3, server.fileno())
    os.closerange(server.fileno() + 1, 256)
    try:
        # the second and third are imported when a channel is made
        from grpc import _channel, _common, _interceptor  # noqa: F401
        from pyflink.fn_execution.beam import beam_sdk_worker_main  # noqa: F401

        # whoever waits for a stream, seven threads in each worker, looks that often whether it missed being woken
        _common.MAXIMUM_WAIT_TIMEOUT = _GRPC_LOOKS
        if "AKRUNNER_TESTS_FORK" in os.environ:
            import worker_forks

            worker_forks.begin()
    except BaseException:
        # the worker that asks will say why
        os._exit(1)
    # no worker looks through what has been imported again
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while os.path.exists(f"/proc/{os.getsid(0)}"):
        if not select.select([server], [], [], _LOOKS)[0]:
            continue
        asked = server.accept()[0]
        if _is_ours(asked) and os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            server.close()
            return _become(asked)
        asked.close()
    os._exit(0)


def _end() -> None:
    """End a worker that has done all that it does for its end. To empty every module, as Python does then, would copy half of the server's memory."""
    sys.stdout.flush()
    sys.stderr.flush()
    # whoever has started the process that asked for it waits for that one, which always ends with 0
    os._exit(0)


def _become(asked: object) -> None:
    """As the process that asks. It ends when that one does."""
    import importlib
    import json
    import signal
    import socket
    import threading

    assert isinstance(asked, socket.socket)
    size, descriptors, _, _ = socket.recv_fds(asked, 8, 3)
    order = json.loads(asked.recv(int.from_bytes(size, "little"), socket.MSG_WAITALL))
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(order["environ"])
    os.chdir(order["cwd"])
    sys.argv[1:], sys.path[:] = order["argv"], order["path"]
    os.getppid = lambda: order["parent"]
    importlib.invalidate_caches()
    asked.sendall(b"!")

    def watch() -> None:
        asked.recv(1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


if sys.platform == "linux" and getattr(sys, "orig_argv", [])[1:3] == _WORKER:
    _begin()
