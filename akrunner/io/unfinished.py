"""What all kinds of destinations share: the name of an output that is not complete yet, and which outputs may be replaced."""

from __future__ import annotations

import posixpath
import uuid

from akrunner.errors import SinkError, WriteError
from akrunner.foreign import redacted

#: endings of names of files that programs are still writing, and rename when they are complete
ENDINGS = (".tmp", ".temp", ".part", ".partial", ".inprogress", ".crdownload", ".swp", "~")
#: beginnings of names that list no data
HIDDEN = (".", "_")


def is_passed_over(name: str) -> bool:
    """Whether a file's name, without directories, says that it is no data, or none yet."""
    return name.startswith(HIDDEN) or name.endswith(ENDINGS)


def partial_of(target: str) -> str:
    """Return the name that an output has until it is complete."""
    folder, name = posixpath.split(target.rstrip("/"))
    # file names are limited to 255 bytes
    return posixpath.join(folder, f".{name[:50]}.{uuid.uuid4().hex[:8]}.partial")


def is_partial(name: str) -> bool:
    """Whether a name is one that `partial_of` returns, so that a job may still be writing the file."""
    return name.startswith(".") and name.endswith(".partial")


def exists_already(shown: str) -> SinkError:
    return SinkError(f"output: {redacted(shown)} exists; give overwrite=True (--overwrite) to replace it")


def folder_exists_already(shown: str) -> SinkError:
    return SinkError(
        f"output: {redacted(shown)} exists; give overwrite=True (--overwrite) to replace it, or append=True (--append) to add "
        "files to it"
    )


def is_directory(shown: str) -> SinkError:
    return SinkError(f"output: {redacted(shown)} is a directory; name a file in it, or end it in / for a file of each task")


def is_file(shown: str) -> SinkError:
    return SinkError(f"output: {redacted(shown)} is a file; leave out the / at its end, or name a directory")


def came_meanwhile(shown: str) -> WriteError:
    return WriteError(
        f"output: {redacted(shown)} was created by somebody else while the job ran, and was left as it is (overwrite=, "
        "--overwrite)"
    )


def check_still_ours(shown: str, held: list[str]) -> None:
    """Check once more, before the files of a directory are replaced, what came into it while the job ran.

    Raises:
        WriteError: no job wrote one of the files.
    """
    try:
        check_ours(shown, held)
    except SinkError as e:
        raise WriteError(f"{e}. It came while the job ran, and nothing was replaced") from None


def check_ours(shown: str, held: list[str]) -> None:
    """Check the files of a directory that an output would replace, as a user might have named a home directory.

    Raises:
        SinkError: no job wrote one of the files, or they are those of a lakehouse table.
    """
    # all formats, and fsspec, which the process of a database's file does without
    from akrunner.io import formats

    for path in held:
        name = posixpath.basename(path)
        if "_delta_log" in path.split("/") or name.endswith(".metadata.json"):
            raise SinkError(
                f"output: {redacted(shown)} holds a Delta or an Iceberg table, or a part of one, which no files can replace; write "
                "to the table itself, or to another place"
            )
        form = formats.format_of(name)
        is_table = form is not None and not formats.named(form).doubtful
        if not (name.startswith(("part-", "_")) or is_table or name.endswith((".crc", ".partial"))):
            raise SinkError(
                f"output: {redacted(shown)} holds what no job has written ({name}); overwrite= (--overwrite) replaces a "
                "directory as a whole, and append= (--append) adds to a table, so they take none but directories of tables"
            )
