"""What `akrunner.pack` gives back."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Packed:
    """What `pack` has done, or with `dry_run` would do.

    Attributes:
        path: the output directory.
        kind: images, texts, files or rows.
        splits: name -> rows in it, with those of earlier runs.
        rows: packed by this run (planned, of a dry run); 0: there was nothing new.
        total_rows: in the output.
        shards: files in the output.
        bytes: of these files. With `dry_run` of those that are there, and of the new ones about what they would have, uncompressed; of a table, whose rows it does not read, only of the former.
        labels: the name of each class, by its number.
        skipped: (path, why) of the broken files of the input, which are not in the output, the first 1,000.
        skipped_rows: how many there are.
        skipped_before: how many of them an earlier run had left out, and are as they were then.
        unfetched: (path, why) of files that could not be fetched, and are left out until a later run has them, the first 1,000.
        unfetched_rows: how many there are.
        warnings: what else is to be known.
        seconds: it took.
        dry_run: whether it has only looked and planned.
        label: the column of the input that has the classes, in place of which stand the columns label and label_name; "": there is none, as of folders.
    """

    path: str
    kind: str
    splits: dict[str, int]
    rows: int
    total_rows: int
    shards: int
    bytes: int
    labels: list[str]
    skipped: list[tuple[str, str]] = field(default_factory=list)
    skipped_rows: int = 0
    skipped_before: int = 0
    unfetched: list[tuple[str, str]] = field(default_factory=list)
    unfetched_rows: int = 0
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0
    dry_run: bool = False
    label: str = ""


def printable(text: str) -> str:
    """The name of a file in one line, whatever is in it: control characters are written as \\n, \\x1b."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quoted(path: str) -> str:
    """As `printable`; in quotes where a blank stands before or behind it, which nobody would see."""
    return repr(path) if path != path.strip() else printable(path)


def size_in_words(size: int) -> str:
    """ "812 bytes", "4.2 kB", "1,234.5 MB"."""
    if size < 1000:
        return counted(size, "byte")
    return f"{size / 1e3:.1f} kB" if size < 1e6 else f"{size / 1e6:,.1f} MB"


def counted(number: int, what: str) -> str:
    """ "1 file", "2,000 files"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
