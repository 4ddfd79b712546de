"""A call of MaxCompute's client that a shell script makes: how it finds the run it belongs to, and leaves there what it came to.

::

    DIR/options          of the run: arguments of `akrunner.pai`, pickled; DIR is 0700
    DIR/calls/PID.begins  the process of one that has not come so far yet
    DIR/calls/N.begun    a `Called` without what it came to; N: when it began, and its process
    DIR/calls/N.ended    with it
    DIR/stopped          no other call begins
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

#: variables by which a call finds its run, the line it stands in, and the BASH_ENV there was before
HERE, PLACE, BEFORE = "AKRUNNER_PAI_SCRIPT", "AKRUNNER_PAI_LINE", "AKRUNNER_BASH_ENV"
OPTIONS, CALLS, STOPPED, BEGINS = "options", "calls", "stopped", "begins"


def private(path: str) -> IO[bytes]:
    """A new file for this user's eyes. Raises: FileExistsError."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


@dataclass
class Called:
    """One call of the client. Attributes: name: "odpscmd", "pai"; place: the script's line, if it is known; done: what its statements came to;
    error: why it failed; ended: whether it said so itself."""

    name: str
    place: str
    done: list[Any] = field(default_factory=list)
    error: AkrunnerError | None = None
    ended: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.name}" if self.place else self.name


class Inside:
    """A call of a script's, seen from itself.

    Attributes: options: of the run; place: the line of the script the call stands in.
    """

    def __init__(self, folder: str, name: str, place: str) -> None:
        """Raises: ConfigError: the script has been stopped, or has ended."""
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
        """Leave what the block has done, and why it failed. Args: done: what its statements came to; the block fills it."""
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
            # the script has ended meanwhile, and nobody is interested any more
            with private(f"{path}.part") as stream:
                pickle.dump(self._called, stream)
            os.replace(f"{path}.part", f"{path}.ended")


def _portable(error: AkrunnerError) -> AkrunnerError:
    """One that can be handed to another process."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return JobError(f"{type(error).__name__}: {error}")


def inside(name: str) -> Inside | None:
    """This process as the call of a script, if it is one. What it starts itself has the environment of whoever ran the script.

    Args: name: of the command. Raises: as `Inside`.
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
    """Those of a script, in the order they began."""
    place = os.path.join(folder, CALLS)
    found = []
    for name in sorted(one for one in os.listdir(place) if one.endswith(".begun")):
        ended = os.path.join(place, name[: -len("begun")] + "ended")
        with open(ended if os.path.exists(ended) else os.path.join(place, name), "rb") as stream:
            found.append(pickle.load(stream))
    return found


def under_way(folder: str) -> bool:
    """Whether a call of a script has begun, and its process is there."""
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
