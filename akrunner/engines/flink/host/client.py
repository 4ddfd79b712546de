"""Runs the process that has PyFlink and Java (`akrunner.engines.flink.program.submit`), and hears from it about its jobs."""

from __future__ import annotations

import itertools
import json
import marshal
import os
import signal
import subprocess
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from importlib import util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import IO, Protocol

from akrunner import leftovers
from akrunner.engines.flink import threads
from akrunner.engines.flink.host.java import NO_FLIGHT_RECORDER
from akrunner.engines.flink.program.submit import ENDED, Order, Word
from akrunner.engines.flink.rest import HEADERS, Address, Rest
from akrunner.errors import ClusterError, StartError
from akrunner.foreign import ours

_LINE_BYTES = 16 << 20
#: what akrunner is called as a zip. Flink takes .zip apart into a thousand files for each subtask; Python imports from any name
PACKAGE = "akrunner.pyz"
_ASK_SECONDS = 5.0
#: seconds that the process may take to say whether it is well
_WELL_SECONDS = 3.0
#: files that modules read which run there: the codes of errors
_DATA = (os.path.join("codes", "index.json"),)
#: where the modules are that agents import, besides those directly in `akrunner`
_BESIDE_TASKS = (
    *(f"{room}{os.sep}" for room in ("cluster", "codec", "codes", "io", "launch", "leftovers", "wire")),
    os.path.join("engines", "__init__.py"),
    os.path.join("engines", "flink", ""),
)
#: of these, the host's own
_HOSTS = os.path.join("engines", "flink", "host", "")
#: rooms of which neither agents nor the host of a detached job import anything
_NOT_IMPORTED = tuple(f"{room}{os.sep}" for room in ("alink", "checkup", "cli", "packing", "pai_mode", "starters", "worker"))
_PACKAGE = str(Path(__file__).resolve().parents[3])


class Submission:
    """A Flink job, as far as it is known.

    Attributes:
        id: Flink's id of the job; "" while it is not known.
        state: Flink's word for the job's state.
        failed: why it has failed; None while it has not.
        fault: whether it has failed by a fault of akrunner's own.
        detached: whether it goes on without the process that submits it.
        known: an event that is set once the job has an id, or has ended.
        ended: an event that is set once the job has ended.
    """

    def __init__(self, detached: bool = False) -> None:
        self.detached = detached
        self.id = ""
        self.known = threading.Event()
        self.state = "being submitted"
        self.failed: str | None = None
        self.fault = False
        self.ended = threading.Event()

    def fails(self, why: str, fault: bool = False) -> None:
        """Note that the job has failed, unless it is known how it has ended. Args: why, fault: as the attributes."""
        if not self.ended.is_set():
            self.failed, self.fault = why, fault
            self.ended.set()
            self.known.set()


class Submitter(Protocol):
    """Submits akrunner's jobs to Flink."""

    def submit(self, order: Order) -> Submission:
        """Submit a job.

        Args:
            order: what the job is; the submitter adds what it knows itself.
        """
        ...

    def cancel(self, job: Submission) -> None:
        """Ask Flink to end the job; does nothing if it has ended."""
        ...

    def hurry(self, job: Submission) -> None:
        """Learn of the job's end without delay: it is about to end, or may have ended."""
        ...

    def close(self) -> None:
        """End the submitter; nothing of it stays."""
        ...


class Client:
    """A process that submits jobs to Flink. Must be closed.

    It, its folder and all the processes it has started end with this process, whichever process is killed.

    Args:
        python: the interpreter, which has PyFlink.
        java: JAVA_HOME.
        cluster: the cluster to submit to; None for a cluster inside that process.
    Attributes:
        package: the path of a zip with what agents import of akrunner.
        folder: its temp directory.
    Raises:
        StartError: the process cannot be started.
    """

    def __init__(self, python: str, java: str, cluster: Address | None = None) -> None:
        self._cluster = cluster
        self._closed = False
        self._lock = threading.Lock()
        with ours(StartError, "no directory can be made for what submits to Flink (TMPDIR)"):
            self.folder = leftovers.temp_folder("akrunner-flink-")
        try:
            with ours(StartError, f"cannot prepare what submits to Flink in {self.folder}"):
                self._start(python, java)
        except BaseException:
            leftovers.drop(self.folder)
            raise

    def _start(self, python: str, java: str) -> None:
        self.package = os.path.join(self.folder, PACKAGE)
        write_package(self.package, whole=False)
        self._log = open(os.path.join(self.folder, "flink.txt"), "ab")
        # files that PyFlink and Java leave in the temp directory are removed with the folder
        environ = {
            **os.environ, "JAVA_HOME": java, "PYTHONPATH": self.package, "_python_worker_execution_mode": "process",
            "TMPDIR": self.folder, "JAVA_TOOL_OPTIONS": java_options(self.folder, os.environ),
        }  # fmt: skip
        if self._cluster is not None and self._cluster.headers:
            # credentials must not be seen by those who list processes
            environ[HEADERS] = self._cluster.header_lines
        self._numbers = itertools.count()
        self._began = time.time()
        self._jobs: dict[int, Submission] = {}
        #: why nothing more is heard of jobs, and whether that is a fault of akrunner's own
        self._over: tuple[str, bool] | None = None
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            [python, "-m", "akrunner.engines.flink.program.submit"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
            cwd=self.folder,
            env=environ,
        )
        leftovers.watch(self._process.pid)
        assert self._process.stdout is not None
        self._listening = threads.started("flink", self._died, self._listen, self._process.stdout)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def idle(self) -> bool:
        """Whether it runs, and nothing of what it has submitted needs it any more."""
        jobs = list(self._jobs.values())
        return self.alive and self._over is None and all(job.ended.is_set() or (job.detached and job.id) for job in jobs)

    def is_well(self) -> bool:
        """Whether the process and its Java answer, would load now what they have loaded, and have what they give to jobs."""
        number, asked = next(self._numbers), Submission()
        self._jobs[number] = asked
        self._write({"look": number, "since": self._began})
        well = asked.ended.wait(_WELL_SECONDS) and asked.failed is None and self._over is None
        self._jobs = {}
        # whoever clears temp directories may have taken what jobs are given
        return well and self.alive and os.path.exists(self.package)

    def submit(self, order: Order) -> Submission:
        """Submit a job.

        Args:
            order: as `submit.submitted` takes it, or `submit.detached`; a detached job stays when this process ends.
        """
        number, job = next(self._numbers), Submission(detached="archive" in order)
        self._jobs[number] = job
        if self._over is not None:
            # the thread that would say so has looked through the jobs already
            job.fails(*self._over)
            return job
        remote = self._cluster.flink_options if self._cluster is not None else None
        brings = brings_python(self._cluster)
        package = self._whole_package() if "archive" in order else self.package
        self._write({"submit": number, "package": package, "remote": remote, "brings_python": brings, **order})
        return job

    def _whole_package(self) -> str:
        """Return the path of akrunner as a zip, for the host of a detached job."""
        path = os.path.join(self.folder, "whole", PACKAGE)
        with self._lock:
            if not os.path.exists(path):
                os.mkdir(os.path.dirname(path))
                write_package(path)
        return path

    def cancel(self, job: Submission) -> None:
        """Ask Flink to end the job; does nothing if it has ended."""
        for number in self._number(job):
            self._write({"cancel": number})

    def hurry(self, job: Submission) -> None:
        """Have the process ask at once, and often, whether the job has ended."""
        for number in self._number(job):
            self._write({"hurry": number})

    def _number(self, job: Submission) -> list[int]:
        """Return the number of a job that has not ended; none of one that has."""
        return [number for number, known in list(self._jobs.items()) if known is job and not job.ended.is_set()]

    def close(self, seconds: float = 15.0) -> None:
        """End the process, its jobs, Java, and on the local cluster Flink's Python workers."""
        assert self._process.stdin is not None and self._process.stdout is not None
        if self._closed:
            return
        self._closed = True
        try:
            self._process.stdin.close()
        except OSError:
            pass
        if all(job.ended.is_set() for job in list(self._jobs.values())):
            seconds = 0.0  # nothing to cancel
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        self._process.wait(10.0)
        leftovers.unwatch(self._process.pid)
        self._listening.join(5.0)
        self._process.stdout.close()
        self._log.close()
        leftovers.drop(self.folder)

    def _write(self, word: Order) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(word).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):
            pass  # it has ended, which the listener reports, or `close` has closed the pipe

    def _listen(self, said: IO[bytes]) -> None:
        while line := said.readline(_LINE_BYTES):
            try:
                word: Word = json.loads(line)
                job = self._jobs[word["of"]]
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # a line that a library has printed
            job.id = word.get("job", job.id)
            job.failed = word.get("failed", job.failed)
            job.state = str(word.get("state", job.state))
            if job.failed is not None or job.state in ENDED:
                job.ended.set()
            job.known.set()
        self._all_failed(f"the process that submits it ended{self._last_words()}")

    def _died(self, name: str, error: BaseException) -> None:
        self._all_failed(threads.words_of(name, error), fault=True)

    def _all_failed(self, why: str, fault: bool = False) -> None:
        # first, so that a job that is submitted meanwhile is not missed by both
        self._over = why, fault
        for job in list(self._jobs.values()):
            job.fails(why, fault)

    def _last_words(self) -> str:
        try:
            with open(self._log.name, errors="replace") as f:
                lines: list[str] = [line for line in f.read().splitlines() if line.strip() and not line.startswith("WARNING")]
        except OSError:
            return ""
        traces = [number for number, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")]
        return ": " + "\n".join(lines[traces[-1] :] if traces else lines[-1:]) if lines else ""


def java_options(folder: str, environ: Mapping[str, str]) -> str:
    """Return what JAVA_TOOL_OPTIONS is for the process: akrunner's options, then the user's, which count where they say something else.

    Java uses its quicker compiler, as it has no rows to work on.
    """
    return f"-Djava.io.tmpdir={folder} -XX:TieredStopAtLevel=1 {NO_FLIGHT_RECORDER} {environ.get('JAVA_TOOL_OPTIONS', '')}"


def brings_python(cluster: Address | None) -> bool:
    """Whether a job has to bring Flink's Python to a cluster: 42 MB to each of its machines.

    Args:
        cluster: the cluster; None for one in the process that submits.
    """
    if cluster is None:
        return False
    try:
        return not Rest(cluster, _ASK_SECONDS).has_python()
    except ClusterError:
        return True  # bringing it does no harm


def write_package(path: str, whole: bool = True) -> None:
    """Write akrunner itself as a zip that TaskManagers import from, as it is.

    Beside each module is its bytecode, which Python uses there if the version of Python is the same as this one's.
    Without it, every process would compile every module from the zip: 0.2 s for each subtask.

    Args:
        whole: all of akrunner; False: only what agents import, a third of that.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for full, inside in _files(whole):
            archive.write(full, os.path.join("akrunner", inside))
            if inside.endswith(".py") and not inside.startswith(_NOT_IMPORTED):
                archive.writestr(os.path.join("akrunner", inside + "c"), _bytecode(full))


def _files(whole: bool) -> Iterator[tuple[str, str]]:
    """Yield (path, path in akrunner's directory) of what the package has. Args: whole: as for `write_package`."""
    for folder, _, names in os.walk(_PACKAGE):
        for name in names:
            full = os.path.join(folder, name)
            inside = os.path.relpath(full, _PACKAGE)
            if (name.endswith(".py") or inside in _DATA) and (whole or is_beside_tasks(inside)):
                yield full, inside


def is_beside_tasks(file: str) -> bool:
    """Whether agents may import it. Args: file: a path in akrunner's directory."""
    return os.sep not in file or (file.startswith(_BESIDE_TASKS) and not file.startswith(_HOSTS))


def _bytecode(path: str) -> bytes:
    """Return a module's bytecode, as `py_compile` writes it with "unchecked": the machines' clocks and time zones differ,
    so Python must not compare it with the time of the source."""
    loader = SourceFileLoader(os.path.basename(path), path)
    # mostly this is the code in __pycache__
    code = loader.get_code(loader.name)
    return util.MAGIC_NUMBER + (1).to_bytes(4, "little") + util.source_hash(loader.get_data(path)) + marshal.dumps(code)
