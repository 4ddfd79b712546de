"""Where rows of text end."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akrunner.io.lines import csv_row_ends, recovered, row_ends, rows_before

CELLS = st.lists(st.text('a",\r\n', max_size=6), min_size=2, max_size=3)


@pytest.mark.slow
@given(st.lists(CELLS, max_size=8))
def test_every_row_of_csv_by_itself(rows: list[list[str]]) -> None:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(rows)
    text = out.getvalue().encode()
    ends = row_ends(text, quoted=True)
    assert ends is not None and rows_before(text, ends) == len(rows)
    cut = [text[start:end].decode() for start, end in zip([0, *ends], ends)]
    assert [next(csv.reader(io.StringIO(row, newline=""))) for row in cut] == rows


@pytest.mark.parametrize(
    ("text", "quoted", "ends", "rows"),
    [
        (b"", True, [], 0),
        (b"a,b", True, [], 0),
        (b"a\nb", True, [2], 1),
        (b'"a\nb\n"\nc\n', True, [7, 9], 2),
        (b'"a\nb\n"\nc\n', False, [3, 5, 7, 9], 4),
        (b'a,"never closed\nb\n', True, [], 0),
        (b"\na\n\r\n\nb\r\n", True, [1, 3, 5, 6, 9], 2),
    ],
)
def test_ends(text: bytes, quoted: bool, ends: list[int], rows: int) -> None:
    found = row_ends(text, quoted)
    assert found is not None and found.tolist() == ends and rows_before(text, found) == rows


@pytest.mark.parametrize("text", [b'a 5" pipe\n"b\nc"\n', b'1, "a"\n', b'x""y\n'])
def test_quotes_in_cells_that_are_not_quoted(text: bytes) -> None:
    assert row_ends(text, quoted=True) is None and row_ends(text, quoted=False) is not None


@pytest.mark.parametrize(
    ("text", "last", "ends", "loose", "opened"),
    [
        (b"", True, [], [], None),
        (b'1,"a\nb"\n2,c\n', True, [8, 12], [], None),
        (b'1,"a\n2,"b"\n3,c\n', True, [5, 11, 15], [0], None),
        (b'0,z\n1,"a\n2,b\n', True, [4, 9, 13], [4], None),
        (b'0,z\n1,"a\n2,b\n', False, [4], [], 6),
        (b'"a\nb","c\n2,b\n', True, [9, 13], [0], None),
        (b'1,"a', True, [4], [0], None),
    ],
)
def test_rows_whose_quotes_are_not_closed(
    text: bytes, last: bool, ends: list[int], loose: list[int], opened: int | None
) -> None:
    found, rows, quote = recovered(text, last)
    assert (found.tolist(), rows, quote) == (ends, loose, opened)


@pytest.mark.slow
@given(st.text(alphabet='a,"\n\r', max_size=40), st.booleans())
def test_rows_follow_one_another_wherever_quotes_are(text: str, last: bool) -> None:
    data = text.encode()
    ends, loose, opened = recovered(data, last)
    found = ends.tolist()
    assert found == sorted(set(found)) and all(0 < end <= len(data) for end in found)
    assert all(start in (0, *found) for start in loose)
    if not loose and opened is None:
        assert found == csv_row_ends(data)[0].tolist()
    if last:
        # nothing can close a quote any more
        assert opened is None
