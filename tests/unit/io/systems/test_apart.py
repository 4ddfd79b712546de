"""What is said between this process and the one that has a file open, without a process."""

from __future__ import annotations

import io
import sys

import pyarrow as pa
import pytest

from akrunner.io.systems import apart


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


def test_another_library_is_found_by_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in apart._LIBRARIES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert not apart.needed()
    monkeypatch.setitem(sys.modules, "_sqlite3", io)
    assert apart.needed()
