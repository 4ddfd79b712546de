"""Whatever a library raises (a file system, a source, a driver) -> one of akrunner's own exceptions, without secrets in it."""

from __future__ import annotations

import contextlib
import re
from typing import Iterator, Type

from akrunner.errors import AkrunnerError

_SECRET = re.compile(r"(?<=://)([^/@\s:]*):([^/@\s]+)@")


@contextlib.contextmanager
def ours(kind: Type[AkrunnerError], what: str) -> Iterator[None]:
    """Turn what a library raises in the block into `kind`: "WHAT: the library's first line".

    akrunner's own exceptions pass as they are, and so does what is no `Exception` (Ctrl-C).
    Args: kind: the exception to raise; what: names the parameter and what was tried, "source: cannot open s3://b/a.csv".
    """
    try:
        yield
    except AkrunnerError:
        raise
    except Exception as e:
        raise kind(redacted(f"{what}: {in_words(e)}")) from e


def in_words(error: BaseException) -> str:
    """A library's exception as half a sentence: its first line, and its type where that alone says little."""
    text = str(error).strip().splitlines()
    first = text[0] if text else ""
    if isinstance(error, OSError) and error.strerror:
        first = error.strerror
    return first if len(first) > 12 else f"{type(error).__name__}: {first}".rstrip(": ")


def redacted(text: str) -> str:
    """The text with the passwords of URLs in it replaced by ***."""
    return _SECRET.sub(r"\1:***@", text)
