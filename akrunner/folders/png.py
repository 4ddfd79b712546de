"""Checks whether a whole PNG can be decoded by libpng, which TensorFlow uses; Pillow accepts some PNGs that libpng refuses.

::

    chunks, each with its checksum -> those that a picture needs, in the right order
    the bytes of all IDAT chunks   -> inflated, piece by piece: as many as the rows need, each row with a filter that exists
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from akrunner.arrays import Octets

#: a PNG's colour type -> (numbers for each pixel, how many bits each number may have)
COLOURS = {0: (1, (1, 2, 4, 8, 16)), 2: (3, (8, 16)), 3: (1, (1, 2, 4, 8)), 4: (2, (8, 16)), 6: (4, (8, 16))}
#: most pixels on a side that libpng takes
MOST_SIDE = 1_000_000
_PALETTE = 3
#: how many bytes libpng inflates at a time: behind the last row it looks no further than to the end of the same piece
_PIECE = 8192
#: most inflated bytes that are held at a time
_HELD = 1 << 20
_FILTERS = 4
_SIGNATURE = 8
#: first column and row, and steps, of the passes of an interlaced picture
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_CUT = "its end is missing: it was cut short"


class _Refused(Exception):
    """The PNG cannot be decoded; the message says why."""


def fault(data: Octets) -> str | None:
    """Return why TensorFlow does not decode a PNG; None: it does.

    Args: data: a PNG with a header that `images.look` found right.
    """
    try:
        _inflate(data, _pixels(data))
    except _Refused as e:
        return str(e)
    return None


def plain(data: Octets, also: tuple[bytes, ...] = ()) -> bytes:
    """Return a PNG in which `fault` finds no fault without its optional parts.

    Pillow fails for a damaged optional part that other programs skip. Args: also: optional parts to keep.
    """
    view = memoryview(data)
    kept = [view[first - 8 : end + 4] for kind, first, end in _chunks(data) if not kind[0] & 0x20 or kind in also]
    return b"".join([view[:_SIGNATURE], *kept])


def _pixels(data: Octets) -> list[tuple[int, int]]:
    """Check the chunks to the end.

    Returns: (first, end) position of the bytes of each chunk that has pixels. Raises: _Refused.
    """
    found: list[tuple[int, int]] = []
    palette, over = False, False
    for kind, first, end in _chunks(data):
        if kind == b"IDAT":
            if not found and data[25] == _PALETTE and not palette:
                raise _Refused("a damaged PNG: its pixels are numbers of colours, and it has no colours (PLTE) before them")
            # a second series of such chunks, behind others, is skipped
            if not over:
                found.append((first, end))
            continue
        over = bool(found)
        if kind == b"PLTE":
            _check_palette(end - first, data[25], palette, over)
            palette = palette or not over
        elif kind == b"IHDR" and first != 16:
            raise _Refused("a damaged PNG: it has a second header")
        elif not kind[0] & 0x20 and kind not in (b"IHDR", b"IEND"):
            raise _Refused(
                f"a PNG with a part {kind.decode()!r} that TensorFlow does not know, and without which it may not be read"
            )
    if not found:
        raise _Refused("a PNG without pixels")
    return found


def _chunks(data: Octets) -> Iterator[tuple[bytes, int, int]]:
    """Give (type, first, end position of its bytes) of each chunk, up to IEND. Raises: _Refused."""
    view, at, size = memoryview(data), _SIGNATURE, len(data)
    while True:
        head = bytes(view[at : at + 8])
        first, end = at + 8, at + 8 + int.from_bytes(head[:4], "big")
        kind = head[4:]
        if len(head) == 8 and not (kind.isalpha() and kind.isascii()):
            raise _Refused("a damaged PNG: where one of its parts has to begin stands something else")
        if end + 4 > size:
            raise _Refused(_CUT)
        # only the checksum of a required chunk is checked: an optional one may be damaged
        if not kind[0] & 0x20 and zlib.crc32(view[at + 4 : end]) != int.from_bytes(view[end : end + 4], "big"):
            raise _Refused(f"a damaged PNG: the checksum of its part {kind.decode()!r} is another one")
        yield kind, first, end
        if kind == b"IEND":
            return
        at = end + 4


def _check_palette(size: int, colours: int, again: bool, late: bool) -> None:
    if again:
        raise _Refused("a damaged PNG: it has its colours (PLTE) twice")
    if late or not colours & 2:
        return
    if not size or (colours == _PALETTE and (size % 3 or size > 768)):
        raise _Refused(f"a damaged PNG: its colours (PLTE) have {size:,} bytes")


def _inflate(data: Octets, places: list[tuple[int, int]]) -> None:
    """Inflate the pixels.

    Args: places: the result of `_pixels`. Raises: _Refused: rows are missing, or one of them is damaged.
    """
    passes = _passes(data)
    wanted, done = sum(stride * rows for stride, rows in passes), 0
    inflater, view = zlib.decompressobj(wbits=0), memoryview(data)
    for first, end in places:
        for at in range(first, end, _PIECE):
            piece: Octets = view[at : min(at + _PIECE, end)]
            while len(piece) and not inflater.eof:
                try:
                    some = inflater.decompress(piece, min(_HELD, wanted - done) or _HELD)
                except zlib.error as e:
                    if done == wanted:
                        # damaged bytes behind the picture do not matter
                        return
                    raise _Refused(f"a damaged PNG: its pixels cannot be inflated ({str(e).rpartition(': ')[2]})") from None
                if done < wanted:
                    _check_filters(some, done, passes)
                    done += len(some)
                piece = inflater.unconsumed_tail
            if inflater.eof and done == wanted:
                return
    if done < wanted:
        raise _Refused(f"a damaged PNG: its pixels have {done:,} bytes, and its header says {wanted:,}")
    raise _Refused("its pixels have no end: it was cut short")


def _passes(data: Octets) -> list[tuple[int, int]]:
    """Return (bytes of a row with its filter, number of rows) of each pass of a picture; one pass if it is not interlaced."""
    head = bytes(data[:33])
    width, height = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    bits = COLOURS[head[25]][0] * head[24]
    if not head[28]:
        return [((width * bits + 7) // 8 + 1, height)]
    sides = [(-(-(width - x) // right), -(-(height - y) // down)) for x, y, right, down in _PASSES]
    return [((across * bits + 7) // 8 + 1, rows) for across, rows in sides if across > 0 and rows > 0]


def _check_filters(some: bytes, done: int, passes: list[tuple[int, int]]) -> None:
    """Raise a _Refused if a row has a filter that does not exist.

    Args: some: inflated bytes; done: how many came before them.
    """
    begins = 0
    for stride, rows in passes:
        ends = begins + stride * rows
        if ends > done and begins < done + len(some):
            # position in `some` of the first row that begins there
            first = max(0, begins - done) if begins >= done else -(done - begins) % stride
            if max(some[first : max(0, ends - done) : stride], default=0) > _FILTERS:
                raise _Refused("a damaged PNG: a row of its pixels has a filter that there is not")
        begins = ends
