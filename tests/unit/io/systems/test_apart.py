"""What is said between this process and the one that has a file open, without a process."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from akrunner.errors import SinkError
from akrunner.io.systems import apart, sqlite
from tests.guards import one_guard

__all__ = ["one_guard"]


def test_rows_and_words_come_through() -> None:
    rows = pa.table({"a": [1, None], "s": ["x\n", ""]})
    stream = io.BytesIO()
    apart._put(stream, {"do": "append"}, rows)
    apart._put(stream, {})
    stream.seek(0)
    told, came = apart._got(stream)
    assert told is not None and told["do"] == "append" and came == rows
    told, came = apart._got(stream)
    assert told == {"bytes": 0} and came.num_rows == 0


@pytest.mark.parametrize("kept", [1, 5, -1])
def test_who_ends_in_the_middle_is_gone(kept: int) -> None:
    stream = io.BytesIO()
    apart._put(stream, {}, pa.table({"a": [1]}))
    assert apart._got(io.BytesIO(stream.getvalue()[:kept]))[0] is None
    assert apart._got(io.BytesIO())[0] is None


def test_rows_are_not_added_to_a_table_that_came_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_guard: None
) -> None:
    monkeypatch.setattr(apart, "needed", lambda: False)
    rows, asked = pa.table({"x": [1]}), {"module": "sqlite", "url": f"sqlite:///{tmp_path}/t.db?table=t", "overwrite": False}
    told: list[Any] = []
    apart._serve({**asked, "do": "check"}, rows, io.BytesIO(), told.append)
    assert told[0].to_pydict() == {"is_new": [True]}
    sink = sqlite.SYSTEM.output(str(asked["url"]), rows.schema, False)
    sink.commit()
    with pytest.raises(SinkError, match="another program has made this table since the job began"):
        apart._serve({**asked, "do": "write", "must_be_new": True}, rows, io.BytesIO(), told.append)
    apart._serve({**asked, "do": "write", "must_be_new": False}, rows, io.BytesIO(), told.append)
    assert told[1:] == [None]


def test_another_library_is_found_by_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in apart._LIBRARIES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert not apart.needed()
    monkeypatch.setitem(sys.modules, "_sqlite3", io)
    assert apart.needed()
