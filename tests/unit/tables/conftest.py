from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.leftovers import keeper
from akrunner.tables import statements
from akrunner.tables.ddl import parse_create
from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName

Laid = Callable[[str, str], None]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaves_nothing: Path) -> Iterator[Path]:
    """The directory of the local tables; afterwards nothing half-written is in it."""
    root = tmp_path / "tables"
    monkeypatch.setenv("AKRUNNER_TABLES", str(root))
    monkeypatch.delenv("AKRUNNER_PROJECT", raising=False)
    yield root
    assert not [path for path in root.rglob("*.partial")]


@pytest.fixture
def store(root: Path) -> LocalTables:
    return LocalTables(str(root))


@pytest.fixture(scope="module")
def _tables_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """(statements, project) -> a directory with the tables that they make. Nobody writes there."""
    made: dict[str, Path] = {}

    def of(text: str, project: str) -> Path:
        if text not in made:
            folder = tmp_path_factory.mktemp("laid") / "tables"
            statements.run(text, lambda _: LocalTables(str(folder)), project)
            made[text] = folder
        return made[text]

    return of


@pytest.fixture
def laid(root: Path, _tables_of: Callable[[str, str], Path]) -> Laid:
    """Lay down the tables that statements of a project make: a copy for each test, and they are run for the first."""
    return lambda text, project: shutil.copytree(_tables_of(text, project), root, symlinks=True) and None


@pytest.fixture
def named() -> Callable[[str], TableName]:
    """A table's name, in the project demo."""
    return lambda text: TableName.parse(text, "demo")


class _Unguarded(keeper._Keeper):
    """Knows what is held, and has no guard."""

    def _start(self) -> None:
        """A guard would be a process."""


@pytest.fixture
def unguarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temp directory of its own. No process is started; afterwards nothing is held, and nothing is in it."""
    temp = tmp_path / "temp"
    temp.mkdir()
    held = _Unguarded()
    monkeypatch.setattr(keeper, "_keepers", [held])
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(temp))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield temp
    assert not held._held.lines() and not list(temp.iterdir())


@pytest.fixture
def plain(tmp_path: Path, unguarded: Path) -> Iterator[LocalTables]:
    """Tables of this machine, for a test that starts no process; afterwards nothing half-written is among them."""
    store = LocalTables(str(tmp_path / "plain"))
    yield store
    assert not [path for path in Path(store.place).rglob("*.partial")]


def made(store: LocalTables, sql: str, **columns: list[Any]) -> TableName:
    """Make the table of a CREATE TABLE in the project demo. Args: columns: rows for it. Returns: its name."""
    create = parse_create(sql)
    assert create.info is not None
    name = TableName.parse(create.table, "demo")
    store.create(name, create.info)
    if columns:
        put(store, name, **columns)
    return name


def put(store: LocalTables, name: TableName, overwrite: bool = False, **columns: list[Any]) -> None:
    """Write rows to a table, or to the partition that is named."""
    info = store.describe(name)
    output = store.output(name, overwrite)
    output.part("0").write(
        pa.record_batch({key: pa.array(rows, info.columns.field(key).type) for key, rows in columns.items()})
    )
    output.commit()


def rows(store: LocalTables, name: TableName, columns: list[str] | None = None) -> list[tuple[Any, ...]]:
    """All rows of a table, as they are read."""
    return [row for batch in store.read(name, columns) for row in zip(*batch.to_pydict().values())]
