"""The families of messages, as `catalogue.toml` has them."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: where a section is whose family is of no class of akrunner's: a mistake of the command line, a fault
ROOT = "AkrunnerError"
_CODE = re.compile(r"\s*(?:AK)?[-\s]?(\d{1,3})\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Family:
    """Messages with one cause and one cure.

    Attributes:
        code: "AK301"; it is never given to another family.
        classes: the names of the exceptions; the section of the family is that of the first.
        title: what has happened, in a few words.
        cause: why, in at most four sentences.
        cure: what to do, or to type.
        says: pieces of messages that are the family's; * stands for anything.
        modules: patterns of modules below `akrunner` whose other messages are the family's.
        foreign: pieces of messages that no place in the source has as a whole.
        is_rest: whether it is the family of whatever else its classes say.
    """

    code: str
    classes: tuple[str, ...]
    title: str
    cause: str
    cure: str
    says: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    is_rest: bool = False


@functools.cache
def families() -> Mapping[str, Family]:
    """Return the families by their codes, in the catalogue's order."""
    text = (Path(__file__).parent / "catalogue.toml").read_text(encoding="utf-8")
    return {code: _family(code, told) for code, told in tomllib.loads(text).items()}


def _family(code: str, told: Mapping[str, Any]) -> Family:
    """Return a family. Raises: ValueError: it has a key that there is not."""
    unknown = set(told) - {"class", "title", "cause", "cure", "says", "in", "foreign", "any"}
    if unknown:
        raise ValueError(f"{code} has {', '.join(sorted(unknown))}")
    classes = told["class"]
    return Family(
        code,
        (classes,) if isinstance(classes, str) else tuple(classes),
        title=told["title"],
        cause=told["cause"],
        cure=told["cure"],
        says=tuple(told.get("says", ())),
        modules=tuple(told.get("in", ())),
        foreign=tuple(told.get("foreign", ())),
        is_rest=bool(told.get("any")),
    )


def family(word: str) -> Family | None:
    """Return the family of a code as people type it (`ak301`, `301`, `[AK301]`), None if there is none."""
    found = _CODE.fullmatch(word.strip("[] "))
    return families().get(f"AK{int(found[1]):03d}") if found else None
