"""The output of the command line for people: progress, warnings, the closing line, and the first rows."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

import akrunner
from akrunner.arrays import integers_of
from akrunner.cli import displays, lines, records, signals, stderr
from akrunner.cli.guarded import emit, telling
from akrunner.column_types import TIMES, family_of
from akrunner.engines.inputs.wording import verdict
from akrunner.folders.words import harmless, printable
from akrunner.foreign import redacted
from akrunner.io.csv_options import CsvOptions
from akrunner.io.limits import under
from akrunner.outcomes import success
from akrunner.progress import events, words
from akrunner.progress.following import Follower
from akrunner.progress.views import last_metrics
from akrunner.screens.ways import AUTO
from akrunner.tables import grid
from akrunner.tables.shown import NULL

if TYPE_CHECKING:
    from akrunner.engines.base import Progress, Stats, TaskResult
    from akrunner.running.result import Result

_PREVIEW = 10
#: how many of a script's last lines are shown when it has succeeded
_PRINTED = 10
#: seconds of waiting that are not worth a word
_LITTLE = 0.05


def kept_at(output: str | None) -> str:
    """Return the sentence that says where the output of a job that has succeeded is."""
    return (
        f"the job has succeeded, and its output is stored: {output}"
        if output
        else "the job has succeeded; --output FILE keeps its rows"
    )


def check_json(as_json: bool, output: str | None) -> None:
    """Check a stream's --json. Raises: ConfigError: its rows go to stdout, too, which must be one JSON object."""
    if as_json and output is None:
        raise akrunner.ConfigError("--json: a stream's rows go to stdout themselves; name a file for them with --output")


class Screen:
    """The display of a job: progress on stderr, results on stdout. It is the job's observer, too.

    Args:
        as_json: print only a JSON object, on stdout.
        quiet: print only errors, rows, and progress that is asked for by name.
        log: print the tasks' lines, and where `--debug` has kept them.
        logs: print the tasks' lines.
        progress: how progress is shown: a value of `--progress`.
        answers: whether the job makes one row of each row, as a prediction does.
        between: whether the job's rows are printed on a terminal while it runs.
    Raises: ConfigError: there is no such way to show progress.
    """

    def __init__(
        self,
        as_json: bool,
        quiet: bool,
        log: bool,
        logs: bool = False,
        progress: str = AUTO,
        answers: bool = False,
        between: bool = False,
    ) -> None:
        self._json = as_json
        self._quiet = quiet or as_json
        self._debug = log
        self._log = log or logs
        self._out = stderr.Stderr()
        self._err = stderr.console(self._out)
        self._display = displays.on(self._err, progress, self._quiet or records.active(), between)
        self._answers = answers
        self._follower = Follower(answers)
        self._warned = 0
        self._known_as: Mapping[str, str] = {}
        #: puts the tasks' names in another system into a text
        self.renamed: Callable[[str], str] = str

    @property
    def known_as(self) -> Mapping[str, str]:
        """Task -> its name in another system."""
        return self._known_as

    @known_as.setter
    def known_as(self, names: Mapping[str, str]) -> None:
        self._known_as = names
        self._display.name = lambda task: f"{task} ({names[task]})" if task in names else task

    def __enter__(self) -> Screen:
        self._follower = Follower(self._answers)
        # the job's time and signals are seen also if nobody reads what is said
        self._out.begin()
        self._display.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._display.__exit__(kind, error, trace)
        self._out.end(error)

    def ends_display(self) -> None:
        """Show no more progress: what the command prints next may go to the terminal where the bar is drawn."""
        self._display.__exit__(None, None, None)

    # -- the observer

    def progress(self, progress: Progress) -> None:
        signals.check()
        # of a pipe, nothing else looks whether its reader reads again
        self._out.go_on()
        self._warn(progress.warnings)
        self._display.show(self._follower.take(progress, time.monotonic()))

    def log(self, task: str, line: str) -> None:
        if self._log and not records.active():
            # lines come as fast as they are read; but a reader who pauses holds up neither the task nor the file of its log
            self._out.wait_for_reader()
            if self._display.tells(events.LOG, {"task": task, "line": harmless(line)}):
                return
            name = f"[{self._display.name(task)}] "
            if self._err.is_terminal:
                self._err.print(Text.assemble((name, "cyan"), harmless(line)))
            else:
                # Rich takes 0.3 ms for a line, in which the task waits
                self._out.write(f"{name}{harmless(line)}\n")

    # -- afterwards

    def rows_to(self, form: str | None, csv: CsvOptions | None, options: Mapping[str, Any]) -> Callable[[Result], None] | None:
        """Return what writes all rows of a job that begins now to stdout. The job's progress is gone by then.

        Args: form: the format of the rows, None: they do not go there, and nothing is returned; csv: how CSV is written; options:
            the job's.
        """
        if form is None:
            return None
        limits = lines.limits_of(options)

        def write(result: Result) -> None:
            self.ends_display()
            if result.table is not None:
                with telling("the rows of the job are lost; --output FILE keeps them"), under(limits):
                    lines.write(result.table.to_batches(), form, result.table.schema, csv)

        return write

    def result(self, result: Result, preview: bool = True) -> None:
        """Print the closing line of a job. Args: preview: print its first rows, too, if they went to no file."""
        with telling(kept_at(result.output)):
            self._result(result, preview)

    def _result(self, result: Result, preview: bool) -> None:
        told = self._tell_end(result.output, result.work_dir, result.run, result.stats)
        if self._json:
            emit(success(result, result.output, result.run))
            return
        if not told:
            self._help(result.tasks)
            if not self._quiet:
                self._tell(closing_line(result.stats))
                self._tell_places(result)
                self._tell_run(result.run)
            self._tell_kept(result.work_dir, result.stats)
        if preview and result.table is not None and result.table.num_rows:
            self.preview(result.table, "--output FILE keeps them all")

    def _tell_end(self, output: str | None, work_dir: str | None, run: str | None, stats: Stats) -> bool:
        """Tell the last warnings of a job that has succeeded, and its end. Returns: whether no line needs to tell it."""
        if not self._json:
            self._warn(stats.warnings)
        # another job may follow
        self._warned = 0
        task, step, metrics = last_metrics(stats.reports)
        return self._display.tells(
            events.END,
            {
                "ok": True,
                "exit_code": 0,
                "output": output,
                "work_dir": work_dir,
                "run": run,
                "seconds": stats.seconds,
                "rows_in": stats.rows_in,
                "rows_out": stats.rows_out,
                "metrics": metrics,
                "metrics_of": task or None,
                "step": step,
            },
        )

    def _help(self, tasks: Sequence[TaskResult]) -> None:
        """Print the output of programs that have only printed (their help, for instance)."""
        # each worker prints the same
        for said in dict.fromkeys(task.log_tail for task in tasks if task.only_printed and not self._log):
            self._say(said)

    def streamed(self, job: akrunner.StreamJob, output: str | None) -> None:
        """Print the closing line of a stream, whose rows were written before."""
        stats = job.stats
        if stats is None:
            return
        told = self._tell_end(output, job.work_dir, job.run, stats)
        if self._json:
            with telling(kept_at(output)):
                emit(success(job, output, job.run))
            return
        if told:
            return
        self._help(job.tasks)
        if self._quiet:
            self._tell_kept(job.work_dir, stats)
            return
        unread = f"; {stats.rows_unread:,} rows came after the script had returned" if stats.rows_unread else ""
        done = f"done in {stats.seconds:.1f} s: {_rows(stats)}{unread}"
        done += metrics_line(stats) + input_line(stats)
        self._tell(done + (f"\noutput: {output}" if output else ""))
        self._tell_run(job.run)
        self._tell_kept(job.work_dir, stats)

    def _say(self, text: str, style: str = "") -> None:
        """Print a text that may contain names and words of scripts, tables and other systems."""
        if records.active():
            if not text.startswith("warning: "):
                # the job's own records have its warnings
                records.say(text)
        elif not self._display.tells(events.NOTE, {"message": harmless(text)}):
            self._err.print(Text(harmless(text), style=style))

    def _tell(self, text: str, style: str = "") -> None:
        """Print a text of akrunner's own, whose lines are broken between words where the terminal ends."""
        self._say(fitted(text, self._err.width) if self._err.is_terminal and not records.active() else text, style)

    def _warn(self, warnings: Sequence[str]) -> None:
        """Print the warnings that were not printed yet. Args: warnings: all so far."""
        for warning in warnings[self._warned :]:
            words = harmless(redacted(self.renamed(warning)))
            if not self._display.tells(events.WARNING, {"message": words}):
                self._tell(f"warning: {words}", "yellow")
        self._warned = max(self._warned, len(warnings))

    def note(self, text: str) -> None:
        self._tell(f"akrunner: {text}")

    def preview(self, table: pa.Table, how: str) -> None:
        """Print the first rows to stdout. Args: how: how to get the other rows, in words."""
        head = table.slice(0, _PREVIEW)
        width = Console(file=sys.stdout).width
        cells = [[_cell(value) for value in column] for column in head.columns]
        told, shown = grid.lines(head.column_names, list(zip(*cells)), width)
        for line in told:
            typer.echo(line)
        more = grid.others(head.column_names, shown, how)
        if more and not self._quiet:
            self._say(more)
        if table.num_rows > _PREVIEW and not self._quiet:
            self._say(f"... {table.num_rows - _PREVIEW} more rows; {how}")

    def asked(self, result: Result, places: Sequence[str] = ()) -> None:
        """Print the closing lines of a job whose scripts open their own tables.

        Args: places: what else the job has left, in words.
        """
        with telling(kept_at(result.output)):
            # the rest is in the object of --json
            if self._tell_end(result.output, result.work_dir, result.run, result.stats) or self._json:
                return
            self._help(result.tasks)
            if not self._quiet:
                tables = "".join(map(_of_table, result.stats.tables.items()))
                self._tell(
                    f"done in {result.stats.seconds:.1f} s{tables}{metrics_line(result.stats)}{input_line(result.stats)}"
                )
                self._tell_places(result)
                self._tell_run(result.run)
            self._tell_kept(result.work_dir, result.stats)
            if not self._quiet:
                for place in places:
                    self._say(place)
                self._printed(result)

    def _printed(self, result: Result) -> None:
        """Print the last lines that a script printed, which are its result if it writes no table, and where all of them are."""
        said = {task.name: task.log_tail.rstrip() for task in result.tasks if task.log_tail.strip() and not task.only_printed}
        if self._log or not said:
            return
        if result.work_dir is not None:
            kept = f"all of it is in {os.path.join(result.work_dir, 'tasks')}"
        else:
            kept = "--logs shows all of it, --work-dir DIR keeps it"
        first, lines = next((name, text.splitlines()) for name, text in said.items())
        self._say(f"the last that [{first}] printed ({kept}):")
        for line in lines[-_PRINTED:]:
            self._say(f"  | {line}")

    def _tell_places(self, result: Result) -> None:
        for why in sorted({how for how in result.stats.starts.values() if how.startswith("cold: ")}):
            self._tell(f"no warm worker was taken: {why[len('cold: ') :]}")
        if result.output is not None:
            self._tell(f"output: {result.output}")

    def _tell_run(self, run: str | None) -> None:
        if run is not None:
            self._tell(f"run: {run}   (akrunner show {run})")

    def _tell_kept(self, work_dir: str | None, stats: Stats) -> None:
        """Print where the job's directory is; with --quiet only if --debug has kept it, as nothing else tells its name."""
        if work_dir is not None and (self._debug or not self._quiet):
            # `akrunner replay` cannot run a script again that opens its own tables
            again = "" if stats.tables else f"   (akrunner replay {work_dir})"
            self._tell(f"work dir: {work_dir}{again}")


def of_command(words: Mapping[str, Any], answers: bool = False, between: bool = False) -> Screen:
    """Return the screen of a command that runs a job. Args: words: the command's values; answers, between: as for `Screen`."""
    debug = bool(words.get("debug"))
    return Screen(words["as_json"], words["quiet"], debug, words["logs"], words["progress"], answers, between)


def fitted(text: str, width: int) -> str:
    """Return a text whose lines are no wider than a terminal, if that can be without breaking a word, such as a path.

    A line with parts that stand two spaces apart is broken between these alone. What follows a line's first one is set off.

    Args: width: the terminal's columns.
    """
    return "\n".join(part for line in text.split("\n") for part in _fitted(line, width))


def _fitted(line: str, width: int) -> list[str]:
    words = re.split(r"( {2,})" if re.search(r"\S {2,}", line) else r"( )(?!(?:s|min|h)\b|%)", line)
    made = [words[0]]
    for gap, word in zip(words[1::2], words[2::2], strict=True):
        if cell_len(made[-1] + gap + word) <= width:
            made[-1] += gap + word
        else:
            made.append(f"  {word}")
    return made


def _rows(stats: Stats) -> str:
    """Return the numbers of rows in words: "2,000 rows in, 1 row out"."""
    return ", ".join(
        f"{count:,} row{'s' * (count != 1)} {way}" for count, way in ((stats.rows_in, "in"), (stats.rows_out, "out"))
    )


def _of_table(counted: tuple[str, Mapping[str, int]]) -> str:
    name, rows = counted
    parts = [
        f"{rows[key]:,} row{'s' * (rows[key] != 1)} {word}"
        for key, word in (("rows_read", "read"), ("rows_written", "written"))
        if rows.get(key)
    ]
    return f"; {name}: {', '.join(parts)}" if parts else ""


def _cell(value: Any) -> str:
    """Return a value as text for people."""
    if not value.is_valid:
        return NULL
    try:
        return str(value.as_py())
    except (OverflowError, ValueError):
        # a timestamp outside of the range of Python's datetime
        return str(integers_of(value)) if family_of(value.type) in TIMES else "?"


def metrics_line(stats: Stats) -> str:
    """Return a line with the last metrics of the task that leads, behind a line end; "" if no task has reported any."""
    task, step, metrics = last_metrics(stats.reports)
    told = [*words.named(metrics), *([f"step {step:,}"] if step is not None else [])]
    return f"\n{task}: {'  '.join(map(printable, told))}" if told else ""


def input_line(stats: Stats) -> str:
    """Return lines that say how the job's input slows it down, each behind a line end.

    They are about one task, or about all tasks with `--profile-input`; "" if the input does not slow it down, or if it is not
    known.
    """
    told = verdict(stats)
    if not any(record["asked"] for record in stats.inputs.values()):
        told = [words for words in told if words.partition("]")[0] == told[0].partition("]")[0]]
    return "".join(f"\ninput: {words}" for words in told)


def closing_line(stats: Stats) -> str:
    """Return the closing line: how long the job took, how many rows it had, and whether the time went to input or computing."""
    waited_longest = stats.input_wait_seconds > max(stats.main_seconds, _LITTLE)
    if stats.bound == "input" and not waited_longest:
        why = f", input-bound ({stats.main_seconds:.1f} s in main, most of its steps' time waiting for input)"
    elif stats.bound == "input":
        why = f", input-bound (waited {stats.input_wait_seconds:.1f} s for rows, {stats.main_seconds:.1f} s in main)"
    else:
        # the bound is not known for a script that reads its input in its own way
        waited = f", waited {stats.input_wait_seconds:.1f} s for rows" if stats.input_wait_seconds >= _LITTLE else ""
        why = (", compute-bound" if stats.bound == "compute" else "") + f" ({stats.main_seconds:.1f} s in main{waited})"
    return f"done in {stats.seconds:.1f} s: {_rows(stats)}{why}{metrics_line(stats)}{input_line(stats)}"
