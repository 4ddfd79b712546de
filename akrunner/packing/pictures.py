"""Images decoded as a whole, and resized, by Pillow: imported here, and only if it is asked for. Any thread may call this."""

from __future__ import annotations

import io
from typing import Any, Optional, Tuple

from akrunner.errors import ConfigError
from akrunner.packing import images

#: pixels of an image that is decoded; Pillow warns of more
MOST_PIXELS = 89_478_485
_QUALITY = 95
#: bytes from the end where a PNG's is looked for
_BEHIND = 1 << 16
_PNG_END = b"IEND\xaeB`\x82"
#: what begins a part of a GIF: an extension, a picture, the end
_EXTENSION, _PICTURE, _TRAILER = b"!,;"


def check_there(parameter: str) -> None:
    """Raises: ConfigError: Pillow is not installed."""
    try:
        import PIL.Image
    except ImportError:
        raise ConfigError(f"{parameter} needs Pillow, which is not installed: pip install 'akrunner[pack]'") from None
    PIL.Image.init()


def fault(data: bytes) -> Optional[str]:
    """Decode an image as a whole. Returns: what is wrong with it, None: nothing."""
    try:
        with _opened(data) as image:
            image.load()
            # of both Pillow shows all it can where the end is missing, and TensorFlow nothing. Some programs write something behind the end
            if (image.format == "PNG" and _PNG_END not in data[-_BEHIND:]) or (
                image.format == "GIF" and not _has_trailer(data)
            ):
                return "its end is missing: it was cut short"
    except Exception as e:
        return _words(e)
    return None


def _has_trailer(data: bytes) -> bool:
    """Whether a GIF goes on to its end: told by its parts, as the bytes that end one stand in compressed pixels, too."""
    at = 13 + _colours(data[10])
    while at < len(data):
        if data[at] == _TRAILER:
            return True
        if data[at] == _EXTENSION:
            at = _behind_blocks(data, at + 2)
        elif data[at] == _PICTURE and at + 9 < len(data):
            at = _behind_blocks(data, at + 11 + _colours(data[at + 9]))
        else:
            # as Pillow passes over it
            at += 1
    return False


def _colours(flags: int) -> int:
    """Bytes of a GIF's table of colours."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _behind_blocks(data: bytes, at: int) -> int:
    """Where blocks of a GIF, each with its length before it, have ended with an empty one."""
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1


def resized(data: bytes, size: Tuple[int, int]) -> Tuple[bytes, str]:
    """The image in another size (height, width), turned as EXIF says. A JPEG stays one (grey stays grey, what is not RGB becomes RGB), all
    else becomes PNG; of several pictures the first is taken.

    Returns: (the encoded image, ""), or (nothing, what is wrong with it).
    """
    from PIL import Image, ImageOps

    try:
        with _opened(data) as image:
            jpeg = image.format in ("JPEG", "MPO")
            if jpeg:
                # decodes no more than is needed; the size EXIF turns round is asked for the longer way
                longer = max(size) * 2
                image.draft(None, (longer, longer))
            whole = ImageOps.exif_transpose(image)
            whole = _plain(whole, jpeg)
            if whole.size != (size[1], size[0]):
                whole = whole.resize((size[1], size[0]), Image.Resampling.BICUBIC, reducing_gap=3.0)
            out = io.BytesIO()
            if jpeg:
                whole.save(out, "JPEG", quality=_QUALITY)
            else:
                whole.save(out, "PNG")
            return out.getvalue(), ""
    except Exception as e:
        return b"", _words(e)


def _opened(data: bytes) -> Any:
    from PIL import Image

    # before Pillow looks, which warns of so many
    looked = images.look([data])
    pixels = int(looked.height[0]) * int(looked.width[0])
    if pixels > MOST_PIXELS:
        raise ValueError(f"it has {pixels:,} pixels; the most is {MOST_PIXELS:,}")
    image = Image.open(io.BytesIO(data))
    return image


def _plain(image: Any, jpeg: bool) -> Any:
    """In a mode that the format and TensorFlow have: 8 bits, grey or RGB, with transparency in a PNG."""
    if image.mode in ("L", "RGB") or (not jpeg and image.mode in ("LA", "RGBA")):
        return image
    if jpeg:
        return image.convert("RGB")
    if image.mode.startswith("I;16"):
        return image.point(lambda value: value / 256).convert("L")
    if image.mode == "1":
        return image.convert("L")
    transparent = image.mode in ("PA", "La", "RGBa") or "transparency" in image.info
    return image.convert("RGBA" if transparent else "RGB")


def _words(error: Exception) -> str:
    if type(error).__name__ == "UnidentifiedImageError":
        return "no image that Pillow knows"
    text = " ".join(str(error).split())[:200]
    return f"it cannot be decoded: {text or type(error).__name__}"
