"""Images decoded as a whole, and resized, by Pillow: imported here, and only if it is asked for. Any thread may call this."""

from __future__ import annotations

import contextlib
import io
import struct
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from akrunner.errors import ConfigError
from akrunner.packing import images, png

#: pixels of images that are decoded beside each other, each of four bytes; one that has more is decoded alone
_TOGETHER = 1 << 28
_QUALITY = 95
_PNG = b"\x89PNG\r\n\x1a\n"
_JPEGS, _JPEG_END = ("JPEG", "MPO"), b"\xff\xd9"
_CUT = "its end is missing: it was cut short"
#: what begins a part of a GIF: an extension, a picture, the end
_EXTENSION, _PICTURE, _TRAILER = b"!,;"


def check_there(parameter: str) -> None:
    """Raises: ConfigError: Pillow is not installed."""
    try:
        import PIL.Image
    except ImportError:
        raise ConfigError(f"{parameter} needs Pillow, which is not installed: pip install 'akrunner[pack]'") from None
    PIL.Image.init()


def fault(data: bytes) -> str | None:
    """Decode an image as a whole. Returns: what is wrong with it, None: nothing."""
    try:
        why = _why_not(data)
        if data.startswith(_PNG):
            return why or png.fault(data)
        with _opened(data, why) as image, _turns.of(image):
            image.load()
            if image.format == "GIF" and (odd := _colour_fault(image, data)):
                return odd
            # Pillow shows all it can where the end is missing. Some programs write something behind the end
            if image.format == "GIF":
                return _gif_fault(data)
            if image.format in _JPEGS and _JPEG_END not in data and data[-1:] != _JPEG_END[:1]:
                return _CUT
    except MemoryError:
        # no fault of the image
        raise
    except Exception as e:
        return _words(e)
    return None


class _Turns:
    """Who decodes: as many at a time as have few pixels, and a very large one alone, in the order they came. The memory is bounded so, whatever there is to decode."""

    def __init__(self, limit: int = _TOGETHER) -> None:
        self._limit, self._held = limit, 0
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def of(self, image: Any) -> Iterator[None]:
        pixels, ticket = image.width * image.height, object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                while self._waiting[0] is not ticket or (self._held and self._held + pixels > self._limit):
                    self._changed.wait()
                self._held += pixels
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._held -= pixels
                self._changed.notify_all()


_turns = _Turns()


def _colour_fault(image: Any, data: bytes) -> str | None:
    """Whether the first picture of a GIF has a colour that its table lacks, which TensorFlow refuses. Args: image: it is loaded, and has the numbers of colours."""
    at = 13 + images.colour_bytes(data[10])
    while at < len(data) and data[at] == _EXTENSION:
        at = _behind_blocks(data, at + 2)
    if image.mode not in ("P", "L") or at >= len(data) or data[at] != _PICTURE:
        return None
    left, top, width, height, flags = struct.unpack_from("<4HB", data, at + 1)
    colours = (images.colour_bytes(flags) or images.colour_bytes(data[10])) // 3
    # around a picture that is smaller than the whole Pillow has what is in no file
    _, highest = image.crop((left, top, min(left + width, image.width), min(top + height, image.height))).getextrema()
    return f"a damaged GIF: colour {highest} of {colours}" if colours and highest >= colours else None


def _gif_fault(data: bytes) -> str | None:
    """Whether a GIF lacks a part of a picture, told by its parts, as the bytes that begin one stand in compressed pixels, too. TensorFlow decodes what has no end
    but all of its pictures, as some programs write them, and nothing that has something else before the first."""
    at, pictures = 13 + images.colour_bytes(data[10]), 0
    while at < len(data):
        if data[at] == _TRAILER:
            break
        if data[at] == _EXTENSION:
            at = _behind_blocks(data, at + 2)
        elif data[at] == _PICTURE:
            flags = data[at + 9] if at + 9 < len(data) else 0
            at = _behind_blocks(data, at + 11 + images.colour_bytes(flags))
            pictures += 1
        elif not pictures:
            return "a damaged GIF: before its first picture stands what is no part of one"
        else:
            # as Pillow passes over it
            at += 1
    return None if at <= len(data) and pictures else _CUT


def _behind_blocks(data: bytes, at: int) -> int:
    """Where blocks of a GIF, each with its length before it, have ended with an empty one; behind the end: they have not."""
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1


def resized(data: bytes, size: tuple[int, int]) -> tuple[bytes, str]:
    """The image in another size (height, width), turned as EXIF says. A JPEG stays one (grey stays grey, what is not RGB becomes RGB), all
    else becomes PNG; of several pictures the first is taken.

    Returns: (the encoded image, ""), or (nothing, what is wrong with it).
    """
    try:
        why = _why_not(data)
        if not data.startswith(_PNG) or why:
            return _made(data, size, why), ""
        # Pillow takes what TensorFlow refuses, and makes a picture of it that is not whole
        if odd := png.fault(data):
            raise _Refused(odd)
        try:
            return _made(data, size, ""), ""
        except MemoryError:
            raise
        except Exception:
            # and it fails for words and numbers beside the picture, which TensorFlow does not read
            with contextlib.suppress(Exception):
                return _made(png.plain(data, (b"tRNS",)), size, ""), ""
            return _made(png.plain(data), size, ""), ""
    except MemoryError:
        # no fault of the image
        raise
    except Exception as e:
        return b"", _words(e)


def _made(data: bytes, size: tuple[int, int], why: str) -> bytes:
    """As `resized`. Args: why: as `_why_not`. Raises: _Refused, or what Pillow raises."""
    from PIL import Image, ImageOps

    with _opened(data, why) as image:
        jpeg = image.format in ("JPEG", "MPO")
        if jpeg:
            # decodes no more than is needed; the size EXIF turns round is asked for the longer way
            longer = max(size) * 2
            image.draft(None, (longer, longer))
        with _turns.of(image):
            # where nothing is to be turned, no second image is made
            ImageOps.exif_transpose(image, in_place=True)
            whole = _plain(image, jpeg)
            if whole.size != (size[1], size[0]):
                whole = whole.resize((size[1], size[0]), Image.Resampling.BICUBIC, reducing_gap=3.0)
        out = io.BytesIO()
        if jpeg:
            whole.save(out, "JPEG", quality=_QUALITY)
        else:
            whole.save(out, "PNG")
        return out.getvalue()


class _Refused(Exception):
    """Not decoded; its words say why."""


def _why_not(data: bytes) -> str:
    """What the header of an image says of why nobody, or TensorFlow, decodes it; "": nothing."""
    looked = images.look([data])
    return looked.problems.get(0, "") if looked.format[0] in images.STRICT else ""


def _opened(data: bytes, why: str) -> Any:
    """Its header is read. Args: why: as `_why_not`. Raises: _Refused, or what Pillow raises."""
    # what cannot be is not tried: a small file that says that it is huge takes its memory before it breaks
    if why and images.NOT_DECODED not in why:
        raise _Refused(why)
    image = _found(data)
    if image.width * image.height >= images.MOST_PIXELS:
        raise _Refused(
            f"{image.width:,} x {image.height:,} pixels, too many for --resize and --check whole, which decode less than {images.MOST_PIXELS:,}"
        )
    return image


def _found(data: bytes) -> Any:
    """As `Image.open`, which takes no more than a sixth of the pixels that TensorFlow decodes, and has one limit for a whole process."""
    from PIL import Image

    for name in Image.ID:
        make, takes = Image.OPEN[name]
        # what is none after all fails so
        with contextlib.suppress(SyntaxError, IndexError, TypeError, struct.error):
            taken = not takes or takes(data[:16])
            if taken and not isinstance(taken, str):
                return make(io.BytesIO(data), "")
    raise _Refused("no image that Pillow knows")


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
    if isinstance(error, _Refused):
        return str(error)
    if type(error).__name__ == "DecompressionBombError":
        return "not broken, but too large for --resize and --check whole: Pillow decodes less pixels of its format"
    text = " ".join(str(error).split())[:200]
    return f"it cannot be decoded: {text or type(error).__name__}"
