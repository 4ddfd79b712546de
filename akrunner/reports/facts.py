"""What the page says of a run in words and tables."""

from __future__ import annotations

import datetime
import os
import shlex
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from akrunner.codes import link
from akrunner.errors import alike
from akrunner.foreign import redacted
from akrunner.history import logs
from akrunner.history.record import LOST, RUNNING, SUBMITTED, Record
from akrunner.history.words import number, ranked, took, value
from akrunner.reports.plots import Table

#: tasks whose logs are shown, lines of each, and characters of all lines of one
_LOGS, _LINES, _CHARACTERS = 64, 200, 20_000
_MIB = 1 << 20
#: tasks that are named one by one
_NAMED = 8
#: how many times as long as the middle task the slowest one has to take to be told apart
_SLOW = 1.2


@dataclass(frozen=True)
class Log:
    """Attributes: task: the task's name; lines: the last lines that it printed; left: how many lines came before them."""

    task: str
    lines: Sequence[str]
    left: int


@dataclass(frozen=True)
class Failed:
    """Attributes: title: who failed, and what with; texts: (what it is, the text); code: the short code of the error, "": none; link: its section."""

    title: str
    texts: Sequence[tuple[str, str]]
    code: str = ""
    link: str = ""


def name_of(run: Record) -> str:
    """Return what ran, in two words."""
    return f"{run.verb} {os.path.basename(run.script)}"


def summary(run: Record, rows: tuple[int, int] | None) -> list[tuple[str, str]]:
    """Return the most important facts, the first ones first. Args: rows: how many came in and went out, None: not known."""
    busy = run.state in (RUNNING, SUBMITTED)
    told = [
        ("began", f"{datetime.datetime.fromtimestamp(run.began).astimezone():%Y-%m-%d %H:%M:%S %Z}"),
        ("runs for" if busy else "took", took(run.seconds)),
        ("tasks", f"{_named(run.tasks)} ({run.engine})" if run.tasks else run.engine),
    ]
    if rows is not None:
        told.append(("rows", f"{rows[0]:,} in, {rows[1]:,} out"))
    stats = run.stats or {}
    if stats.get("bound") in ("input", "compute"):
        told.append(("bound by", "its input" if stats["bound"] == "input" else "what it computes"))
    slow = slowest(run.results)
    if slow is not None:
        told.append(("slowest task", slow))
    if stats.get("attempt"):
        told.append(("started again", f"{stats['attempt']} time{'s' if stats['attempt'] > 1 else ''}"))
    told += [("output", run.output)] if run.output else []
    return told


def _named(tasks: Sequence[str]) -> str:
    """Return the names of tasks; of many how many there are of each role."""
    if len(tasks) <= _NAMED:
        return ", ".join(tasks)
    roles = Counter(task.partition(":")[0] for task in tasks)
    return ", ".join(f"{count} {role}{'s' if role == 'worker' and count > 1 else ''}" for role, count in roles.items())


def slowest(results: Sequence[Mapping[str, Any]]) -> str | None:
    """Return which task was in main for longest, and for how much longer than half of them; None: nobody was alone there."""
    mains = sorted((float(one.get("main_seconds", 0.0)), str(one.get("name"))) for one in results)
    mains = [one for one in mains if one[0] > 0]
    if len(mains) < 2:
        return None
    seconds, task = mains[-1]
    middle = mains[(len(mains) - 1) // 2][0]
    if seconds < _SLOW * middle:
        return f"{task}: {took(seconds)} in main; the others took about as long"
    return f"{task}: {took(seconds)} in main, {seconds / middle:.1f} times as long as the middle one ({took(middle)})"


def failures(run: Record) -> list[Failed]:
    """Return what went wrong, the first failure first."""
    if run.state == LOST:
        words = "The process that ran it is gone, and has not said why: it was killed, or the machine was turned off."
        return [Failed("The run was lost", [("", words)])]
    if not run.error:
        return []
    first = run.failure or {}
    title, _, rest = run.words.partition("\n")
    more = [("More", rest.strip("\n"))] if rest.strip() else []
    made = [Failed(title, [*more, *_texts(first)], run.short_code, link(run.short_code))]
    made += [Failed(f"[{one.get('task')}] {one.get('what')}", _texts(one)) for one in run.others if _texts(one)]
    silent = alike((str(one.get("task")), str(one.get("what"))) for one in run.others if not _texts(one))
    return [*made, *(Failed(f"{who} {what}", []) for who, what in silent)]


def _texts(failure: Mapping[str, Any]) -> list[tuple[str, str]]:
    named = (("traceback", "Traceback"), ("log_tail", "Last lines of its log"), ("exit", "How its process ended"))
    return [(title, str(failure[name]).strip("\n")) for name, title in named if failure.get(name)]


def metrics(run: Record) -> Table | None:
    """Return what each task reported last; None if there was nothing."""
    names = ranked(dict.fromkeys(name for told in run.metrics.values() for name in told))
    if not names:
        return None
    rank = {task: at for at, task in enumerate(run.tasks)}
    rows = [
        [
            task,
            number(told["step"]) if told.get("step") is not None else "",
            *(number(told[name]) if name in told else "" for name in names),
        ]
        for task, told in sorted(run.metrics.items(), key=lambda one: rank.get(one[0], len(rank)))
    ]
    return Table(["", "step", *names], rows)


def tasks(run: Record) -> Table | None:
    """Return the results of the tasks; None if they are not known."""
    if not run.results:
        return None
    head = ["", "rows in", "rows out", "in main", "waited for rows", "peak memory", "processor", "ended with", "Python"]
    return Table(head, [_task(one) for one in run.results])


def _task(one: Mapping[str, Any]) -> list[str]:
    return [
        str(one.get("name")),
        f"{one.get('rows_in', 0):,}",
        f"{one.get('rows_out', 0):,}",
        took(one.get("main_seconds", 0.0)),
        took(one.get("input_wait_seconds", 0.0)),
        f"{one.get('peak_rss', 0) / _MIB:,.0f} MiB",
        took(one.get("cpu_seconds", 0.0)),
        str(one.get("exit", "")),
        str(one.get("python", "")),
    ]


def arguments(run: Record) -> Table:
    """Return with what the run was called."""
    told = (
        [("command", shlex.join(["akrunner", *run.command]))]
        if run.command
        else [("called", f"akrunner.{run.verb}() in Python")]
    )
    told += [(name, value(given)) for name, given in run.arguments.items() if name not in ("script", "model")]
    told += [("not kept", ", ".join(f"{where} ({why})" for where, why in run.left_out.items()))] if run.left_out else []
    told.append(("model" if run.verb.startswith("predict") else "script", run.script))
    told += [("hash of its file", run.script_sha256)] if run.script_sha256 else []
    told.append(("directory", run.cwd))
    told += [("Flink job", f"{run.detached['job']} on {run.detached['master']}")] if run.detached else []
    return Table([], told)


def versions(run: Record) -> Table:
    """Return the versions of akrunner, and of what is around it and the tasks."""
    return Table([], [*run.versions.items(), ("machine", str(run.host.get("machine", "")))])


def log_tails(folder: str) -> list[Log]:
    """Return the ends of what the tasks printed. Args: folder: the run's directory."""
    return [_tail(folder, task) for task in logs.tasks(folder)[:_LOGS]]


def _tail(folder: str, task: str) -> Log:
    last: deque[str] = deque(maxlen=_LINES)
    number_of = 0
    for line in logs.LogReader(folder, task).lines(True):
        number_of += 1
        last.append(line)
    shown = list(_shortened(last))[::-1]
    return Log(task, shown, number_of - len(shown))


def _shortened(lines: Sequence[str]) -> Iterator[str]:
    """Yield the last lines, the last one first, as long as there is room."""
    room = _CHARACTERS
    # before a line is cut: a secret may be known by what stands behind it
    for line in reversed(redacted("\n".join(lines)).split("\n") if lines else []):
        if room <= 0:
            return
        yield line[:room]
        room -= len(line)
