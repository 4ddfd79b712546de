"""The name of a table, or of a part of one: `odps://project/tables/t/pt=v?start=0&end=10`."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from akrunner.checks import whole_of
from akrunner.errors import ConfigError, SinkError

SCHEME = "odps://"
#: the environment variable with the project of names that hold none
PROJECT_VARIABLE = "AKRUNNER_PROJECT"
_FORM = "odps://project/tables/name, or odps://project/tables/name/pt=value"
_WORD = re.compile(r"[A-Za-z0-9_]{1,128}\Z")
_KEY = re.compile(r"([^\W\d]\w{0,127})=(.*)\Z", re.DOTALL)
_LONGEST_VALUE = 200
#: the (key, value) pairs that name a partition
Partition = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TableName:
    """A table, or a part of it.

    Attributes:
        project, table: in lower case, because MaxCompute ignores case in names.
        partition: (key, value) pairs in the order given, keys in lower case; () for the whole table. A value may hold any
            character, `/` too.
        start, end: the range of rows, counted from 0; `end` itself is not part of it. None: from the first row, to the last
            row.
        uri: the text as the user gave it.
    """

    project: str
    table: str
    partition: Partition = ()
    start: int | None = None
    end: int | None = None
    uri: str = ""

    @classmethod
    def parse(cls, text: str, project: str | None = None) -> TableName:
        """Parse `odps://project/tables/t[/pt=v[/pt2=v2]][?start=A&end=B]`; `t` or `project.t` may stand for
        `odps://project/tables/t`.

        Args:
            project: the project of a name that holds none.
        Raises:
            ConfigError: "invalid odps table path ...", with the reason.
        """
        if not isinstance(text, str):
            raise ConfigError(f"a table's name must be text, not {type(text).__name__}")
        path, _, query = text.partition("?")
        if "\0" in text or len(text) > 8192:
            raise _invalid(text, "it has a NUL byte in it" if "\0" in text else "it is too long")
        path = path.strip()
        if path.lower().startswith(SCHEME):
            parts = path[len(SCHEME) :].split("/")
            if len(parts) < 3 or parts[1].lower() != "tables":
                raise _invalid(text, f"it must be {_FORM}")
            owner, table, rest = parts[0], parts[2], parts[3:]
        elif "://" in path.partition("=")[0]:
            raise _invalid(text, f"it must begin with {SCHEME}")
        else:
            first, *rest = path.split("/")
            owner, dot, table = first.rpartition(".")
            owner = owner if dot else project or ""
            if not owner:
                raise _invalid(text, f"it says no project; give one (--project, {PROJECT_VARIABLE}), or write {_FORM}")
        for what, word in (("project", owner), ("table", table)):
            if not _WORD.match(word):
                raise _invalid(text, f"{_shown(word)} is no name of a {what}: letters, digits and _ only")
        start, end = _range(text, query)
        return cls(owner.lower(), table.lower(), _partition(text, rest), start, end, text)

    def same(self, other: TableName) -> bool:
        """Whether both names mean the same table or partition; ranges of rows are ignored."""
        return (self.project, self.table, sorted(self.partition)) == (other.project, other.table, sorted(other.partition))

    def for_output(self) -> TableName:
        """Return the name itself.

        Raises:
            SinkError: the name holds a range of rows, which can only be read.
        """
        if self.start is not None or self.end is not None:
            raise SinkError(f"output: {self}: rows are added, or replace all of it (--overwrite); leave out ?start= and end=")
        return self

    def for_sql(self) -> TableName:
        """Return the name itself.

        Raises:
            ConfigError: the name holds a partition or a range of rows, for which SQL has its own clauses.
        """
        if self.partition or self.start is not None or self.end is not None:
            raise ConfigError(
                f"sql: {self} is a part of a table; name the table, and say which rows with WHERE or PARTITION (...)"
            )
        return self

    @property
    def whole(self) -> TableName:
        """Return the name of the whole table."""
        return TableName(self.project, self.table, uri=f"{SCHEME}{self.project}/tables/{self.table}")

    def at(self, partition: Partition) -> TableName:
        """Return the name of another partition of the same table."""
        uri = "/".join([self.whole.uri, *(f"{key}={value}" for key, value in partition)])
        return TableName(self.project, self.table, partition, uri=uri)

    def rows(self, count: int) -> tuple[int, int]:
        """Return (first, behind the last): the rows that `start` and `end` select from a table with `count` rows."""
        first = min(self.start or 0, count)
        return first, max(first, min(self.end if self.end is not None else count, count))

    @property
    def sql(self) -> str:
        """Return the name of the table in SQL: `project.table`."""
        return f"{self.project}.{self.table}"

    def __str__(self) -> str:
        return self.uri or self.at(self.partition).uri


def check_project(word: str) -> str:
    """Return `word` if it can be the name of a project.

    Raises:
        ConfigError: it cannot.
    """
    if not _WORD.match(word):
        raise ConfigError(f"{_shown(word)} is no name of a project: letters, digits and _ only")
    return word


def is_table(text: object) -> bool:
    """Whether a source or an output is the name of a table, and not a path."""
    return isinstance(text, str) and text[: len(SCHEME)].lower() == SCHEME


def project_of(given: str | None = None) -> str | None:
    """Return the project of names that hold none: `given`, else the environment's, else None."""
    return given or os.environ.get(PROJECT_VARIABLE) or None


def _partition(text: str, parts: list[str]) -> Partition:
    found: list[tuple[str, str]] = []
    while parts and not parts[-1]:
        parts = parts[:-1]
    for part in parts:
        match = _KEY.match(part)
        if match is None and found:
            # a part without a key belongs to the value before it, which holds a slash
            found[-1] = found[-1][0], f"{found[-1][1]}/{part}"
        elif match is None:
            raise _invalid(text, f"{_shown(part)} is no partition: write key=value")
        else:
            found.append((match[1].lower(), match[2]))
    keys = [key for key, _ in found]
    if len(set(keys)) < len(keys):
        raise _invalid(text, f"it names the partition column {next(key for key in keys if keys.count(key) > 1)} twice")
    return tuple((key, check_value(text, key, unquoted(value))) for key, value in found)


def check_value(text: str, key: str, value: str) -> str:
    """Return `value` if a partition column can have it; `text` is the name it comes from, for the message.

    Raises:
        ConfigError: the value is empty, too long, or holds a NUL.
    """
    if not value:
        raise _invalid(text, f"the partition column {key} has no value")
    if len(value.encode("utf-8", "surrogatepass")) > _LONGEST_VALUE or "\0" in value:
        raise _invalid(
            text, f"the value of the partition column {key} is longer than {_LONGEST_VALUE} bytes, or has a NUL in it"
        )
    return value


def unquoted(value: str) -> str:
    """Return a value without the quotes around it: people write quotes in names, as they do in SQL."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def _range(text: str, query: str) -> tuple[int | None, int | None]:
    found: dict[str, int | None] = {"start": None, "end": None}
    for pair in filter(None, query.split("&")):
        key, _, value = pair.partition("=")
        if key not in found:
            raise _invalid(text, f"behind ? stand start= and end=, not {_shown(key)}")
        if found[key] is not None:
            raise _invalid(text, f"it says {key}= twice")
        found[key] = whole_of(value)
        if found[key] is None:
            raise _invalid(text, f"{key}= must be a number of a row, not {_shown(value)}")
    start, end = found["start"], found["end"]
    if start is not None and end is not None and end < start:
        raise _invalid(text, f"its end ({end}) comes before its start ({start})")
    return start, end


def _invalid(text: str, why: str) -> ConfigError:
    return ConfigError(f"invalid odps table path {_shown(text)}: {why}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "...")
