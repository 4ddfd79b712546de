"""`akrunner.pack`. Written by scripts/gen-options from `akrunner.options`: change that, and run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from akrunner.io.paths import PathLike
from akrunner.options.told import told
from akrunner.packing.job import run_pack
from akrunner.packing.progress import PackProgress
from akrunner.packing.result import Packed
from akrunner.packing.settings import PackArguments, Split
from akrunner.schema import Schema

__all__ = ["pack"]


@told("pack")
def pack(
    source: Any,
    output: PathLike,
    *,
    select: str | None = None,
    columns: str | Sequence[str] | None = None,
    decimals: Literal["refuse", "float64", "text", "int64"] = "refuse",
    split: Split = None,
    split_by: Literal["name", "exact"] = "name",
    input_schema: str | Schema | None = None,
    input_format: str | None = None,
    input_csv: str | Mapping[str, Any] | None = None,
    bad_rows: PathLike = "fail",
    overwrite: bool = False,
    seed: int = 0,
    kind: Literal["images", "texts", "files", "rows"] | None = None,
    label: str | None = None,
    paths: str | None = None,
    paths_in: PathLike | None = None,
    format: Literal["tfrecord", "parquet", "arrow"] = "tfrecord",
    shard_size: int | str = "128MB",
    resize: int | str | tuple[int, int] | None = None,
    check: Literal["none", "header", "whole"] = "header",
    max_file_size: int | str = "256MB",
    threads: int | None = None,
    memory: int | str = "512MB",
    verify: bool = False,
    progress: Callable[[PackProgress], None] | Literal["auto", "bar", "plain", "none", "json"] = "auto",
    dry_run: bool = False,
) -> Packed:
    """Pack files, texts or a table into shards of records: shuffled as a whole, split once, and read as `--input OUTPUT/train`.

    A run that was killed goes on when it is called again; when it is done, a later call packs only what is new.

    Args:
        source: a directory with a folder for each class; a table with a column of paths; text files; or any table.
        output: a directory, new or empty, or one that `pack` has written.
        select: for tables, as in `run`.
        columns: names for the columns of text files that stand side by side.
        decimals: what columns of decimals become, which a script cannot be given. "float64": the nearest double; "text": all
            digits, "12.50"; "int64": the number without its point, 1250 for a 12.50 of decimal(10,2), and an error if it does not
            fit; "refuse": an error, unless there are no digits behind the point.
        split: shares: "0.8,0.1,0.1" (train, validation, test), "0.8,0.2" (train, test), "train=0.9,dev=0.1", a list, a dict;
            "folders": the first folders of `source` are the splits. None: one, called all.
        split_by: name: a hash of each file's name decides, so that it is in the same split wherever it is packed, and shares are as
            even as chance has them. exact: each class has its share in every split, to within a row.
        input_schema: for tables, as in `run`.
        input_format: for tables, as in `run`. "images" and "texts", of a directory, are as `kind`; "lines" is for text files,
            whatever their names.
        input_csv: of tables, as in `run`.
        bad_rows: what becomes of broken files: fail; skip: they are left out; or a directory they are copied to.
        overwrite: pack everything anew; the old output stays valid until that is done.
        seed: seed of the order and the splits.
        kind: images, texts (a row a file), files (any bytes), rows (of tables, or lines of texts). None: by names and contents.
        label: column of classes; "none": there are no classes. None: folders, or the first of the columns label, class, labels,
            class_name and category that can have classes.
        paths: the column of paths or URLs. None: by names and values.
        paths_in: directory, or beginning of URLs, that relative paths are below. None: where the table is.
        format: format of the files that are written.
        shard_size: bytes of a file that is written, about: 128MB, 1GiB.
        resize: "WIDTHxHEIGHT", (height, width), or one number for both: images in another size, turned as EXIF says (needs Pillow).
            None: the files as they are.
        check: what is checked of each image: header; whole: it is decoded (needs Pillow); none.
        max_file_size: bytes that a file may have; a larger one counts as broken, and no more than that is read from a URL.
        threads: threads that read files. None: 16.
        memory: bytes for the shuffling of tables: 512MB, 1GiB.
        verify: read every file that is packed already, and compare its checksum with that of what was written, before anything is
            packed.
        progress: how it is shown how far the run is: bar (drawn on the terminal, in a notebook in the output of the cell), plain (a
            line on stderr now and then), json (events on stderr), none. auto: what AKRUNNER_PROGRESS says; else nothing, but in a
            notebook as bar. Or a function that is called now and then with how far it is.
        dry_run: look, plan, and write nothing.
    Returns:
        what there is now, and what was left out.
    Raises:
        ConfigError: an argument is wrong; nothing was written.
        ReadError: a file is broken.
        WriteError: a disk is full, or something else removes files while they are packed.
        JobError: there is too little memory, or too few threads or open files; the next run goes on.
    """
    return run_pack(
        PackArguments(
            source=source,
            output=output,
            select=select,
            columns=columns,
            decimals=decimals,
            split=split,
            split_by=split_by,
            input_schema=input_schema,
            input_format=input_format,
            input_csv=input_csv,
            bad_rows=bad_rows,
            overwrite=overwrite,
            seed=seed,
            kind=kind,
            label=label,
            paths=paths,
            paths_in=paths_in,
            format=format,
            shard_size=shard_size,
            resize=resize,
            check=check,
            max_file_size=max_file_size,
            threads=threads,
            memory=memory,
            verify=verify,
            progress=progress,
            dry_run=dry_run,
        ),
    )
