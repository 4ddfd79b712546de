"""The end of a task, after it has sent CLOSED: it runs exit handlers and reports what the script left running.

A process that the script has forked also returns from the script's code. It must not speak for the task, and ends as plain
Python would end it.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from typing import Any, Callable, List, Optional, Tuple, cast

_MOST = 5


def only_here(pid: int, shown: Callable[[BaseException], str], call: Callable[..., Any], *args: Any) -> Any:
    """Call a function that runs the script's code; return, or raise, what it does.

    Never returns in a process that the script has forked: such a process ends here.

    Args:
        pid: the pid of the task's process.
        shown: returns the text of an exception for the log.
        call: the function, called with `args`.
    """
    try:
        result = call(*args)
    except BaseException as e:
        if os.getpid() != pid:
            _end_child(e, shown)
        raise
    if os.getpid() != pid:
        _end_child(None, shown)
    return result


def _end_child(error: Optional[BaseException], shown: Callable[[BaseException], str]) -> None:
    """End this process as Python does at the end of a script: traceback, threads, exit handlers, exit code.

    Args:
        error: the exception that the script's code raised; None for none.
        shown: as for `only_here`.
    """
    code = 0
    if isinstance(error, SystemExit):
        said = error.code
        if said is not None and not isinstance(said, int):
            sys.stderr.write("%s\n" % (said,))
        code = 0 if said is None else said & 0xFF if isinstance(said, int) else 1
    elif error is not None:
        sys.stderr.write(shown(error))
        code = 1
    try:
        # waits for the threads that this process has started; it does not have its parent's threads
        cast(Any, threading)._shutdown()
    except BaseException as e:
        sys.stderr.write(shown(e))
    _raised()
    flush()
    os._exit(code)


def flush() -> None:
    """Flush stdout and stderr, so that everything printed is in the log."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


def last_things() -> List[str]:
    """Run the exit handlers that the script registered, as at any exit.

    Returns: notes for the user, in sentences, about handlers that raised and threads and processes that still run.
    """
    told = [_still("thread", "threads", "cut off", _threads()), _still("process", "processes", "ended", _children())]
    told += ["an exit handler (atexit) raised " + one for one in _raised()]
    return [one for one in told if one]


def _still(one: str, many: str, how: str, names: List[str]) -> str:
    if not names:
        return ""
    more = " and %d more" % (len(names) - _MOST) if len(names) > _MOST else ""
    what = one if len(names) == 1 else many
    return "main() had returned, but %s%s still ran (%s) and would be %s" % (
        "a " if len(names) == 1 else "%d " % len(names),
        what,
        ", ".join(names[:_MOST]) + more,
        how,
    )


def _threads() -> List[str]:
    """Return the names of the threads that Python would wait for.

    The threads of an executor are left out: as far as can be known, they only wait for work.
    """
    futures = sys.modules.get("concurrent.futures.thread")
    waiting = getattr(futures, "_threads_queues", {})
    here = (threading.current_thread(), threading.main_thread())
    return [t.name for t in threading.enumerate() if t not in here and not t.daemon and t not in waiting]


def end_far() -> None:
    """Kill the descendants of this process that have left its process group.

    The host ends the group and the processes that carry the job's mark, but cannot find a process that was started with another
    environment in another group.
    """
    ours = os.getpgid(0)
    seen: List[str] = []
    while True:
        found = [pid for above in ["self"] + seen for pid in below(above) if pid not in seen]
        if not found:
            break
        seen += found
    for pid in seen:
        try:
            if os.getpgid(int(pid)) != ours:
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass


def _children() -> List[str]:
    """Return the names and pids of the processes that this one, or a child that has ended, has started and that still run."""
    return [_called(pid) for pid in below("self") + _orphans() if _called(pid)]


def _orphans() -> List[str]:
    """Return the pids of processes in this one's group that are no longer its descendants, because their parent has ended."""
    if os.getpgid(0) != os.getpid():
        return []
    of_group = {}
    for pid in filter(_is_of_group, filter(str.isdigit, os.listdir("/proc"))):
        fields = _fields(pid)[1]
        if len(fields) > 2 and fields[2] == str(os.getpid()):
            of_group[pid] = fields[1]
    return [pid for pid, above in of_group.items() if pid != str(os.getpid()) and above not in of_group]


def _is_of_group(pid: str) -> bool:
    """Whether a process is in this one's group, as far as the system tells. To read of each process of a machine takes milliseconds."""
    try:
        return os.getpgid(int(pid)) == os.getpid()
    except OSError:
        return False


def below(pid: str) -> List[str]:
    """Return the pids of the children of a process. Args: pid: its pid, or "self"."""
    found = []
    try:
        threads = os.listdir("/proc/%s/task" % pid)
    except OSError:
        return []
    for thread in threads:
        try:
            with open("/proc/%s/task/%s/children" % (pid, thread)) as f:
                found += f.read().split()
        except OSError:
            # the thread has ended; its children belong to another thread now, or `_orphans` finds them
            continue
    return found


def _called(pid: str) -> str:
    name, fields = _fields(pid)
    return "" if not fields or fields[0] == "Z" else "%s, pid %s" % (name, pid)


def _fields(pid: str) -> Tuple[str, List[str]]:
    """Return a process's (name, [state, parent, group, ...]); ("", []) if it does not exist."""
    try:
        with open("/proc/%s/stat" % pid, errors="replace") as f:
            text = f.read()
    except OSError:
        return "", []
    name, _, fields = text.partition("(")[2].rpartition(")")
    return name, fields.split()


def _raised() -> List[str]:
    """Run the exit handlers. Returns: what they raised, in words; the tracebacks are in the log."""
    raised = []
    before = getattr(sys, "unraisablehook", None)

    def noted(what: Any) -> None:
        if "atexit" in (what.err_msg or ""):
            raised.append(_words(what.exc_value or what.exc_type()))
        if before is not None:
            before(what)

    if before is not None:
        sys.unraisablehook = noted
    try:
        atexit._run_exitfuncs()
    except BaseException as e:  # up to Python 3.9, the last exception that a handler raised
        raised.append(_words(e))
    return raised


def _words(error: BaseException) -> str:
    said = str(error).strip().splitlines()
    return type(error).__name__ + (": " + said[0][:200] if said else "")
