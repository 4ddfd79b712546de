"""The display of a run of `akrunner.pack` in a notebook."""

from __future__ import annotations

import time
from types import TracebackType

from akrunner.errors import in_a_sentence
from akrunner.notebook import drawing
from akrunner.notebook.live import Drawn, Live
from akrunner.packing.progress import PackProgress, view_of
from akrunner.progress import words
from akrunner.progress.rates import Window
from akrunner.progress.views import View


class PackCell:
    """Shows a run in the output of the cell that has called it, in a `with` block. What was packed is the result's to show.

    Args: output: the output directory.
    """

    def __init__(self, output: object) -> None:
        self._title = f"pack {output}"
        self._view: View | None = None
        self._bytes = Window()
        self._began = time.monotonic()
        self._live = Live(self._draw)

    def __enter__(self) -> PackCell:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        took = words.seconds(time.monotonic() - self._began)
        if isinstance(error, KeyboardInterrupt):
            in_a_sentence(
                error, f"{self._title} was stopped; what was packed so far is kept, and the same call goes on from there."
            )
            self._live.end(drawing.ended(self._title, f"stopped after {took}", "stopped"))
        elif error is not None:
            # the error, which follows, says the rest
            self._live.end(drawing.ended(self._title, f"failed after {took}", "failed") if self._live.is_shown else None)
        else:
            self._live.end(drawing.ended(self._title, f"done in {took}", "succeeded"))

    def progress(self, progress: PackProgress) -> None:
        """Take how far the run is."""
        self._view = view_of(progress, self._bytes)

    def _draw(self) -> Drawn:
        if self._view is None:
            return drawing.preparing(self._title, time.monotonic() - self._began)
        return drawing.running(self._title, self._view)
