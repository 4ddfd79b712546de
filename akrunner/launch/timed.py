"""Reads from a library in a thread of its own, so that the caller does not wait for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator

from akrunner.launch import limits
from akrunner.reader import Late, Reader

_TICK = 0.2
#: seconds that closing the source may take; a source that has sent nothing is not waited for
_CLOSING = 1.0


def timed(
    pieces: Generator[bytes, None, None], silence: float, least: int, over: threading.Event | None = None
) -> Generator[bytes, None, None]:
    """Yield the same pieces, with a time limit for each.

    Args:
        silence: the seconds that may pass without a piece, and in which at least `least` bytes must come.
        over: set when the caller no longer wants the pieces. A thread that is stuck in a library ends when the library returns.
    Raises:
        OSError: the pieces do not come, hardly come, or are not wanted any longer.
        Exception: whatever `pieces` raises.
    """
    reader = Reader(pieces, "akrunner-download")
    since, came, closing = time.monotonic(), 0, _CLOSING
    try:
        while True:
            try:
                piece = _next(reader, silence, over)
            except Late:
                closing = 0.0
                raise OSError(f"it has sent nothing for {silence:g} s") from None
            if piece is None:
                return
            yield piece
            came += len(piece)
            now = time.monotonic()
            if now - since > silence:
                if came < least:
                    raise OSError(f"it sends less than {limits.shown(least)} in {silence:g} s")
                since, came = now, 0
    finally:
        reader.stop(closing)


def _next(reader: Reader[bytes], silence: float, over: threading.Event | None) -> bytes | None:
    until = time.monotonic() + silence
    while over is None or not over.is_set():
        left = until - time.monotonic()
        try:
            return reader.next(max(0.001, left if over is None else min(left, _TICK)))
        except Late:
            if time.monotonic() >= until:
                raise
    raise OSError("it was stopped")
