"""What `echo`, `printf`, `date`, `seq`, `basename` and others print, without running them; None if it is unknown."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from akrunner.pai_mode.shell import dates
from akrunner.pai_mode.shell.flow import MARK
from akrunner.pai_mode.shell.sums import Unsure, Wrong, number
from akrunner.pai_mode.shell.values import marked

if TYPE_CHECKING:
    from akrunner.pai_mode.shell.reader import Reader

#: how many lines `seq` may print
_MOST = 5000
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'"}
_PLACE = re.compile(r"%(?:%|(?P<flags>[-0]*)(?P<width>\d*)(?P<kind>[sdi]))|\\(?P<escape>.)", re.DOTALL)


def _echo(reader: Reader, texts: list[str]) -> str | None:
    end, escapes = "\n", False
    while texts and re.fullmatch("-[neE]+", texts[0]):
        end = "" if "n" in texts[0] else end
        chosen = texts[0].strip("-n").replace("n", "")
        escapes = chosen.endswith("e") if chosen else escapes
        texts = texts[1:]
    text = " ".join(texts)
    if not escapes or "\\" not in text:
        return text + end
    if re.search(r"\\([^nt\\]|\Z)", text, re.DOTALL):
        return None
    return re.sub(r"\\(.)", lambda match: _ESCAPES[match[1]], text) + end


def _cat(reader: Reader, texts: list[str]) -> str | None:
    if texts in ([], ["-"]):
        text = reader.read_text()
        reader.stdin.text, reader.stdin.file = None, ""
        return text
    found = [reader.content(text) if not text.startswith("-") else None for text in texts]
    return None if any(one is None for one in found) else "".join(one for one in found if one is not None)


def _date(reader: Reader, texts: list[str]) -> str | None:
    if (
        "TZ" in {*reader.state.known, *reader.given, *reader.prefixed}
        or reader.state.stale
        or any(MARK in text for text in texts)
    ):
        return None
    return dates.printed(texts, time.time())


def _dirname(reader: Reader, texts: list[str]) -> str | None:
    if len(texts) != 1:
        return None
    if texts[0] in (marked("0"), marked("BASH_SOURCE"), marked("BASH_SOURCE[0]")):
        return reader.folder + "\n"
    if MARK in texts[0] or texts[0].startswith(("-", "//")):
        return None
    stripped = texts[0].rstrip("/") or texts[0][:1]
    return (os.path.dirname(stripped) or ".") + "\n"


def _basename(reader: Reader, texts: list[str]) -> str | None:
    if len(texts) not in (1, 2) or MARK in "".join(texts) or texts[0].startswith(("-", "//")):
        return None
    name = os.path.basename(texts[0].rstrip("/")) or texts[0][:1]
    end = texts[1] if len(texts) == 2 else ""
    return (name[: -len(end)] if end and name.endswith(end) and name != end else name) + "\n"


def formatted(texts: list[str]) -> str | None:
    """Return what `printf` prints, None if it is unknown. Args: texts: the format, and its arguments."""
    shape, rest = (texts or [""])[0], texts[1:]
    if shape.startswith("-") or MARK in shape or re.search(r"[%\\]", _PLACE.sub("", shape)):
        return None
    if any(match["escape"] and match["escape"] not in _ESCAPES for match in _PLACE.finditer(shape)):
        return None
    if any(MARK in one for one in rest) and re.search(r"%[-0-9]*[di]|%[-0]*\d", shape):
        return None
    found: list[str] = []
    places = sum(1 for match in _PLACE.finditer(shape) if match["kind"])
    while True:
        try:
            made = _PLACE.sub(lambda match: _placed(match, rest), shape)
        except (Unsure, Wrong):
            return None
        found.append(made)
        if not rest or not places:
            return "".join(found)


def _placed(match: re.Match[str], rest: list[str]) -> str:
    """Return the text for one `%` or `\\` of a format. Raises: Unsure, Wrong: an argument is not the number it should be."""
    if match["escape"]:
        return _ESCAPES[match["escape"]]
    if not match["kind"]:
        return "%"
    value = rest.pop(0) if rest else ""
    flags, width = match["flags"], int(match["width"] or 0)
    if match["kind"] == "s":
        if "0" in flags or (width and not value.isascii()):
            raise Unsure
        return value.ljust(width) if "-" in flags else value.rjust(width)
    sign = re.fullmatch(r"([-+]?)(\d+)", value or "0")
    if sign is None:
        raise Unsure
    whole = number(sign[2]) * (-1 if sign[1] == "-" else 1)
    text = f"{whole:0{width}d}" if "0" in flags and "-" not in flags and width else str(whole)
    return text.ljust(width) if "-" in flags else text.rjust(width)


def _printf(reader: Reader, texts: list[str]) -> str | None:
    return formatted(texts)


def _seq(reader: Reader, texts: list[str]) -> str | None:
    between, wide = "\n", False
    while texts and re.match("-[a-z-]", texts[0]):
        option, texts = texts[0], texts[1:]
        if option == "-w":
            wide = True
        elif option.startswith("-s") and (len(option) > 2 or texts):
            between = option[2:] or texts[0]
            texts = texts[0 if len(option) > 2 else 1 :]
        else:
            return None
    if not 1 <= len(texts) <= 3 or any(not re.fullmatch(r"-?\d{1,15}", one) for one in texts) or "\\" in between:
        return None
    first = int(texts[0]) if len(texts) > 1 else 1
    step, last = int(texts[1]) if len(texts) == 3 else 1, int(texts[-1])
    if not step or abs(last - first) // abs(step) > _MOST or (wide and any(re.match("-?0.", one) for one in texts)):
        return None
    values = range(first, last + (1 if step > 0 else -1), step)
    width = max(len(str(first)), len(str(first + (last - first) // step * step))) if wide and values else 0
    return between.join(f"{one:0{width}d}" if width else str(one) for one in values) + ("\n" if values else "")


def _expr(reader: Reader, texts: list[str]) -> str | None:
    """Return what `expr` prints for an operation on two whole numbers; None for anything else."""
    if len(texts) != 3 or texts[1] not in ("+", "-", "*", "/", "%"):
        return None
    if any(not re.fullmatch(r"-?\d{1,15}", one) for one in (texts[0], texts[2])):
        return None
    left, right = int(texts[0]), int(texts[2])
    if texts[1] in "/%" and not right:
        return None
    cut = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1) if texts[1] in "/%" else 0
    made = {"+": left + right, "-": left - right, "*": left * right, "/": cut, "%": left - cut * right}[texts[1]]
    return f"{made}\n"


def _pwd(reader: Reader, texts: list[str]) -> str | None:
    return None if reader.state.folder is None or texts else f"{reader.state.folder}\n"


PRINTED: dict[str, Callable[[Reader, list[str]], str | None]] = {
    "echo": _echo, "cat": _cat, "date": _date, "dirname": _dirname, "basename": _basename, "printf": _printf, "pwd": _pwd, "seq": _seq,
    "expr": _expr,
}  # fmt: skip
