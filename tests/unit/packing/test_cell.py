"""The display of a run of `pack` in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import SinkError
from akrunner.notebook import live
from akrunner.packing import job
from akrunner.packing.cell import PackCell
from akrunner.packing.job import run_pack
from akrunner.packing.progress import PackProgress
from akrunner.packing.settings import PackArguments
from tests.unit.notebook.kernel import Shown, kernel
from tests.unit.test_markup import read

__all__ = ["kernel"]


def test_a_run_shows_its_end(kernel: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # however slow the machine is
    monkeypatch.setattr(live, "_FIRST", 1000.0)
    (tmp_path / "a.txt").write_text("a")
    packed = run_pack(PackArguments(str(tmp_path / "a.txt"), str(tmp_path / "out")))
    assert packed.rows == 1 and [one.partition(": done in ")[0] for one in kernel.plain] == [f"pack {tmp_path / 'out'}"]


def test_how_far_it_is(kernel: Shown) -> None:
    cell = PackCell("out")
    cell.progress(PackProgress("writing", 50, 100, 5_000_000, 2.0, 25.0, 2.0))
    assert "pack out writing, 2.0 s50 %, 50 of 100 rows, 25 rows/s, 2 s left" in read(cell._draw().html)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SinkError("output: it is there")])
def test_it_ends_otherwise(kernel: Shown, monkeypatch: pytest.MonkeyPatch, error: Any) -> None:
    monkeypatch.setattr(live, "_FIRST", 1000.0)

    def fails(asked: PackArguments, progress: Any) -> None:
        raise error

    monkeypatch.setattr(job, "_run", fails)
    with pytest.raises(type(error)):
        run_pack(PackArguments("in", "out"))
    if isinstance(error, KeyboardInterrupt):
        assert "stopped after" in kernel.plain[-1]
        assert error._render_traceback_() == [  # type: ignore[attr-defined]
            "KeyboardInterrupt: pack out was stopped; what was packed so far is kept, and the same call goes on from there."
        ]
    else:
        assert kernel.bundles == [], "it was refused at once"
