"""`akrunner.pack`: what there is to pack, what of it is new, and the two ways of packing it.

::

    source -> Given (files, or tables) -> State: an unfinished part goes on, then what is new becomes a part -> published
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from typing import Any, Callable, Iterator, Optional, Sequence, Tuple, Union

import pyarrow as pa

from akrunner.checks import check_flag, check_path
from akrunner.errors import AkrunnerError, ConfigError, JobError, SinkError
from akrunner.foreign import in_words, no_files, ours, shortage
from akrunner.io.paths import PathLike, local_path
from akrunner.packing import filejob, pictures, rowjob
from akrunner.packing.described import check_columns, rounded
from akrunner.packing.given import Earlier, Given, given_of
from akrunner.packing.progress import Meter, PackProgress
from akrunner.packing.result import Packed
from akrunner.packing.settings import Settings, Split, settings_of
from akrunner.packing.state import State
from akrunner.schema import Schema

#: open files that are enough whatever is packed: threads of the network, buckets of tables within each other, shards of each split
_OPEN_FILES = 1024


def pack(
    source: Any,
    output: PathLike,
    *,
    split: Split = None,
    split_by: str = "name",
    seed: int = 0,
    shard_size: Union[int, str] = "128MB",
    format: str = "tfrecord",
    resize: Union[int, str, Tuple[int, int], None] = None,
    check: str = "header",
    bad_rows: PathLike = "fail",
    kind: Optional[str] = None,
    label: Optional[str] = None,
    paths: Optional[str] = None,
    paths_in: Optional[PathLike] = None,
    columns: Union[str, Sequence[str], None] = None,
    select: Optional[str] = None,
    input_schema: Union[str, Schema, None] = None,
    input_format: Optional[str] = None,
    threads: Optional[int] = None,
    memory: Union[int, str] = "512MB",
    max_file_size: Union[int, str] = "256MB",
    overwrite: bool = False,
    dry_run: bool = False,
    progress: Optional[Callable[[PackProgress], None]] = None,
) -> Packed:
    """Pack files, texts or a table into shards of records: shuffled as a whole, split once, and read as `--input OUTPUT/train`.

    A run that was killed goes on when it is called again; when it is done, a later call packs only what is new.

    Args:
        source: a directory with a folder for each class; a table with a column of paths; text files; or any table.
        output: a directory, new or empty, or one that `pack` has written.
        split: shares: "0.8,0.1,0.1" (train, validation, test), "0.8,0.2" (train, test), "train=0.9,dev=0.1", a list, a dict; "folders": the first
            folders of `source` are the splits. None: one, called all.
        split_by: name: a hash of each file's name decides, so that it is in the same split wherever it is packed, and shares are as even as chance has
            them. exact: each class has its share in every split, to within a row.
        seed: of the order and the splits.
        shard_size: bytes of a file, about: 128MB, 1GiB.
        format: tfrecord, parquet or arrow.
        resize: "WIDTHxHEIGHT", or (height, width): images in another size (needs Pillow). None: the files as they are.
        check: header: of every image; whole: every image is decoded (needs Pillow); none.
        bad_rows: fail; skip: leave broken files out; or a directory they are copied to.
        kind: images, texts (a row a file), files (any bytes), rows (of tables, or lines of texts). None: by names and contents.
        label: column of classes; "none": there are no classes.
        paths: the column of paths. None: by names and contents.
        paths_in: what relative paths are below. None: the table's directory.
        columns: names for the columns of text files that stand side by side.
        select: of tables, as in `run`.
        input_schema: of tables, as in `run`.
        input_format: of tables, as in `run`.
        threads: that read files. None: 16.
        memory: bytes for the shuffling of tables: 512MB, 1GiB.
        max_file_size: bytes a file may have; a larger one is broken, and of a URL no more is read.
        overwrite: pack everything anew; what is there counts until that is done.
        dry_run: look, plan, and write nothing.
        progress: called now and then with how far it is.
    Returns:
        what there is now, and what was left out.
    Raises:
        ConfigError: an argument is wrong; nothing was written.
        ReadError: a file is broken.
        WriteError: a disk is full.
        JobError: there is too little memory, or too few threads or open files; the next run goes on.
    """
    began = time.monotonic()
    settings = settings_of(split, split_by, seed, shard_size, resize, format, check, bad_rows, threads, memory, max_file_size)
    check_flag("overwrite", overwrite)
    check_flag("dry_run", dry_run)
    if progress is not None and not callable(progress):
        raise ConfigError("progress must be a function that takes a PackProgress")
    state = State(local_path(check_path("output", output, SinkError), "output", "name one, and copy it afterwards"))

    def tell(how_far: PackProgress) -> None:
        with ours(ConfigError, "progress: the function raised"):
            if progress is not None:
                progress(how_far)

    meter = Meter(tell if progress is not None else None)
    meter.starts("listing")
    earlier = _earlier(state) if not overwrite else None
    given = given_of(source, settings, kind, label, paths, paths_in, columns, select, input_schema, input_format, earlier)
    _check(given, settings, state)
    whole = _dry if dry_run else _packed
    with _short():
        found = whole(given, settings, state, overwrite, meter)
    return dataclasses.replace(found, seconds=time.monotonic() - began, dry_run=dry_run)


@contextlib.contextmanager
def _short() -> Iterator[None]:
    """Where memory, threads or open files do not suffice: what of `pack` needs less. Raises: JobError; whatever else is raised."""
    try:
        yield
    except (AkrunnerError, MemoryError, RuntimeError, OSError) as e:
        if not shortage(e):
            raise
        what = str(e) if isinstance(e, AkrunnerError) else in_words(e)
        words = what.rpartition("; ")[0] or what
        helps = (
            f"{_OPEN_FILES} are enough (ulimit -n {_OPEN_FILES})"
            if no_files(e)
            else "threads=, shard_size= and memory= (--threads, --shard-size, --memory) that are smaller need less"
        )
        raise JobError(f"{words}; {helps}. What was packed so far is kept, and the next run goes on from there") from e


def _check(given: Given, settings: Settings, state: State) -> None:
    if given.place is not None:
        state.check_apart(given.place)
    if given.tables:
        check_columns(given.tables[0][1].schema, settings.form)
        given.said += rounded(given.tables[0][1].schema, settings.form)
    elif given.index is not None:
        given.said += rounded(pa.schema(given.index.extra), settings.form)
    if settings.resize is not None and given.kind != "images":
        raise ConfigError(f"resize= (--resize) is for images, and the input is {given.kind}")
    if settings.check == "whole" and given.kind == "images":
        pictures.check_there("check='whole' (--check whole)")
    if settings.resize is not None:
        pictures.check_there("resize= (--resize)")
    if settings.bad_rows not in ("fail", "skip"):
        filejob.check_bad_place(settings.bad_rows, given, state)


def _dry(given: Given, settings: Settings, state: State, overwrite: bool, meter: Meter) -> Packed:
    _same(given, settings, state, overwrite)
    return (
        filejob.planned_only(given, settings, state, overwrite)
        if given.is_files
        else rowjob.planned_only(given, state, overwrite)
    )


def _packed(given: Given, settings: Settings, state: State, overwrite: bool, meter: Meter) -> Packed:
    _same(given, settings, state, overwrite)
    with state.held():
        try:
            _same(given, settings, state, overwrite)
            run = filejob.packed if given.is_files else rowjob.packed
            return run(given, settings, state, overwrite, meter)
        finally:
            state.leave()


def _earlier(state: State) -> Optional[Earlier]:
    """What is packed already, as far as it says how what is new is read."""
    if state.about is None:
        return None
    table = rowjob.columns_of(state)
    ups = rowjob.ups_of(state) if table is not None else 0
    return Earlier(state.path, state.about.get("settings", {}), ups, table, filejob.extra_of(state))


def _same(given: Given, settings: Settings, state: State, overwrite: bool) -> None:
    """Raises: SinkError: what is there was packed in another way."""
    if state.about is None or overwrite:
        return
    there = state.about.get("settings", {})
    for name, value in given.kept(settings).items():
        if name in there and there[name] != value:
            raise SinkError(
                f"output: {state.path} was packed with {name}={_as_given(name, there[name])}, not {_as_given(name, value)}; give the same to add what is new{_by_directory(given, there[name]) if name == 'source' else ''}, "
                "overwrite=True (--overwrite) to pack everything anew, or another directory"
            )


def _by_directory(given: Given, before: Any) -> str:
    """What to give in place of files that come and go."""
    if given.lies is None or not isinstance(before, str) or not os.path.isabs(before) or not os.path.isabs(given.lies):
        return ""
    if os.path.realpath(before) == os.path.realpath(given.lies):
        return f" (it is the same directory: name it as {before})"
    above = os.path.commonpath([before, given.lies])
    return f" (of files that come and go a directory that holds all of them: {above})" if above != "/" else ""


def _as_given(name: str, value: Any) -> str:
    """A setting as somebody would write it."""
    if isinstance(value, dict):
        return repr(",".join(f"{key}={share:g}" for key, share in value.items()))
    if name == "resize" and value:
        return repr(f"{value[1]}x{value[0]}")
    return repr(value)
