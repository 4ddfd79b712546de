"""Where the cluster of `akrunner flink start` keeps its files."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from akrunner.cli import flink


def test_its_directory_is_its_users_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "akrunner" / "flink"
    folder.mkdir(parents=True, mode=0o755)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert flink.running_cluster() is None
    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o700, 0o700]


def test_without_one_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "akrunner").write_text("no directory")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    said = CliRunner().invoke(flink.app, ["start"])
    assert said.exit_code == 2 and "XDG_STATE_HOME" in said.output
    assert CliRunner().invoke(flink.app, ["stop"]).output == "no cluster is running\n"
