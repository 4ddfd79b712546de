"""PNGs as a whole: what TensorFlow refuses is refused (a test of `tests/e2e` asks it), and what it reads is not."""

from __future__ import annotations

import random
import tracemalloc
import zlib

import pytest

from akrunner.folders import images, png
from akrunner.packing import pictures
from tests import pngs

CASES = pngs.cases()
WORDS = {
    "15 rows": "its pixels have 915 bytes, and its header says 976",
    "no colours": r"it has no colours \(PLTE\)",
    "an unknown part that is needed": "a part 'ABCD' that TensorFlow does not know",
    "a second header": "a second header",
    "damaged colours": "the checksum of its part 'PLTE' is another one",
    "cut by 4": "cut short",
    "no sum of pixels": "its pixels have no end",
    "filter 5": "a filter that there is not",
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_and_what_is_refused(name: str) -> None:
    data, is_read = CASES[name]
    pictures.check_there("check")
    assert (pictures.fault(data) is None) == is_read, pictures.fault(data)
    if is_read:
        made, why = pictures.resized(data, (4, 4))
        assert pictures.fault(made) is None and why == ""
    else:
        assert pictures.resized(data, (4, 4))[0] == b"" or images.NOT_DECODED in str(pictures.fault(data))


@pytest.mark.parametrize("name", WORDS)
def test_the_words_say_what_is_wrong(name: str) -> None:
    with pytest.raises(AssertionError, match=WORDS[name]):
        raise AssertionError(png.fault(CASES[f"{name} (refused)"][0]))


@pytest.mark.slow
def test_no_bytes_make_it_fail() -> None:
    for data in pngs.mutated(random.Random(3), 2000):
        pictures.fault(data)


@pytest.mark.slow
def test_what_is_inflated_is_not_held() -> None:
    whole = pngs.header(9000, 9000, 8, 0) + pngs.chunk(b"IDAT", zlib.compress(bytes(9001 * 9000))) + pngs.chunk(b"IEND")
    tracemalloc.start()
    try:
        assert pictures.fault(whole) is None
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
