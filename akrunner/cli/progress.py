"""A line on a terminal's stderr that shows the progress of something."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from akrunner.cli.stderr import Stderr
from akrunner.folders.words import printable


class _Live(Live):
    def refresh(self) -> None:
        """Show the text, unless the terminal has not yet taken what was shown before."""
        if not (isinstance(self.console.file, Stderr) and self.console.file.go_on()):
            super().refresh()


class Line:
    """A progress line that is shown during a `with` block, if the console is a terminal.

    Args: console: where it is shown; first: its first text; quiet: never show it.
    """

    def __init__(self, console: Console, first: str, quiet: bool) -> None:
        self._live: Live | None = None
        if console.is_terminal and not quiet:
            self._live = _Live(Text(first), console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Line:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show(self, words: Callable[[], str]) -> None:
        """Change the line's text. Args: words: returns the text; it is called only if the line is shown."""
        if self._live is not None:
            self._live.update(Text(printable(words()), overflow="ellipsis", no_wrap=True))
