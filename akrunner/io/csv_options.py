"""What `input_csv=` and `output_csv=` say about a text of rows: what stands between its cells, around them, and where they begin.

::

    "delimiter=;,null=NA,-"  or  {"delimiter": ";", "null": ["NA", "-"]}  ->  CsvOptions
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from akrunner.checks import check_text, shown, whole_of
from akrunner.errors import ConfigError
from akrunner.schema import repeated
from akrunner.wire.near import nearest

KEYS = ("delimiter", "quote", "header", "null", "decimal", "comment", "skip", "encoding")
#: the keys that mean something only for a text that is read
_READ_ONLY = ("comment", "skip")
#: a comma ends a value only where another key follows: the values of `null` and `header` have commas themselves
_NEXT = re.compile(r",\s*(?=(?:" + "|".join(KEYS) + r")\s*=)")
#: names for characters that a shell, or a list with commas, would take for something else
NAMES = {
    "comma": ",",
    "semicolon": ";",
    "tab": "\t",
    "pipe": "|",
    "space": " ",
    "point": ".",
    "double": '"',
    "single": "'",
    "hash": "#",
}
_ESCAPE = re.compile(r"\\(t|x[0-9a-fA-F]{2})")
_YES, _NO = ("yes", "true"), ("no", "false")
_MOST_LINES = 1_000_000
#: encodings whose texts are read, and cut into blocks, as they stand
PLAIN = ("utf-8", "utf-8-sig")
#: a byte that is in no text
_NOWHERE = "\xff"


@dataclass(frozen=True)
class CsvOptions:
    """How rows are written as text.

    Attributes:
        delimiter: the character between cells; "": the text's beginning, or the file's name, says it.
        quote: the character around cells; "": none.
        header: whether the first line names the columns; or the names of the columns, which then stand in no line.
        null: the cells that are nulls, in columns of text, too; None: those that Arrow takes for nulls, and not in columns of text.
        decimal: the character in front of a number's fraction.
        comment: lines that begin with it are no rows; "": every line is one.
        skip: how many first lines are left out.
        encoding: the name of the text's encoding; "": UTF-8, unless the text begins as only UTF-16 does.
    """

    delimiter: str = ""
    quote: str = '"'
    header: bool | tuple[str, ...] = True
    null: tuple[str, ...] | None = None
    decimal: str = "."
    comment: str = ""
    skip: int = 0
    encoding: str = ""

    @classmethod
    def of(cls, given: Any, parameter: str) -> CsvOptions | None:
        """Return the options that a user gave, after a check; None if none were given.

        Args:
            given: text, a mapping, None, or options that were checked already.
            parameter: `input_csv` or `output_csv`.
        Raises:
            ConfigError: they are none.
        """
        if given is None or isinstance(given, cls):
            return given
        if isinstance(given, str):
            values: dict[str, Any] = _pairs(check_text(parameter, given), parameter)
        elif isinstance(given, Mapping):
            values = dict(given)
        else:
            raise ConfigError(
                f"{parameter}={shown(given)}: give text like 'delimiter=;,null=NA', or a mapping like {{'delimiter': ';'}}"
            )
        made = {_known(key, parameter): value for key, value in values.items()}
        options = cls(**{key: _CHECKS[key](parameter, key, value) for key, value in made.items()})
        options._check_together(parameter)
        if parameter == "output_csv":
            options._check_output(made)
        return options

    def _check_together(self, parameter: str) -> None:
        there: dict[str, str] = {}
        for key in ("delimiter", "quote", "decimal", "comment"):
            mark = getattr(self, key)
            # numbers with a point may well stand between points; a comma that is both would cut every number in two
            if mark and mark in there and not (key == "decimal" and mark == "."):
                raise ConfigError(f"{parameter}: {key} and {there[mark]} are both {mark!r}; they must differ")
            if mark:
                there[mark] = key

    def _check_output(self, made: Mapping[str, Any]) -> None:
        odd = next((key for key in _READ_ONLY if key in made), None)
        if odd is not None:
            raise ConfigError(f"output_csv: {odd} is for text that is read (input_csv=, --input-csv); leave it out")
        if not isinstance(self.header, bool):
            raise ConfigError("output_csv: header is yes or no; the names are those of output_schema= (--output-schema)")
        if self.null is not None and len(self.null) > 1:
            raise ConfigError(f"output_csv: null={shown(list(self.null))}: one word can be written for a null")

    @property
    def is_plain(self) -> bool:
        """Whether the bytes of a text are its rows: UTF-8 without lines of comments."""
        return not self.comment and (self.encoding or "utf-8") in PLAIN

    @property
    def there(self) -> bytes | None:
        """A table for `bytes.translate` that gives cells of the text `,` and `"`; None if they have these already."""
        return self._swap()[0]

    @property
    def back(self) -> bytes | None:
        """The table that undoes `there`."""
        return self._swap()[1]

    def _swap(self) -> tuple[bytes | None, bytes | None]:
        return swap(self.delimiter or ",", self.quote or None)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> CsvOptions:
        """Return the options that `as_json` has told, after they went through JSON."""
        values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in told.items()}
        return cls(**values)

    @property
    def words(self) -> str:
        """The options as a user gives them, without those that need not be given: "delimiter=semicolon,header=id,price"."""
        told = []
        for key in KEYS:
            value = getattr(self, key)
            if value == getattr(CsvOptions(), key):
                continue
            if isinstance(value, bool):
                value = "yes" if value else "no"
            elif key in ("delimiter", "quote", "decimal", "comment"):
                mark = word_of(value) or "none"
                value = mark if mark.isprintable() else f"\\x{ord(mark):02x}"
            told.append(f"{key}={','.join(value) if isinstance(value, tuple) else value}")
        return ",".join(told)

    def named(self, names: tuple[str, ...]) -> CsvOptions:
        """Return the options with names for the columns, if no line has names and none were given."""
        return replace(self, header=names) if self.header is False else self


#: a comma between cells, quotes around them, and the names in the first line
COMMA = CsvOptions(delimiter=",")


def swap(delimiter: str, quote: str | None) -> tuple[bytes | None, bytes | None]:
    """Return (a table for `bytes.translate` that swaps a delimiter and a quote with `,` and `"`, the table that undoes it);
    Nones if nothing changes."""
    marks, plain = (delimiter + (quote or _NOWHERE)).encode("latin-1"), b',"'
    if marks == plain:
        return None, None
    # a mark takes the byte of `,` or `"`, and the byte that has to make room takes the one that became free
    sources = marks + bytes(sorted(set(plain) - set(marks)))
    targets = plain + bytes(sorted(set(marks) - set(plain)))
    return bytes.maketrans(sources, targets), bytes.maketrans(targets, sources)


def word_of(mark: str) -> str:
    """Return a character as it is best given: its name if it has one, else itself."""
    return next((name for name, one in NAMES.items() if one == mark), mark)


def _pairs(given: str, parameter: str) -> dict[str, str]:
    """Return {key: value} of text such as "delimiter=;,null=NA,-"."""
    found: dict[str, str] = {}
    for part in _NEXT.split(given.lstrip()):
        key, equals, value = part.partition("=")
        if not equals:
            raise ConfigError(
                f"{parameter}={shown(given)}: give keys and values, like 'delimiter=;,null=NA'; keys: {', '.join(KEYS)}"
            )
        key = _known(key.strip(), parameter)
        if key in found:
            raise ConfigError(f"{parameter}={shown(given)}: {key} is there twice; give it once")
        found[key] = value
    return found


def _known(key: Any, parameter: str) -> str:
    if not isinstance(key, str) or key not in KEYS:
        raise ConfigError(f"{parameter}: there is no key {shown(key)}; keys: {', '.join(KEYS)}{nearest(key, list(KEYS))}")
    return key


def _text(parameter: str, key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{parameter}: {key}={shown(value)}: text is needed")
    return value


def _mark(parameter: str, key: str, value: Any) -> str:
    """Return a single character, given as itself, by its name or as `\\t` or `\\x01`."""
    text = _text(parameter, key, value)
    mark = NAMES.get(text.strip().lower(), text)
    if _ESCAPE.fullmatch(mark):
        mark = "\t" if mark == "\\t" else chr(int(mark[2:], 16))
    if len(mark) != 1 or not mark.isascii() or mark in "\r\n\0":
        raise ConfigError(
            f"{parameter}: {key}={shown(value)}: one ASCII character is needed, which ends no line: itself, \\x01, or a name "
            f"({', '.join(NAMES)})"
        )
    return mark


def _quote(parameter: str, key: str, value: Any) -> str:
    return "" if value is None or value == "none" else _mark(parameter, key, value)


def _decimal(parameter: str, key: str, value: Any) -> str:
    mark = _mark(parameter, key, value)
    if mark not in ".,":
        raise ConfigError(f"{parameter}: {key}={shown(value)}: it is '.' (point) or ',' (comma)")
    return mark


def _header(parameter: str, key: str, value: Any) -> bool | tuple[str, ...]:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in (*_YES, *_NO):
        return value.strip().lower() in _YES
    names = tuple(name.strip() for name in _words(parameter, key, value))
    if not names or not all(names):
        raise ConfigError(f"{parameter}: {key}={shown(value)}: it is yes, no, or the names of all columns: header=id,price")
    twice = repeated(list(names))
    if twice is not None:
        raise ConfigError(f"{parameter}: {key}: two columns are called {twice!r}; name them apart")
    return names


def _words(parameter: str, key: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value):
        return tuple(value)
    words = tuple(_text(parameter, key, value).split(","))
    # "null=NA,heder=no" would else silently make a null of the text "heder=no"
    odd = next((word for word in words if "=" in word), None)
    if odd is not None:
        name = odd.partition("=")[0].strip()
        raise ConfigError(
            f"{parameter}: {key}: {odd!r} is taken for a word of {key}: there is no key {name!r}{nearest(name, list(KEYS))}; give a "
            f"mapping with a list of words if it is one"
        )
    return words


def _comment(parameter: str, key: str, value: Any) -> str:
    return _mark(parameter, key, value)


def _skip(parameter: str, key: str, value: Any) -> int:
    if isinstance(value, str):
        number = whole_of(value.strip())
        value = value if number is None else number
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_LINES:
        raise ConfigError(f"{parameter}: {key}={shown(value)}: it is the number of first lines to leave out")
    return value


def _encoding(parameter: str, key: str, value: Any) -> str:
    text = _text(parameter, key, value).strip()
    try:
        name = codecs.lookup(text).name
        # codecs such as rot13 and zip turn no bytes into text
        "".encode(name).decode(name)
    except (LookupError, ValueError, UnicodeError):
        raise ConfigError(
            f"{parameter}: {key}={shown(value)}: Python knows no such encoding; some are utf-8, utf-8-sig, latin-1, cp1252, "
            "utf-16, gb18030"
        ) from None
    return name


_CHECKS: Mapping[str, Any] = {
    "delimiter": _mark,
    "quote": _quote,
    "header": _header,
    "null": _words,
    "decimal": _decimal,
    "comment": _comment,
    "skip": _skip,
    "encoding": _encoding,
}
