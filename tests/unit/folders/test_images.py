"""What headers of images say."""

from __future__ import annotations

import io
import re
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from akrunner.folders import images
from akrunner.packing import pictures


def made(form: str, size: Any = (37, 51), mode: str = "RGB", **options: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, (9, 99, 199)).convert(mode).save(out, form, **options)
    return out.getvalue()


GOOD: list[Any] = [
    ("JPEG", "RGB", {}), ("JPEG", "L", {}), ("JPEG", "CMYK", {}), ("JPEG", "RGB", {"progressive": True}), ("JPEG", "RGB", {"exif": b"Exif\0\0" + bytes(60_000)}),
    ("PNG", "RGB", {}), ("PNG", "RGBA", {}), ("PNG", "P", {}), ("PNG", "1", {}), ("GIF", "P", {}), ("BMP", "RGB", {}), ("WEBP", "RGB", {}),
    ("WEBP", "RGB", {"lossless": True}), ("WEBP", "RGBA", {"exif": b"Exif\0\0"}),
]  # fmt: skip


def test_sizes_of_every_format_looked_at_together() -> None:
    datas = [made(form, mode=mode, **options) for form, mode, options in GOOD]
    found = images.look(datas)
    assert found.problems == {}
    assert found.height.tolist() == [51] * len(GOOD) and found.width.tolist() == [37] * len(GOOD)
    assert [images.FORMATS[number].upper() for number in found.format] == [form for form, _, _ in GOOD]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (bytes(100), "zeros"),
        (b"hello", "no image"),
        (b"<html><body>", "HTML"),
        (b"II*\0" + bytes(50), "TIFF"),
        (b"\0\0\0\x20ftypheic" + bytes(50), "HEIC"),
        (b"BM" + b"x" * 60, "header of one"),
        (b"\xff\xd8\xff", "cut short"),
        (b"\xff\xd8\xff" + bytes(99), "damaged JPEG"),
        (b"\xff\xd8" + b"\xff\xd0" * 9000, "segments"),
        (b"\xff\xd8" + b"\xff" * 3000, "cut short|segments"),
        (made("JPEG")[:100], "cut short"),
        (made("PNG")[:20], "cut short"),
        (made("PNG")[:12] + b"XXXX" + made("PNG")[16:], "damaged PNG"),
        (made("PNG")[:16] + bytes(8) + made("PNG")[24:], "0 x 0"),
        (made("GIF", mode="P")[:9], "cut short"),
        (made("WEBP")[:24], "cut short"),
        (b"RIFF" + bytes(4) + b"WEBPVP8X" + bytes([10, 0, 0, 0, 2]) + bytes(60), "a moving WEBP"),
    ],
    # the bytes themselves would be names of 50 kB
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_image_is_told_why(data: bytes, words: str) -> None:
    found = images.look([made("JPEG"), data, None, made("PNG")])
    assert list(found.problems) == [1]
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(found.problems[1])


def test_no_bytes_make_it_fail() -> None:
    random = np.random.default_rng(0)
    starts = [
        made(form, mode=mode) for form, mode in (("JPEG", "RGB"), ("PNG", "RGB"), ("GIF", "P"), ("BMP", "RGB"), ("WEBP", "RGB"))
    ]
    datas = []
    for number in range(400):
        data = bytearray(starts[number % len(starts)][: int(random.integers(0, 200))])
        for at in random.integers(0, max(1, len(data)), 6):
            if len(data):
                data[at] = int(random.integers(0, 256))
        datas.append(bytes(data))
    together = images.look(datas)
    for i, data in enumerate(datas):
        alone = images.look([data])
        assert alone.problems.get(0) == together.problems.get(i)
        assert (alone.height[0], alone.width[0]) == (together.height[i], together.width[i])


def test_resized_images() -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    for form, mode, options in [*GOOD, ("JPEG", "RGB", {"exif": turned}), ("TIFF", "RGB", {}), ("PNG", "LA", {})]:
        data, why = pictures.resized(made(form, mode=mode, **options), (20, 30))
        image = Image.open(io.BytesIO(data))
        assert (why, image.size) == ("", (30, 20))
        assert image.format == ("JPEG" if form == "JPEG" else "PNG") and image.mode in ("L", "RGB", "LA", "RGBA")
    assert pictures.resized(b"no", (2, 2))[1] == "no image that Pillow knows"
    assert "cannot be decoded" in str(pictures.fault(made("JPEG", (300, 300), quality=95)[:-900]))
    assert pictures.fault(made("PNG")) is None


def test_an_image_of_more_pixels_than_memory_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = bytearray(made("PNG"))
    bomb[16:24] = (60_000).to_bytes(4, "big") * 2
    assert "60,000 x 60,000 pixels" in str(pictures.fault(bytes(bomb)))
    assert "60,000 x 60,000 pixels" in pictures.resized(bytes(bomb), (8, 8))[1]
    # as many as TensorFlow does not decode, of a format whose header is not looked at otherwise
    monkeypatch.setattr(images, "MOST_PIXELS", 37 * 51)
    assert "37 x 51 pixels, too many for --resize and --check whole" in pictures.resized(made("TIFF"), (8, 8))[1]


@pytest.mark.slow
def test_a_large_image_is_whole_and_can_be_resized(recwarn: pytest.WarningsRecorder) -> None:
    out = io.BytesIO()
    Image.new("1", (10_000, 9_000), 1).save(out, "PNG", compress_level=1)
    large = out.getvalue()
    assert pictures.fault(large) is None
    small, why = pictures.resized(large, (9, 10))
    assert why == "" and Image.open(io.BytesIO(small)).size == (10, 9) and not list(recwarn)


def test_headers_that_leave_nothing_to_decode_are_refused() -> None:
    png, jpeg, gif = made("PNG"), made("JPEG"), made("GIF", mode="P")
    frame = jpeg.index(b"\xff\xc0")

    def header(width: int, height: int, bits: int = 8, colours: int = 2) -> bytes:
        body = b"IHDR" + struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, 0)
        return png[:12] + body + struct.pack(">I", zlib.crc32(body))

    def sized(marker: int = 0xC0, bits: int = 8, layers: int = 3) -> bytes:
        at = frame
        return (
            jpeg[: at + 1]
            + bytes([marker])
            + jpeg[at + 2 : at + 4]
            + bytes([bits])
            + jpeg[at + 5 : at + 9]
            + bytes([layers])
            + jpeg[at + 10 :]
        )

    assert images.look([header(37, 51) + png[33:], sized(), gif]).problems == {}
    wrong = {
        png[:33]: "a PNG that is cut short",
        png[:34]: "a PNG that is cut short",
        png[:57]: "a PNG that is cut short",
        png[:29] + bytes(4) + png[33:]: "checksum",
        header(4000, 4000) + png[33:] + bytes(3000): "4,000 x 4,000 pixels, more than",
        header(37, 51, bits=3) + png[33:]: "3 bits",
        header(37, 51, colours=5) + png[33:]: "the colours 5",
        gif[:13]: "a GIF that is cut short",
        gif[:30]: "a GIF that is cut short",
        sized(marker=0xC3): r"lossless \(SOF3\), which TensorFlow does not decode",
        sized(marker=0xC5): "hierarchical",
        sized(bits=12): "12 bits a colour",
        sized(layers=2): "2 colours",
    }
    found = images.look(list(wrong))
    assert sorted(found.problems) == list(range(len(wrong)))
    for i, words in enumerate(wrong.values()):
        assert re.search(words, found.problems[i]), (words, found.problems[i])


@pytest.mark.slow
def test_sizes_that_cannot_be_are_refused_and_the_densest_that_can_are_not() -> None:
    png, jpeg = made("PNG"), made("JPEG")
    frame = jpeg.index(b"\xff\xc0")
    false = [
        png[:16] + (2**31 - 1).to_bytes(4, "big") * 2 + png[24:],
        png[:16] + (2**32 - 1).to_bytes(4, "big") * 2 + png[24:],
        png[:16] + (3000).to_bytes(4, "big") * 2 + png[24:],
        (jpeg[: frame + 5] + b"\xff\xff" * 2 + jpeg[frame + 9 :])[:60],
        (jpeg[: frame + 5] + b"\xff\xff" * 2 + jpeg[frame + 9 :]) + bytes(10_000_000),
    ]
    found = images.look(false)
    assert sorted(found.problems) == list(range(len(false))) and "2,147,483,647 x 2,147,483,647" in found.problems[0]
    assert "TensorFlow decodes less" in found.problems[4]
    dense = [
        *(made("PNG", (3000, 3000), mode, compress_level=9) for mode in ("1", "L", "RGB", "RGBA")),
        *(made("PNG", (1, 1), mode) for mode in ("1", "L", "P", "RGB", "RGBA")),
        made("GIF", (1, 1), "1"),
        made("JPEG", (3000, 3000), "L", quality=1, optimize=True),
        made("JPEG", (3000, 3000), "RGB", quality=1, optimize=True, progressive=True, subsampling=2),
    ]
    assert images.look(dense).problems == {}


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_resizing_turns_images_as_exif_says(form: str) -> None:
    plain = Image.new("RGB", (40, 20))
    plain.paste((255, 0, 0), (0, 0, 20, 10))
    corners = {1: 0, 2: 1, 3: 3, 4: 2, 5: 0, 6: 1, 7: 3, 8: 2}
    for turned, corner in corners.items():
        exif, out = Image.Exif(), io.BytesIO()
        exif[0x0112] = turned
        plain.save(out, form, exif=exif)
        data, why = pictures.resized(out.getvalue(), (4, 8))
        found = Image.open(io.BytesIO(data)).convert("RGB")
        assert not why and found.size == (8, 4) and 0x0112 not in Image.open(io.BytesIO(data)).getexif()
        red = [found.getpixel(place)[0] > 128 for place in ((0, 0), (7, 0), (0, 3), (7, 3))]
        assert red.index(True) == corner and sum(red) == 1


def test_a_bitmap_is_as_large_as_its_rows_or_tensorflow_refuses_it() -> None:
    def bitmap(bits: int, width: int, size: int) -> bytes:
        head = b"BM" + bytes(8) + struct.pack("<IIiiHH", 54, 40, width, -2, 1, bits) + bytes(24)
        return head + bytes(size)

    # rows are filled up to four bytes
    good = [bitmap(8, 3, 8), bitmap(24, 3, 24), bitmap(32, 3, 24)]
    bad = [bitmap(24, 3, 23), bitmap(24, 3, 25), bitmap(4, 3, 8)]
    problems = images.look([*good, *bad]).problems
    assert sorted(problems) == [3, 4, 5]
    assert "77 bytes of 78" in problems[3] and "1 byte behind" in problems[4] and "4 bits" in problems[5]


def test_a_bitmap_that_is_refused_is_told_the_true_reason() -> None:
    def bitmap(size: int = 40, bits: int = 8, packed: int = 0, body: int = 1024 + 16, width: int = 4) -> bytes:
        head = (
            struct.pack("<IiiHHI", size, width, 4, 1, bits, packed) if size != 12 else struct.pack("<IHHHH", 12, 4, 4, 1, bits)
        )
        head += bytes(max(0, size - len(head)))
        start = 14 + len(head) + 1024
        return b"BM" + struct.pack("<IHHI", start, 0, 0, start) + head + bytes(body)

    # TensorFlow does not look at the length of the header
    good = [bitmap(), bitmap(64), bitmap(108), bitmap(44), bitmap(packed=3)]
    assert images.look(good).problems == {}
    wrong = {
        bitmap(12): r"a BMP of OS/2 \(with a header of 12 bytes\), which TensorFlow does not decode; resize=",
        bitmap(packed=1, body=1024 + 9): r"pixels are compressed \(RLE8\), which TensorFlow does not decode; resize=",
        # it takes them for what they are not
        bitmap(packed=1): r"pixels are compressed \(RLE8\)",
        bitmap(packed=2, bits=4): r"pixels are compressed \(RLE4\)",
        bitmap(body=1024 + 15): r"cut short: 1,093 bytes of 1,094;",
        bitmap(bits=1): "1 bit a pixel",
        bitmap(44, body=1024 + 15): "no image: it begins as a BMP",
        bitmap(width=-4): "a damaged BMP: its header says -4 x 4",
        b"BM is no picture, but the beginning of some text of many words": "no image: it begins as a BMP",
    }
    found = images.look(list(wrong))
    assert sorted(found.problems) == list(range(len(wrong))) and (found.width[0], found.height[0]) == (4, 4)
    for i, words in enumerate(wrong.values()):
        assert re.search(words, found.problems[i]), (words, found.problems[i])


def test_a_page_is_named_as_what_it_is_however_closely_images_are_looked_at() -> None:
    page = b"<!DOCTYPE html><html></html>"
    told = images.look([page]).problems[0]
    assert told == pictures.resized(page, (2, 2))[1] == "an HTML page, no image"
    assert "an HTML page, no image" in str(pictures.fault(page))
