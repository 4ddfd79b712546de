"""Images decoded as a whole, and resized, by Pillow: imported here, and only if it is asked for. Any thread may call this."""

from __future__ import annotations

import contextlib
import io
import struct
import threading
from collections import deque
from typing import Any, Deque, Iterator, Optional, Tuple

from akrunner.errors import ConfigError
from akrunner.packing import images

#: pixels of images that are decoded beside each other, each of four bytes; one that has more is decoded alone
_TOGETHER = 1 << 28
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
        with _opened(data) as image, _turns.of(image):
            image.load()
            # of both Pillow shows all it can where the end is missing, and TensorFlow nothing. Some programs write something behind the end
            if (image.format == "PNG" and _PNG_END not in data[-_BEHIND:]) or (
                image.format == "GIF" and not _has_trailer(data)
            ):
                return "its end is missing: it was cut short"
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
        self._waiting: Deque[object] = deque()
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


def _has_trailer(data: bytes) -> bool:
    """Whether a GIF goes on to its end: told by its parts, as the bytes that end one stand in compressed pixels, too."""
    at = 13 + images.colour_bytes(data[10])
    while at < len(data):
        if data[at] == _TRAILER:
            return True
        if data[at] == _EXTENSION:
            at = _behind_blocks(data, at + 2)
        elif data[at] == _PICTURE and at + 9 < len(data):
            at = _behind_blocks(data, at + 11 + images.colour_bytes(data[at + 9]))
        else:
            # as Pillow passes over it
            at += 1
    return False


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
            return out.getvalue(), ""
    except MemoryError:
        # no fault of the image
        raise
    except Exception as e:
        return b"", _words(e)


class _Refused(Exception):
    """Not decoded; its words say why."""


def _opened(data: bytes) -> Any:
    """Its header is read. Raises: _Refused, or what Pillow raises."""
    # what cannot be is not tried: a small file that says that it is huge takes its memory before it breaks
    looked = images.look([data])
    why = looked.problems.get(0, "") if looked.format[0] in images.STRICT else ""
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
