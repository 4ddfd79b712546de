"""Turns a directory of files, with a folder for each class, into an index of the files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.arrays import array_of, octets_of
from akrunner.checks import counted
from akrunner.errors import SourceError
from akrunner.folders import images
from akrunner.folders.gathered import NAME, text_of
from akrunner.folders.listing import (
    SOME_ENDING,
    SPLITS,
    TEXTS,
    folders_of,
    inside_of,
    links_to_nothing,
    matching,
    matching_pattern,
    splits_among,
    start_of,
)
from akrunner.folders.words import quoted
from akrunner.foreign import redacted
from akrunner.io.formats import BUILT_IN
from akrunner.packing.index import CLASS, Index

_SHOWN = 3


def kind_of(table: pa.Table, source: str) -> str:
    """Return what a directory holds, by the names of its files: "images", "texts" or "rows" (tables).

    Raises: SourceError: it holds none of these.
    """
    if not table.num_rows:
        raise SourceError(f"source: there are no files in {redacted(source)}")
    tables = tuple(ending for form in BUILT_IN if not form.doubtful for ending in form.endings)
    for kind, endings in (("images", images.ENDINGS), ("rows", tables), ("texts", TEXTS)):
        if matching(table, endings).any():
            return kind
    first = min(text_of(table.column(NAME)).to_pylist())
    raise SourceError(
        f"source: by their names, the files in {redacted(source)} are no images, texts or tables ({first} ...); kind= "
        "(--kind) says what they are: images, texts, rows (of tables), or files, which are packed as they are"
    )


def index_of(table: pa.Table, base: str | None, kind: str, source: str, classes: bool, by_folder: bool) -> Index:
    """Return the index of a directory's files of one kind, with their classes.

    Args:
        table: the files of the directory, as `listed` returns them.
        base: the directory; None: it is a URL.
        kind: images, texts or files.
        source: the directory as it was given.
        classes: whether folders are classes.
        by_folder: whether the first folders are splits, and folders of classes are below them.
    Raises:
        SourceError: there are no files; files lie beside the folders of classes or splits; or all folders have names of splits.
    """
    mask = (
        matching(table, {"images": images.ENDINGS, "texts": TEXTS}[kind])
        if kind != "files"
        else np.ones(table.num_rows, np.bool_)
    )
    if not mask.any():
        # no name fits the kind that the user gave, who knows better than the names: take all files
        mask[:] = True
    # a link to nothing may have led to an image, or to a folder of images, unless its name says something else
    lost = links_to_nothing(table) if base is not None else np.zeros(table.num_rows, np.bool_)
    mask |= lost & ~matching_pattern(table, SOME_ENDING)
    others = table.column(NAME).filter(array_of(~mask))
    others = others.take(pc.sort_indices(others))
    taken = table if mask.all() else table.filter(array_of(mask))
    if not taken.num_rows:
        raise SourceError(f"source: there are no files in {redacted(source)}")
    start = start_of(base, source)
    if by_folder:
        _check_splits(taken, start, source)
    column: Any = pa.chunked_array([pa.nulls(taken.num_rows, pa.string())])
    if classes:
        found = pa.chunked_array([folders_of(inside_of(chunk, start), by_folder) for chunk in taken.column(NAME).chunks])
        known = array_of(~lost[mask])
        _check_classes(taken.filter(known), start, found.filter(known), source, by_folder)
        column = found if found.null_count < len(found) else column
    index = Index(taken.append_column(CLASS, column), base, text_of(others[:_SHOWN]).to_pylist(), len(others), start=start)
    return index


def _check_splits(table: pa.Table, start: int, source: str) -> None:
    """Raise a SourceError if files lie beside the folders of splits."""
    beside = [
        name
        for chunk in table.column(NAME).chunks
        for name in inside_of(chunk, start).filter(_is_first(chunk, start)).to_pylist()
    ]
    if beside:
        one = len(beside) == 1
        raise SourceError(
            f"source: {counted(len(beside), 'file')} {'lies' if one else 'lie'} beside the folders of splits in "
            f"{redacted(source)} ({_few(sorted(beside))}): move {'it' if one else 'each'} into one of them, or out of the input"
        )


def _is_first(names: pa.Array, start: int) -> pa.Array:
    """Return which names have no folder [rows]."""
    return pc.invert(pc.match_substring(inside_of(names, start), "/"))


def _few(names: Sequence[str]) -> str:
    """Return the first few names as text, for a message."""
    return ", ".join(map(quoted, names[:_SHOWN])) + (" ..." if len(names) > _SHOWN else "")


def _check_classes(table: pa.Table, start: int, found: pa.ChunkedArray, source: str, by_folder: bool) -> None:
    if 0 < found.null_count < len(found):
        beside = inside_of(table.column(NAME).filter(found.is_null()), start).to_pylist()
        raise SourceError(
            f"source: {counted(len(beside), 'file')} {'lies' if len(beside) == 1 else 'lie'} beside the folders of classes in "
            f"{redacted(source)} ({_few(sorted(beside))}): move each into the folder of its class, or pack them without "
            "classes: label='none' (--label none)"
        )
    names = pc.unique(found).to_pylist()
    splits = [] if by_folder or None in names else splits_among(names)
    if splits:
        raise SourceError(
            f"source: the folders {', '.join(splits)} are splits by their names, not classes; split='folders' "
            "(--split folders) takes them so"
        )


def odd_classes(index: Index, classes: list[str], source: str) -> list[str]:
    """Return warnings about folders that may have been taken for classes by mistake, or are empty.

    Args: classes: the classes that have files; source: the directory as it was given.
    """
    said = []
    shown_source = redacted(source)
    if index.base is not None and classes:
        with os.scandir(index.base) as entries:
            there = sorted(os.fsencode(one.name) for one in entries if not one.name.startswith(".") and one.is_dir())
        shown = text_of(octets_of(there, pa.large_binary())).to_pylist()
        empty = [name for name in shown if name not in classes]
        if empty:
            said.append(
                f"{counted(len(empty), 'folder')} of {shown_source} {'has' if len(empty) == 1 else 'have'} nothing to pack, "
                f"and {'is' if len(empty) == 1 else 'are'} no class: {_few(empty)}"
            )
    if len(classes) == 1:
        below = _seconds(index.table, index.start, all_=False)
        if len(below) > 1:
            said.append(
                f"all files are of one class, {classes[0]!r}, as the first folders are the classes; if those in it are "
                f"({_few(below)}), pack {os.path.join(shown_source, classes[0])}"
            )
    elif len(classes) > 1 and len(below := _seconds(index.table, index.start, all_=True)) > 1:
        said.append(
            f"the first folders are the classes ({_few(classes)}), and each of them has the same folders ({_few(below)}): if "
            f"those are the classes, pack {os.path.join(shown_source, classes[0])} and the others each into an output of its "
            "own; if the first folders are splits, split='folders' (--split folders) takes them so"
        )
    return said


def odd_splits(index: Index, source: str) -> list[str]:
    """Return warnings about folders that may have been taken for splits by mistake, as none is called as a split.

    Args: source: the directory as it was given.
    Raises: SourceError: there are no folders in them either, so that there would be no classes.
    """
    names = folder_splits(index)
    if any(name.lower() in SPLITS for name in names):
        return []
    shown, few = redacted(source), _few(names)
    # a link to nothing beside folders of classes has none, and says nothing about them
    known = index.table.filter(index.table.column(CLASS).is_valid())
    if not known.num_rows:
        raise SourceError(
            f"source: split='folders' (--split folders) makes splits of the folders of {shown} ({few}), and there would be no "
            "classes, as there are no folders in them: leave split= (--split) out if they are the classes; label='none' "
            "(--label none) packs them as splits without classes"
        )
    if _seconds(known, index.start, all_=True):
        return []
    return [
        f"the folders of {shown} ({few}) are the splits, and the folders in them the classes; if the former are the classes, "
        "leave split= (--split) out"
    ]


def _seconds(table: pa.Table, start: int, all_: bool) -> list[str]:
    """Return the names of the second-level folders, sorted, if every first-level folder has the same ones; else an empty list.

    Args: all_: whether to return an empty list also if a file lies directly in a first-level folder.
    """
    found: dict[str, set[str]] = {}
    for chunk in table.column(NAME).chunks:
        inside = inside_of(chunk, start)
        pairs = pc.struct_field(pc.extract_regex(inside, r"\A(?P<c>[^/]+/[^/]+)/"), "c")
        if all_ and pairs.null_count:
            return []
        for pair in pc.unique(pairs).drop_null().to_pylist():
            first, _, second = pair.partition("/")
            found.setdefault(first, set()).add(second)
    below = list(found.values())
    return sorted(below[0]) if below and all(one == below[0] for one in below) else []


def first_folders(table: pa.Table, start: int) -> pa.Array:
    """Return the first folder of each file [rows]. Args: start: the index's `start`."""
    return folders_of(inside_of(table.column(NAME), start))


def folder_splits(index: Index) -> list[str]:
    """Return the names of the first folders of a directory, which are its splits, sorted."""
    return sorted(map(str, pc.unique(first_folders(index.table, index.start)).to_pylist()))
