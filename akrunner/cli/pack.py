"""`akrunner pack`: it packs files, texts and tables into shards of records."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

import akrunner
from akrunner.checks import counted
from akrunner.cli import displays, given, signals, stderr
from akrunner.cli.guarded import emit, exit_codes, telling
from akrunner.folders.words import printable, quoted
from akrunner.foreign import in_words as in_words_of
from akrunner.foreign import shortage
from akrunner.packing.progress import PackProgress, view_of
from akrunner.packing.result import needs_less, size_in_words, told
from akrunner.progress import events
from akrunner.progress.rates import Window
from akrunner.screens.ways import AUTO

if TYPE_CHECKING:
    from akrunner.packing.result import Packed

EPILOG = (
    exit_codes(
        "0 all is packed, except what --bad-rows leaves out; 1 there was too little memory, or too few threads or open files; 2 nothing "
        "was packed, because of an argument, the input or the output; 3 a file is broken, or a table cannot be read; 4 the output could "
        "not be written"
    )
    + " After 1, 3, 4 and a signal, the same command goes on where this one has stopped."
)
HELP = """
Pack files, texts or a table into a few large files of records, shuffled as a whole and split once. Read them as --input OUTPUT/train.

A run that was stopped or killed goes on when it is started again; a later one packs only what is new, and moves nothing to another split.

[bold]Examples[/bold]

  akrunner pack photos/ packed/ --split 0.8,0.1,0.1

  akrunner pack photos.csv packed/ --paths file --label species --bad-rows skip --resize 256x256

  akrunner pack sentences.txt labels.txt packed/ --columns text,label

  akrunner pack 'sales/*.parquet' packed/ --split 0.9,0.1 --format parquet --shard-size 256MB

  akrunner run train.py --input packed/train
"""
_SHOWN_BAD = 20


def pack(ctx: typer.Context, words: Mapping[str, Any]) -> None:
    places, quiet, as_json = words["places"], words["quiet"], words["as_json"]
    if len(places) < 2:
        raise akrunner.ConfigError("pack: give an input and an output: akrunner pack PHOTOS/ OUT/")
    *inputs, output = places
    packed = Window()
    with (
        _told_to_go_on(output),
        stderr.working() as console,
        displays.on(console, words["progress"] or AUTO, quiet or as_json) as display,
    ):

        def show(progress: PackProgress) -> None:
            signals.check()
            display.show(view_of(progress, packed))

        source = inputs if len(inputs) > 1 else inputs[0]
        with _of_this_machine():
            done = akrunner.pack(source, output, **{**given.options("pack", words), "progress": show})
    with telling(f"{done.path} is packed" if not words["dry_run"] else "nothing was written"):
        said = told(done)
        as_event = display.tells(events.END, {"output": done.path, **said})
        if as_json:
            emit(said)
        else:
            _say(done, quiet, as_event)


@contextlib.contextmanager
def _of_this_machine() -> Iterator[None]:
    """If memory, threads or open files run out before `pack` itself can handle that, as its libraries are loaded, raise its own error for it."""
    try:
        yield
    except (MemoryError, ImportError, OSError, RuntimeError) as e:
        if isinstance(e, akrunner.AkrunnerError) or not shortage(e):
            raise
        raise akrunner.JobError(f"{in_words_of(e).partition('; ')[0]}; {needs_less(e)}") from e


@contextlib.contextmanager
def _told_to_go_on(output: str) -> Iterator[None]:
    """Tell a user who stops the block that what was packed so far is kept, and that the same command goes on."""
    try:
        yield
    except (KeyboardInterrupt, signals.Terminated) as e:
        if os.path.isdir(os.path.join(os.path.expanduser(output), ".pack")):
            stderr.say_aside("akrunner: what was packed so far is kept, and the same command goes on from there", e)
        raise


def _say_left_out(done: Packed) -> None:
    err = stderr.console()
    for warning in done.warnings:
        err.print(Text(f"akrunner: {printable(warning)}", style="yellow" if err.is_terminal else ""))
    if done.skipped_rows:
        err.print(Text(f"{counted(done.skipped_rows, 'broken file')} {_left_out(done)}:"))
        for path, why in done.skipped[:_SHOWN_BAD]:
            err.print(Text(f"  {quoted(path)}: {printable(why)}"))
        if done.skipped_rows > _SHOWN_BAD:
            err.print(Text(f"  and {done.skipped_rows - _SHOWN_BAD:,} more (dataset.json, --json)"))
    if done.unfetched_rows:
        err.print(
            Text(
                f"{counted(done.unfetched_rows, 'file')} could not be fetched, and {_were(done.unfetched_rows)} left out; the "
                "next run tries again:"
            )
        )
        for path, why in done.unfetched[:_SHOWN_BAD]:
            err.print(Text(f"  {quoted(path)}: {printable(why)}"))
        if done.unfetched_rows > _SHOWN_BAD:
            err.print(Text(f"  and {done.unfetched_rows - _SHOWN_BAD:,} more (--json)"))


def _say(done: Packed, quiet: bool, told: bool = False) -> None:
    """Print what was packed. Args: told: whether what was left out has been told, so that only stdout is printed."""
    if not told:
        _say_left_out(done)
    if quiet:
        return
    splits = ", ".join(f"{name} {rows:,}" for name, rows in done.splits.items())
    rows = "row" if done.total_rows == 1 and len(done.splits) == 1 else "rows"
    if done.dry_run and done.kind == "rows":
        # rows of tables are counted only when they are read
        typer.echo(
            f"classes: {f'of the column {printable(done.label)}' if done.label else 'none (--label names their column)'}"
        )
        typer.echo("nothing was written: that was a dry run")
        return
    if done.dry_run:
        typer.echo(
            f"would pack {counted(done.rows, done.kind[:-1])} at most: {splits} {rows} in {counted(done.shards, 'file')}; "
            "nothing was written"
        )
        if done.labels:
            typer.echo(f"classes: {_some(done.labels)}")
        return
    if not (done.rows or done.skipped_rows > done.skipped_before or done.unfetched_rows):
        typer.echo(f"nothing is new: {printable(done.path)} has {counted(done.total_rows, 'row')} ({splits})")
        return
    typer.echo(
        f"packed {counted(done.rows, done.kind[:-1])} in {done.seconds:.1f} s: {splits} {rows} in "
        f"{counted(done.shards, 'file')} of {size_in_words(done.bytes)}"
    )
    if done.labels:
        instead = (
            f"; label and label_name stand in place of the column {printable(done.label)}"
            if done.label not in ("", "label")
            else ""
        )
        typer.echo(f"classes: {_some(done.labels)} (labels.json){instead}")
    place = printable(done.path)
    typer.echo(f"output: {place}   (--input {place}/{_to_train_on(done.splits)})")
    sys.stdout.flush()


def _to_train_on(splits: Mapping[str, int]) -> str:
    """Return the split that is shown as an example of an input: train, else the largest."""
    return "train" if splits.get("train") else max(splits, key=lambda name: splits[name], default="all")


def _left_out(done: Packed) -> str:
    """Return words that say which run left broken files out."""
    if not done.skipped_before:
        return f"{_were(done.skipped_rows)} left out"
    if done.skipped_before == done.skipped_rows:
        are = "is" if done.skipped_rows == 1 else "are"
        return f"{are} left out, as by an earlier run; what is mended, the next run packs"
    return f"were left out, {done.skipped_before:,} of them by an earlier run, too"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _some(labels: list[str]) -> str:
    shown = ", ".join(f"{number} {quoted(name)}" for number, name in enumerate(labels[:10]))
    return shown + (f", and {len(labels) - 10:,} more" if len(labels) > 10 else "")
