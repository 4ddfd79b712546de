"""What is said of images that are decoded as a whole."""

from __future__ import annotations

import io
import random
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
    assert pictures.fault(image(form, frames)[:-cut]) is not None


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_bytes_that_end_a_gif_may_stand_in_it(cut: int) -> None:
    """As they do in most that have more than 64 KiB."""
    whole = image("GIF", 3, comment=b"a\0;b")
    assert pictures.fault(whole) is None and b"\0;" in whole[:-cut]
    assert pictures.fault(whole[:-cut]) is not None
