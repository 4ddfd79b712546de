from __future__ import annotations

from pathlib import Path
from typing import Callable, Iterator

import pytest

from akrunner.tables.local import LocalTables
from akrunner.tables.names import TableName


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


@pytest.fixture
def named() -> Callable[[str], TableName]:
    """A table's name, in the project demo."""
    return lambda text: TableName.parse(text, "demo")
