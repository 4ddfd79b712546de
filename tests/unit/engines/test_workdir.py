"""What a job that has failed keeps: its logs, for its user only."""

from __future__ import annotations

import os
from pathlib import Path

from akrunner.engines import workdir


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
