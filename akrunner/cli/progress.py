"""What is drawn over itself on a terminal's stderr while something goes on: a display, or a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

import rich.live
from rich.console import Console, ConsoleRenderable, RenderableType
from rich.text import Text

from akrunner.cli.stderr import Stderr
from akrunner.folders.words import printable

_PER_SECOND = 8


class Live(rich.live.Live):
    """Draws a renderable over itself, a few times a second, and leaves nothing of it at its end.

    Args: renderable: the first; console: where it is drawn; widths: how wide each line was, in columns, when it was drawn last.
    """

    def __init__(self, renderable: RenderableType, console: Console, widths: Sequence[int]) -> None:
        super().__init__(renderable, console=console, refresh_per_second=_PER_SECOND, transient=True)
        self._widths = widths
        self._columns = console.width

    def refresh(self) -> None:
        """Draw it, unless the terminal has not yet taken what was drawn before."""
        if not (isinstance(self.console.file, Stderr) and self.console.file.go_on()):
            super().refresh()

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        columns = self.console.width
        if columns < self._columns and self._live_render.last_render_height:
            # the terminal has wrapped what was drawn, which now takes more lines that must be drawn over
            rows = sum(max(1, -(-width // max(columns, 1))) for width in self._widths)
            self._live_render._shape = (columns, max(rows, 1))
        self._columns = columns
        return super().process_renderables(renderables)


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
