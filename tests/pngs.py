"""PNGs that are as they have to be, or almost: what TensorFlow says of each, which a test of it asks."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"
WIDTH, HEIGHT = 20, 16
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def chunk(kind: bytes, data: bytes = b"", crc: int | None = None) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data) if crc is None else crc)


def header(width: int = WIDTH, height: int = HEIGHT, bits: int = 8, colours: int = 2, *made: int) -> bytes:
    return SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colours, *(made or (0, 0, 0))))


def rows(stride: int = 3 * WIDTH, number: int = HEIGHT, kind: int = 0) -> bytes:
    chance = random.Random(stride * number)
    return b"".join(bytes([kind]) + chance.randbytes(stride) for _ in range(number))


def interlaced(width: int, height: int, bits: int) -> bytes:
    sides = [(-(-(width - x) // across), -(-(height - y) // down)) for x, y, across, down in _PASSES]
    return b"".join(rows(-(-some * bits // 8), many, many % 5) for some, many in sides if some > 0 and many > 0)


def cases() -> dict[str, tuple[bytes, bool]]:
    """Name -> (a PNG, whether TensorFlow reads it)."""
    end, colours, text = chunk(b"IEND"), chunk(b"PLTE", bytes(768)), chunk(b"tEXt", b"a\0b")
    squeezed = zlib.compress(rows())
    pixels = chunk(b"IDAT", squeezed)
    numbers = chunk(b"IDAT", zlib.compress(rows(WIDTH)))
    palette, rgb = header(colours=3), header()

    def idat(data: bytes) -> bytes:
        return chunk(b"IDAT", data)

    good: list[tuple[str, bytes]] = [
        ("plain", rgb + pixels + end),
        ("more rows", rgb + idat(zlib.compress(rows(number=30))) + end),
        ("in pieces", rgb + idat(squeezed[:100]) + idat(b"") + idat(squeezed[100:]) + end),
        ("with something behind its pixels", rgb + idat(squeezed + b"something") + end),
        ("pixels again", rgb + pixels + text + pixels + end),
        ("something behind", rgb + pixels + end + b"something"),
        ("an end with bytes", rgb + pixels + chunk(b"IEND", b"abc")),
        ("colours", palette + colours + numbers + end),
        ("few colours", palette + chunk(b"PLTE", bytes(30)) + numbers + end),
        ("RGB with colours", rgb + colours + pixels + end),
        ("RGB with colours behind", rgb + pixels + colours + end),
        ("RGB with half a colour", rgb + chunk(b"PLTE", b"ab") + pixels + end),
        ("grey with colours", header(colours=0) + chunk(b"PLTE") + numbers + end),
        ("an unknown part", rgb + chunk(b"abCd", b"x") + pixels + end),
        ("a damaged unknown part", rgb + chunk(b"abCd", b"x", 5) + pixels + chunk(b"tEXt", b"a\0b", 5) + end),
        ("damaged words", rgb + chunk(b"gAMA", b"abc") + chunk(b"iCCP", b"a\0\0b") + chunk(b"tRNS", b"a") + pixels + end),
        *((f"filter {i}", rgb + idat(zlib.compress(rows(kind=i))) + end) for i in range(5)),
        ("the widest", header(1_000_000, 1, 8, 0) + idat(zlib.compress(bytes(1_000_001))) + end),
    ]
    bad: list[tuple[str, bytes]] = [
        *((f"{i} rows", rgb + idat(zlib.compress(rows(number=i))) + end) for i in (0, 1, 15)),
        ("a byte less", rgb + idat(zlib.compress(rows()[:-1])) + end),
        ("another sum of pixels", rgb + idat(squeezed[:-4] + b"abcd") + end),
        ("no sum of pixels", rgb + idat(squeezed[:-4]) + end),
        ("damaged pixels", rgb + idat(squeezed[:50] + bytes(9) + squeezed[59:]) + end),
        ("pixels with another checksum", rgb + chunk(b"IDAT", squeezed, 5) + end),
        ("more pixels with another checksum", rgb + pixels + chunk(b"IDAT", b"something", 5) + end),
        ("pixels with something between", rgb + idat(squeezed[:100]) + text + idat(squeezed[100:]) + end),
        ("no pixels", rgb + chunk(b"tEXt", b"a\0" + bytes(90)) + end),
        ("no colours", palette + numbers + end),
        ("colours behind", palette + numbers + colours + end),
        ("colours twice", palette + colours + colours + numbers + end),
        ("an empty list of colours", palette + chunk(b"PLTE") + numbers + end),
        ("a list of colours and a half", palette + chunk(b"PLTE", bytes(31)) + numbers + end),
        ("too many colours", palette + chunk(b"PLTE", bytes(771)) + numbers + end),
        ("RGB with colours twice", rgb + colours + colours + pixels + end),
        ("RGB with no colour", rgb + chunk(b"PLTE") + pixels + end),
        ("an unknown part that is needed", rgb + chunk(b"ABCD", b"x") + pixels + end),
        ("an unknown part that is needed behind", rgb + pixels + chunk(b"CgBI", b"x") + end),
        ("a part without a name", rgb + chunk(b"1bCd", b"x") + pixels + end),
        ("a second header", rgb + rgb[8:] + pixels + end),
        ("a second header behind", rgb + pixels + rgb[8:] + end),
        ("damaged colours", rgb + chunk(b"PLTE", bytes(768), 5) + pixels + end),
        ("a damaged end", rgb + pixels + chunk(b"IEND", b"", 5)),
        ("a part too long", rgb + b"\x7f\xff\xff\xffabCd" + pixels + end),
        *((f"filter {i}", rgb + idat(zlib.compress(rows(kind=i))) + end) for i in (5, 255)),
        *((f"cut by {i}", (rgb + pixels + end)[:-i]) for i in (1, 4, 8, 12, 30)),
        *((f"made as {made}", header(WIDTH, HEIGHT, 8, 2, *made) + pixels + end) for made in ((1, 0, 0), (0, 1, 0), (0, 64, 0), (0, 0, 2))),
        ("too wide", header(1_000_001, 1, 8, 0) + idat(zlib.compress(bytes(1_000_002))) + end),
    ]  # fmt: skip
    for bits, colour, each in ((1, 0, 1), (16, 0, 16), (16, 2, 48), (8, 4, 16), (16, 6, 64)):
        stride = -(-WIDTH * each // 8)
        for name, cut, some in (("", 0, good), (" a byte less", 1, bad)):
            whole = rows(stride)
            some.append(
                (f"{bits} bits of {colour}{name}", header(bits=bits, colours=colour) + idat(zlib.compress(whole[: len(whole) - cut])) + end)
            )  # fmt: skip
            for width, height in ((20, 16), (1, 1), (3, 2), (9, 1), (2, 7)):
                whole = interlaced(width, height, each)
                head = header(width, height, bits, colour, 0, 0, 1)
                squeezed_ = idat(zlib.compress(whole[: len(whole) - cut]))
                some.append((f"interlaced {width}x{height} {bits} bits of {colour}{name}", head + squeezed_ + end + bytes(40)))
    return {f"{name} ({'read' if is_read else 'refused'})": (data, is_read) for some, is_read in ((good, True), (bad, False)) for name, data in some}  # fmt: skip


def mutated(chance: random.Random, times: int) -> Iterator[bytes]:
    """The good ones with a few bytes changed, left out or put in; the checksums of every other are right again."""
    whole = [data for data, is_read in cases().values() if is_read and len(data) < 5000]
    for number in range(times):
        data = bytearray(chance.choice(whole))
        at, size = chance.randrange(8, len(data)), chance.randrange(1, 9)
        if number % 3 == 0:
            data[at] ^= 1 << chance.randrange(8)
        else:
            data[at : at + size * (number % 3 - 1)] = chance.randbytes(chance.randrange(9))
        yield bytes(data) if number % 2 else summed(bytes(data))


def summed(data: bytes) -> bytes:
    """With the right checksum of each part, as far as they can be told."""
    found, at = data[:8], 8
    while at + 12 <= len(data) and at + 12 + (size := int.from_bytes(data[at : at + 4], "big")) <= len(data):
        found += chunk(data[at + 4 : at + 8], data[at + 8 : at + 8 + size])
        at += 12 + size
    return found + data[at:]
