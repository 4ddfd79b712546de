"""Worker processes of tests begin as forks of one that has imported numpy and the worker half, where each takes 0.2 s of processor for it.

::

    one of pytest's processes -- arguments, environment, descriptors -->  template (`tests/worker_template.py`)
            ^                                                               |
            +--------- parent ------------  worker process  <---- clone ----+

A fork is what Python would have started: a child of pytest's process, with the arguments, descriptors, environment and files of its own. Only
what can be such a fork is one: the worker process of a job that a test runs in pytest's own process, with this interpreter, whose environment,
limits and files lead to the same imports. All else, and all in tests with the markers `cold`, `tensorflow`, `matrix` and `flink`, starts as it
does for users.

Agents on Flink have another template (`tests/forked/worker_forks.py`), which a file tells them to ask: it is there in tests that want forks. So have
hosts and commands of `tests/hosts.py`, which are told when they are started; not in tests with the marker `cold`, nor in those of warm workers,
which tell forks by their parents.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import threading
import types
import zipfile
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from akrunner.launch import process
from akrunner.launch.bundle import bundle_bytes
from akrunner.launch.texts import text
from akrunner.spares import wanted
from akrunner.worker.spare import end_of_zip
from tests import hosts

#: system -> number of its call `clone`, whose first argument is the flags
CLONE = {"x86_64": 56, "aarch64": 220}
#: what is read when Python starts, and when numpy is imported
_EARLY = ("PYTHON", "LANG", "LC_", "TZ", "LD_", "MALLOC", "GLIBC", "NPY_", "NUMPY", "VIRTUAL_ENV", "COVERAGE", "ASAN", "TSAN")
#: markers of tests whose workers start cold, or are taken from `tests/warmth.py`
_OTHERS = {"cold", "tensorflow", "matrix", "flink"}
#: ends of processes are those of a process that Python has started
CRASHES = "tests/contract/test_crash_"
#: but for these rows: each event has others, of its mode or of a batch job, in which it happens to a process that Python has started. So has the
#: first of those in which the rows are wrong, or the host's source raises
_FORKED_CRASHES = re.compile(
    r"test_crash_table\.py::(test_(fatal|harmless|hang|closes_our_pipes)\[local-(.*-)?(reading|writing)\]|"
    r"test_(wrong_row|source_that_raises)\[local-(?!a wrong type|OSError)|"
    r"test_one_of_two_fails\[local-(while|os\.read))|"
    r"test_crash_modes\.py::(test_(fatal|hang|closes_our_pipes)\[\w+-local-(.*-)?(reading|main|writing)\]|test_harmless\[\w+-local-)"
)
#: whose hosts start their workers as they do for users: a template is not their child; the last four kill hosts
_COLD_IN_HOSTS = (
    CRASHES,
    "tests/contract/test_warm.py",
    "tests/contract/test_kept.py",
    "tests/chaos/",
    "tests/e2e/test_doctor_command.py",
    "tests/e2e/test_object_stores.py",
    "tests/e2e/test_runs_command.py",
    "tests/e2e/test_stream_checkpoint.py",
)
#: bytes of an environment that a fork can have
_ROOM = 1 << 16
_TEMPLATE = Path(__file__).with_name("worker_template.py")
#: what TensorFlow does for tests that do not start it cold: for oneDNN it looks through all its kernels whenever a process has a new operation in a
#: graph, which takes a third of what a small job takes
TENSORFLOW = {"TF_ENABLE_ONEDNN_OPTS": "0"}


class _Template:
    """The process that workers are forked from.

    Attributes: process: it; end: of the bundle whose modules it has, with a checksum of each file; names: of the
    modules that it has imported: a script whose own files are named so would import those.
    """

    def __init__(self) -> None:
        self._asked, theirs = socket.socketpair()
        self._owner = os.getpid()
        data = bundle_bytes()
        with theirs, tempfile.TemporaryDirectory() as folder:
            # the directory goes once everything is imported; a fork's modules are of its own bundle
            path = os.path.join(folder, "bundle.zip")
            with zipfile.ZipFile(io.BytesIO(data)) as bundle, zipfile.ZipFile(path, "w") as archive:
                for name in bundle.namelist():
                    archive.writestr(name, (_BEGIN if name == "__main__.py" else b"") + bundle.read(name))
                archive.writestr(_TEMPLATE.name, _TEMPLATE.read_bytes())
            source = Path(folder, "source.zip")
            source.write_bytes(data)
            self.end = end_of_zip(str(source))
            environ = {**_first.environ, "OPENBLAS_NUM_THREADS": "1", "AKRUNNER_ROOM": "-" * _ROOM}
            words = [sys.executable, path, "run", str(theirs.fileno()), "-" * 1000]
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()], cwd="/", env=environ, start_new_session=True,
            )  # fmt: skip
            self.names = frozenset(json.loads(self._line()))
        atexit.register(self.stop)

    def stop(self) -> None:
        # not in what pytest's process has forked
        if os.getpid() == self._owner:
            self._asked.close()
            self.process.wait()

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            part = self._asked.recv(1 << 16)
            if not part:
                raise RuntimeError(f"the process that workers are forked from has died: {self.process.communicate()[0]!r}")
            line += part
        return line

    def fork(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """The pid of a new fork. Args: descriptors: of those that the order numbers."""
        told = json.dumps(order).encode()
        socket.send_fds(self._asked, [b"%10d" % len(told)], descriptors)
        self._asked.sendall(told)
        return int(self._line())


class _Forked:
    """As `subprocess.Popen`, as far as `ChildProcess` wants it."""

    def __init__(self, pid: int) -> None:
        self.pid, self.returncode = pid, 0

    def wait(self) -> int:
        os.waitpid(self.pid, 0)
        return 0


class _First:
    """What this process was when its first test began. Attributes: environ; inherited: what its children inherit besides."""

    def __init__(self) -> None:
        self.environ, self.inherited = dict(os.environ), _inherited()


def _inherited() -> tuple[dict[str, str], str]:
    """What a child inherits besides its environment, and the control group, whose limits no test changes."""
    return wanted.own(), text("/proc/self/cgroup")


_first: _First
#: whether the agents of clusters are to ask for forks; of each cluster, the file that is there while they are
_asking = False
_files: list[Path] = []
_templates: list[_Template] = []
_lock = threading.Lock()


def server() -> int:
    """The pid of the process that workers are forked from, 0 for none."""
    return _templates[0].process.pid if _templates else 0


def _early(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(_EARLY)}


def _template() -> _Template | None:
    """The one of this process; None where there can be none."""
    if platform.system() != "Linux" or platform.machine() not in CLONE:
        return None
    # a worker ends with the thread that has started its parent
    if not _templates and threading.current_thread() is threading.main_thread():
        _templates.append(_Template())
    return _templates[0] if _templates and _templates[0].process.poll() is None else None


def _popen(words: Sequence[str], **options: Any) -> Any:
    """A fork where it is the same as what would be started, which is started otherwise."""
    # a test may have something else in its place
    real = subprocess.Popen is _POPEN
    if real and words[0] == sys.executable and words[2:3] == ["run"] and os.path.basename(words[1]) == "bundle.zip":
        with _lock:
            found = _template()
            if found is not None and _alike(found, words[1], options["env"], options["cwd"]):
                inherited = options["pass_fds"]
                order = {
                    "words": list(words), "env": options["env"], "cwd": options["cwd"],
                    "numbers": [0, 1, 2, *inherited], "clone": CLONE[platform.machine()],
                }  # fmt: skip
                with open(os.devnull, "rb") as nothing:
                    pid = found.fork(order, [nothing.fileno(), options["stdout"], options["stderr"], *inherited])
                return _Forked(pid)
    return subprocess.Popen(words, **options)


def _alike(template: _Template, bundle: str, environ: Mapping[str, str], folder: str) -> bool:
    """Whether what would be started is what the template has."""
    return (
        sum(len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in environ.items()) < _ROOM
        and _early(environ) == _early(_first.environ)
        and not any(name.partition(".")[0] in template.names for name in os.listdir(folder))
        and _inherited() == _first.inherited
        and end_of_zip(bundle) == template.end
    )


#: stands before the first lines of the bundle
_BEGIN = b"""\
if __name__ == "__main__":
    __import__("worker_template").serve()
"""


#: what `akrunner.launch.process` has in place of `subprocess`
_SHIM = types.SimpleNamespace(**{**vars(subprocess), "Popen": _popen})
_POPEN = subprocess.Popen


def ends_cold(test: str) -> bool:
    """Whether the ends of a test's processes are those of a process that Python has started. Args: test: its id."""
    return test.startswith(CRASHES) and not _FORKED_CRASHES.search(test)


def choose(marked: Set[str], test: str = "", folder: str = "") -> None:
    """Have the jobs of a test start their workers in the way that is its. Args: marked: the names of its markers; test: its id; folder: a directory of
    this process, "" if hosts are to start theirs as they do for users."""
    global _first, _asking
    if "_first" not in globals():
        _first = _First()
    if "flink" in marked:
        _asking = "cold" not in marked and not test.startswith(CRASHES)
        for file in _files:
            _tell(file)
    hosts.forks = folder if marked.isdisjoint({"cold", "flink", "matrix"}) and not test.startswith(_COLD_IN_HOSTS) else ""
    process.subprocess = _SHIM if _OTHERS.isdisjoint(marked) and not ends_cold(test) else subprocess  # type: ignore[assignment, attr-defined]


def tell(file: Path) -> None:
    """Have the agents of a cluster ask for forks in tests that want them. Args: file: that they look for."""
    _files.append(file)
    _tell(file)


def _tell(file: Path) -> None:
    if not _asking:
        file.unlink(missing_ok=True)
    elif not file.exists():
        file.write_text(json.dumps({"python": sys.executable}))
