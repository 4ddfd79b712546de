"""Decoding of whole images, to check or resize them, with Pillow.

Pillow is imported in this module only, and only if it is needed. All functions may be called from any thread.
"""

from __future__ import annotations

import contextlib
import io
import struct
import threading
import warnings
from collections import deque
from collections.abc import Iterator
from typing import Any

from akrunner.errors import ConfigError
from akrunner.folders import images, png

#: most pixels (of four bytes each) of the images that are decoded at the same time; an image that has more is decoded alone
_TOGETHER = 1 << 28
_QUALITY = 95
_PNG = b"\x89PNG\r\n\x1a\n"
_JPEGS, _JPEG_END = ("JPEG", "MPO"), b"\xff\xd9"
_CUT = "its end is missing: it was cut short"
#: bytes that begin a part of a GIF: an extension, a picture, the end
_EXTENSION, _PICTURE, _TRAILER = b"!,;"


def check_there(parameter: str) -> None:
    """Raise a ConfigError if Pillow is not installed. Args: parameter: the parameter that needs it."""
    try:
        import PIL.Image
    except ImportError:
        raise ConfigError(f"{parameter} needs Pillow, which is not installed: pip install 'akrunner[pack]'") from None
    PIL.Image.init()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep Pillow's warnings from being printed in the block: about damaged EXIF data, for one, and they name no file."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def fault(data: bytes) -> str | None:
    """Decode a whole image, and return what is wrong with it; None: nothing."""
    try:
        why = _why_not(data)
        if data.startswith(_PNG):
            return why or png.fault(data)
        with _opened(data, why) as image, _turns.of(image):
            image.load()
            if image.format == "GIF" and (odd := _colour_fault(image, data)):
                return odd
            # Pillow decodes what it can of an image whose end is missing. Some programs write something behind the end
            if image.format == "GIF":
                return _gif_fault(data)
            if image.format in _JPEGS and _JPEG_END not in data and data[-1:] != _JPEG_END[:1]:
                return _CUT
    except MemoryError:
        # not the fault of the image
        raise
    except Exception as e:
        return _words(e)
    return None


class _Turns:
    """Bounds the memory of decoding: several images are decoded at a time if they have few pixels, a very large one alone.

    Threads take turns in the order in which they came.
    """

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
    """Return an error if the first picture of a GIF has a colour that its table lacks, which TensorFlow refuses; else None.

    Args: image: the loaded image, whose pixels are numbers of colours; data: the file.
    """
    at = 13 + images.colour_bytes(data[10])
    while at < len(data) and data[at] == _EXTENSION:
        at = _behind_blocks(data, at + 2)
    if image.mode not in ("P", "L") or at >= len(data) or data[at] != _PICTURE:
        return None
    left, top, width, height, flags = struct.unpack_from("<4HB", data, at + 1)
    colours = (images.colour_bytes(flags) or images.colour_bytes(data[10])) // 3
    # a picture may be smaller than the whole image; the pixels that Pillow puts around it are not in the file
    _, highest = image.crop((left, top, min(left + width, image.width), min(top + height, image.height))).getextrema()
    return f"a damaged GIF: colour {highest} of {colours}" if colours and highest >= colours else None


def _gif_fault(data: bytes) -> str | None:
    """Return an error if a GIF lacks a part of a picture; else None.

    The file is read part by part, because the bytes that begin a part may also occur in compressed pixels. TensorFlow decodes a
    GIF without an end if all of its pictures are there, as some programs write it, but not one with something else before its
    first.
    """
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
            # Pillow skips such bytes, too
            at += 1
    return None if at <= len(data) and pictures else _CUT


def _behind_blocks(data: bytes, at: int) -> int:
    """Return the position behind a series of blocks of a GIF; behind the end of the file if the series does not end.

    Each block has its length before it, and an empty block ends the series. Args: at: position of the first block.
    """
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1


def resized(data: bytes, size: tuple[int, int]) -> tuple[bytes, str]:
    """Resize an image to (height, width), and turn it as EXIF says.

    A JPEG stays a JPEG: grey stays grey, any other mode becomes RGB. All other formats become PNG. Of several pictures the
    first is used.

    Returns: (the encoded image, ""), or (b"", what is wrong with it).
    """
    try:
        why = _why_not(data)
        if not data.startswith(_PNG) or why:
            return _made(data, size, why), ""
        # Pillow accepts some PNGs that TensorFlow refuses, and makes incomplete pictures from them
        if odd := png.fault(data):
            raise _Refused(odd)
        try:
            return _made(data, size, ""), ""
        except MemoryError:
            raise
        except Exception:
            # Pillow also fails for damaged texts and numbers beside the picture, which TensorFlow does not read: leave them out
            with contextlib.suppress(Exception):
                return _made(png.plain(data, (b"tRNS",)), size, ""), ""
            return _made(png.plain(data), size, ""), ""
    except MemoryError:
        # not the fault of the image
        raise
    except Exception as e:
        return b"", _words(e)


def _made(data: bytes, size: tuple[int, int], why: str) -> bytes:
    """Return an image resized as by `resized`. Args: why: the result of `_why_not`. Raises: _Refused; any error of Pillow's."""
    from PIL import Image, ImageOps

    with _opened(data, why) as image:
        jpeg = image.format in ("JPEG", "MPO")
        if jpeg:
            # decode no more pixels than are needed; the longer side is asked for both ways, as EXIF may swap height and width
            longer = max(size) * 2
            image.draft(None, (longer, longer))
        with _turns.of(image):
            # in place, so that no second image is made if nothing is to be turned
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


#: how many of a file's first bytes tell its kind
_BEGINNING = 1024


class _Refused(Exception):
    """The image is not decoded; the message says why."""


def _why_not(data: bytes) -> str:
    """Return why an image cannot be decoded at all, or not by TensorFlow, as far as its header tells; "": nothing is wrong."""
    looked = images.look([data])
    return looked.problems.get(0, "") if looked.format[0] in images.STRICT else ""


def _opened(data: bytes, why: str) -> Any:
    """Open an image, and read its header. Args: why: the result of `_why_not`. Raises: _Refused; any error of Pillow's."""
    # do not try what cannot work: for a small file that says that it is huge, memory is taken before it turns out to be broken
    if why and images.NOT_DECODED not in why:
        raise _Refused(why)
    image = _found(data)
    if image.width * image.height >= images.MOST_PIXELS:
        raise _Refused(
            f"{image.width:,} x {image.height:,} pixels, too many for --resize and --check whole, which decode less than "
            f"{images.MOST_PIXELS:,}"
        )
    return image


def _found(data: bytes) -> Any:
    """Open an image as `Image.open` does, but without its limit of pixels.

    That limit is a sixth of the pixels that TensorFlow decodes, and there is only one for the whole process.
    """
    from PIL import Image

    for name in Image.ID:
        make, takes = Image.OPEN[name]
        # a format raises one of these if the file is not of that format after all
        with contextlib.suppress(SyntaxError, IndexError, TypeError, struct.error):
            taken = not takes or takes(data[:16])
            if taken and not isinstance(taken, str):
                return make(io.BytesIO(data), "")
    raise _Refused(images.no_image(data[:_BEGINNING]) or "no image that Pillow knows")


def _plain(image: Any, jpeg: bool) -> Any:
    """Return the image in a mode that both its format and TensorFlow have: 8 bits, grey or RGB, with transparency in a PNG."""
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
