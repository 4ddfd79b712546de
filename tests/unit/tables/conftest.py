from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from akrunner.tables import statements
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
