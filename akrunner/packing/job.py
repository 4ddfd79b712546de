"""The course of a run of `akrunner.pack`: it finds out what there is to pack and what of it is new, and packs files or tables.

::

    source -> Given (files, or tables) -> State: an unfinished part is finished, then new files become a part -> published
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from akrunner.checks import check_flag, check_path, is_within, shown
from akrunner.errors import AkrunnerError, ConfigError, JobError, ReadError, SinkError, WriteError
from akrunner.foreign import in_words, ours, shortage
from akrunner.io.paths import local_path
from akrunner.options import called
from akrunner.outcomes import failure
from akrunner.packing import filejob, pictures, rowjob
from akrunner.packing.cell import PackCell
from akrunner.packing.described import check_columns, rounded, wider
from akrunner.packing.given import Earlier, Given
from akrunner.packing.progress import Meter, PackProgress, view_of
from akrunner.packing.result import Packed, needs_less, told
from akrunner.packing.settings import PackArguments, Settings, settings_of, splits_of
from akrunner.packing.source import given_of
from akrunner.packing.state import State
from akrunner.progress import events
from akrunner.progress.rates import Window
from akrunner.screens import programs
from akrunner.screens.programs import CELL
from akrunner.screens.ways import AUTO, NONE

#: the splits, with their shares, if the user gives none
_NO_SPLIT = dict(zip(*splits_of(None)))


def run_pack(asked: PackArguments) -> Packed:
    """Do what `akrunner.pack` does. Raises: what `akrunner.pack` raises."""
    if callable(asked.progress):
        return _run(asked, asked.progress)
    if not isinstance(asked.progress, str | None):
        raise ConfigError(f"progress must be a word, or a function that takes a PackProgress, not {shown(asked.progress)}")
    way = programs.chosen(asked.progress or AUTO)
    if way == CELL:
        with PackCell(asked.output) as cell:
            return _run(asked, cell.progress)
    if way == NONE:
        return _run(asked, None)
    packed = Window()
    with programs.display(way, f"pack {asked.output}") as display:
        try:
            done = _run(asked, lambda how_far: display.show(view_of(how_far, packed)))
        except BaseException as e:
            display.tells(events.END, failure(e))
            raise
        display.tells(events.END, {"output": done.path, **told(done)})
        return done


def _run(asked: PackArguments, progress: Callable[[PackProgress], None] | None) -> Packed:
    began = time.monotonic()
    settings = settings_of(asked)
    overwrite, dry_run = asked.overwrite, asked.dry_run
    check_flag("overwrite", overwrite)
    check_flag("dry_run", dry_run)
    check_flag("verify", asked.verify)
    if asked.verify and overwrite:
        raise ConfigError(
            "verify= (--verify) compares what is packed, and overwrite= (--overwrite) packs it anew; give one of them"
        )
    state = State(local_path(check_path("output", asked.output, SinkError), "output", "name one, and copy it afterwards"))

    def tell(how_far: PackProgress) -> None:
        with ours(ConfigError, "progress: the function raised"):
            if progress is not None:
                progress(how_far)

    meter = Meter(tell if progress is not None else None)
    meter.starts("listing")
    with _short():
        with _of_output(state, SinkError):
            if not overwrite:
                state.check_files(asked.verify)
            earlier = _earlier(state) if not overwrite else None
        given = given_of(asked, settings, earlier)
        whole = _dry if dry_run else _packed
        with _warned(given), pictures.quiet():
            _check(asked, given, settings, state)
            with _of_output(state, WriteError):
                found = whole(given, settings, state, overwrite, meter)
    return dataclasses.replace(found, seconds=time.monotonic() - began, dry_run=dry_run)


@contextlib.contextmanager
def _warned(given: Given) -> Iterator[None]:
    """Add the warnings about an input to an error that leaves the block: they may say what has led to it."""
    try:
        yield
    except AkrunnerError as e:
        for said in given.said:
            # an error's own words may contain it already
            if said not in str(e):
                e.add_note(f"before that: {said}")
        raise


@contextlib.contextmanager
def _of_output(state: State, kind: type[AkrunnerError]) -> Iterator[None]:
    """Turn an OSError that no other code has handled into an error of akrunner's.

    It becomes an error of the output, of type `kind`; but if it names a file that is not below the output, a ReadError.
    """
    try:
        yield
    except OSError as e:
        place = os.fsdecode(e.filename) if isinstance(e.filename, (str, bytes)) else state.path
        mine = is_within(os.path.realpath(place), state.path)
        with ours(
            kind if mine else ReadError,
            f"{'output: cannot read or write' if mine else 'source: cannot read'} {place}",
            at=place,
        ):
            raise


@contextlib.contextmanager
def _short() -> Iterator[None]:
    """If memory, threads or open files run out, raise a JobError that says which options need less; pass on other errors."""
    try:
        yield
    except (AkrunnerError, MemoryError, RuntimeError, OSError, pa.ArrowException) as e:
        if not shortage(e):
            raise
        what = str(e) if isinstance(e, AkrunnerError) else in_words(e)
        words = what.rpartition("; ")[0] or what
        raise JobError(f"{words}; {needs_less(e)}. What was packed so far is kept, and the next run goes on from there") from e


def _check(asked: PackArguments, given: Given, settings: Settings, state: State) -> None:
    if given.place is not None:
        state.check_apart(given.place)
    if given.tables:
        check_columns(given.tables[0][1].schema, settings.form)
        given.said += _told_of(given.tables[0][1].schema, settings.form)
    elif given.index is not None:
        given.said += _told_of(pa.schema(given.index.extra), settings.form)
    if given.kind != "images":
        _check_idle(asked, ("resize", "check"), f"is for images, and the input is {given.kind}")
    if not given.is_files:
        idle = f"is for files that are a row each, and the input is {given.kind}: one that cannot be read is an error{f'; {given.hint}' if given.hint else ''}"
        _check_idle(asked, ("bad_rows", "max_file_size"), idle)
    if settings.check == "whole" and given.kind == "images":
        pictures.check_there("check='whole' (--check whole)")
    if settings.resize is not None:
        pictures.check_there("resize= (--resize)")
    if settings.bad_rows not in ("fail", "skip"):
        filejob.check_bad_place(settings.bad_rows, given, state)


def _told_of(schema: pa.Schema, form: str) -> list[str]:
    return [*rounded(schema, form), *wider(schema, form)]


def _check_idle(asked: PackArguments, names: Sequence[str], why: str) -> None:
    """Raise a ConfigError if an option was given that means nothing for this input.

    Args: names: the options; why: half a sentence.
    """
    for name in names:
        if getattr(asked, name) != getattr(PackArguments, name):
            raise ConfigError(f"{called(name)} {why}")


def _dry(given: Given, settings: Settings, state: State, overwrite: bool, meter: Meter) -> Packed:
    _same(given, settings, state, overwrite)
    given.said += state.lost()
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
            given.said += state.mended()
            run = filejob.packed if given.is_files else rowjob.packed
            return run(given, settings, state, overwrite, meter)
        finally:
            state.leave()


def _earlier(state: State) -> Earlier | None:
    """Return what is packed already, as far as it decides how new files are read; None: nothing is."""
    if state.about is None:
        return None
    table = rowjob.columns_of(state)
    ups = rowjob.ups_of(state) if table is not None else 0
    return Earlier(state.path, state.about.get("settings", {}), ups, table, filejob.extra_of(state))


def _same(given: Given, settings: Settings, state: State, overwrite: bool) -> None:
    """Raise a SinkError if the output was packed with other settings than this run's, unless this run overwrites it."""
    if state.about is None or overwrite:
        return
    there, now = state.about.get("settings", {}), given.kept(settings)
    odd = [name for name, value in now.items() if name in there and there[name] != value]
    if "split" in odd and "folder" in (there.get("split_by"), now["split_by"]):
        # no user gives this value: split='folders' (--split folders), which is named already, makes it
        odd.remove("split_by")
    if odd:
        raise SinkError(
            f"output: {state.path} was packed {'; '.join(_not_the_same(name, there[name], now[name]) for name in odd)}; "
            f"give the same to add what is new{_by_directory(given, there['source']) if 'source' in odd else ''}, "
            "overwrite=True (--overwrite) to pack everything anew, or another directory"
        )


def _not_the_same(name: str, before: Any, now: Any) -> str:
    """Return in words how a setting differs from the one that the output was packed with."""
    if name == "split" and before == _NO_SPLIT:
        return f"without split= (--split), and now split={_as_given(name, now)} is given"
    if name == "split" and now == _NO_SPLIT:
        return f"with split={_as_given(name, before)}, and now no split is given (--split)"
    return f"with {name}={_as_given(name, before)}, not {_as_given(name, now)}"


def _by_directory(given: Given, before: Any) -> str:
    """Return advice on which directory to give in place of single files that come and go; "": none."""
    if given.lies is None or not isinstance(before, str) or not os.path.isabs(before) or not os.path.isabs(given.lies):
        return ""
    if os.path.realpath(before) == os.path.realpath(given.lies):
        return f" (it is the same directory: name it as {before})"
    above = os.path.commonpath([before, given.lies])
    return f" (of files that come and go a directory that holds all of them: {above})" if above != "/" else ""


def _as_given(name: str, value: Any) -> str:
    """Return a setting as a user would write it."""
    if isinstance(value, dict):
        return repr(",".join(f"{key}={share:g}" for key, share in value.items()))
    if name == "resize" and value:
        return repr(f"{value[1]}x{value[0]}")
    return repr(value)
