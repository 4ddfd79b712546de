"""Makes sure that no number of a text changes because of the type that was guessed for it: big integers do not become floats.

The functions look for columns of floats with a value beyond 2^53; only the text of those columns is read again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from akrunner.arrays import array_of, known_numbers_of, truths_of
from akrunner.errors import SourceError

#: beyond this a float cannot hold every integer
_EXACT = 2.0**53
_INTEGER = r"^\s*[+-]?[0-9]+\s*$"
#: more digits than any float holds, perhaps with a point among them
_DIGITS = r"[0-9][0-9.]{14,}[0-9]"
_LONG = re.compile(_DIGITS.encode())
_BLANKS = " \t\r\n"
#: identifiers that look like numbers, but no program writes a number in this way: 01234, +4915112345678, 0x1F
_IDENTIFIER = r"^\s*(?:-?0[0-9]|\+|-?0[xX])"
_HEXADECIMAL = r"^\s*-?0[xX]"
#: turns the start of every cell into a comma and every digit but 0 into 1; `_NOT_PLAIN` is what may stand before a number and
#: is removed
_PLAIN = bytes.maketrans(b"\n\r23456789X", b",,11111111x")
_NOT_PLAIN = b'-" \t'
_ODD = re.compile(b",0[01x]")


def suspicious(table: pa.Table) -> list[str]:
    """Return the columns of floats that have a value so big that it may have been an integer, or have overflowed."""
    return [field.name for field, column in zip(table.schema, table.columns) if any(map(_is_big, _floats(column)))]


def _floats(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    kind = column.type
    if pa.types.is_floating(kind):
        yield column
    elif pa.types.is_list(kind):
        yield from _floats(pc.list_flatten(column))
    elif pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            yield from _floats(pc.struct_field(column, [number]))


def _is_big(column: pa.ChunkedArray) -> bool:
    ends = pc.min_max(column).as_py()
    return ends["min"] is not None and (ends["max"] >= _EXACT or ends["min"] <= -_EXACT)


def guess(
    at: Callable[[int], str], name: str, column: pa.ChunkedArray, words: Callable[[], pa.Array], guessed: bool
) -> pa.DataType:
    """Return the type of a suspicious column of CSV, by the beginning of the file: uint64 if that holds all values.

    Args:
        at: returns the words that say where a row is.
        words: reads the column's cells as text.
        guessed: whether the column's type was guessed, not given by the user.
    Raises:
        SourceError: an integer fits neither bigint nor uint64.
    """
    text = words()
    there = text.filter(column.combine_chunks().is_valid())
    if not guessed or not pc.all(pc.match_substring_regex(there, _INTEGER)).as_py():
        check(at, name, column, lambda: text, guessed)
        return column.type
    try:
        pc.utf8_trim_whitespace(there).cast(pa.uint64())
    except pa.ArrowInvalid:
        values = np.abs(known_numbers_of(column.combine_chunks()))
        row = int(np.nanargmax(values))
        _refuse(at(row), name, text[row].as_py())
    return pa.uint64()


def check(at: Callable[[int], str], name: str, column: pa.ChunkedArray, words: Callable[[], pa.Array], guessed: bool) -> None:
    """Check the numbers of a suspicious column of CSV whose type is settled. The arguments are those of `guess`.

    Raises:
        SourceError: a float differs from the integer in the text, or is infinite where the text has a number.
    """
    values = known_numbers_of(column.combine_chunks())
    with np.errstate(invalid="ignore"):
        rows = np.flatnonzero(np.abs(values) >= _EXACT)
    text = words().take(array_of(rows))
    infinite = np.isinf(values[rows])
    long = truths_of(pc.match_substring_regex(text, _DIGITS))
    digits = truths_of(pc.match_substring_regex(text, "[0-9]"))
    # a number written exactly as its float is printed, as almost all are, needs no closer look
    long &= ~truths_of(pc.equal(_bare(text), _bare(array_of(values[rows]).cast(text.type))))
    for index in np.flatnonzero((infinite & digits) | (long & guessed)).tolist():
        shown = text[index].as_py()
        if infinite[index] or not _kept(shown, float(values[rows[index]])):
            _refuse(at(int(rows[index])), name, shown)


def _bare(text: pa.Array) -> pa.Array:
    return pc.replace_substring(pc.ascii_lower(pc.utf8_trim_whitespace(text)), "+", "")


def _kept(text: str, number: float) -> bool:
    """Whether a float is the number in a text; for a number that is not an integer, also whether the float, printed with as
    many digits, is that number."""
    wanted = Decimal(text)
    if wanted == Decimal(number):
        return True
    digits = "".join(map(str, wanted.as_tuple().digits)).rstrip("0")
    whole = text.strip().lstrip("+-").isdecimal()
    return not whole and Decimal(f"{number:.{len(digits) - 1}e}") == wanted


def may_have_identifiers(data: bytes) -> bool:
    """Whether a cell of CSV may begin with a plus, or with a zero and another digit or an x."""
    if b"+" in data and (data[:1] == b"+" or any(before + b"+" in data for before in (b",", b"\n", b"\r", b'"', b" ", b"\t"))):
        return True
    plain = data.translate(_PLAIN, _NOT_PLAIN)
    return plain[:2] in (b"00", b"01", b"0x") or _ODD.search(plain) is not None


def first_identifier(text: pa.Array) -> int | None:
    """Return the first row whose number is written as identifiers are (01234, +4915112345678, 0x1F), as a number would lose a
    part of it; None if there is none."""
    found = pc.index(pc.match_substring_regex(text, _IDENTIFIER), pa.scalar(True)).as_py()
    return None if found < 0 else int(found)


def refuse_identifier(where: str, name: str, value: str) -> NoReturn:
    """Raise the error for an identifier in a column that was taken for numbers.

    Raises:
        SourceError: always.
    """
    begins = "a +" if value.lstrip().startswith("+") else "0x" if "x" in value.lower() else "a 0"
    number = "double" if begins == "a +" else "bigint"
    raise SourceError(
        f"source: {where}, column {name!r}: {value} begins with {begins}, which is lost in the number that the column was "
        f"taken for by the file's beginning; give input_schema= (--input-schema) with '{name} string' to keep it as it "
        f"stands, or '{name} {number}' for the number"
    )


def may_be_hexadecimal(data: bytes) -> bool:
    """Whether the text may contain a hexadecimal number such as 0x1F."""
    return b"0x" in data or b"0X" in data


def first_wrapped(text: pa.Array, numbers: pa.Array) -> int | None:
    """Return the first row in which Arrow turned a number such as 0xFFFFFFFFFFFFFFFF, which is beyond the column's type, into a
    negative one; None if there is none."""
    found = pc.index(pc.and_(pc.match_substring_regex(text, _HEXADECIMAL), pc.less(numbers, 0)), pa.scalar(True)).as_py()
    return None if found < 0 else int(found)


def refuse_wrapped(where: str, name: str, value: str, kind: pa.DataType) -> NoReturn:
    """Raise the error for a hexadecimal number that is beyond the type that the user asked for.

    Raises:
        SourceError: always.
    """
    raise SourceError(
        f"source: {where}, column {name!r}: {value} does not fit {kind}; give input_schema= (--input-schema) with '{name} "
        "string' to keep it as it stands, or with a wider type"
    )


def json_columns(at: Callable[[int], str], data: bytes, kinds: dict[str, pa.DataType], first: bool) -> dict[str, pa.DataType]:
    """Return the types of suspicious columns of JSON lines: guess them if the columns' types are open, else check the numbers
    against them.

    Args:
        data: the text, which is decoded once for all columns.
        kinds: the types that Arrow has taken the columns for.
        first: whether the columns' types are still open.
    Raises:
        SourceError: a number does not fit the type of its column.
    """
    if not kinds or _LONG.search(data) is None:
        return kinds
    columns = {name: _Numbers() for name in kinds}
    for row, document in enumerate(_documents(data)):
        for name, column in columns.items():
            for number in _numbers(document.get(name)):
                column.look(row, number)
    return {name: column.settled(at, name, kinds[name], first) for name, column in columns.items()}


class _Numbers:
    """What is found in one column of JSON lines.

    Attributes:
        whole: whether all numbers are integers.
        fits: whether uint64 holds all numbers.
        wrong: the first (row, number) that a float does not hold.
        beyond: the first (row, number) that bigint does not hold.
    """

    def __init__(self) -> None:
        self.whole = self.fits = True
        self.wrong: tuple[int, Any] | None = None
        self.beyond: tuple[int, Any] | None = None

    def look(self, row: int, number: Any) -> None:
        self.whole = self.whole and isinstance(number, int)
        self.fits = self.fits and 0 <= number < 2**64
        if isinstance(number, Decimal):
            if self.wrong is None and abs(number) >= _EXACT and not _kept(str(number), float(number)):
                self.wrong = row, number
            return
        if self.beyond is None and not -(2**63) <= number < 2**63:
            self.beyond = row, number
        if self.wrong is None and isinstance(number, int) and int(float(number)) != number:
            self.wrong = row, number

    def settled(self, at: Callable[[int], str], name: str, kind: pa.DataType, first: bool) -> pa.DataType:
        if first and self.whole and self.fits:
            return _unsigned(kind)
        wrong = self.beyond if first and self.whole else self.wrong
        if wrong is not None:
            _refuse(at(wrong[0]), name, str(wrong[1]), text=False)
        return kind


def _documents(data: bytes) -> Iterator[Any]:
    text, at = data.decode("utf-8").lstrip("\ufeff"), 0
    decoder = json.JSONDecoder(parse_float=Decimal)
    while True:
        while at < len(text) and text[at] in _BLANKS:
            at += 1
        if at == len(text):
            return
        document, at = decoder.raw_decode(text, at)
        yield document


def _numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _numbers(one)
    elif isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        yield value


def _unsigned(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_unsigned(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _unsigned(one.type)) for one in kind])
    return pa.uint64() if pa.types.is_floating(kind) else kind


def _refuse(where: str, name: str, value: str, text: bool = True) -> NoReturn:
    """Raise the error for a number that does not fit the type of its column.

    Args:
        text: whether the column can also be read as text.
    Raises:
        SourceError: always.
    """
    shown = value if len(value) <= 40 else value[:40] + "..."
    ways = [f"'{name} string' to keep it as it stands"] if text else []
    if _is_beyond_doubles(value):
        what, where_else = "any number of a column", "write it as a text into the file"
    else:
        what, where_else = "a 64-bit number of its column", ""
        ways.append(f"'{name} double' to have it rounded")
    advice = f"give input_schema= (--input-schema) with {', or '.join(ways)}" if ways else where_else
    raise SourceError(f"source: {where}, column {name!r}: {shown} is too big for {what}; {advice}")


def _is_beyond_doubles(value: str) -> bool:
    try:
        return math.isinf(float(value))
    except ValueError:
        return False
