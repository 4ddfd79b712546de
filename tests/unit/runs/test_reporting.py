"""The report of a run that was kept: which file it goes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from akrunner.errors import ConfigError
from akrunner.reports import page
from akrunner.runs.reporting import report
from tests.unit.runs.conftest import Make


def test_it_goes_to_the_file_that_is_named_or_to_one_here(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "library", lambda: "")
    monkeypatch.chdir(tmp_path)
    make()
    assert report("last") == "report-r1.html" and report("r1", tmp_path / "a.html") == str(tmp_path / "a.html")
    assert (tmp_path / "report-r1.html").read_text() == (tmp_path / "a.html").read_text()


def test_what_cannot_be_is_told(make: Make, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="run 'r7'"):
        make()
        report("r7")
    with pytest.raises(ConfigError, match="output must be a path, not 7"):
        report("r1", 7)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="output: there is no directory"):
        report("r1", tmp_path / "none" / "a.html")
