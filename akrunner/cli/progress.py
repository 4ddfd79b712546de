"""One line on stderr that says how far something is, while somebody watches."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text


class Line:
    """Is there while a `with` block lasts, where the console is a terminal.

    Args: first: what it says at first; quiet: it is never there.
    """

    def __init__(self, console: Console, first: str, quiet: bool) -> None:
        self._live: Live | None = None
        if console.is_terminal and not quiet:
            self._live = Live(Text(first), console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Line:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show(self, words: Callable[[], str]) -> None:
        """Say something else. Args: words: asked only while the line is there."""
        if self._live is not None:
            self._live.update(Text(words(), overflow="ellipsis", no_wrap=True))
