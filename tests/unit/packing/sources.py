"""What the tests of `pack`'s sources share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from akrunner.folders.gathered import NAME
from akrunner.packing.given import Earlier, Given
from akrunner.packing.settings import PackArguments, settings_of
from akrunner.packing.source import given_of


def given(source: Any, earlier: Earlier | None = None, **options: Any) -> Given:
    asked = PackArguments(source, "out", **options)
    return given_of(asked, settings_of(asked), earlier)


def files(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def names(of: Given) -> list[bytes]:
    assert of.index is not None
    return sorted(of.index.table.column(NAME).to_pylist())


def rows(of: Given) -> list[dict[str, Any]]:
    return [row for _, table in of.tables for batch in table.batches() for row in batch.to_pylist()]
