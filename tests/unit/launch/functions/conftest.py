"""Fixtures for tests of what goes from a user's program to its tasks."""

from __future__ import annotations

import contextlib
import functools
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
def written(tmp_path: Path) -> Iterator[Written]:
    """Writes the modules of a user's program, from where they can be imported; afterwards none of them is imported."""
    with written_to(tmp_path) as write:
        yield write


@contextlib.contextmanager
def written_to(folder: Path) -> Iterator[Written]:
    """As the fixture `written`, of a folder."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        patched.setattr(sys, "dont_write_bytecode", True)
        yield functools.partial(_write, folder)
    for name in sys.modules.keys() - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    # `linecache.checkcache` would ask the disk about all files of which somebody has wanted a line
    for name in [name for name in linecache.cache if name.startswith(str(folder))]:
        del linecache.cache[name]


def _write(folder: Path, files: dict[str, str]) -> Callable[[str], Any]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    importlib.invalidate_caches()
    return importlib.import_module
