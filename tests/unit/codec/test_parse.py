"""Where the values of each feature are found in many Examples, whichever of the three ways finds them."""

from __future__ import annotations

import random
import struct

import numpy as np
import pyarrow as pa
import pytest

from akrunner.codec import parse as parsing
from akrunner.codec.encode import encode_examples
from akrunner.codec.parse import Parsed, parse
from akrunner.codec.protobuf import varint
from akrunner.errors import DataError


@pytest.fixture(autouse=True)
def no_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layouts of earlier tests are not there."""
    monkeypatch.setattr(parsing, "_recent", {})


def field(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def example(**features: bytes) -> bytes:
    """An Example of features of single int64 numbers, as other programs write it."""
    entries = [field(1, field(1, name.encode()) + field(2, field(3, field(1, body)))) for name, body in features.items()]
    return field(1, b"".join(entries))


def parsed(blobs: list[bytes], *wanted: bytes, gap: bytes = b"") -> Parsed:
    lengths = np.array([len(blob) for blob in blobs], np.int64)
    ends = np.cumsum(lengths + len(gap)) - len(gap)
    return parse(np.frombuffer(gap.join(blobs), np.uint8), ends - lengths, ends, wanted)


def values(found: Parsed, name: bytes) -> list[bytes]:
    spans = found.spans[name]
    return [
        found.buffer[start : start + length].tobytes() for start, length in zip(spans.start.tolist(), spans.length.tolist())
    ]


def rows(batch: pa.RecordBatch) -> list[bytes]:
    return encode_examples(batch).to_pylist()  # type: ignore[no-any-return]


def test_records_of_one_layout_are_one_block() -> None:
    found = parsed(rows(pa.record_batch({"f": np.arange(20, dtype=np.float32), "i": np.arange(20)})), b"f", b"i")
    floats, whole = found.spans[b"f"], found.spans[b"i"]
    assert floats.only_blocks(2) and whole.only_blocks(3) and not floats.only_blocks(3)
    (block,) = floats.blocks
    assert block.floats.tolist() == list(range(20)) and block.octets.shape == (20, 4)
    assert whole.blocks[0].octets[:, 0].tolist() == list(range(20))
    # the same places, as the arrays have them
    assert values(found, b"f") == [struct.pack("<f", number) for number in range(20)]
    assert floats.kind.tolist() == [2] * 20 and not floats.only_blocks(2)
    assert not len(found.order)


def test_rows_of_two_layouts_are_put_back_into_their_order() -> None:
    short, long = example(a=b"\x05"), example(a=b"\x85\x00", b=b"\x06")
    draw = random.Random(3)
    blobs = [draw.choice([short, long]) for _ in range(60)]
    found = parsed(blobs, b"a")
    one, other = found.spans[b"a"].blocks
    laid = np.concatenate([one.rows, other.rows])
    assert laid[found.order].tolist() == list(range(60))
    assert values(found, b"a") == [b"\x05" if blob is short else b"\x85\x00" for blob in blobs]
    assert found.unknown == {b"b": blobs.index(long)}


def test_features_of_any_length_are_found_one_after_another() -> None:
    texts = ["x" * (n * 7 % 31) for n in range(40)]
    found = parsed(rows(pa.record_batch({"s": texts, "l": [[n] * (n % 3) for n in range(40)]})), b"s", b"l")
    assert not found.spans[b"s"].only_blocks(1)
    assert [body[2:].decode() for body in values(found, b"s")] == texts
    assert values(found, b"l") == [bytes([n]) * (n % 3) for n in range(40)]


def test_a_feature_that_a_row_lacks_has_the_kind_0() -> None:
    found = parsed(rows(pa.record_batch({"i": [1, None, 3], "s": ["a", "b", None]})), b"i", b"s", b"never")
    assert found.spans[b"i"].kind.tolist() == [3, 0, 3]
    assert found.spans[b"s"].kind.tolist() == [1, 1, 0]
    assert found.spans[b"never"].kind.tolist() == [0, 0, 0] and not found.unknown


@pytest.mark.parametrize("count", [3, 50])
def test_of_two_entries_of_a_name_the_later_one_counts(count: int) -> None:
    entry = [field(1, field(1, b"a") + field(2, field(3, field(1, body)))) for body in (b"\x05", b"\x06")]
    found = parsed([field(1, b"".join(entry))] * count, b"a")
    assert values(found, b"a") == [b"\x06"] * count


@pytest.mark.parametrize("count", [1, 9])
def test_numbers_that_are_not_packed_are_copied_behind_the_rows(count: int) -> None:
    unpacked = field(1, field(1, field(1, b"a") + field(2, field(3, b"\x08\x05\x08\xac\x02"))))
    found = parsed([unpacked] * count, b"a")
    assert values(found, b"a") == [b"\x05\xac\x02"] * count
    assert len(found.buffer) > count * len(unpacked)


def test_bytes_between_the_records_are_not_looked_at() -> None:
    blobs = rows(pa.record_batch({"i": [1, 2, 3], "s": ["a", "bc", None]}))
    found = parsed(blobs * 4, b"i", b"s", gap=b"\xff" * 16)
    assert values(found, b"i") == [b"\1", b"\2", b"\3"] * 4
    assert values(found, b"s") == [b"\x0a\x01a", b"\x0a\x02bc", b""] * 4


@pytest.mark.parametrize("bad", [b"\x0a\x05ab", b"\x80", b"\x02\x00"])
@pytest.mark.parametrize("count", [1, 40])
def test_a_record_that_is_no_example_is_named_by_its_position(bad: bytes, count: int) -> None:
    good = example(a=b"\x05")
    with pytest.raises(DataError, match=f"record {count} is not a tf.train.Example") as caught:
        parsed([good] * count + [bad] + [good] * count, b"a")
    assert caught.value.row == count


def test_an_empty_record_is_an_example_without_features() -> None:
    assert parsed([b""] * 20, b"a").spans[b"a"].kind.tolist() == [0] * 20
    assert parsed([], b"a").spans[b"a"].kind.tolist() == []


def test_only_so_many_unknown_names_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_MOST_UNKNOWN", 3)
    found = parsed([example(**{f"x{n}": b"\x05"}) for n in (4, 0, 1, 2, 3, 0)], b"a")
    assert found.unknown == {b"x4": 0, b"x0": 1, b"x1": 2}


def test_layouts_that_were_seen_are_kept_and_are_right_for_what_differs() -> None:
    # what was found is looked at before the next batch, which is parsed in the same memory
    assert values(parsed([example(a=b"\x05")] * 20, b"a"), b"a") == [b"\x05"] * 20
    assert [len(layouts) for layouts in parsing._recent.values()] == [1]
    other = parsed([example(b=b"\x07")] * 20, b"a", b"b")
    assert values(other, b"b") == [b"\x07"] * 20 and other.spans[b"a"].kind.tolist() == [0] * 20
    assert [len(layouts) for layouts in parsing._recent.values()] == [2]
    assert values(parsed([example(a=b"\x06")] * 20, b"a"), b"a") == [b"\x06"] * 20
    assert [len(layouts) for layouts in parsing._recent.values()] == [2]


def test_layouts_do_not_become_ever_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_MAX_RECENT", 4)
    for size in range(1, 20):
        parsed([example(**{"n" * size: b"\x05"})] * 8, b"a")
        assert len(parsing._recent) <= 4


def test_a_length_that_lies_is_not_taken_for_that_of_the_others() -> None:
    # no two are as long, so that they are compared feature by feature
    blobs = rows(pa.record_batch({"s": ["x" * n for n in range(1, 30)]}))
    assert [body[2:] for body in values(parsed(blobs, b"s"), b"s")] == [b"x" * n for n in range(1, 30)]
    entry = bytearray(blobs[20])
    entry[3] -= 1
    blobs[20] = bytes(entry)
    with pytest.raises(DataError, match="record 20 is not a tf.train.Example"):
        parsed(blobs, b"s")
