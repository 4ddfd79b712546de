"""A call of MaxCompute's client in a shell script: finds the directory of the run it belongs to, and leaves its outcome there.

::

    DIR/options           the run's options: arguments of `akrunner.pai`, pickled; DIR has mode 0700
    DIR/calls/PID.begins  a call's process has started, and has not written its N.begun yet
    DIR/calls/N.begun     the call has begun: a `Called` without its outcome; N: the time it began, and its process id
    DIR/calls/N.ended     the call has ended: the same `Called`, with its outcome
    DIR/stopped           the script was stopped: no further call begins
"""

from __future__ import annotations

import contextlib
import os
import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import psutil

from akrunner.errors import AkrunnerError, ConfigError, JobError

#: environment variables that tell a call its run's directory, the line of the script it stands in, and the user's own BASH_ENV
HERE, PLACE, BEFORE = "AKRUNNER_PAI_SCRIPT", "AKRUNNER_PAI_LINE", "AKRUNNER_BASH_ENV"
OPTIONS, CALLS, STOPPED, BEGINS = "options", "calls", "stopped", "begins"


def private(path: str) -> IO[bytes]:
    """Create a file that only this user can read, and open it for writing. Raises: FileExistsError: it exists already."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


@dataclass
class Called:
    """One call of the client.

    Attributes:
        name: the command, "odpscmd" or "pai".
        place: the script's name and line, "" if they are unknown.
        done: the results of the call's statements.
        error: why it failed, None if it did not.
        ended: whether the call itself reported its end; False if it is still running, or was killed.
    """

    name: str
    place: str
    done: list[Any] = field(default_factory=list)
    error: AkrunnerError | None = None
    ended: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.name}" if self.place else self.name


class Inside:
    """The call that this process is.

    Attributes:
        options: the options of the run.
        place: the script's name and the line the call stands in, "" if they are unknown.
    """

    def __init__(self, folder: str, name: str, place: str) -> None:
        """Read the run's options, and record that the call has begun.

        Raises:
            ConfigError: the script was stopped, or has ended.
        """
        self._folder = os.path.join(folder, CALLS)
        if os.path.exists(os.path.join(folder, STOPPED)) or not os.path.isdir(self._folder):
            raise ConfigError(f"{name} is not run: the script that calls it was stopped")
        with open(os.path.join(folder, OPTIONS), "rb") as stream:
            self.options: dict[str, Any] = pickle.load(stream)
        self.place = place
        self._name = f"{time.time_ns():020d}-{os.getpid()}"
        with private(os.path.join(self._folder, f"{self._name}.begun")) as stream:
            pickle.dump(Called(name, place), stream)
        self._called = Called(name, place, ended=True)

    @contextlib.contextmanager
    def telling(self, done: list[Any]) -> Iterator[None]:
        """Record, when the block ends, what it has done and why it failed.

        Args:
            done: the results of the call's statements; the block fills this list.
        """
        try:
            yield
        except AkrunnerError as e:
            self._leave(done, _portable(e))
            raise
        except Exception as e:
            self._leave(done, JobError(f"{type(e).__name__}: {e}"))
            raise
        self._leave(done, None)

    def _leave(self, done: list[Any], error: AkrunnerError | None) -> None:
        self._called.done, self._called.error = done, error
        path = os.path.join(self._folder, self._name)
        with contextlib.suppress(OSError):
            # if the script has ended meanwhile, its directory is gone, and the outcome is no longer needed
            with private(f"{path}.part") as stream:
                pickle.dump(self._called, stream)
            os.replace(f"{path}.part", f"{path}.ended")


def _portable(error: AkrunnerError) -> AkrunnerError:
    """Return the error itself if it can be pickled; otherwise a `JobError` with the same text."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return JobError(f"{type(error).__name__}: {error}")


def inside(name: str) -> Inside | None:
    """Return this process as a call of a script, or None if no script called it.

    It takes the marks of the run out of this process's environment: what the process starts has the environment that the user
    gave the script.

    Args:
        name: the command's name.
    Raises:
        ConfigError: the script was stopped, or has ended.
    """
    folder = os.environ.pop(HERE, "")
    if not folder:
        return None
    place = os.environ.pop(PLACE, "")
    before = os.environ.pop(BEFORE, "")
    os.environ.pop("BASH_ENV", None)
    if before:
        os.environ["BASH_ENV"] = before
    own = os.path.join(folder, "bin")
    os.environ["PATH"] = os.pathsep.join(one for one in os.environ.get("PATH", "").split(os.pathsep) if one != own)
    source, _, line = place.rpartition(":")
    return Inside(folder, name, f"{os.path.basename(source)}, line {line}" if source and line else "")


def read(folder: str) -> list[Called]:
    """Return a script's calls, in the order they began."""
    place = os.path.join(folder, CALLS)
    found = []
    for name in sorted(one for one in os.listdir(place) if one.endswith(".begun")):
        ended = os.path.join(place, name[: -len("begun")] + "ended")
        with open(ended if os.path.exists(ended) else os.path.join(place, name), "rb") as stream:
            found.append(pickle.load(stream))
    return found


def under_way(folder: str) -> bool:
    """Whether a call of a script has begun, has not ended, and its process is alive."""
    names = set(os.listdir(os.path.join(folder, CALLS)))
    begun = [name for name in names if name.endswith(".begun") and name[: -len("begun")] + "ended" not in names]
    pids = [name[: -len(".begun")].rpartition("-")[2] for name in begun]
    told = {name[: -len(".begun")].rpartition("-")[2] for name in names if name.endswith(".begun")}
    pids += [name.partition(".")[0] for name in names if name.endswith(f".{BEGINS}") and name.partition(".")[0] not in told]
    return any(_lives(int(pid)) for pid in pids)


def _lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
