"""What happens when a task has said its last word: exit handlers run, and what the script left running is told.

A child that the script has forked comes out of the script, too: it has no word to say, and ends as plain Python would end it.
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
    """Call what runs code of the script's. Returns, and raises, what it does; never in a child it has forked, which ends here.

    Args: pid: of the task's process; shown: the text of a traceback -> what stands in the log.
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
    """End this process as Python ends one at the bottom of its script: traceback, threads, exit handlers, code."""
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
        # waits for the threads it has started; those of its parent it does not have
        cast(Any, threading)._shutdown()
    except BaseException as e:
        sys.stderr.write(shown(e))
    _raised()
    flush()
    os._exit(code)


def flush() -> None:
    """Write what was printed and is not in the log yet."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


def last_things() -> List[str]:
    """Run the exit handlers the script registered, as at any exit.

    Returns: what should be known, in sentences: of handlers that raised, of threads and processes that still run.
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
    """Threads Python would wait for; those of an executor wait for work only, as far as anybody knows."""
    futures = sys.modules.get("concurrent.futures.thread")
    waiting = getattr(futures, "_threads_queues", {})
    here = (threading.current_thread(), threading.main_thread())
    return [t.name for t in threading.enumerate() if t not in here and not t.daemon and t not in waiting]


def end_far() -> None:
    """Kill the processes below this one that have left its group. The host ends the group, and what carries the job's mark; a process
    that was given an environment of its own, and a group, it cannot find."""
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
    """Processes this one has started and not waited for; those whose parent has ended are still of its group."""
    return [_called(pid) for pid in below("self") + _orphans() if _called(pid)]


def _orphans() -> List[str]:
    """Numbers of the processes of this one's group that are no longer below it: what has started them has ended."""
    if os.getpgid(0) != os.getpid():
        return []
    of_group = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        fields = _fields(pid)[1]
        if len(fields) > 2 and fields[2] == str(os.getpid()):
            of_group[pid] = fields[1]
    return [pid for pid, above in of_group.items() if pid != str(os.getpid()) and above not in of_group]


def below(pid: str) -> List[str]:
    """Numbers of the processes that one, or "self", has started and not waited for."""
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
            # it has ended meanwhile; what it has started is another thread's now, or is told as an orphan
            continue
    return found


def _called(pid: str) -> str:
    name, fields = _fields(pid)
    return "" if not fields or fields[0] == "Z" else "%s, pid %s" % (name, pid)


def _fields(pid: str) -> Tuple[str, List[str]]:
    """(its name, its state, parent, group and so on) of a process; ("", []): it is gone."""
    try:
        with open("/proc/%s/stat" % pid, errors="replace") as f:
            text = f.read()
    except OSError:
        return "", []
    name, _, fields = text.partition("(")[2].rpartition(")")
    return name, fields.split()


def _raised() -> List[str]:
    """Run the handlers. Returns: what they raised; the log has the tracebacks."""
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
    except BaseException as e:  # of the last one that raised, up to Python 3.9
        raised.append(_words(e))
    return raised


def _words(error: BaseException) -> str:
    said = str(error).strip().splitlines()
    return type(error).__name__ + (": " + said[0][:200] if said else "")
