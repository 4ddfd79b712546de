"""What a job that has failed keeps: its logs, for its user only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from akrunner.engines import workdir
from akrunner.errors import ConfigError
from akrunner.schema import Schema
from akrunner.spec import ClusterSpec, JobSpec, ScriptSpec


def test_kept_logs_are_the_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    log = tmp_path / "work" / "tasks" / "chief-0" / "log.txt"
    log.parent.mkdir(parents=True)
    log.write_text("said")
    kept = tmp_path / "kept"
    before = os.umask(0)
    try:
        workdir._move_logs(str(tmp_path / "work"), str(kept))
    finally:
        os.umask(before)
    assert (kept / "tasks" / "chief-0" / "log.txt").read_text() == "said"
    assert [p.stat().st_mode & 0o777 for p in (kept, kept / "tasks", kept / "tasks" / "chief-0")] == [0o700] * 3


def test_what_cannot_be_made_whole_leaves_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir(mode=0o700)

    def full() -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(workdir, "bundle_bytes", full)
    for name in ("new", "a/b/c", "mine", "mine/new"):
        with pytest.raises(ConfigError, match="^work_dir: cannot write .*No space left"):
            job = a_job(str(tmp_path / name))
            workdir.WorkDir.of(job).create(job)
    assert [str(found.relative_to(tmp_path)) for found in tmp_path.rglob("*")] == ["mine"]


def a_job(work_dir: str) -> JobSpec:
    return JobSpec(script=ScriptSpec("", ""), schema=Schema(()), python="python", cluster=ClusterSpec(1, 0), work_dir=work_dir)
