from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from akrunner.history import places, record
from akrunner.history.record import Record

Make = Callable[..., str]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a run that is kept, with these fields. Returns: its directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def made(**fields: Any) -> str:
        root = places.root()
        assert root is not None
        name, path = places.claim(root)
        begun: dict[str, Any] = {
            "verb": "run", "state": record.SUCCEEDED, "began": time.time() - 5, "ended": time.time() - 2, "host": record.host(),
            "cwd": str(tmp_path), "script": str(tmp_path / "t.py"), "tasks": ["chief:0"],
        }  # fmt: skip
        record.write(path, Record(record.VERSION, name, **{**begun, **fields}))
        return path

    return made
