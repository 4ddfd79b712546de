"""`akrunner pack`: files, texts and tables become shards of records."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from typing import TYPE_CHECKING, Iterator, List, Optional

import typer
from rich.console import Console
from rich.text import Text

import akrunner
from akrunner.cli import signals
from akrunner.cli.guarded import emit, telling
from akrunner.cli.progress import Line
from akrunner.packing.result import counted, printable, size_in_words

if TYPE_CHECKING:
    from akrunner.packing.progress import PackProgress
    from akrunner.packing.result import Packed

EPILOG = """
Exit codes: 0 all is packed, but what --bad-rows leaves out; 1 there was too little memory, or too few threads or open files: the same command goes on; 2 an argument,
the input or the output does not allow it, nothing was packed; 3 a file is broken, or a table cannot be read; 4 the output could not be written: the same command
goes on; 70 a fault of akrunner; 130 interrupted (Ctrl-C), 143 terminated: the same command goes on. With --json, each of them is one JSON object on stdout.
"""
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
_WHAT = "What is packed"
_HOW = "How"
_SHOWN_BAD = 20


def pack(
    places: List[str] = typer.Argument(
        ...,
        metavar="INPUT... OUTPUT",
        help="A directory with a folder for each class, a table with a column of paths, text files (several stand side by side), or any table; and "
        "the directory to write.",
    ),
    split: Optional[str] = typer.Option(
        None,
        help="Shares: 0.8,0.1,0.1 (train, validation, test), 0.8,0.2 (train, test), or train=0.9,dev=0.1. folders: the first folders of INPUT are the "
        "splits. Default: one, called all.",
    ),
    split_by: str = typer.Option(
        "name",
        help="name: a hash of each file's name decides, so that it is in the same split wherever it is packed. exact: each class has its share in "
        "every split, to within a row.",
    ),
    seed: int = typer.Option(0, help="Of the order and the splits."),
    kind: Optional[str] = typer.Option(
        None,
        help="images, texts (a row a file), files (any), rows (of tables and of lines). Default: by names and contents.",
        rich_help_panel=_WHAT,
    ),
    label: Optional[str] = typer.Option(
        None,
        help="Column of classes; none: there are no classes. Default: folders, or a column called label or class.",
        rich_help_panel=_WHAT,
    ),
    paths: Optional[str] = typer.Option(
        None, help="Column of paths or URLs. Default: by names and values.", rich_help_panel=_WHAT
    ),
    paths_in: Optional[str] = typer.Option(
        None,
        help="Directory, or beginning of URLs, that relative paths are below. Default: where the table is.",
        rich_help_panel=_WHAT,
    ),
    columns: Optional[str] = typer.Option(
        None,
        help="Names for text files that stand side by side: text,label. Default: those of the files.",
        rich_help_panel=_WHAT,
    ),
    select: Optional[str] = typer.Option(None, help="SQL over the table, called `input` in it.", rich_help_panel=_WHAT),
    input_schema: Optional[str] = typer.Option(
        None, help="Columns to read and their types; needed for TFRecord.", rich_help_panel=_WHAT
    ),
    input_format: Optional[str] = typer.Option(
        None, help="csv, parquet, jsonl, arrow or tfrecord, where names do not tell.", rich_help_panel=_WHAT
    ),
    format: str = typer.Option("tfrecord", help="Of the output: tfrecord, parquet or arrow.", rich_help_panel=_HOW),
    shard_size: str = typer.Option("128MB", help="Bytes of a file, about.", rich_help_panel=_HOW),
    resize: Optional[str] = typer.Option(
        None,
        help="WIDTHxHEIGHT of images, turned as EXIF says. Default: the files as they are. Needs Pillow.",
        rich_help_panel=_HOW,
    ),
    check: str = typer.Option(
        "header", help="Of each image: header; whole: it is decoded (needs Pillow); none.", rich_help_panel=_HOW
    ),
    bad_rows: str = typer.Option(
        "fail", help="Broken files: fail; skip; or a directory they are copied to.", rich_help_panel=_HOW
    ),
    threads: Optional[int] = typer.Option(None, help="That read files. Default: 16.", rich_help_panel=_HOW),
    memory: str = typer.Option("512MB", help="For the shuffling of tables.", rich_help_panel=_HOW),
    max_file_size: str = typer.Option(
        "256MB", help="Bytes a file may have; a larger one is broken, and of a URL no more is read.", rich_help_panel=_HOW
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Pack everything anew; what is there counts until that is done."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be packed, and write nothing."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on stdout, for machines."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress, no closing line."),
) -> None:
    if len(places) < 2:
        raise akrunner.ConfigError("pack: give an input and an output: akrunner pack PHOTOS/ OUT/")
    *inputs, output = places
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    with _told_to_go_on(output), Line(console, "listing", quiet or as_json) as line:

        def show(progress: "PackProgress") -> None:
            signals.check()
            line.show(lambda: progress_line(progress))

        done = akrunner.pack(
            inputs if len(inputs) > 1 else inputs[0], output, split=split, split_by=split_by, seed=seed, shard_size=shard_size, format=format,
            resize=resize, check=check, bad_rows=bad_rows, kind=kind, label=label, paths=paths, paths_in=paths_in, columns=columns, select=select,
            input_schema=input_schema, input_format=input_format, threads=threads, memory=memory, max_file_size=max_file_size, overwrite=overwrite, dry_run=dry_run,
            progress=show,
        )  # fmt: skip
    with telling(f"{done.path} is packed" if not dry_run else "nothing was written"):
        if as_json:
            emit({"ok": True, "exit_code": 0, **dataclasses.asdict(done)})
        else:
            _say(done, quiet)


@contextlib.contextmanager
def _told_to_go_on(output: str) -> Iterator[None]:
    """One that is stopped is told what becomes of what it has done."""
    try:
        yield
    except (KeyboardInterrupt, signals.Terminated):
        if os.path.isdir(os.path.join(os.path.expanduser(output), ".pack")):
            typer.echo("akrunner: what was packed so far is kept, and the same command goes on from there", err=True)
        raise


def progress_line(progress: "PackProgress") -> str:
    """One line: what is done, how far, how fast, how long yet."""
    of = f" of {progress.total:,}" if progress.total is not None else ""
    parts = [f"{progress.seconds:5.1f} s", f"{progress.doing} {progress.rows:,}{of} rows"]
    if progress.rate:
        speed = progress.bytes / 1e6 / max(progress.seconds, 1e-9)
        parts.append(f"{progress.rate:,.0f} rows/s" + (f" {speed:.1f} MB/s" if progress.bytes else ""))
    if progress.seconds_left is not None:
        parts.append(f"{in_words(progress.seconds_left)} left")
    return "  ".join(parts)


def in_words(seconds: float) -> str:
    """Seconds as people say them: 40 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _say(done: "Packed", quiet: bool) -> None:
    err = Console(stderr=True, highlight=False, soft_wrap=True)
    for warning in done.warnings:
        err.print(Text(f"akrunner: {printable(warning)}", style="yellow" if err.is_terminal else ""))
    if done.skipped_rows:
        err.print(Text(f"{counted(done.skipped_rows, 'broken file')} {_left_out(done)}:"))
        for path, why in done.skipped[:_SHOWN_BAD]:
            err.print(Text(f"  {printable(path)}: {printable(why)}"))
        if done.skipped_rows > _SHOWN_BAD:
            err.print(Text(f"  and {done.skipped_rows - _SHOWN_BAD:,} more (dataset.json, --json)"))
    if done.unfetched_rows:
        err.print(
            Text(
                f"{counted(done.unfetched_rows, 'file')} could not be fetched, and {_were(done.unfetched_rows)} left out; the next run tries again:"
            )
        )
        for path, why in done.unfetched[:_SHOWN_BAD]:
            err.print(Text(f"  {printable(path)}: {printable(why)}"))
        if done.unfetched_rows > _SHOWN_BAD:
            err.print(Text(f"  and {done.unfetched_rows - _SHOWN_BAD:,} more (--json)"))
    if quiet:
        return
    splits = ", ".join(f"{name} {rows:,}" for name, rows in done.splits.items())
    rows = "row" if done.total_rows == 1 and len(done.splits) == 1 else "rows"
    if done.dry_run:
        typer.echo(
            f"would pack {counted(done.rows, done.kind[:-1])}: {splits} {rows} in {counted(done.shards, 'file')}; nothing was written"
        )
        if done.labels:
            typer.echo(f"classes: {_some(done.labels)}")
        return
    if not (done.rows or done.skipped_rows > done.skipped_before or done.unfetched_rows):
        typer.echo(f"nothing is new: {done.path} has {counted(done.total_rows, 'row')} ({splits})")
        return
    typer.echo(
        f"packed {counted(done.rows, done.kind[:-1])} in {done.seconds:.1f} s: {splits} {rows} in {counted(done.shards, 'file')} of {size_in_words(done.bytes)}"
    )
    if done.labels:
        typer.echo(f"classes: {_some(done.labels)} (labels.json)")
    first = next((name for name, rows in done.splits.items() if rows), "all")
    typer.echo(f"output: {done.path}   (--input {done.path}/{first})")
    sys.stdout.flush()


def _left_out(done: "Packed") -> str:
    """By which run."""
    if not done.skipped_before:
        return f"{_were(done.skipped_rows)} left out"
    if done.skipped_before == done.skipped_rows:
        are = "is" if done.skipped_rows == 1 else "are"
        return f"{are} left out, as by an earlier run; what is mended, the next run packs"
    return f"were left out, {done.skipped_before:,} of them by an earlier run, too"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _some(labels: List[str]) -> str:
    shown = ", ".join(f"{number} {printable(name)}" for number, name in enumerate(labels[:10]))
    return shown + (f", and {len(labels) - 10:,} more" if len(labels) > 10 else "")
