"""The protocol of tables: the request's number before rows, which frames go which way, and the limits that fit each other."""

from __future__ import annotations

import pytest

from akrunner.wire import column_layout, frames, messages, tables
from akrunner.wire.frames import WireError
from akrunner.wire.shapes import fields_of

ROWS = {frames.TABLE_ROWS, frames.ADD_ROWS}


@pytest.mark.parametrize("request_number", [0, 1, 258, (1 << 64) - 1])
def test_rows_come_with_the_number_of_their_request(request_number: int) -> None:
    header = {"name": "a", "form": "numbers", "dtype": "int8", "shape": [2]}
    parts = tables.with_request(request_number, column_layout.pack(2, [(header, [b"xy"])]))
    number, rest = tables.request_of(b"".join(bytes(part) for part in parts))
    assert number == request_number and type(number) is int
    rows, [(_, [values])] = column_layout.unpack(rest, ["a"])
    assert rows == 2 and bytes(values) == b"xy"


def test_a_number_is_eight_bytes_the_lowest_first() -> None:
    assert tables.with_request(258, [b"ab", b"c"]) == [b"\2\1\0\0\0\0\0\0", b"ab", b"c"]
    assert tables.request_of(b"\2\1\0\0\0\0\0\0abc") == (258, b"abc")


def test_the_list_that_is_given_stays_as_it_is() -> None:
    payload = [b"ab"]
    tables.with_request(1, payload)
    assert payload == [b"ab"]


def test_the_rows_share_the_payloads_memory() -> None:
    payload = bytearray(b"\1\0\0\0\0\0\0\0ab")
    _, rest = tables.request_of(payload)
    payload[8:] = b"cd"
    assert bytes(rest) == b"cd"
    _, none = tables.request_of(payload[:8])
    assert not len(none)


@pytest.mark.parametrize("size", [0, 1, 7])
def test_a_frame_that_is_too_short_for_a_number_is_refused(size: int) -> None:
    with pytest.raises(WireError, match=f"a frame of a table's rows of {size} bytes names no request"):
        tables.request_of(bytes(size))


def test_questions_go_to_the_host_and_answers_to_the_worker() -> None:
    assert set(tables.QUESTIONS) <= set(frames.FROM_WORKER) and set(tables.ANSWERS) <= set(frames.TO_WORKER)
    kinds = [*tables.QUESTIONS, *tables.ANSWERS]
    assert len(set(kinds)) == len(kinds), "each once"
    assert set(kinds) == {kind for kind in frames.NAMES if 40 <= kind < 56}


def test_every_other_frame_names_its_request_in_its_body() -> None:
    with_bodies = {kind for kind, shape in messages.SHAPES.items() if "request" in fields_of(shape)[0]}
    assert with_bodies == {*tables.QUESTIONS, *tables.ANSWERS} - ROWS


def test_what_a_writer_sends_at_once_fits_a_frame() -> None:
    # a column's header and padding need room, too
    assert all(tables.MOST_BYTES < frames.EITHER_WAY[kind] // 2 for kind in ROWS)
