"""What the harness sees of processes, without a library's detours: it looks at all of them many times a second."""

from __future__ import annotations

import os


def words_of(pid: int) -> list[str]:
    """Its command line, nothing when it has gone."""
    return _read(pid, "cmdline").decode(errors="replace").split("\0")[:-1]


def environ_of(pid: int) -> dict[str, str]:
    """Its environment, as it was started with."""
    entries = _read(pid, "environ").decode(errors="replace").split("\0")
    return dict(entry.partition("=")[::2] for entry in entries if "=" in entry)


def that_name(text: str) -> list[int]:
    """Processes with this text somewhere in their command line or environment, but for this one; the oldest first, as far as ids say."""
    wanted = text.encode()
    mine = os.getpid()
    return [pid for pid in everybody() if pid != mine and (wanted in _read(pid, "environ") or wanted in _read(pid, "cmdline"))]


def everybody() -> list[int]:
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def children_of(parent: int) -> list[int]:
    """Those that have not been waited for among them."""
    try:
        threads = os.listdir(f"/proc/{parent}/task")
    except OSError:
        return []
    if os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        # the kernel knows: nobody else is looked at
        return sorted(int(pid) for thread in threads for pid in _read(parent, f"task/{thread}/children").split())
    return [pid for pid in everybody() if pid > 0 and (found := _stat(pid)) is not None and found[1] == parent]


def parent_of(pid: int) -> int | None:
    """None when it has gone, or has none."""
    found = _stat(pid)
    return found[1] if found is not None and found[1] > 0 else None


def is_there(pid: int) -> bool:
    """Not a zombie."""
    found = _stat(pid)
    return found is not None and found[0] not in "ZX"


def state_of(pid: int) -> str:
    """Who it is, what it does, for people."""
    words = " ".join(words_of(pid))[:200]
    return f"{pid} {_read(pid, 'stat').rpartition(b')')[2].split()[:1]} in {_read(pid, 'wchan').decode()}: {words}"


def _stat(pid: int) -> tuple[str, int] | None:
    """(state, parent)."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return (fields[0].decode(), int(fields[1])) if len(fields) > 1 else None


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as f:
            return f.read()
    except OSError:
        return b""
