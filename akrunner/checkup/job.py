"""The explanation of a job from its directory: which task failed first and why, where the time went, what to change.

::

    job.json (akrunner.engines.record) ─┐
    tasks/*/log.txt                     ├─> lines
    stall.txt                           ┘
"""

from __future__ import annotations

import errno
import glob
import json
import os
import re
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from typing import IO, Any

from akrunner.checks import nearest_file
from akrunner.checkup.advice import advice
from akrunner.checkup.lines import BROKEN, LOOK, OK, Checkup, Line
from akrunner.engines import record
from akrunner.engines.inputs.unseen import COMPUTE
from akrunner.engines.inputs.wording import calls_for_change, verdict
from akrunner.errors import ConfigError, alike
from akrunner.foreign import redacted
from akrunner.leftovers.private import state_dir
from akrunner.wire.ending import started

_RECORD = "job.json"
#: how many directories are searched, from the given path upwards: the user may name a path within a job's directory, a log say
_ABOVE = 6
_RECORD_BYTES = 64 << 20
_TAIL_BYTES, _TAIL_LINES = 1 << 16, 20
#: how many tasks, logs and warnings are shown one by one; how many lines about the other tasks of a failed job
_SOME, _MANY = 8, 100
#: the keys of a record, and of a failure in it, whose values must be texts
_TEXTS = ("python", "mode", "script", "data_format", "error", "message")
_TEXTS_OF_FAILURE = ("task", "what", "traceback", "log_tail")
_TASK = re.compile(r"[a-z]+:[0-9]+")
#: a wait is reported if it takes more than this share of the job's time, and more than this many seconds
_SHARE, _SECONDS = 0.1, 2.0


def explained(given: str) -> Checkup:
    """Explain a job from its directory.

    Args: given: the directory, or a path within it.
    Raises: ConfigError: it is no job's directory. Nothing else is raised, whatever is in the directory.
    """
    folder = folder_of(given)
    if folder is None:
        raise ConfigError(_none(given))
    try:
        body = _read(os.path.join(folder, _RECORD))
    except (OSError, ValueError, RecursionError) as e:
        why = str(e.strerror) if isinstance(e, OSError) and e.strerror else "it is no JSON object, or cut short"
        why = "it is not there" if isinstance(e, FileNotFoundError) else why
        return Checkup(
            (Line("job", BROKEN, f"{folder}: its {_RECORD} is damaged: {why}", "its logs are all there is"), *_logs(folder, {}))
        )
    try:
        return Checkup(tuple(_lines(folder, body)), body)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as e:
        told = f"{folder}: its {_RECORD} is damaged: it is not as akrunner writes it ({type(e).__name__})"
        return Checkup((Line("job", BROKEN, told, "its logs are all there is"), *_logs(folder, {})))


def folder_of(given: str) -> str | None:
    """Return the job's directory at or above a path, None if there is none."""
    path = os.path.abspath(os.path.expanduser(given))
    for _ in range(_ABOVE):
        if os.path.isfile(os.path.join(path, _RECORD)) or glob.glob(os.path.join(glob.escape(path), "tasks", "*-*", "log.txt")):
            return path
        path = os.path.dirname(path)
    return None


def newest_failed() -> str | None:
    """Return the directory with the logs of this user's last failed job, None if there is none."""
    folder = state_dir("failed", make=False)
    names = sorted(os.listdir(folder)) if folder is not None else []
    return os.path.join(folder, names[-1]) if folder is not None and names else None


def _none(given: str) -> str:
    """Return the error for a path that is no job's directory, with a hint where one may be."""
    path = os.path.abspath(os.path.expanduser(given))
    if not os.path.lexists(path):
        said = f"there is no {given}{nearest_file(given)}"
    else:
        said = f"{given} is no work directory of a job: it has no {_RECORD}"
    last = newest_failed()
    kept = "jobs keep theirs with --debug or --work-dir DIR" + (f"; the last that failed left {last}" if last else "")
    # what is suggested is a question already
    return f"work_dir: {said}{'' if said.endswith('?') else '.'} {kept[0].upper()}{kept[1:]}"


def _read(path: str) -> dict[str, Any]:
    with _opened(path) as f:
        text = f.read(_RECORD_BYTES + 1)
    if len(text) > _RECORD_BYTES:
        raise ValueError("too long")
    body = json.loads(text)
    if not isinstance(body, dict):
        raise ValueError("no object")
    return body


def _opened(path: str) -> IO[bytes]:
    """Open a regular file. Raises: OSError: it does not exist, or is no regular file: reading a pipe might never end."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no file")
    return os.fdopen(fd, "rb")


def _list(body: Mapping[str, Any], name: str) -> list[Any]:
    """Return the list under a key of a record. Raises: TypeError: the value is no list (a text would pass for a sequence)."""
    found = body[name]
    if not isinstance(found, list):
        raise TypeError(name)
    return found


def _check_texts(body: Mapping[str, Any]) -> None:
    """Check that the texts in a record are texts; a missing key is found by the code that needs it.

    Raises: TypeError: a value is no text.
    """
    failures = [body["failure"]] if body.get("failure") is not None else []
    for part, names in [
        (body, _TEXTS),
        (body.get("host", {}), ("started", "machine")),
        *((failure, _TEXTS_OF_FAILURE) for failure in [*failures, *body.get("others", ())]),
        *((result, ("name",)) for result in body.get("results", ())),
    ]:
        for name in names:
            if not isinstance(part.get(name, ""), (str, type(None))):
                raise TypeError(name)
    for name in ("tasks", "warnings"):
        if not all(isinstance(one, str) for one in body.get(name, ())):
            raise TypeError(name)


def _lines(folder: str, body: Mapping[str, Any]) -> Iterator[Line]:
    state = body.get("state")
    if state not in (None, record.SUCCEEDED, record.FAILED, record.STOPPED, record.RUNNING):
        raise ValueError("state")
    _check_texts(body)
    if state == record.SUCCEEDED:
        yield from _success(body)
    elif state in (record.FAILED, record.STOPPED):
        yield from _failure(folder, body)
    elif state == record.RUNNING:
        yield from _unfinished(folder, body)
    else:
        yield Line("job", LOOK, f"{folder}: an akrunner that noted no ends has run it, under {body['python']}")
        yield from _logs(folder, body)


def _about(body: Mapping[str, Any]) -> str:
    names = _list(body, "tasks")
    tasks = ", ".join(map(str, names[:_SOME])) + (" ..." if len(names) > _SOME else "")
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(body["began"])))
    return f"{body['script'] or 'a prediction'} ({body['mode']}; {tasks}), begun {when}"


def _took(body: Mapping[str, Any]) -> str:
    return f"{max(0.0, float(body['ended']) - float(body['began'])):.1f} s"


# -- a job that succeeded


def _success(body: Mapping[str, Any]) -> Iterator[Line]:
    stats = body["stats"]
    again = f", at the {stats['attempt'] + 1}. attempt" if stats["attempt"] else ""
    yield Line(
        "job",
        OK,
        f"{_about(body)}, succeeded in {stats['seconds']:.1f} s{again}: {stats['rows_in']:,} rows in, {stats['rows_out']:,} "
        "rows out",
    )
    yield from _time(stats)
    yield from _input(stats)
    yield from _balance(body)
    yield from _warnings("warning", stats)


def _input(stats: Mapping[str, Any]) -> Iterator[Line]:
    """Yield lines about the tasks' input.

    Args: stats: a job's stats, or the record of a failed job, which both have `inputs`.
    """
    told = verdict(stats)
    for sentence in told:
        yield Line("input", LOOK if calls_for_change(sentence) else OK, sentence)
    if not told and stats.get("bound") == COMPUTE:
        yield Line("input", OK, "compute-bound: the script computes most of the time, and its input keeps up")


def _time(stats: Mapping[str, Any]) -> Iterator[Line]:
    """Yield lines about where the job's time went; a large part has a line of its own, with what makes it smaller."""
    whole = max(float(stats["seconds"]), 1e-9)
    start, main = float(stats["start_seconds"]), float(stats["main_seconds"])
    rest = max(0.0, whole - start - main)
    yield Line("time", OK, f"{start:.1f} s until main() was entered, {main:.1f} s in it, {rest:.1f} s after it")
    colds = [how for how in stats["starts"].values() if how != "warm"]
    waited, blocked = float(stats["input_wait_seconds"]), float(stats["output_blocked_seconds"])
    if start > 0.5 * whole and start > _SECONDS:
        why = next((how[len("cold: ") :] for how in colds if how.startswith("cold: ")), "")
        if waited > 0.5 * start:
            do = "its rows take that long: see below"
        elif colds:
            do = "akrunner warm start has TensorFlow imported before the job begins"
        elif stats["starts"]:
            do = "warm workers were taken, so what the script imports, or does before main(), takes that long"
        else:
            # only tasks of this machine say how they were started
            do = "the submission and the wait for free slots (on Flink), or what the script imports, takes that long"
        yield Line(
            "start", LOOK, f"{start / whole:.0%} of the time" + (f"; no warm worker was taken: {why}" if why else ""), do
        )
    if waited > _SHARE * whole and waited > _SECONDS:
        yield Line(
            "rows",
            LOOK,
            f"a task stood idle for {waited:.1f} s until its rows were there (they were sent within "
            f"{float(stats['feed_seconds']):.1f} s)",
            "Parquet or Arrow in place of CSV and JSON, fewer columns (--select), --data-format columns; docs/reading.md",
        )
    if blocked > _SHARE * whole and blocked > _SECONDS:
        yield Line(
            "output",
            LOOK,
            f"a task waited {blocked:.1f} s for its output to be taken",
            "output_writer.write_batch in place of write, a faster disk or format for --output, a directory (--output DIR/)",
        )


def _balance(body: Mapping[str, Any]) -> Iterator[Line]:
    """Yield lines that compare the tasks: their times, memory and processor time."""
    results = [result for result in _list(body, "results") if result["rows_in"]]
    times = sorted((float(result["main_seconds"]), str(result["name"])) for result in results)
    if len(times) > 1 and times[-1][0] > 1.5 * times[0][0] and times[-1][0] - times[0][0] > _SECONDS:
        (least, quick), (most, slow) = times[0], times[-1]
        yield Line(
            "balance",
            LOOK,
            f"[{slow}] was in main() for {most:.1f} s, [{quick}] for {least:.1f} s: the others wait for the slowest",
            "--cpus-per-worker gives each its own cores; rows that cost more than others lie together: --select with ORDER BY "
            "random()",
        )
    peak = max((int(result["peak_rss"]) for result in body["results"]), default=0)
    busy = sum(float(result["cpu_seconds"]) for result in body["results"])
    yield Line(
        "tasks",
        OK,
        f"{len(body['results'])}; at most {peak / 2**20:,.0f} MiB of memory in one; {busy:.1f} s of processor time in all",
    )


# -- a job that failed


def _failure(folder: str, body: Mapping[str, Any]) -> Iterator[Line]:
    stopped = body["state"] == record.STOPPED
    head = str(body["message"]).splitlines()[:1]
    words = f"{_about(body)}, " + (f"was stopped after {_took(body)}" if stopped else f"failed after {_took(body)}")
    words += f": {body['error']}" + (f": {head[0]}" if head and head[0] else "")
    first = body["failure"]
    yield Line("job", LOOK if stopped else BROKEN, redacted(words), "" if first else advice(body, ""))
    if first is not None:
        task, log = str(first["task"]), _tail(folder, str(first["task"])) or str(first["log_tail"]).splitlines()[-_TAIL_LINES:]
        text = "\n".join([str(first["what"]), *_end(str(first["traceback"]))])
        yield Line(
            "first to fail", BROKEN, redacted(f"[{task}] {text}"), advice(body, "\n".join(log)) + _again(folder, body, task)
        )
        if log:
            yield Line(f"log of {task}", OK, redacted("its last lines\n" + "\n".join(log)))
    others = _list(body, "others")
    # only a task that failed has the time at which it did; the others were done, or stopped because of it
    for state, same in (
        (BROKEN, [one for one in others if one["time_ns"]]),
        (OK, [one for one in others if not one["time_ns"]]),
    ):
        for who, did in alike((str(one["task"]), _did(str(one["what"]))) for one in same)[:_MANY]:
            yield Line(who.strip("[]"), state, redacted(did))
    yield from _input(body)
    yield from _warnings("before that", body)
    if os.path.isfile(os.path.join(folder, "stall.txt")):
        yield Line("stall", LOOK, f"nothing moved: {os.path.join(folder, 'stall.txt')} says who waited for whom, with stacks")


def _did(what: str) -> str:
    """Return in a line what a task did, which was not the first to fail: of one that was still running, where it was."""
    first, _, stacks = what.partition("\n")
    if first != "stacks:":
        return first
    _, _, main = stacks.partition("Current thread ")
    calls = [line.strip() for line in main.splitlines()[1:2]]
    return ", ".join(["was still running", *calls])


def _warnings(about: str, body: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the first warnings, and a line that says how many more there are."""
    told = _list(body, "warnings")
    for warning in told[:_SOME]:
        yield Line(about, LOOK, str(warning))
    if len(told) > _SOME:
        yield Line(about, LOOK, f"{len(told) - _SOME} more")


def _end(traceback: str) -> list[str]:
    """Return the last lines of a traceback, which say where the exception was raised, and which."""
    lines = traceback.rstrip().splitlines()
    return lines if len(lines) <= _TAIL_LINES else ["  ...", *lines[-_TAIL_LINES:]]


def _again(folder: str, body: Mapping[str, Any], task: str) -> str:
    """Return words that say how to run a task again, "" if its directory is not kept."""
    asks = asks_for_tables(folder, task)
    if asks is None:
        return ""
    if asks:
        return "; run its command again, with --debug for the whole log: it asks for tables, which akrunner replay has none of"
    return f"; akrunner replay {folder} --task {task} runs it again, in the foreground"


def asks_for_tables(folder: str, task: str) -> bool | None:
    """Whether the script of a task opens tables itself, so that `akrunner replay` cannot run it: that needs a host.

    Args: folder: the job's directory; task: the task's name.
    Returns: None if the task's directory was not kept.
    """
    if not _TASK.fullmatch(task):
        return None
    try:
        with open(os.path.join(folder, "tasks", task.replace(":", "-"), "context.json"), encoding="utf-8") as f:
            asked = json.load(f).get("tables") or {}
        return bool(asked.get("inputs") or asked.get("outputs"))
    except (OSError, ValueError, AttributeError):
        return None


# -- a job that has not ended, according to its record


def _unfinished(folder: str, body: Mapping[str, Any]) -> Iterator[Line]:
    logs = list(_logs(folder, body))
    pid, began, machine = int(body["host"]["pid"]), str(body["host"]["started"]), str(body["host"].get("machine", ""))
    if machine and machine != socket.gethostname():
        yield Line("job", LOOK, f"{_about(body)}, has not ended, as far as this machine knows: it runs, or ran, on {machine}")
    elif began and started(pid) == began:
        yield Line(
            "job",
            LOOK,
            f"{_about(body)}, still runs (pid {pid}); "
            + ("what its tasks said last is below" if logs else "its tasks have printed nothing yet"),
            "ask again when it has ended",
        )
    else:
        yield Line(
            "job",
            BROKEN,
            f"{_about(body)}, never ended: the process that ran it (pid {pid}) is gone without a word",
            "it was killed (SIGKILL; out of memory: dmesg, or akrunner doctor), or the machine went down; it is safe to run "
            "it again",
        )
    yield from logs


def _logs(folder: str, body: Mapping[str, Any]) -> list[Line]:
    """Return a line for each task's log, with its last lines."""
    known = body.get("tasks")
    names = [str(name) for name in known] if isinstance(known, list) else []
    if not names:
        tasks = os.path.join(folder, "tasks")
        names = [name.replace("-", ":") for name in sorted(os.listdir(tasks))] if os.path.isdir(tasks) else []
    tails: list[tuple[str, list[str]]] = [(name, _tail(folder, name)) for name in names[:_SOME]]
    return [Line(f"log of {name}", OK, redacted("its last lines\n" + "\n".join(lines))) for name, lines in tails if lines]


def _tail(folder: str, task: str) -> list[str]:
    """Return the last lines that a task printed, [] if its log cannot be read."""
    if not _TASK.fullmatch(task):
        return []
    try:
        with _opened(os.path.join(folder, "tasks", task.replace(":", "-"), "log.txt")) as f:
            f.seek(0, os.SEEK_END)
            f.seek(max(0, f.tell() - _TAIL_BYTES))
            text = f.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip()][-_TAIL_LINES:]
