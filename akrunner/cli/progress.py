"""A line that is drawn over itself on a terminal's stderr while something goes on."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.text import Text

from akrunner.folders.words import printable
from akrunner.screens.live import Live


class Line:
    """A progress line that is shown during a `with` block, if the console is a terminal.

    Args: console: where it is shown; first: its first text; quiet: never show it.
    """

    def __init__(self, console: Console, first: str, quiet: bool) -> None:
        self._live: Live | None = None
        if console.is_terminal and not quiet:
            self._live = Live(Text(first), console, ())

    def __enter__(self) -> Line:
        if self._live is not None:
            # shown at once
            self._live.start(refresh=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show(self, words: Callable[[], str]) -> None:
        """Change the line's text. Args: words: returns the text; it is called only if the line is shown."""
        if self._live is not None:
            self._live.update(Text(printable(words()), overflow="ellipsis", no_wrap=True))
