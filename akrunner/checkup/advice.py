"""Advice on a failed job: what to change, in one sentence. The error's own text often says it already."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

#: patterns of packages that do not fit together, and of modules that are missing
_UNFIT = (
    r"Failed to load the native TensorFlow runtime|DLL load failed|GLIBC|undefined symbol|numpy\.core\.multiarray|_ARRAY_API"
)
_MISSING = r"ModuleNotFoundError|ImportError|No module named"
#: (the error's class or "" for any, pattern in the error's text or the log, the advice); the first that fits is taken
_ADVICE: Sequence[tuple[str, str, str]] = (
    ("TaskDiedError", r"SIGKILL.*killed from outside",
     "the task used little of the memory: who or what ended it? A scheduler's limit, an administrator, the script itself; it "
     "is safe to run the job again"),
    ("", r"out of memory|SIGKILL|MemoryError|ResourceExhausted|Cannot allocate memory|std::bad_alloc",
     "less memory in a task: a smaller batch_size and shuffle buffer, fewer workers (--num-workers), columns that are needed "
     "(--select)"),
    ("", r"No space left on device|disk is full|disk quota",
     "make room on the disk that is named, or name another: TMPDIR, --work-dir, --output; akrunner doctor shows what is free"),
    ("", r"SIGILL|Illegal instruction",
     "this TensorFlow was built for a newer processor: another --python-env, another machine"),
    ("", r"SIGSEGV|SIGABRT",
     "a native library crashed: its log has the last words; --env TF_CPP_MIN_LOG_LEVEL=0 has it say more, and akrunner doctor "
     "looks at its environment"),
    ("", _UNFIT,
     "the environment does not fit together: akrunner doctor --python-env with it, akrunner env create makes one that does"),
    ("", _MISSING,
     "a module is missing where the tasks run: --requirements FILE, --user-file for your own, or another --python-env"),
    ("StartError", "", "the worker's interpreter: akrunner doctor with its --python-env; a slow disk: --start-timeout"),
    ("JobStalledError", "", "stall.txt beside the logs says who waited for whom; --stall-timeout waits longer"),
    ("JobTimeoutError", "", "a larger --timeout, or less to do; the stacks above say where each task was"),
    ("ReadError", "", "mend the row or the file that is named, or leave it out (--select); it is safe to run the job again"),
    ("DataError", "", "mend the value that is named, or convert it in --select; it is safe to run the job again"),
    ("OutputError", "", "what the script writes does not fit --output-schema: change either"),
    ("WriteError", "", "room, rights or the network of --output; nothing half-written is there, and it is safe to run the job "
    "again"),
    ("JobManagerLostError", "", "the cluster's JobManager: akrunner doctor --flink-master HOST:PORT; it is safe to run the "
    "job again"),
    ("ClusterError", "", "akrunner doctor --flink-master HOST:PORT looks at the cluster"),
    ("InputLostError", "", "run it again; if it happens twice it is a fault of akrunner, worth a report"),
    ("TaskDiedError", "", "its log has its last words; os._exit, a signal or a native crash ends a process like that"),
    ("ScriptFailedError", "", "mend the line of the script that the traceback ends at"),
)  # fmt: skip
#: what Python prints between an exception and one that was raised while it was handled
_HANDLED = "\nDuring handling of the above exception, another exception occurred:\n"
_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+), in ', re.MULTILINE)
#: files that do not belong to the script: installed packages, Python's own modules, code without a file, code made by AutoGraph
_FOREIGN = re.compile(r"[/\\](site|dist)-packages[/\\]|/lib/python\d|^<|__autograph_generated_file")


def advice(body: Mapping[str, Any], log: str) -> str:
    """Return advice on a failed job, "" if there is none.

    Args: body: the contents of `job.json`; log: the last lines of the log of the task that failed first.
    """
    first = body.get("failure") or {}
    error = str(body.get("error", ""))
    traceback = str(first.get("traceback", ""))
    known = "\n".join([str(body.get("message", "")), *(str(first.get(name, "")) for name in ("what", "exit"))])
    for kind, pattern, told in _ADVICE:
        if kind and kind != error:
            continue
        # a script that handles an ImportError goes on without that module: only the exception that it raised then counts
        raised = traceback.rpartition(_HANDLED)[2] if pattern in (_UNFIT, _MISSING) else traceback
        # if a process died, its log may say why; if the script raised, its exception says so
        said = "\n".join([known, raised, *[log] * (error == "TaskDiedError")])
        if not pattern or re.search(pattern, said):
            at = _last_line(traceback) if kind == "ScriptFailedError" else ""
            return f"mend {at}: of the script's own lines in the traceback it is the last" if at else told
    return ""


def _last_line(traceback: str) -> str:
    """Return the script's last line in a traceback, "train.py:3", "" if it has none.

    If TensorFlow calls Python code that raises, the message of TensorFlow's error has that code's traceback, so it comes last.
    """
    own = [found for found in _FRAME.finditer(traceback) if not _FOREIGN.search(found["file"])]
    return f"{os.path.basename(own[-1]['file'])}:{own[-1]['line']}" if own else ""
