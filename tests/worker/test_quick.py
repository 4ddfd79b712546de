"""The import of TensorFlow without the collector, of a module that has its name here."""

from __future__ import annotations

import gc
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from akrunner.worker import quick

NAME = "imported_quickly"


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(quick, "_NAME", NAME)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield
    gc.unfreeze()
    sys.modules.pop(NAME, None)
    assert gc.isenabled()


@pytest.mark.slow
def test_nothing_is_collected_meanwhile(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.py").write_text("import gc\ncollects = gc.isenabled()\n")
    before = list(sys.meta_path)
    quick.import_quickly()
    quick.import_quickly()
    assert len(sys.meta_path) == len(before) + 1
    assert importlib.util.find_spec(NAME) is not None and len(sys.meta_path) == len(before) + 1, "only asked"
    frozen = gc.get_freeze_count()
    module = importlib.import_module(NAME)
    assert not module.collects and gc.isenabled() and gc.get_freeze_count() > frozen
    assert sys.meta_path == before and module.__spec__.loader is module.__loader__ and "quick" not in repr(module.__loader__)
    quick.import_quickly()
    assert sys.meta_path == before, "it is imported already"


def test_one_that_cannot_be_imported(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.py").write_text("raise ValueError('no')\n")
    before = list(sys.meta_path)
    quick.import_quickly()
    with pytest.raises(ValueError, match="no"):
        importlib.import_module(NAME)
    assert sys.meta_path == before


@pytest.mark.slow
def test_one_that_is_not_there() -> None:
    quick.import_quickly()
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(NAME)
