"""Fixtures for tests of what goes from a user's program to its tasks."""

from __future__ import annotations

import importlib
import linecache
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

#: path -> text of each file of a program; returns what imports one of its modules by name
Written = Callable[[dict[str, str]], Callable[[str], Any]]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """Writes the modules of a user's program, from where they can be imported; afterwards none of them is imported."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(files: dict[str, str]) -> Callable[[str], Any]:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module

    yield write
    for name, module in list(sys.modules.items()):
        if name not in before and str(tmp_path) in str(getattr(module, "__file__", "")):
            del sys.modules[name]
    linecache.checkcache()
