"""Reading of the headers of encoded images, many at once.

::

    [bytes, ...] -> their beginnings, end to end -> format, from the first bytes; width and height, from a fixed position
                                                    JPEG: width and height, segment by segment, all images together

Formats: those that `tf.io.decode_image` reads (JPEG, PNG, GIF, BMP), and WebP. Decoding a whole image, or resizing it, takes
Pillow (`pictures`).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from akrunner.arrays import Octets
from akrunner.checks import counted
from akrunner.folders import png

U8 = NDArray[np.uint8]
I64 = NDArray[np.int64]

FORMATS = ("jpeg", "png", "gif", "bmp", "webp")
#: endings of the names of images
ENDINGS = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".heic", ".avif")
#: formats (JPEG, PNG, GIF) of which an image that is refused by its header cannot be decoded by any program
STRICT = (0, 1, 2)
#: how many bytes of each file are looked at together; the few JPEGs whose header is longer are looked at a second time
_HEAD = 512
#: bytes of the header of each kind of bitmap
_BITMAPS = (40, 52, 56, 64, 108, 124)
#: bytes of the header of a bitmap of OS/2 1.x
_OS2 = 12
#: number in a bitmap's header -> how its pixels are compressed
_PACKED = {1: "RLE8", 2: "RLE4", 4: "JPEG", 5: "PNG"}
#: TensorFlow decodes images of fewer pixels than this
MOST_PIXELS = 1 << 29
#: the most pixels for each byte of a complete JPEG, which has at least a bit for 8 x 8 pixels (with room for odd sampling)
_PIXELS_A_BYTE = 2048
#: bytes of a PNG besides its compressed pixels (signature, header, the frame of one piece of pixels, end); and the most bytes
#: that one byte can inflate to
_PNG_AROUND, _INFLATED = 57, 1032
#: least bytes of a GIF besides its table of colours: its header, that of a picture, and blocks of pixels, the last empty
_GIF_AROUND = 13 + 10 + 1 + 1
#: markers before a JPEG's size that say that it is lossless, or made of several images (hierarchical)
_ODD_JPEGS = (0xC3, 0xC5, 0xC6, 0xC7, 0xCB, 0xCD, 0xCE, 0xCF)
NOT_DECODED = "which TensorFlow does not decode"
_NO_BITMAP = "no image: it begins as a BMP, and has no header of one"
_RESIZED = "; resize= (--resize) makes a PNG of it"
#: most segments before the size in a JPEG; a photograph has about ten
_MOST_SEGMENTS = 5000
_STARTS: tuple[tuple[bytes, int], ...] = (
    (b"\xff\xd8\xff", 0),
    (b"\x89PNG\r\n\x1a\n", 1),
    (b"GIF87a", 2),
    (b"GIF89a", 2),
    (b"BM", 3),
)
#: first bytes of files of other kinds, and the kind in words
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"II*\0", "a TIFF"), (b"MM\0*", "a TIFF"), (b"%PDF", "a PDF"), (b"PK", "a zip archive"), (b"\x1f\x8b", "a gzip archive"),
    (b"<!", "an HTML page"), (b"<html", "an HTML page"), (b"<svg", "an SVG"), (b"<?xml", "XML"), (b"{", "JSON"),
)  # fmt: skip


@dataclass
class Looked:
    """What the headers of images say.

    Attributes:
        height: height of each image [rows].
        width: width of each image [rows].
        format: index in `FORMATS`; -1: none of them [rows].
        problems: row -> why the file is not an image that can be decoded, half a sentence.
    """

    height: I64
    width: I64
    format: NDArray[np.int8]
    problems: dict[int, str]


def look(datas: Sequence[Octets | None]) -> Looked:
    """Read the headers of files. Args: datas: the bytes of each file; None: there is no file, and no problem is reported."""
    rows = len(datas)
    found = Looked(np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.full(rows, -1, np.int8), {})
    sizes = np.fromiter((-1 if data is None else len(data) for data in datas), np.int64, rows)
    _look_at(datas, sizes, found, np.flatnonzero(sizes >= 0), _HEAD)
    _check_sizes(sizes, found)
    for i in np.flatnonzero(found.format == 1).tolist():
        if i not in found.problems and (words := _odd_png(datas[i] or b"", int(found.height[i]), int(found.width[i]))):
            found.problems[i] = words
    for i in np.flatnonzero(found.format == 2).tolist():
        head = datas[i] or b""
        if i not in found.problems and len(head) < _GIF_AROUND + colour_bytes(head[10]):
            found.problems[i] = "a GIF that is cut short"
    for i in np.flatnonzero(found.format == 3).tolist():
        if i not in found.problems and (words := _odd_bitmap(datas[i] or b"", int(found.height[i]), int(found.width[i]))):
            found.problems[i] = words
    return found


def _odd_png(data: Octets, height: int, width: int) -> str:
    """Return why a PNG that has a header cannot be decoded, as far as the header tells; "": it can."""
    head = bytes(data[:33])
    numbers_a_pixel, bits = png.COLOURS.get(head[25], (0, ()))
    if zlib.crc32(head[12:29]) != int.from_bytes(head[29:33], "big"):
        return "a damaged PNG: the checksum of its header is another one"
    if head[24] not in bits:
        return f"a damaged PNG: its header says {head[24]} bits of the colours {head[25]}"
    if bytes(head[8:12]) != b"\0\0\0\r" or head[26] or head[27] or head[28] > 1:
        return "a damaged PNG: its header says that it is made as none is"
    if max(height, width) > png.MOST_SIDE:
        return f"a PNG of {width:,} x {height:,} pixels, more than {png.MOST_SIDE:,} on a side, {NOT_DECODED}"
    if len(data) <= _PNG_AROUND:
        return "a PNG that is cut short"
    if height * width * numbers_a_pixel * head[24] // 8 > (len(data) - _PNG_AROUND) * _INFLATED:
        return f"a damaged PNG: its header says {_more_than(height, width, len(data))}"
    return ""


def colour_bytes(flags: int) -> int:
    """Return the number of bytes of a GIF's table of colours. Args: flags: the byte that describes the table."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _more_than(height: int, width: int, size: int) -> str:
    return f"{width:,} x {height:,} pixels, more than its {size:,} bytes can hold"


def _odd_bitmap(data: Octets, height: int, width: int) -> str:
    """Return why TensorFlow does not decode a BMP; "": it does.

    The newest TensorFlow refuses a file that has fewer bytes than its rows, or any behind them. Of the header it reads only
    where the rows begin, the size of the image, and the bits of a pixel.
    """
    head = bytes(data[:34])
    size = int.from_bytes(head[14:18], "little")
    if size == _OS2:
        return f"a BMP of OS/2 (with a header of {_OS2} bytes), {NOT_DECODED}{_RESIZED}"
    if len(head) < 34:
        return f"a BMP that is cut short{_RESIZED}"
    bits, packed = int.from_bytes(head[28:30], "little"), int.from_bytes(head[30:34], "little")
    wanted = int.from_bytes(head[10:14], "little") + (bits // 8 * width + 3) // 4 * 4 * height
    if size not in _BITMAPS and (bits // 8 not in (1, 3, 4) or len(data) != wanted):
        return _NO_BITMAP
    if size in _BITMAPS and packed in _PACKED:
        return f"a BMP whose pixels are compressed ({_PACKED[packed]}), {NOT_DECODED}{_RESIZED}"
    if bits // 8 not in (1, 3, 4):
        return f"a BMP of {counted(bits, 'bit')} a pixel, {NOT_DECODED}{_RESIZED}"
    if len(data) < wanted:
        return f"a BMP that is cut short: {len(data):,} bytes of {wanted:,}{_RESIZED}"
    if len(data) > wanted:
        return f"a BMP with {counted(len(data) - wanted, 'byte')} behind its picture, {NOT_DECODED}{_RESIZED}"
    return ""


def _check_sizes(sizes: I64, found: Looked) -> None:
    """Add problems for headers whose sizes are impossible or too large."""
    # as floats, because 64 bits may not hold the product of two numbers of 32 bits
    pixels = found.height.astype(np.float64) * found.width
    for i in np.flatnonzero((found.format == 0) & (pixels > sizes * _PIXELS_A_BYTE)).tolist():
        words = _more_than(int(found.height[i]), int(found.width[i]), int(sizes[i]))
        found.problems.setdefault(i, f"a damaged JPEG: its header says {words}")
    for i in np.flatnonzero(pixels >= MOST_PIXELS).tolist():
        words = f"{found.width[i]:,} x {found.height[i]:,} pixels; TensorFlow decodes less than {MOST_PIXELS:,}"
        found.problems.setdefault(i, f"its header says {words}")


def _look_at(datas: Sequence[Octets | None], whole: I64, found: Looked, rows: I64, head: int | None) -> None:
    """Read the headers of some files into `found`.

    Args:
        datas: the bytes of all files.
        whole: number of bytes of each file [files].
        found: takes the result.
        rows: which files to look at.
        head: how many bytes of each to look at; None: all.
    """
    if not len(rows):
        return
    heads = [(datas[i] or b"")[:head] for i in rows.tolist()]
    sizes = np.fromiter(map(len, heads), np.int64, len(heads))
    flat = np.frombuffer(b"".join([*heads, bytes(64)]), np.uint8)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    cut = whole[rows] > sizes
    kinds = _kinds(flat, starts, sizes)
    found.format[rows] = kinds
    for at in np.flatnonzero(kinds < 0).tolist():
        found.problems[int(rows[at])] = _what(bytes(heads[at]))
    for kind, (least, height, width) in _PLACES.items():
        here = np.flatnonzero(kinds == kind)
        if len(here):
            _read_sizes(flat, starts[here], sizes[here], rows[here], found, least, height, width, kind)
    here = np.flatnonzero(kinds == 4)
    for at in here.tolist():
        _read_webp(bytes(heads[at]), int(rows[at]), found)
    here = np.flatnonzero(kinds == 0)
    longer = _walk(flat, starts[here], starts[here] + sizes[here], cut[here], rows[here], found)
    _look_at(datas, whole, found, longer, None)
    if head is not None:
        for i in rows[(found.format[rows] >= 0) & ((found.height[rows] == 0) | (found.width[rows] <= 0))].tolist():
            found.problems.setdefault(
                i, f"a damaged {FORMATS[found.format[i]].upper()}: its header says {found.width[i]} x {found.height[i]}"
            )


def _kinds(flat: U8, starts: I64, sizes: I64) -> NDArray[np.int8]:
    kinds = np.full(len(starts), -1, np.int8)
    for magic, kind in _STARTS:
        wanted = np.frombuffer(magic, np.uint8)
        same = (flat[starts[:, None] + np.arange(len(magic))] == wanted).all(axis=1) & (sizes >= len(magic))
        kinds[same] = kind
    riff = (flat[starts[:, None] + np.arange(12)][:, [0, 1, 2, 3, 8, 9, 10, 11]] == np.frombuffer(b"RIFFWEBP", np.uint8)).all(
        axis=1
    )
    kinds[riff & (sizes >= 12)] = 4
    return kinds


def _what(head: bytes) -> str:
    """Return what a file is that is not an image of a known format, in words. Args: head: its first bytes."""
    if not head:
        return "empty"
    if head[4:8] == b"ftyp":
        return "a HEIC, AVIF or video file, which TensorFlow does not decode"
    other = _other(head)
    if other == "a TIFF":
        return "a TIFF, which TensorFlow does not decode; resize= (--resize) makes a PNG of it"
    if not head.strip(b"\0"):
        return "no image: it is full of zeros"
    return no_image(head) or "no image: it begins as none that is known (JPEG, PNG, GIF, BMP, WebP)"


def no_image(head: bytes) -> str:
    """Return of which other kind a file is that no program takes for an image, in words; "": of none that is known.

    Args: head: its first bytes.
    """
    other = _other(head)
    return f"{other}, no image" if other and other != "a TIFF" else ""


def _other(head: bytes) -> str:
    text = head.lstrip()[:64].lower()
    return next((words for magic, words in _OTHERS if text.startswith(magic.lower())), "")


#: format -> (least bytes of a file, (position, bytes, whether little endian) of the height, the same of the width)
_PLACES: dict[int, tuple[int, tuple[int, int, bool], tuple[int, int, bool]]] = {
    1: (33, (20, 4, False), (16, 4, False)),
    2: (13, (8, 2, True), (6, 2, True)),
    3: (26, (22, 4, True), (18, 4, True)),
}


def _number(flat: U8, at: I64, size: int, little: bool) -> I64:
    octets = flat[at[:, None] + np.arange(size)].astype(np.int64)
    octets = octets[:, ::-1] if little else octets
    value = np.zeros(len(at), np.int64)
    for i in range(size):
        value = value << 8 | octets[:, i]
    return value


def _read_sizes(
    flat: U8,
    starts: I64,
    sizes: I64,
    rows: I64,
    found: Looked,
    least: int,
    height: tuple[int, int, bool],
    width: tuple[int, int, bool],
    kind: int,
) -> None:
    for i in rows[sizes < least].tolist():
        found.problems[i] = f"a {FORMATS[kind].upper()} that is cut short"
    starts, rows = starts[sizes >= least], rows[sizes >= least]
    found.height[rows] = _number(flat, starts + height[0], height[1], height[2])
    found.width[rows] = _number(flat, starts + width[0], width[1], width[2])
    if kind == 3:
        # a bitmap's height is negative if its rows go from top to bottom
        signed = found.height[rows].astype(np.uint32).astype(np.int32)
        found.height[rows] = np.abs(signed.astype(np.int64))
        found.width[rows] = found.width[rows].astype(np.uint32).astype(np.int32)
        # a bitmap of OS/2 has its size at another position, in half the bytes
        header = _number(flat, starts + 14, 4, True)
        old = header == _OS2
        found.width[rows[old]] = _number(flat, starts[old] + 18, 2, True)
        found.height[rows[old]] = _number(flat, starts[old] + 20, 2, True)
        large = np.maximum(found.height[rows], np.abs(found.width[rows])) >= MOST_PIXELS
        for i in rows[~old & ~np.isin(header, _BITMAPS) & large].tolist():
            found.problems[i] = _NO_BITMAP
    if kind == 1:
        odd = (flat[starts[:, None] + np.arange(12, 16)] != np.frombuffer(b"IHDR", np.uint8)).any(axis=1)
        for i in rows[odd].tolist():
            found.problems[i] = "a damaged PNG: it does not begin with its header"


def _read_webp(head: bytes, row: int, found: Looked) -> None:
    chunk, body = head[12:16], head[20:30]
    if len(body) < 10:
        found.problems[row] = "a WEBP that is cut short"
    elif chunk == b"VP8 " and body[3:6] == b"\x9d\x01\x2a":
        found.width[row] = int.from_bytes(body[6:8], "little") & 0x3FFF
        found.height[row] = int.from_bytes(body[8:10], "little") & 0x3FFF
    elif chunk == b"VP8L" and body[0] == 0x2F:
        bits = int.from_bytes(body[1:5], "little")
        found.width[row], found.height[row] = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif chunk == b"VP8X" and body[0] & 0x02:
        # decoding one damages the memory of TensorFlow (2.20)
        found.problems[row] = (
            "a moving WEBP, which ends the process of TensorFlow's that decodes it; resize= (--resize) makes a PNG of its "
            "first picture"
        )
    elif chunk == b"VP8X":
        found.width[row] = int.from_bytes(body[4:7], "little") + 1
        found.height[row] = int.from_bytes(body[7:10], "little") + 1
    else:
        found.problems[row] = "a damaged WEBP"


def _among(*octets: int) -> NDArray[np.bool_]:
    """Return a table that says of each octet whether it is one of these; for a few octets, `np.isin` takes twenty times as long."""
    table = np.zeros(256, np.bool_)
    table[list(octets)] = True
    return table


#: of JPEGs: markers between the ones of sizes that are none; those of kinds that are not decoded; how many colours are decoded
_NO_SIZES, _IS_ODD, _LAYERS = _among(0xC4, 0xC8, 0xCC), _among(*_ODD_JPEGS), _among(1, 3, 4)


def _odd_jpeg(marker: int, bits: int, layers: int) -> str:
    if bits != 8:
        return f"a JPEG of {bits} bits a colour"
    if layers not in (1, 3, 4):
        return f"a JPEG of {counted(layers, 'colour')}"
    return f"a JPEG that is {'lossless' if marker in (0xC3, 0xCB) else 'hierarchical'} (SOF{marker - 0xC0})"


def _walk(flat: U8, starts: I64, ends: I64, cut: NDArray[np.bool_], rows: I64, found: Looked) -> I64:
    """Go through the segments of JPEGs, a segment of all images at a time, to the one that has the size.

    Args:
        flat: the beginnings of the files, end to end.
        starts: position of each file in `flat`.
        ends: position behind each file in `flat`.
        cut: which files have more bytes than `flat` has of them.
        rows: row of each file.
        found: takes the sizes and problems.
    Returns:
        The rows whose size lies behind the bytes in `flat`.
    """
    at = starts + 2
    longer: list[int] = []
    for _ in range(_MOST_SEGMENTS):
        if not len(at):
            return np.array(longer, np.int64)
        beyond = at + 10 > ends
        for row, more in zip(rows[beyond].tolist(), cut[beyond].tolist()):
            if more:
                longer.append(row)
            else:
                found.problems[row] = "a JPEG that is cut short"
        at, ends, cut, rows = at[~beyond], ends[~beyond], cut[~beyond], rows[~beyond]
        marker = flat[at + 1]
        filled = (flat[at] == 0xFF) & (marker == 0xFF)
        length = np.where(filled, -1, _number(flat, at + 2, 2, False))
        alone = (marker == 0x01) | ((marker >= 0xD0) & (marker <= 0xD7))
        size_here = (marker >= 0xC0) & (marker <= 0xCF) & ~_NO_SIZES[marker]
        wrong = (flat[at] != 0xFF) | (marker == 0xD9) | (marker == 0xDA) | (~filled & ~alone & (length < 2))
        for row in rows[wrong].tolist():
            found.problems[row] = "a damaged JPEG: its header ends before its size"
        done = size_here & ~wrong
        found.height[rows[done]] = _number(flat, at[done] + 5, 2, False)
        found.width[rows[done]] = _number(flat, at[done] + 7, 2, False)
        bits, layers = flat[at + 4], flat[at + 9]
        odd = done & (_IS_ODD[marker] | (bits != 8) | ~_LAYERS[layers])
        for row, *three in zip(rows[odd].tolist(), marker[odd].tolist(), bits[odd].tolist(), layers[odd].tolist()):
            found.problems[row] = f"{_odd_jpeg(*three)}, {NOT_DECODED}"
        at = at + np.where(alone, 2, 2 + length)
        on = ~(wrong | done)
        at, ends, cut, rows = at[on], ends[on], cut[on], rows[on]
    for row in rows.tolist():
        found.problems[row] = f"a damaged JPEG: more than {_MOST_SEGMENTS} segments stand before its size"
    return np.array(longer, np.int64)
