"""How files are planned into shards, and what stands beside their bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.folders.gathered import MTIME, NAME, SIZE
from akrunner.packing.files import _shown, planned
from akrunner.packing.index import CLASS, Index
from akrunner.packing.settings import PackArguments, settings_of


def test_passwords_and_signatures_of_urls_are_in_no_shard() -> None:
    plain = pa.array(["a/b.jpg", "http://h/x.jpg", "a@b?c.jpg"])
    assert _shown(plain) is plain
    hidden = _shown(pa.array(["a.jpg", "http://bob:S3CRET@h/x.jpg", "https://h/x.jpg?sig=S3CRET&page=2"])).to_pylist()
    assert hidden[0] == "a.jpg" and "S3CRET" not in str(hidden)
    assert "h/x.jpg" in hidden[1] and "page=2" in hidden[2]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"resize": 8}])
@pytest.mark.parametrize("answer", [None, b"", b"<html>no picture</html>"])
def test_files_of_unknown_size_have_a_guessed_one_if_none_can_be_read(answer: bytes | None, options: dict[str, Any]) -> None:
    import fsspec

    store = fsspec.filesystem("memory")
    names = [f"memory:///test_files/{i}.jpg" for i in range(200)]
    table = pa.table(
        {
            NAME: pa.array([name.encode() for name in names], pa.large_binary()),
            SIZE: pa.array([-1] * 200, pa.int64()),
            MTIME: pa.array([0] * 200, pa.int64()),
            CLASS: pa.nulls(200, pa.string()),
        }
    )
    settings = settings_of(PackArguments("in", "out", shard_size="1MB", **options))
    if answer is not None:
        store.pipe({name.removeprefix("memory://"): answer for name in names})
    try:
        none = np.zeros((1, 1), np.int64)
        plan = planned(
            Index(table, None), settings, [], ["all"], [], none, lambda split, number: f"{split}/{number}", None, "images"
        )
    finally:
        store.rm("/test_files", recursive=True) if answer is not None else None
    assert plan.sampled == len(plan.problems) == 32 and len(plan.shards) == 20
