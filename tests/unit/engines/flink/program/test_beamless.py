"""A package whose own code runs later: its modules come without it, and who wants what it defines gets that."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from akrunner.engines.flink.program.beamless import import_later

PACKAGE = """
import sys
sys.counted.append("ran")
FAST = True
from flinkish.inner import words
"""
USES = "from flinkish import inner\nFAST = inner.FAST\n"


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Has an entry for each time the package's code ran."""
    folder = tmp_path / "flinkish" / "inner"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("")
    (folder.parent / "plain.py").write_text("")
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "words.py").write_text("SAID = 'hello'\n")
    (folder / "uses.py").write_text(USES)
    counted: list[str] = []
    monkeypatch.setattr(sys, "counted", counted, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield counted
    for name in [name for name in sys.modules if name.partition(".")[0] == "flinkish"]:
        del sys.modules[name]


def module(name: str) -> Any:
    return importlib.import_module(name)


def test_modules_come_without_the_packages_code(ran: list[str]) -> None:
    import_later("flinkish.inner")
    # as PyFlink says it
    exec("from flinkish.inner import words", names := {})  # type: ignore[var-annotated]
    assert names["words"].SAID == "hello" and ran == []
    assert module("flinkish").inner is module("flinkish.inner") and module("flinkish.inner").words is names["words"]


def test_it_runs_once_when_what_it_defines_is_wanted(ran: list[str]) -> None:
    import_later("flinkish.inner")
    assert module("flinkish.inner.uses").FAST is True and ran == ["ran"]
    assert module("flinkish.inner").FAST is True and ran == ["ran"]


def test_what_it_does_not_define_is_an_attribute_error(ran: list[str]) -> None:
    import_later("flinkish.inner")
    inner = module("flinkish.inner")
    assert not hasattr(inner, "__wrapped__") and ran == []
    with pytest.raises(AttributeError, match=r"^module 'flinkish.inner' has no attribute 'SLOW'$"):
        inner.SLOW  # noqa: B018
    assert ran == ["ran"] and not hasattr(inner, "SLOW") and ran == ["ran"]


def test_what_is_imported_already_stays(ran: list[str]) -> None:
    there = module("flinkish.inner")
    import_later("flinkish.inner")
    assert module("flinkish.inner") is there and ran == ["ran"]


def test_what_is_not_there_is_left_alone(ran: list[str]) -> None:
    import_later("flinkish.outer")
    assert "flinkish.outer" not in sys.modules
    import_later("flinkish.plain")
    assert "flinkish.plain" not in sys.modules, "a module, not a package"
