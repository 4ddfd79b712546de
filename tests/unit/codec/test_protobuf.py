"""One Example read byte by byte, in every form that protobuf allows."""

from __future__ import annotations

import struct

import pytest

from akrunner.codec.protobuf import Feature, read_example, read_varint, tagged, varint

FLOATS = struct.pack("<2f", 0.5, -1.0)


def field(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def entry(name: bytes, *features: bytes) -> bytes:
    return field(1, field(1, name) + b"".join(field(2, feature) for feature in features))


def example(*entries: bytes) -> bytes:
    return field(1, b"".join(entries))


def one(data: bytes, base: int = 0) -> Feature:
    (found,) = read_example(data, base)
    return found


def values(feature: Feature, data: bytes, base: int = 0) -> bytes:
    start = feature.start - base
    return data[start : start + feature.length] if feature.exact else feature.unpacked


@pytest.mark.parametrize(
    ("number", "octets"),
    [
        (0, b"\0"),
        (127, b"\x7f"),
        (128, b"\x80\1"),
        (300, b"\xac\2"),
        (2**63, b"\x80" * 9 + b"\1"),
        (2**64 - 1, b"\xff" * 9 + b"\1"),
    ],
)
def test_a_varint_is_written_as_short_as_can_be_and_read_back(number: int, octets: bytes) -> None:
    assert varint(number) == octets
    assert read_varint(b"x" + octets + b"y", 1) == (number, 1 + len(octets))


def test_a_padded_varint_is_read() -> None:
    assert read_varint(b"\x85\x80\x00", 0) == (5, 3)


def test_a_varint_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        read_varint(b"\x80" * 10 + b"\1", 0)
    with pytest.raises(IndexError):
        read_varint(b"\x80\x80", 0)


def test_values_are_told_by_where_they_are_in_the_whole_buffer() -> None:
    data = example(entry(b"f", field(2, field(1, FLOATS))), entry(b"i", field(3, field(1, b"\x05\xac\x02"))))
    floats, whole = read_example(data, 1000)
    assert (floats.name, floats.kind, floats.exact) == (b"f", 2, True) and values(floats, data, 1000) == FLOATS
    assert (whole.name, whole.kind, whole.exact) == (b"i", 3, True) and values(whole, data, 1000) == b"\x05\xac\x02"


def test_bytes_keep_their_tags() -> None:
    data = example(entry(b"b", field(1, field(1, b"ab") + field(1, b""))))
    found = one(data, 1000)
    body = values(found, data, 1000)
    assert (found.kind, found.exact, body) == (1, True, b"\x0a\x02ab\x0a\x00")
    assert [body[at : at + size] for at, size in tagged(body)] == [b"ab", b""]


@pytest.mark.parametrize(
    ("feature", "kind", "want"),
    [
        # a tag and a value each, instead of one packed field
        (field(2, b"\x0d" + FLOATS[:4] + b"\x0d" + FLOATS[4:]), 2, FLOATS),
        (field(3, b"\x08\x05\x08\xac\x02"), 3, b"\x05\xac\x02"),
        # packed in two pieces, and packed beside one that is not
        (field(2, field(1, FLOATS[:4]) + field(1, FLOATS[4:])), 2, FLOATS),
        (field(3, field(1, b"\x05") + b"\x08\x06"), 3, b"\x05\x06"),
        # two lists of one kind are joined
        (field(3, field(1, b"\x05")) + field(3, field(1, b"\x06")), 3, b"\x05\x06"),
        (field(1, field(1, b"a")) + field(1, field(1, b"b")), 1, b"\x0a\x01a\x0a\x01b"),
        # a field nobody knows between the values, and a length longer than it has to be
        (field(1, field(1, b"a") + field(9, b"new") + field(1, b"b")), 1, b"\x0a\x01a\x0a\x01b"),
        (field(1, b"\x0a\x81\x80\x80\x80\x80\x00a"), 1, b"\x0a\x01a"),
    ],
)
def test_unusual_lists_are_packed_anew(feature: bytes, kind: int, want: bytes) -> None:
    found = one(example(entry(b"x", feature)))
    assert (found.kind, found.exact, found.unpacked, found.length) == (kind, False, want, len(want))


def test_the_last_kind_of_list_wins() -> None:
    feature = field(3, field(1, b"\x05")) + field(2, field(1, FLOATS))
    data = example(entry(b"x", feature))
    assert one(data).kind == 2 and values(one(data), data) == FLOATS
    # in two stretches of the entry as well
    apart = example(entry(b"x", field(3, field(1, b"\x05")), field(2, field(1, FLOATS))))
    assert one(apart).kind == 2 and values(one(apart), apart) == FLOATS


def test_a_later_entry_of_a_name_takes_the_place_of_the_first() -> None:
    data = example(entry(b"x", field(3, field(1, b"\x05"))), entry(b"y", b""), entry(b"x", field(3, field(1, b"\x06"))))
    found = read_example(data, 0)
    assert [feature.name for feature in found] == [b"y", b"x"] and values(found[1], data) == b"\x06"


@pytest.mark.parametrize(
    ("feature", "kind"), [(b"", 4), (field(9, b"new"), 4), (field(2, b""), 2), (field(3, field(1, b"")), 3)]
)
def test_a_feature_without_values_is_there(feature: bytes, kind: int) -> None:
    found = one(example(entry(b"x", feature)))
    assert (found.name, found.kind, found.length) == (b"x", kind, 0)


def test_fields_that_nobody_knows_are_passed_over() -> None:
    odd = bytes([9 << 3]) + b"\x07" + bytes([10 << 3 | 5]) + bytes(4) + bytes([11 << 3 | 1]) + bytes(8)
    data = odd + field(1, odd + entry(b"x", odd + field(3, odd + field(1, b"\x05"))) + odd) + odd
    assert one(data).name == b"x" and values(one(data), data) == b"\x05"
    assert read_example(b"", 0) == []


def test_a_name_may_stand_behind_its_value() -> None:
    data = field(1, field(1, field(2, field(3, field(1, b"\x05"))) + field(1, b"x")))
    assert one(data).name == b"x" and values(one(data), data) == b"\x05"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x0a\x03\x0a\x00", "cut short"),
        (field(1, b"\x0a\x03\x0a\x09x"), "cut short"),
        (b"\x02\x00", "field number 0"),
        (b"\x0b", "wire type 3"),
        (b"\x0d\0\0", "cut short"),
    ],
)
def test_what_is_no_message_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_example(data, 0)
