"""An output of a cell that is drawn over itself while something goes on."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

#: seconds until something is shown, so that what is short shows its end alone; and from one drawing to the next
_FIRST, _EVERY = 0.3, 0.5
#: seconds in which a drawing that has begun ends
_DRAWS = 5.0


class Drawn(NamedTuple):
    """What is shown.

    Attributes: html: for notebooks; plain: for what shows no HTML, in one line.
    """

    html: str
    plain: str


class Live:
    """Shows something that changes.

    Args: draw: returns what is to be seen at the moment; it is called in a thread of its own.
    """

    def __init__(self, draw: Callable[[], Drawn]) -> None:
        self._draw = draw
        self._handle: Any = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        #: in which the kernel knows the cell
        self._context = contextvars.copy_context()

    @property
    def is_shown(self) -> bool:
        """Whether there is something of it to be seen."""
        return self._handle is not None

    def start(self) -> None:
        """Begin; a second call does nothing."""
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._run, name="akrunner-notebook", daemon=True)
        self._thread.start()

    def end(self, last: Drawn | None) -> None:
        """End, and show how it has ended. Args: last: None: what is there stays."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_DRAWS)
        if last is not None:
            self._show(last)

    def _run(self) -> None:
        pause = _FIRST
        while not self._over.wait(pause):
            pause = _EVERY
            with contextlib.suppress(Exception):
                self._show(self._draw())

    def _show(self, drawn: Drawn) -> None:
        # a kernel whose connection breaks, or one with other functions, fails no job
        with contextlib.suppress(Exception):
            self._context.copy().run(self._display, drawn)

    def _display(self, drawn: Drawn) -> None:
        from IPython.display import display

        made = {"text/html": drawn.html, "text/plain": drawn.plain}
        if self._handle is None:
            self._handle = display(made, raw=True, display_id=True)
        else:
            self._handle.update(made, raw=True)
