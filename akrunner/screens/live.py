"""What is drawn over itself on a terminal while something goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import rich.live
from rich.console import Console, ConsoleRenderable, RenderableType

#: more often nobody reads a number; and what is drawn while the terminal's size changes may leave a line behind
_PER_SECOND = 4


@runtime_checkable
class Unhurried(Protocol):
    """A stream that keeps what its reader has not taken yet."""

    def go_on(self) -> bool:
        """Write what goes at once. Returns: whether there is something left."""
        ...


class Live(rich.live.Live):
    """Draws a renderable over itself, a few times a second, and leaves nothing of it at its end.

    Args:
        renderable: the first.
        console: where it is drawn.
        widths: how wide each line was, in columns, when it was drawn last.
        redirects: whether what the program prints meanwhile goes to the console, too, above what is drawn.
    """

    def __init__(self, renderable: RenderableType, console: Console, widths: Sequence[int], redirects: bool = True) -> None:
        super().__init__(
            renderable,
            console=console,
            refresh_per_second=_PER_SECOND,
            transient=True,
            redirect_stdout=redirects,
            redirect_stderr=redirects,
        )
        self._widths = widths
        self._columns = console.width

    def refresh(self) -> None:
        """Draw it, unless the terminal has not yet taken what was drawn before."""
        if not (isinstance(self.console.file, Unhurried) and self.console.file.go_on()):
            super().refresh()

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        columns = self.console.width
        if columns < self._columns and self._live_render.last_render_height:
            # the terminal has wrapped what was drawn, which now takes more lines that must be drawn over
            rows = sum(max(1, -(-width // max(columns, 1))) for width in self._widths)
            self._live_render._shape = (columns, max(rows, 1))
        self._columns = columns
        return super().process_renderables(renderables)
