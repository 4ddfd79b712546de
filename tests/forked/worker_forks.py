"""Worker processes of jobs on the cluster that tests share, forked from a process that has imported what they do: numpy and the worker half, where
each takes 0.2 s of processor for it, and TensorFlow, where each takes 3 s.

::

    agent (a Python worker of Flink's) -- arguments, environment, descriptors -->  template (`tests/worker_template.py`) -- fork -->  worker process
                                       <-- pid, and how it has ended ------------  (one for all clusters of the same environment)

The agent starts and waits for its process as it does for users, by `subprocess.Popen` and `os.wait4`: both ask the template here. The agent is not
the parent, and the worker process is told that it is. Only what can be such a fork is one: under the interpreter that the tests have, without files,
variables or limits that would have it import something else, and while the file that `tests/starts.py` writes says so. All else starts as it does for
users.

So do hosts of `tests/hosts.py`, whose tests allow it, for worker processes of scripts without TensorFlow.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import json
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import types
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

#: variable with the path of the file that is there while tests fork, and says which interpreter they have
FILE = "AKRUNNER_TESTS_FORK"
#: bytes of an environment that a fork can have
_ROOM = 1 << 16
#: seconds that a template may take to import everything and to fork
_PATIENCE = 60.0
_TEMPLATE = Path(__file__).parents[1] / "worker_template.py"
#: stands before the first lines of the bundle
_BEGIN = b"""\
if __name__ == "__main__":
    __import__("worker_template").serve_agents()
"""
#: what is read when Python starts, and when numpy is imported
_EARLY = ("PYTHON", "LANG", "LC_", "TZ", "LD_", "MALLOC", "GLIBC", "NPY_", "NUMPY", "VIRTUAL_ENV", "COVERAGE", "ASAN", "TSAN")
#: what Flink tells each of its own workers, and what differs from cluster to cluster
_FLINKS = (
    "FLINK_",
    "BOOT_LOG_DIR",
    "CONTROL_API_",
    "LOGGING_API_",
    "PIPELINE_OPTIONS",
    "WORKER_ID",
    "_PYTHON_",
    "python",
    "JAVA_",
    "PYTEST_",
    "XDG_",
)
#: where Flink unpacks the files of a job
_OF_A_JOB = "/python-dist-"
_TENSORFLOW = re.compile(rb"^\s*(?:import|from)\s+(?:tensorflow|keras|tf_keras|akdl)\b", re.MULTILINE)

#: pid of a fork -> where its end is told
_ends: dict[int, socket.socket] = {}


class _Asker(NamedTuple):
    """Who asks for forks. Attributes: python: the interpreter that they have; session: while it is there, so is the template; folder: where the
    template has its files until it has imported them; host: whether it is no agent."""

    python: str
    session: int
    folder: str
    host: bool = False


#: this process, where it is a host
_host: list[_Asker] = []


class _Popen(subprocess.Popen):  # type: ignore[type-arg]
    """A fork where it is the same as what would be started, which is started otherwise."""

    _child_created = False

    def __init__(self, args: Any, *more: Any, **options: Any) -> None:
        told = _forked(args, options) if _is_worker(args) else None
        if told is None:
            super().__init__(args, *more, **options)
        else:
            self.args, self.returncode, self.stdin, self.stdout, self.stderr = args, None, None, None, None
            self.pid = told

    def wait(self, timeout: float | None = None) -> int:
        if self.pid in _ends:
            self.returncode = os.waitstatus_to_exitcode(_wait4(self.pid, 0)[1])
        return super().wait(timeout)


_wait4_of_children = os.wait4


def _wait4(pid: int, options: int) -> tuple[int, int, Any]:
    told = _ends.pop(pid, None)
    if told is None:
        return _wait4_of_children(pid, options)
    with told:
        word, *ended = _line(told).split()
    if word != b"ended":
        raise ChildProcessError("the process that workers are forked from has died")
    status, user, system, peak = int(ended[0]), float(ended[1]), float(ended[2]), int(ended[3])
    return pid, status, resource.struct_rusage((user, system, peak, *[0] * 13))


def begin() -> None:
    """Have the agents that are forked from this process ask for forks."""
    subprocess.Popen = _Popen  # type: ignore[misc]
    os.wait4 = _wait4


def begin_in_host(process: Any, session: int, folder: str) -> None:
    """Have the jobs of this host ask for forks. Args: process: `akrunner.launch.process`; session, folder: as of `_Asker`."""
    _host[:] = [_Asker(sys.executable, session, folder, host=True)]
    process.subprocess = types.SimpleNamespace(**{**vars(subprocess), "Popen": _Popen})
    process.os = types.SimpleNamespace(**{**vars(os), "wait4": _wait4})


def _asker() -> _Asker | None:
    """This process; None where it is to start what it wants."""
    if _host:
        return _host[0]
    try:
        told = json.loads(Path(os.environ[FILE]).read_text())
    except (KeyError, OSError, ValueError):
        return None
    return _Asker(told["python"], os.getsid(0), os.path.dirname(os.environ[FILE]))


def _is_worker(words: Any) -> bool:
    return not isinstance(words, (str, bytes)) and words[2:3] == ["run"] and os.path.basename(words[1]) == "bundle.zip"


def _forked(words: Sequence[str], options: Mapping[str, Any]) -> int | None:
    """The pid of a new fork; None where there can be none."""
    asker = _asker()
    if asker is None or words[0] != asker.python:
        return None
    environ, cwd = options["env"], options["cwd"]
    # it looks at the model that it has made, whatever its script imports
    module = "tensorflow" if not asker.host and _trains(cwd) else _module(cwd)
    if (asker.host and module != "numpy") or not _alike(_for_scripts(asker), environ, cwd, module):
        return None
    names = [name for place in [cwd, *_places(environ, of_a_job=True)] for name in _names(place) if name != "akrunner"]
    order = {
        "words": list(words), "env": environ, "cwd": cwd, "numbers": [0, 1, 2, *options["pass_fds"]], "names": names,
        "path": _places(environ), "parent": os.getpid(), "session": asker.session,
    }  # fmt: skip
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        asked = stack.enter_context(_template(asker, words[1], module))
        nothing = stack.enter_context(open(os.devnull, "rb"))
        text = json.dumps(order).encode()
        descriptors = [nothing.fileno(), options["stdout"], options["stderr"], *options["pass_fds"]]
        socket.send_fds(asked, [len(text).to_bytes(8, "little")], descriptors)
        asked.sendall(text)
        word, *pid = _line(asked).split()
        if word == b"forked":
            stack.pop_all()
            nothing.close()
            asked.settimeout(None)
            _ends[int(pid[0])] = asked
            return int(pid[0])
    return None


def _line(told: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        part = told.recv(1)
        if not part:
            return b"gone"
        line += part
    return line


def _spares(name: str) -> Any:
    """A module of `akrunner.spares`, a room that agents do not have."""
    import akrunner

    ours = str(Path(__file__).parents[2] / "akrunner")
    akrunner.__path__.append(ours)
    try:
        return importlib.import_module(f"akrunner.spares.{name}")
    finally:
        akrunner.__path__.remove(ours)


def _names(place: str) -> set[str]:
    """The names in a directory, or a zip, from which Python imports."""
    return set(os.listdir(place)) if os.path.isdir(place) else _names_in_zip(place)


@functools.cache
def _names_in_zip(place: str) -> set[str]:
    with zipfile.ZipFile(place) as archive:
        return {name.partition("/")[0] for name in archive.namelist()}


def _trains(folder: str) -> bool:
    return os.path.isdir(os.path.join(os.path.dirname(folder), "saved_model"))


def _module(folder: str) -> str:
    """What a job's files import besides: "tensorflow", or "numpy"."""
    texts = [path.read_bytes() for path in Path(folder).rglob("*.py")]
    # a job without a script is a prediction with a model
    return "tensorflow" if not texts or any(_TENSORFLOW.search(text) for text in texts) else "numpy"


def _for_scripts(asker: _Asker) -> dict[str, str]:
    """The environment of this process, as what runs a script has it from here."""
    from akrunner.engines.flink.taskmanager.agent import places_of_scripts

    return {**os.environ, **({} if asker.host else places_of_scripts(os.environ))}


def _alike(ours: Mapping[str, str], environ: Mapping[str, str], folder: str, module: str) -> bool:
    """Whether what would be started imports what the template has. Args: ours, environ: as this process has it, and as it would have it."""
    from akrunner.cluster.resources import THREADS

    hazard, early = _spares("hazards").hazard, _spares("wanted").early

    if sum(len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in environ.items()) > _ROOM:
        return False
    if not all(map(os.path.isabs, _places(environ))):
        return False
    mine, its = [
        {
            name: value
            for name, value in early(one).items()
            if name not in THREADS and (module != "numpy" or name.startswith(_EARLY))
        }
        for one in (ours, environ)
    ]
    return mine == its and (module == "numpy" or not hazard(folder))


def _places(environ: Mapping[str, str], of_a_job: bool | None = None) -> list[str]:
    """The entries of PYTHONPATH. Args: of_a_job: only those that Flink has unpacked for a job; False: only the others."""
    places = environ.get("PYTHONPATH", "").split(os.pathsep)
    return [place for place in places if place and (of_a_job is None or (_OF_A_JOB in place) == of_a_job)]


class _Like(NamedTuple):
    """What a template is like, whatever the job. Attributes: environ: the variables that it has; words: the checksum of all of it."""

    environ: dict[str, str]
    words: str


def _like(asker: _Asker) -> _Like:
    from akrunner.cluster.resources import THREADS

    early, surroundings = _spares("wanted").early, _spares("wanted").surroundings

    environ = {name: value for name, value in early(os.environ).items() if name not in THREADS and not name.startswith(_FLINKS)}
    if asker.host:
        # each test has others, which numpy does not read
        environ = {name: value for name, value in environ.items() if name.startswith(_EARLY)}
    environ["PYTHONPATH"] = os.pathsep.join(_places(os.environ, of_a_job=False))
    what = [os.geteuid(), asker.python, sorted(environ.items()), sorted(surroundings().items()), _TEMPLATE.read_text()]
    return _Like(environ, hashlib.sha256(json.dumps(what).encode()).hexdigest())


#: for an agent, in whose process nothing of it changes from job to job
_like_of_agents = functools.cache(_like)
#: the last bundle of this process' jobs, and its checksum
_bundle: list[tuple[bytes, str]] = []


def _checksum(bundle: bytes) -> str:
    if not _bundle or _bundle[0][0] != bundle:
        _bundle[:] = [(bundle, hashlib.sha256(bundle).hexdigest())]
    return _bundle[0][1]


def _template(asker: _Asker, bundle: str, module: str) -> socket.socket:
    """A connection to the template, which is started if there is none. Args: module: what it imports besides the worker half."""
    environ, words = _like(asker) if asker.host else _like_of_agents(asker)
    data = Path(bundle).read_bytes()
    name = f"\0akrunner-tests-{hashlib.sha256(f'{words} {module} {_checksum(data)}'.encode()).hexdigest()}"
    asked = socket.socket(socket.AF_UNIX)
    asked.settimeout(_PATIENCE)
    try:
        asked.connect(name)
    except ConnectionRefusedError:
        with socket.socket(socket.AF_UNIX) as server:
            # another one may be first
            with contextlib.suppress(OSError):
                server.bind(name)
                # who asks meanwhile waits, which is shorter than to import the same
                server.listen(64)
                _start(asker, module, data, environ, server.fileno())
        asked.connect(name)
    return asked


def _start(asker: _Asker, module: str, data: bytes, environ: Mapping[str, str], server: int) -> None:
    """Start a template. It is nobody's child. Args: data: the bundle's; server: where it is asked."""
    # beside the file, as no job has anything there; the template removes it when it has imported everything
    folder = tempfile.mkdtemp(prefix="template-", dir=asker.folder)
    path = os.path.join(folder, "bundle.zip")
    with zipfile.ZipFile(path, "w") as archive:
        source = Path(folder, "source.zip")
        source.write_bytes(data)
        with zipfile.ZipFile(source) as bundle:
            for name in bundle.namelist():
                archive.writestr(name, (_BEGIN if name == "__main__.py" else b"") + bundle.read(name))
        archive.writestr(_TEMPLATE.name, _TEMPLATE.read_bytes())
    everything = {**environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "AKRUNNER_ROOM": "-" * _ROOM}
    # streams of Python's remember what they are, and a fork's are pipes
    ours, theirs = os.pipe()
    try:
        # goes on as a child of nobody's
        subprocess.run(
            [asker.python, path, "serve", str(server), str(ours), module, str(asker.session), "-" * 1000],
            stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
            pass_fds=[server, ours], cwd="/", env=everything, start_new_session=True, check=True,
        )  # fmt: skip
    finally:
        os.close(ours)
        os.close(theirs)
