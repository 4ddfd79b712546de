"""Properties of a worker process that cannot be changed once TensorFlow is imported: a job takes a spare that has the same
ones.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from akrunner.launch import cgroups
from akrunner.launch.texts import text

#: variables that nothing reads while TensorFlow is imported, so they are set when a spare is taken. They describe a terminal,
#: or the job; the last is set by Polars, when a program imports it
_LATE = frozenset(
    {
        "TF_CONFIG", "TMPDIR", "PWD", "OLDPWD", "_", "SHLVL", "COLUMNS", "LINES", "PYTEST_CURRENT_TEST",
        "WINDOWID", "TERM_SESSION_ID", "ITERM_SESSION_ID", "KITTY_WINDOW_ID", "WT_SESSION", "TMUX", "TMUX_PANE", "STY", "GPG_TTY",
        "SSH_TTY", "SSH_CLIENT", "SSH_CONNECTION", "SSH_AUTH_SOCK", "XDG_SESSION_ID", "JPY_PARENT_PID", "JPY_SESSION_NAME",
        "_RJEM_MALLOC_CONF",
    }
)  # fmt: skip
#: line of /proc/self/status -> what it is called in messages
_STATUS = {
    "Umask": "umask", "Uid": "user", "Gid": "group", "Groups": "groups", "SigBlk": "blocked signals", "SigIgn": "ignored signals",
    "CapInh": "capabilities", "CapPrm": "capabilities", "CapEff": "capabilities", "CapBnd": "capabilities", "CapAmb": "capabilities",
    "NoNewPrivs": "privileges", "Seccomp": "seccomp mode", "Cpus_allowed": "cores", "Mems_allowed": "memory nodes",
}  # fmt: skip
#: signals that a worker process ignores whatever its host does with them, because `subprocess` and Python set them anew. A library
#: of the host may have changed them: each one that is written in Go handles SIGPIPE
_SET_ANEW = {signal.SIGPIPE, signal.SIGXFSZ}
#: controller -> the files in which its groups set limits, of version 2 and of version 1
_GROUP = {
    "memory": ("memory.max", "memory.high", "memory.swap.max", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
    "cpu": ("cpu.max", "cpu.weight", "cpu.cfs_quota_us", "cpu.shares"),
    "pids": ("pids.max",),
}
#: the default values of shares
_EVEN = {("cpu.weight", "100"), ("cpu.shares", "1024")}
#: controllers of version 1 that limit nothing, or whose limits are read elsewhere
_NO_LIMITS = frozenset(
    ("", "memory", "cpu", "cpuacct", "cpuset", "pids", "freezer", "net_cls", "net_prio", "perf_event", "misc")
)


@dataclass(frozen=True)
class Wanted:
    """The properties of one worker process.

    Attributes:
        python: its interpreter.
        env: its whole environment.
        overlay, cpus, task_env: as in a task's context.
        surroundings: what a child of the host inherits from it, besides the environment.
    """

    python: str
    env: Mapping[str, str] = field(repr=False)
    overlay: str = ""
    cpus: tuple[int, ...] = ()
    task_env: Mapping[str, str] = field(default_factory=dict, repr=False)
    surroundings: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Wanted:
        """Return the `Wanted` that `dataclasses.asdict` turned into a mapping, after it was sent as JSON.

        Raises:
            LookupError, TypeError, ValueError: the mapping does not describe one.
        """
        maps = [told[name] for name in ("env", "task_env", "surroundings")]
        texts = [told["python"], told["overlay"], *(text for one in maps for pair in one.items() for text in pair)]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("not text")
        return cls(told["python"], maps[0], told["overlay"], tuple(map(int, told["cpus"])), maps[1], maps[2])

    def other(self, other: Wanted) -> str:
        """Return how another one differs, in words; "" if a spare made for this one is right for the other.

        The words never hold the value of a variable.
        """
        if self.python != other.python:
            return f"they run under {self.python}, and this one under {other.python} (python_env=)"
        mine, its = early(self.env), early(other.env)
        different = sorted(name for name in {*mine, *its} if mine.get(name) != its.get(name))
        if different:
            name, more = different[0], f" (and {len(different) - 1} more)" if different[1:] else ""
            how = "is not set" if name not in its else "is set" if name not in mine else "has another value"
            return f"the environment variable {name} {how} for this one{more}, and may be read when TensorFlow is imported"
        if self.overlay != other.overlay:
            return "they were started with other requirements= installed"
        if self.cpus != other.cpus:
            return "this one has cores of its own (cpus_per_worker=)"
        name = self.differs(other.surroundings)
        return f"they were started with another {name}" if name else ""

    def differs(self, surroundings: Mapping[str, str]) -> str:
        """Return the name of the first of the surroundings that differs; "" if none does."""
        names = {**self.surroundings, **surroundings}
        return next((name for name in names if self.surroundings.get(name) != surroundings.get(name)), "")


def is_late(name: str) -> bool:
    """Whether no module reads this variable while it is imported."""
    return name in _LATE or name.startswith("AKRUNNER_")


def early(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that may be read while modules are imported."""
    return {name: value for name, value in env.items() if not is_late(name)}


def surroundings(thread: int | None = None) -> dict[str, str]:
    """Return what a child of a thread inherits besides the environment: name -> value, as far as the system reports it.

    Args:
        thread: the system's number of a thread of this process; None for the current thread.
    """
    return {**own(thread), "control group's limits": repr(list(limits()))}


def own(thread: int | None = None) -> dict[str, str]:
    """Return those of the `surroundings` that are not of the control group."""
    number = threading.get_native_id() if thread is None else thread
    told = {"nice value": str(os.getpriority(os.PRIO_PROCESS, 0)), "limits": _text("/proc/self/limits")}
    # a thread has signals and cores of its own
    for line in _text(f"/proc/self/task/{number}/status").splitlines():
        name, _, value = line.partition(":")
        if name == "SigIgn":
            value = f"{int(value, 16) & ~sum(1 << number - 1 for number in _SET_ANEW):016x}"
        if name in _STATUS:
            told[_STATUS[name]] = told.get(_STATUS[name], "") + value.strip() + " "
    for name in ("oom_score_adj", "coredump_filter", "personality"):
        told[name] = _text(f"/proc/self/{name}").strip()
    for name in ("mnt", "net", "pid", "user", "ipc", "uts"):
        with contextlib.suppress(OSError):
            told[f"{name} namespace"] = os.readlink(f"/proc/self/ns/{name}")
    return told


def limits(root: str = "/") -> Iterator[tuple[str, str]]:
    """Yield (file, what it says) for the limits of the control groups that bind this process.

    Groups without limits are left out: each terminal may have a group of its own, and most of these have no limits.
    """
    for controller, names in _GROUP.items():
        for folder in cgroups.groups(controller, root):
            for name in names:
                value = text(os.path.join(folder, name)).strip()
                if value and not _unlimited(name, value):
                    yield os.path.join(folder, name), value
    # what else version 1 limits (devices, disks) is not read: a group of another name counts as different
    for line in text(os.path.join(root, "proc/self/cgroup")).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if path != "/" and not controllers.startswith("name=") and not _NO_LIMITS.issuperset(controllers.split(",")):
            yield controllers, path


def _unlimited(name: str, value: str) -> bool:
    many = name.endswith("_in_bytes") and value.isdigit() and int(value) >= cgroups.NO_LIMIT
    return many or value.startswith(("max", "-1")) or (name, value) in _EVEN


def _text(path: str) -> str:
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""
