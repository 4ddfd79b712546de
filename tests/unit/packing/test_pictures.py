"""What is said of images that are decoded as a whole."""

from __future__ import annotations

import io

import pytest

from akrunner.packing import pictures


def image(form: str, frames: int = 1) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    pictures.check_there("check")
    several = [Image.effect_noise((20, 10), 40 + one) for one in range(frames)]
    several[0].save(out, form, **({"save_all": True, "append_images": several[1:]} if frames > 1 else {}))
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
