"""What is said of images that are decoded as a whole."""

from __future__ import annotations

import io
import random
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.packing import pictures


def image(form: str, frames: int = 1, **options: Any) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    pictures.check_there("check")
    chance = random.Random(7)
    several = [Image.frombytes("L", (20, 10), chance.randbytes(200)) for _ in range(frames)]
    several[0].save(out, form, **({"save_all": True, "append_images": several[1:]} if frames > 1 else {}), **options)
    return out.getvalue()


@pytest.mark.parametrize("form", ["PNG", "GIF", "JPEG", "BMP"])
def test_a_whole_image_is_right_with_or_without_something_behind_it(form: str) -> None:
    assert pictures.fault(image(form)) is None
    assert pictures.fault(image(form) + b"\0" * 10) is None
    assert pictures.fault(image(form) + b"some program's own") is None


@pytest.mark.parametrize("form, frames", [("PNG", 1), ("GIF", 1), ("GIF", 3)])
@pytest.mark.parametrize("cut", [1, 2, 5, 30])
def test_one_that_was_cut_short_is_told(form: str, frames: int, cut: int) -> None:
    assert (pictures.fault(image(form, frames)[:-cut]) is None) == (form == "GIF" and cut == 1)


@pytest.mark.parametrize("frames", [1, 3])
def test_a_gif_has_all_of_its_pictures_with_or_without_an_end(frames: int) -> None:
    """TensorFlow reads it either way."""
    whole = image("GIF", frames)
    for behind in (b"", b"\0\0\0", b";", b"something"):
        assert pictures.fault(whole[:-1] + behind) is None
    assert "cut short" in str(pictures.fault(whole[:-1] + b"!\xfe\x09comm"))
    assert "cut short" in str(pictures.fault(whole[:-1] + b",\0\0\0\0"))
    begins = 13 + 3 * 256
    odd = whole[:begins] + b"\x01" + whole[begins:]
    assert whole[begins] in b"!," and "before its first picture" in str(pictures.fault(odd))


def test_a_jpeg_that_lacks_its_end_is_told_though_pillow_takes_it() -> None:
    from PIL import Image

    pictures.check_there("check")
    chance = random.Random(7)
    for _ in range(20):
        out = io.BytesIO()
        Image.frombytes("CMYK", (33, 21), chance.randbytes(33 * 21 * 4)).save(out, "JPEG")
        assert pictures.fault(out.getvalue()) is None
        assert pictures.fault(out.getvalue()[:-2]) is not None


@pytest.mark.parametrize("cut", [2, 5, 8])
def test_bytes_that_end_a_gif_may_stand_in_it(cut: int) -> None:
    """As they do in most that have more than 64 KiB."""
    whole = image("GIF", 3, comment=b"a\0;b")
    assert pictures.fault(whole) is None and b"\0;" in whole[:-cut]
    assert pictures.fault(whole[:-cut]) is not None


def test_large_images_are_decoded_one_at_a_time_and_small_ones_beside_each_other() -> None:
    turns = pictures._Turns(100)
    held, most, meets = [0], [0], threading.Barrier(3)
    lock = threading.Lock()

    def decode(width: int, beside: bool) -> None:
        with turns.of(SimpleNamespace(width=width, height=1)):
            with lock:
                held[0] += width
                most[0] = max(most[0], held[0])
            if beside:
                meets.wait(30)
            with lock:
                held[0] -= width

    for widths, beside in (((30, 30, 40), True), ((500, 500, 60, 60), False)):
        most[0] = 0
        threads = [threading.Thread(target=decode, args=(width, beside)) for width in widths]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert most[0] == max(sum(widths) if beside else 0, *widths)


def test_too_little_memory_is_no_fault_of_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import ImageFile

    def full(*_: Any) -> None:
        raise MemoryError

    whole = image("BMP")
    monkeypatch.setattr(ImageFile.ImageFile, "load", full)
    with pytest.raises(MemoryError):
        pictures.fault(whole)
    with pytest.raises(MemoryError):
        pictures.resized(whole, (2, 2))


@pytest.mark.parametrize("transparent", [False, True])
def test_a_gif_whose_first_picture_has_a_colour_that_its_table_lacks_is_broken(transparent: bool) -> None:
    Image = pytest.importorskip("PIL.Image")
    made = Image.new("P", (6, 4))
    made.putpalette([value for i in range(8) for value in (i * 20, 9, 255 - i)])
    made.putdata([i % 8 for i in range(24)])
    out = io.BytesIO()
    made.save(out, "GIF", optimize=False, **({"transparency": 3} if transparent else {}))
    whole = out.getvalue()
    size = 3 << (whole[10] & 7) + 1
    assert pictures.fault(whole) is None and size >= 24
    # four colours in its table, and the numbers of eight in its pixels
    less = whole[:10] + bytes([whole[10] & 0xF8 | 1]) + whole[11:25] + whole[13 + size :]
    assert pictures.fault(less) == "a damaged GIF: colour 7 of 4"
