"""The note below a traceback that says how to look up an exception's code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from akrunner.codes.matching import code_of

#: the page that has a section of every code
PAGE = "https://github.com/akrunner/akrunner/blob/main/docs/errors.md"


def link(code: str) -> str:
    """Return the address of a code's section."""
    return f"{PAGE}#{code.lower()}"


class Lookup(str):
    """A note of an exception. The code is looked up when the note is shown: most exceptions that programs catch never are.

    Programs that join the notes themselves get its raw text, which names where the code is.

    Args: kinds, message: as for `code_of`.
    """

    def __new__(cls, kinds: Sequence[str], message: str) -> Self:
        made = super().__new__(
            cls,
            "`akrunner explain CODE` says what causes this, and what to do; its code is in the attribute `code` of the exception",
        )
        made._about = (tuple(kinds), message)
        return made

    _about: tuple[Sequence[str], str]

    def __str__(self) -> str:
        code = code_of(*self._about)
        return f"{code}: `akrunner explain {code}` says what causes this, and what to do" if code else ""

    def __getnewargs__(self) -> tuple[Sequence[str], str]:  # type: ignore[override]
        return self._about
