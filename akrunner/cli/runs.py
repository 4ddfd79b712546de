"""`akrunner runs | show | report`: the runs that were kept, one of them, what tells two apart; pages about them; and the removal of old ones."""

from __future__ import annotations

import dataclasses
import datetime
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

import akrunner
from akrunner.cli.given import flag
from akrunner.cli.guarded import emit, exit_codes, telling
from akrunner.cli.stderr import say
from akrunner.errors import alike
from akrunner.folders.words import harmless, printable
from akrunner.history import words
from akrunner.history.record import plain

if TYPE_CHECKING:
    from akrunner.runs import Difference, Run

HELP = """
List the runs of this machine that were kept, the newest first: `run`, `train`, `stream` and `predict`, from the command line and from
Python, here and on Flink.

A run is named by its number (r42), or last, or last-1 for the one before it.

[bold]Examples[/bold]

  akrunner runs --failed

  akrunner show last

  akrunner runs diff last-1 last

  akrunner runs prune --days 7 --size 200MB

  akrunner runs --serve
"""
REPORT_HELP = """
Write a page about a run: one HTML file that needs no network. It has why the run failed, the learning curves, what each task did when,
rows, memory and processor over time, the input doctor's verdict, warnings and logs. `--report FILE` of a job writes it when the job ends.

[bold]Examples[/bold]

  akrunner report last

  akrunner report r42 -o r42.html
"""
SHOW_HELP = """
Show what is kept of a run. If it has failed, the failure comes first, with the script's traceback.

[bold]Examples[/bold]

  akrunner show last

  akrunner show r42 --json
"""
RUN_HELP = "The run: r42; last for the newest one, last-1 for the one before it."
EPILOG = exit_codes("0 it is told; 2 there is no such run; 4 stdout could not be written")
REPORT_EPILOG = exit_codes(
    "0 it is written; 2 there is no such run, or the file cannot be written; 4 stdout could not be written"
)
#: how many runs are listed if nothing is said
_LISTED = 20
_DAY, _HOUR, _MINUTE = 86_400, 3600, 60
_STYLES = {"succeeded": "green", "running": "cyan", "submitted": "cyan", "failed": "red", "lost": "red", "stopped": "yellow"}
#: the width of what is not printed to a terminal: nothing is cut
_PIPED = 500
_TITLES = ["run", "state", "began", "took", "what", "rows in", "last"]
_NUMBERS = ("took", "rows in")
#: columns of a verb and its script's name, at most; and of what stands last, at least
_MOST_WHAT, _LEAST_ROOM = 24, 12
#: columns of a terminal that has room for the numbers of rows
_WIDE = 100
_JSON = "JSON on stdout, for machines."

app = typer.Typer(help=HELP, add_completion=False, rich_markup_mode="rich")


@app.callback(invoke_without_command=True)
def runs(
    ctx: typer.Context,
    failed: bool = typer.Option(False, "--failed", help="Only those that have failed, were lost, or were stopped."),
    limit: int = typer.Option(_LISTED, "--limit", "-n", min=1, help="How many, at most."),
    every: bool = typer.Option(False, "--all", help="All of them, without a limit."),
    serve: bool = typer.Option(
        False,
        "--serve",
        help="Show them in a browser of this machine, by an address with a token, until Ctrl-C; a run that goes on is followed.",
    ),
    port: int = typer.Option(0, "--port", min=0, max=65535, help="The port of --serve. Default: any that is free."),
    as_json: bool = typer.Option(False, "--json", help=_JSON),
) -> None:
    if ctx.invoked_subcommand is not None:
        _check_behind(ctx)
        return
    if port and not serve:
        raise akrunner.ConfigError("--port means nothing without --serve")
    if every and _is_given(ctx, "limit"):
        raise akrunner.ConfigError("--limit and --all are both given: leave one of them out")
    if serve:
        if as_json or failed or every or _is_given(ctx, "limit"):
            raise akrunner.ConfigError("--serve shows runs in a browser: leave --json, --failed, --limit and --all out")
        _serve(port)
        return
    from akrunner.runs import listed

    found = listed(failed, None if every else limit)
    _tell_silent(found)
    if as_json:
        emit({"ok": True, "exit_code": 0, "runs": [_asdict(one) for one in found], "damaged": found.damaged})
        return
    for name, why in found.damaged.items():
        say(harmless(f"{name}  its record cannot be read: {why}"))
    if not found and not found.damaged:
        say(f"no run {'that has failed ' if failed else ''}is kept yet")
        return
    with telling("runs were listed"):
        if found:
            _table(found)
    if not every and len(found) == limit:
        say(f"the newest {limit}; --all lists all")


def _check_behind(ctx: typer.Context) -> None:
    """Check that no option of the list stands ahead of a subcommand: `--failed prune --all` would remove every run.

    Raises: ConfigError: one does.
    """
    group: Any = ctx.command
    name = str(ctx.invoked_subcommand)
    flag = next((one.opts[0] for one in group.params if _is_given(ctx, one.name)), None)
    if flag is None:
        return
    if any(flag in one.opts for one in group.commands[name].params):
        raise akrunner.ConfigError(f"{flag} belongs behind {name}: akrunner runs {name} {flag}")
    raise akrunner.ConfigError(
        f"{flag} is an option of the list, akrunner runs {flag}, and {name} has none like it: leave it out"
    )


def _is_given(ctx: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


@app.command("diff", help="Show in what two runs differ: arguments, versions, the last metrics, rows and times.")
def diff(
    first: str = typer.Argument("last-1", metavar="A", help=RUN_HELP),
    second: str = typer.Argument("last", metavar="B", help="The other one."),
    as_json: bool = typer.Option(False, "--json", help=_JSON),
) -> None:
    from akrunner.runs import diff, get

    one, other = get(first), get(second)
    found = diff(one, other)
    if as_json:
        told = [plain(dataclasses.asdict(each)) for each in found]
        emit({"ok": True, "exit_code": 0, "first": one.id, "second": other.id, "differences": told})
        return
    with telling("the runs were compared"):
        _differences(one, other, found)


@app.command(
    "prune",
    help="Remove old runs, the oldest first; those that are running stay. It also happens by itself, about once an hour.",
)
def prune(
    days: float | None = typer.Option(None, help="Runs of the last DAYS days stay. Default: $AKRUNNER_RUNS_DAYS, else 30."),
    size: str | None = typer.Option(
        None, help="The newest runs that take so much together stay: 200MB. Default: $AKRUNNER_RUNS_SIZE, else 500MB."
    ),
    every: bool = typer.Option(False, "--all", help="Remove all of them."),
    as_json: bool = flag("as_json"),
) -> None:
    from akrunner.runs import prune

    if every and (days is not None or size is not None):
        raise akrunner.ConfigError("--all removes all runs: leave --days and --size out")
    gone = prune(0 if every else days, size)
    with telling(f"{len(gone)} runs were removed"):
        if as_json:
            emit({"ok": True, "exit_code": 0, "removed": gone})
        else:
            typer.echo(f"{len(gone)} run{'s were' if len(gone) != 1 else ' was'} removed")


def show(
    run: str = typer.Argument(..., help=RUN_HELP),
    as_json: bool = typer.Option(False, "--json", help=_JSON),
) -> None:
    from akrunner.runs import get

    found = get(run)
    _tell_silent([found])
    if as_json:
        emit({"ok": True, "exit_code": 0, **_asdict(found)})
        return
    with telling("the run was shown"):
        _show(found)


def report(
    run: str = typer.Argument(..., help=RUN_HELP),
    output: str | None = typer.Option(
        None,
        "--output",
        "-o",
        help="The file; an older page there is replaced. Default: report-r42.html here, for the run r42.",
    ),
    as_json: bool = typer.Option(False, "--json", help=_JSON),
) -> None:
    from akrunner.runs import report

    path = report(run, output)
    with telling(f"the report was written: {path}"):
        if as_json:
            emit({"ok": True, "exit_code": 0, "report": path})
        else:
            typer.echo(path)


def _serve(port: int) -> None:
    """Serve pages about the runs until Ctrl-C comes, which is how that ends, or another signal."""
    from akrunner.runs.serving import RunServer

    with RunServer(port) as server:
        with telling("nothing was served"):
            typer.echo(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("akrunner: the runs are served no longer")


def _tell_silent(found: Sequence[Run]) -> None:
    """Say which clusters did not answer."""
    for master in dict.fromkeys(run.silent for run in found if run.silent):
        say(harmless(f"akrunner: {master} does not answer: what became of its jobs is not known"))


def _asdict(run: Run) -> dict[str, Any]:
    told: dict[str, Any] = plain({**vars(run), "seconds": run.seconds})
    # stderr says it
    told.pop("silent", None)
    return told


# -- a list of runs


def _console() -> Console:
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=_PIPED)


def _table(found: Sequence[Run]) -> None:
    """Print a line for each run. On a terminal what says most about its end is cut, so that a run has one line."""
    console = _console()
    titles = [title for title in _TITLES if title != "rows in" or console.width >= _WIDE]
    rows = [dict(zip(_TITLES, _TITLES)), *(dict(zip(_TITLES, _cells(one))) for one in found)]
    widths = {title: max(cell_len(row[title]) for row in rows) for title in titles[:-1]}
    room = max(_LEAST_ROOM, console.width - sum(widths.values()) - 2 * len(widths))
    for row, one in zip(rows, (None, *found)):
        style = _STYLES.get(one.state, "") if one is not None else "bold"
        parts = []
        for title, width in widths.items():
            blanks = " " * (width - cell_len(row[title]))
            text = f"{blanks}{row[title]}" if title in _NUMBERS else f"{row[title]}{blanks}"
            parts.append((f"{text}  ", style if title == "state" or one is None else ""))
        last = row[titles[-1]]
        parts.append((_cut(last, room), style if one is None or one.error else ""))
        console.print(Text.assemble(*parts), soft_wrap=True)


def _cut(text: str, most: int) -> str:
    """Return as much of a text as so many columns of a terminal have room for: some letters have two."""
    return text if cell_len(text) <= most else f"{set_cell_size(text, most - 1).rstrip()}…"


def _cells(run: Run) -> list[str]:
    rows = run.rows
    what = f"{run.verb} {os.path.basename(run.script)}{'' if run.engine == 'local' else f' ({run.engine})'}"
    return [
        run.id,
        run.state,
        _when(run.began),
        words.took(run.seconds),
        _cut(printable(what), _MOST_WHAT),
        f"{rows[0]:,}" if rows is not None else "",
        printable(_last(run)),
    ]


def _last(run: Run) -> str:
    """Return what says most about a run's end: why it failed, or the metrics that its first task reported last."""
    if run.error:
        return run.message.partition("\n")[0] or run.error
    return next((_metrics(told) for told in run.metrics.values()), "")


def _metrics(told: Mapping[str, Any]) -> str:
    values = [f"{words.metric(name)}={words.number(told[name])}" for name in words.ranked(told)]
    return " ".join([*values, *([f"step={told['step']:,}"] if isinstance(told.get("step"), int) else [])])


def _when(moment: float) -> str:
    """Return a moment for people: how long ago if it is less than a day, else the day."""
    ago = time.time() - moment
    if 0 <= ago < _DAY:
        # rounded first: nothing was 60 s ago, or 60 min
        units = ((round(ago), "s"), (round(ago / _MINUTE), "min"))
        number, unit = next(((number, unit) for number, unit in units if number < _MINUTE), (round(ago / _HOUR), "h"))
        return f"{number} {unit} ago"
    return f"{datetime.datetime.fromtimestamp(moment):%Y-%m-%d}"


# -- one run


def _show(run: Run) -> None:
    console = Console(highlight=False, soft_wrap=True)
    took = "began" if run.state in ("running", "submitted") else "took"
    ago = f"{words.took(run.seconds)} ago" if took == "began" else words.took(run.seconds)
    style = _STYLES.get(run.state, "")
    began = f"{datetime.datetime.fromtimestamp(run.began):%Y-%m-%d %H:%M:%S}"
    head = f"  {run.verb} {os.path.basename(run.script)}, {began}, {took} {ago}"
    console.print(Text.assemble((run.id, "bold"), "  ", (run.state, style), printable(head)))
    for line in (*_failure(run), *_body(run)):
        console.print(line)


def _failure(run: Run) -> Iterator[Text]:
    """Yield what went wrong, in the words of the job's own error."""
    if run.state == "lost":
        yield Text(
            "\nThe process that ran it is gone, and has not said why: it was killed, or the machine was turned off.",
            style="red",
        )
    if not run.error:
        return
    yield Text(harmless(f"\n{run.told}"), style="red" if run.state == "failed" else "yellow")
    failure = run.failure or {}
    for text in (failure.get("traceback"), _tail(failure.get("log_tail"))):
        if text:
            yield Text(harmless(text.rstrip()))
    for who, what in alike((str(other.get("task")), str(other.get("what"))) for other in run.others):
        yield Text(harmless(f"  {who} {what}"))


def _tail(log: str | None) -> str:
    return "last lines of its log:\n" + "\n".join(f"  | {line}" for line in log.rstrip().splitlines()) if log else ""


def _body(run: Run) -> Iterator[Text]:
    rows = run.rows
    lines: list[tuple[str, str]] = []
    if run.metrics:
        lines += [(f"[{task}]", _metrics(told)) for task, told in run.metrics.items()]
    if rows is not None:
        bound = (
            f", {run.stats['bound']}-bound" if run.stats is not None and run.stats.get("bound") in ("input", "compute") else ""
        )
        lines.append(("rows", f"{rows[0]:,} in, {rows[1]:,} out{bound}"))
    lines += [("output", run.output)] if run.output else []
    lines += [("command", shlex.join(["akrunner", *run.command]))] if run.command else []
    lines += [(f"  {name}", words.value(value)) for name, value in run.arguments.items()]
    lines += [("left out", ", ".join(f"{where} ({why})" for where, why in run.left_out.items()))] if run.left_out else []
    lines.append(("in", run.cwd))
    lines.append(("tasks", f"{', '.join(run.tasks)}, {run.engine}" if run.tasks else run.engine))
    lines.append(("versions", ", ".join(f"{name} {value}" for name, value in run.versions.items())))
    lines += [("job", f"{run.detached['job']} on {run.detached['master']}")] if run.detached else []
    lines += [("warning", warning) for warning in run.warnings]
    lines += [("work dir", run.work_dir)] if run.work_dir else []
    lines.append(("logs", f"akrunner logs {run.id}"))
    lines.append(("kept in", run.path))
    yield Text("")
    wide = max(cell_len(name) for name, _ in lines)
    for name, value in lines:
        # a name of a metric or of a file may have several lines, as a warning may
        yield Text.assemble(
            (f"{name}{' ' * (wide - cell_len(name))}  ", "bold"), harmless(value) if name == "warning" else printable(value)
        )


# -- two runs


def _differences(first: Run, second: Run, found: Sequence[Difference]) -> None:
    if not found:
        typer.echo(f"{first.id} and {second.id} do not differ")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("", first.id, second.id):
        table.add_column(title, overflow="fold")
    part = ""
    for one in found:
        if one.part != part:
            part = one.part
            table.add_row(Text(part, style="bold"))
        table.add_row(*map(Text, (f"  {printable(one.name)}", _told(one.first), _told(one.second))))
    console = _console()
    with console.capture() as lines:
        console.print(table)
    # a table fills its lines with blanks
    for line in lines.get().splitlines():
        typer.echo(line.rstrip())


def _told(value: Any) -> str:
    if value is None:
        return "-"
    return printable(
        f"{value:,}"
        if isinstance(value, int) and not isinstance(value, bool)
        else words.number(value)
        if isinstance(value, float)
        else words.value(value)
    )
