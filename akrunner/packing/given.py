"""What a run of `pack` is given: files with an index, or tables; and what it finds packed already."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from akrunner.checks import is_within
from akrunner.folders.gathered import Gathered
from akrunner.io.packed import DESCRIPTION
from akrunner.io.table import TableSource
from akrunner.packing.dataset import LABELS
from akrunner.packing.index import Index, class_names
from akrunner.packing.settings import Settings

#: names of files in the output, which no split may have
OURS = (DESCRIPTION, LABELS)


@dataclass
class Given:
    """The input of a run: files with an index, or tables.

    Attributes:
        kind: images, texts, files or rows.
        place: the directory or file that is read; None: the input is neither.
        index: the index of the files; None: the input is tables.
        tables: (name, table) of each file, or of the only table.
        files: name, size and mtime of the files that the tables are read from; None: they are not read from files.
        label: the column of classes; None: there is none.
        asked: arguments that must be the same in later runs.
        said: messages for the user.
        splits: names of the splits, if folders are the splits.
        home: the directory or URL that names of files are relative to, used in place of `place`; it is the same in later runs,
            so that a file keeps its name when other files come or go.
        lies: the directory or URL that holds all files of this run.
        hint: what else a table may be meant as, in words; "": nothing.
        read_as: arguments that say how tables are read, as text; they must be the same for an unfinished run to go on.
    """

    kind: str
    place: str | None
    index: Index | None = None
    tables: Sequence[tuple[bytes, TableSource]] = ()
    files: pa.Table | None = None
    label: str | None = None
    asked: dict[str, Any] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    splits: tuple[str, ...] = ()
    home: str | None = None
    lies: str | None = None
    hint: str = ""
    read_as: dict[str, str] = field(default_factory=dict)

    @property
    def is_files(self) -> bool:
        return self.index is not None

    def kept(self, settings: Settings) -> dict[str, Any]:
        """Return the settings and arguments that must be the same in later runs."""
        return {"kind": self.kind, **settings.kept(), "source": self.home or self.place, **self.asked}

    def classes(self) -> list[str]:
        """Return the names of the files' classes, sorted."""
        assert self.index is not None
        found = class_names(self.index.table.column("\x1fclass"))
        return [str(one).lower() if isinstance(one, bool) else str(one) for one in found]


@dataclass(frozen=True)
class Earlier:
    """What is packed already, and what the new rows are added to.

    Attributes:
        place: the output directory.
        settings: what `Given.kept` returned for it.
        ups: how many levels the directory that held all files is above the one that their names are relative to.
        table: the columns of the packed tables; None: no tables are packed.
        extra: the other columns of the packed list of files; None: there are none.
    """

    place: str
    settings: Mapping[str, Any]
    ups: int = 0
    table: pa.Schema | None = None
    extra: pa.Schema | None = None

    @property
    def words(self) -> str:
        return f"what is packed in {self.place}"

    @property
    def label(self) -> str | None:
        """Return the column of classes of what is packed; None: it has none."""
        label: str | None = self.settings.get("label")
        return label

    def home_of(self, lies: str) -> str | None:
        """Return the directory that names of files were relative to, so that each file keeps its name; None: it does not fit.

        Args: lies: the directory of the new files. The old one fits if the old files lay there, or above or below it.
        """
        home = self.settings.get("source")
        if not isinstance(home, str):
            return None
        whole = os.path.normpath(os.path.join(home, *[os.pardir] * self.ups))
        return home if is_within(whole, lies) or is_within(lies, whole) else None


def files_of(names: Sequence[str], base: str | None = None) -> pa.Table:
    """Return the name, size and mtime of files. Args: base: the directory that names are relative to; None: each file's own."""
    gathered = Gathered()
    for name in names:
        about = os.stat(name)
        gathered.add(named_in(base or os.path.dirname(name), name), about.st_size, about.st_mtime_ns)
    return gathered.table()


def holding(names: Sequence[str]) -> str:
    """Return the directory, or the beginning of URLs, that all of the files are in."""
    return re.sub(r"\A(\w+):/(?!/)", r"\1://", posixpath.commonpath([posixpath.dirname(one) for one in names]))


def named_in(home: str, path: str) -> bytes:
    """Return a file's name relative to a directory."""
    return os.fsencode(os.path.relpath(path, home))
