"""Hosts of jobs that do not begin with a second of imports: forked from a process that has imported akrunner, and has done nothing else.

::

    test -- what a shell would run, its environment, descriptors -->  server (one for each process of pytest)  -- fork -->  host

With several processes of pytest their servers are forks, too, of one that has imported all of it. One that has imported more is a fork of the process' own.

`run` and `Popen` are as `subprocess`'s, for `[sys.executable, "-m", "akrunner", ...]`, `[sys.executable, "-c", CODE, ...]` and
`[sys.executable, SCRIPT, ...]`: for tests of what a host does once it is there. Those of how one starts (imports, a shell's limits, Ctrl-C
before anything is there) take `subprocess`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DEVNULL, PIPE, STDOUT = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
#: what jobs and commands import sooner or later, where it is there
_IMPORTED = """
akrunner.api akrunner.flink akrunner.serving akrunner.cli.main akrunner.cli.running akrunner.engines.local akrunner.tables.local akrunner.engines.attempts
akrunner.verbs akrunner.trial akrunner.planning.plan akrunner.planning.making akrunner.cli.pack akrunner.cli.pai akrunner.cli.runs akrunner.cli.mistaken
akrunner.launch.functions.writing akrunner.packing.verbs akrunner.packing.filejob akrunner.packing.rowjob akrunner.packing.job akrunner.packing.source akrunner.pai_mode.job
akrunner.pai_mode.shell.run akrunner.tables.upload duckdb pyarrow.parquet pyarrow.dataset pyarrow.csv pyarrow.json pyarrow.ipc numpy rich.console
rich.progress rich.markdown typer.rich_utils typer._adapters asyncio fsspec.implementations.local fsspec.implementations.chained importlib.readers
pydantic.type_adapter pydantic.json_schema pydantic.types sqlglot sqlglot.dialects.duckdb sqlglot.dialects.hive sqlglot.optimizer.annotate_types
akrunner.io.systems.apart akrunner.io.systems.sqlite akrunner.launch.process akrunner.engines.flink.taskmanager.agent akrunner.runs.looking akrunner.runs.comparing akrunner.runs.fetching
akrunner.runs.reporting akrunner.serving.planned akrunner.checkup.job encodings.utf_8_sig encodings.idna mimetypes http.server
tests.forked.worker_forks
""".split()


class _Server:
    """The process that hosts are forked from, as those see it who ask it for one.

    Args: of: one that it is forked from itself; None: it imports everything; imported: modules that it imports besides.
    Attributes: owner: the process that asks it.
    """

    def __init__(self, of: _Server | None = None, imported: tuple[str, ...] = ()) -> None:
        self._lock, self.owner = threading.Lock(), os.getpid()
        self._asked, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        code = "import sys; sys.path.insert(0, sys.argv[1]); from tests import hosts; hosts.serve(0, sys.argv[2:])"
        words = [sys.executable, "-c", code, str(Path(__file__).parents[1]), *imported]
        with theirs:
            options: Any = dict(stdin=theirs, stdout=DEVNULL, cwd="/", start_new_session=True)
            self.process: Any = subprocess.Popen(words, **options) if of is None else Popen(words, **options, of=of)
        atexit.register(self.stop)

    def stop(self) -> None:
        # not in what pytest's process has forked
        if os.getpid() == self.owner:
            self._asked.close()
            self.process.wait()

    def ask(self, order: dict[str, Any], descriptors: Sequence[int]) -> socket.socket:
        """Args: descriptors: the host's stdin, stdout, stderr. Returns: where its pid is said, and then how it has ended."""
        answers, theirs = socket.socketpair()
        with theirs, tempfile.TemporaryFile() as told:
            told.write(json.dumps(order).encode())
            told.flush()
            with self._lock:
                socket.send_fds(self._asked, [b"!"], [theirs.fileno(), told.fileno(), *descriptors])
        return answers


#: modules that one has imported besides -> it; of this process, or of the one that this process was forked from
_servers: dict[tuple[str, ...], _Server] = {}
#: where the process is made that the worker processes of their jobs are forked from (`tests/forked/worker_forks.py`); "": they start as they do for users
forks = ""
#: the processor's seconds of each host whose end has been heard, with those of what it has waited for
spent: list[float] = []
_starting = threading.RLock()


def begin() -> None:
    """Start what hosts are forked from before this process itself is forked: it imports for all."""
    _there()


def _there(imported: tuple[str, ...] = ()) -> _Server:
    with _starting:
        known = _servers.get(imported)
        if known is None or known.owner != os.getpid():
            # as a child of the one that was there when this process was forked, where there was one
            _servers[imported] = _Server(_there() if imported else known, imported)
        return _servers[imported]


def servers() -> list[int]:
    """The pids of the processes that this one's hosts are forked from."""
    return [server.process.pid for server in _servers.values() if server.owner == os.getpid()]


class Popen:
    """As `subprocess.Popen`, as far as tests want it."""

    def __init__(
        self, words: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Any = None, stdin: Any = None, stdout: Any = None,
        stderr: Any = None, text: bool = False, start_new_session: bool = False, imported: tuple[str, ...] = (), of: _Server | None = None,
    ) -> None:  # fmt: skip
        """Args: imported: modules that it finds imported, besides those that all do; of: what it is forked from."""
        assert words[0] == sys.executable
        self.args, self.returncode = words, None
        self._lock = threading.Lock()
        ends: list[int] = []
        self.stdin, theirs_in = self._end(stdin, 0, "w" if text else "wb", ends)
        self.stdout, theirs_out = self._end(stdout, 1, "r" if text else "rb", ends)
        self.stderr, theirs_err = (None, theirs_out) if stderr == STDOUT else self._end(stderr, 2, "r" if text else "rb", ends)
        order = {
            "words": list(words[1:]),
            "env": dict(os.environ if env is None else env),
            "cwd": os.path.abspath(os.fspath(cwd or ".")),
            "session": start_new_session,
            "nice": os.getpriority(os.PRIO_PROCESS, 0),
            "forks": forks if of is None else "",
        }
        self._told = (of or _there(imported)).ask(order, [theirs_in, theirs_out, theirs_err])
        for end in ends:
            os.close(end)
        self.pid = int(self._line())

    @staticmethod
    def _end(given: Any, number: int, mode: str, ends: list[int]) -> tuple[Any, int]:
        """(our end of a pipe, None for none; the host's descriptor). Args: ends: gets what is to be closed here."""
        if given is None:
            return None, number
        if given == DEVNULL:
            ends.append(os.open(os.devnull, os.O_RDWR))
            return None, ends[-1]
        if given == PIPE:
            read, write = os.pipe()
            ours, theirs = (write, read) if mode.startswith("w") else (read, write)
            ends.append(theirs)
            return open(ours, mode, *([] if "b" not in mode else [-1])), theirs
        return None, given if isinstance(given, int) else given.fileno()

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            part = self._told.recv(1)
            assert part, "the process that hosts are forked from has died"
            line += part
        return line

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None and select.select([self._told], [], [], 0)[0]:
                status, seconds = self._line().split()
                self.returncode = int(status)
                spent.append(float(seconds))
                self._told.close()
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            left = 1.0 if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            try:
                select.select([self._told], [], [], left)
            except (OSError, ValueError):
                pass  # another thread has just heard of its end
        assert self.returncode is not None
        return self.returncode

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        heard: dict[str, Any] = {}
        readers = [
            threading.Thread(target=lambda name=name, file=file: heard.update({name: file.read()}), daemon=True)
            for name, file in (("stdout", self.stdout), ("stderr", self.stderr))
            if file is not None
        ]
        for reader in readers:
            reader.start()
        if self.stdin is not None:
            try:
                self.stdin.write(input) if input else None
                self.stdin.close()
            except BrokenPipeError:
                pass
        deadline = None if timeout is None else time.monotonic() + timeout
        for reader in readers:
            reader.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        for file in (self.stdout, self.stderr):
            if file is not None:
                file.close()
        self.wait(None if deadline is None else max(1.0, deadline - time.monotonic()))
        return heard.get("stdout"), heard.get("stderr")

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            # it is no child of this process: it may be gone, and its end not yet heard of
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def __enter__(self) -> Popen:
        return self

    def __exit__(self, *_: object) -> None:
        for file in (self.stdin, self.stdout, self.stderr):
            if file is not None:
                file.close()
        self.wait()


def run(
    words: Sequence[str], *, capture_output: bool = False, timeout: float | None = None, check: bool = False, input: Any = None, **options: Any
) -> subprocess.CompletedProcess[Any]:  # fmt: skip
    """As `subprocess.run`."""
    if capture_output:
        options.update(stdout=PIPE, stderr=PIPE)
    if input is not None:
        options.update(stdin=PIPE)
    with Popen(words, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done: subprocess.CompletedProcess[Any] = subprocess.CompletedProcess(words, process.wait(), out, err)
    if check:
        done.check_returncode()
    return done


# -- the server's side


def serve(number: int, imported: Sequence[str]) -> None:
    """Fork a host for each order, until nobody asks any more. The hosts run below this call, so that they end as any Python does, or `_run` ends
    them."""
    for name in (*_IMPORTED, *imported):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    from akrunner.worker.template import put_together

    # no host looks through these again, nor when it ends: that takes ten times as long as all else that it does for its end
    gc.collect()
    gc.freeze()
    # hundreds are forked
    put_together()
    asked = socket.socket(fileno=number)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    #: pid -> where its end is told
    hosts: dict[int, socket.socket] = {}
    while True:
        ready = select.select([asked, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            _tell_ends(hosts)
        if asked in ready:
            _, descriptors, _, _ = socket.recv_fds(asked, 1, 8)
            if not descriptors:
                return
            told, given, *standard = descriptors
            order = _order(given)
            _make_ready(order["words"])
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for end in (told, woken, wakes, asked.detach(), *(host.fileno() for host in hosts.values())):
                    os.close(end)
                return _become(order, standard)
            for end in standard:
                os.close(end)
            hosts[pid] = socket.socket(fileno=told)
            hosts[pid].sendall(b"%d\n" % pid)


#: what hosts have been made ready for
_ready: set[str] = set()


def _make_ready(words: Sequence[str]) -> None:
    """Make, before the first host that needs it, what all hosts make alike from nothing but akrunner: it is half of what most of them compute."""
    from akrunner.cli import main
    from akrunner.codes import matching
    from akrunner.launch import bundle, interpreters

    command = words[2] if list(words[:2]) == ["-m", "akrunner"] and words[2:3] and words[2] in main._COMMANDS else ""
    if command in _ready:
        return
    _ready.update((command, ""))
    bundle.bundle_bytes()
    matching.templates()
    # each host asks for itself; where packages are listed is kept
    interpreters._this.cache_clear()
    interpreters._this()
    interpreters._this.cache_clear()
    if command:
        main.load([command])
    gc.freeze()


def _tell_ends(hosts: dict[int, socket.socket]) -> None:
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        with hosts.pop(pid) as told:
            try:
                told.sendall(b"%d %.3f\n" % (os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime))
            except BrokenPipeError:
                pass  # who has asked for it waits no longer


def _order(descriptor: int) -> dict[str, Any]:
    with open(descriptor, "rb") as file:
        file.seek(0)
        order: dict[str, Any] = json.load(file)
        return order


def _become(order: dict[str, Any], standard: Sequence[int]) -> None:
    """As a process that a shell has just started: then run what it is to run."""
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
    for descriptor in standard:
        os.close(descriptor)
    if order["session"]:
        os.setsid()
    if order["nice"] > os.getpriority(os.PRIO_PROCESS, 0):
        os.setpriority(os.PRIO_PROCESS, 0, order["nice"])
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    tempfile.tempdir = None
    # what libraries of nanobind's empty when Python ends, page after page of what is shared with the server
    getattr(typing, "_cleanups", []).clear()
    if order["forks"]:
        from akrunner.launch import process
        from tests.forked import worker_forks

        worker_forks.begin_in_host(process, os.getppid(), order["forks"])
    main = types.ModuleType("__main__")
    words = order["words"]
    if words[0] == "-c":
        sys.argv, sys.path[0], sys.modules["__main__"] = ["-c", *words[2:]], "", main
        _run(compile(words[1], "<string>", "exec"), main)
    elif words[0] == "-m":
        sys.argv, sys.path[0] = words[1:], os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0], sys.modules["__main__"] = words, os.path.dirname(os.path.abspath(words[0])), main
        vars(main).update(__file__=words[0])
        _run(compile(Path(words[0]).read_text(), words[0], "exec"), main)


def _run(code: types.CodeType, main: types.ModuleType) -> None:
    """Run a program, and end as Python does, but without emptying every module, which would copy half of the server's memory: of its own alone. Returns
    where Python's own end is wanted."""
    status: Any = None
    try:
        exec(code, vars(main))
    except SystemExit as e:
        status = e.code
    if status is not None and not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        # nobody reads it any more, or it was closed
        sys.exit(status)
    vars(main).clear()
    gc.collect()
    os._exit((status or 0) & 0xFF)
