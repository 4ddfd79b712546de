"""The ways to show progress: a display on the terminal, lines of text, events of JSON, or none of these."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console

from akrunner.checks import shown
from akrunner.errors import ConfigError
from akrunner.folders.words import printable
from akrunner.options import named
from akrunner.outcomes import plain
from akrunner.progress import events, words
from akrunner.progress.views import STARTING, View
from akrunner.screens.drawing import Frame
from akrunner.screens.live import Live

AUTO, BAR, PLAIN, NONE, JSON = "auto", "bar", "plain", "none", "json"
#: seconds between two events
_EVENT_SECONDS = 1.0
#: seconds between two lines: at least, at most, and else this share of the time so far
_LINE_SECONDS, _LONGEST_SECONDS, _LINE_SHARE = 10.0, 60.0, 0.1


class Writer(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> object:
        """Write a text."""
        ...


def check(given: Any, name: str = "progress") -> str:
    """Return the name of a way. Raises: ConfigError: there is no such way. Args: name: what it was given by."""
    choices = named("progress").choices
    if not isinstance(given, str) or given not in choices:
        raise ConfigError(f"{name}={shown(given)}: it is {', '.join(choices[:-1])} or {choices[-1]}; none shows no progress")
    return given


def on(console: Console, given: str) -> str:
    """Return the way that a stream can show: what is no terminal, or cannot move its cursor, gets lines.

    Args: console: the stream's; given: AUTO, or the way that is asked for.
    """
    if given in (AUTO, BAR):
        return BAR if console.is_terminal and not console.is_dumb_terminal else PLAIN
    return given


class Display:
    """Shows progress in a `with` block. This class shows nothing.

    Attributes:
        name: returns the name by which a task is shown.
    """

    def __init__(self) -> None:
        self.name: Callable[[str], str] = str

    def __enter__(self) -> Display:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def show(self, view: View) -> None:
        """Show what is to be seen now."""

    def tells(self, kind: str, body: Mapping[str, Any]) -> bool:
        """Tell something else than progress, if that is done here.

        Args: kind, body: as for `akrunner.progress.events.event`.
        Returns: whether it was told, so that nobody needs to print it.
        """
        return False


class Bar(Display):
    """Draws over itself on a terminal, and is gone when its block has ended. Args: console: the terminal's; redirects: as for `Live`."""

    def __init__(self, console: Console, redirects: bool = True) -> None:
        super().__init__()
        self._redirects = redirects
        self._console = console
        self._live: Live | None = None
        self._widths: list[int] = []

    def __enter__(self) -> Bar:
        self._live = Live(Frame(View(0.0, STARTING), str, self._widths), self._console, self._widths, self._redirects)
        # shown at once
        self._live.start(refresh=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def show(self, view: View) -> None:
        if self._live is not None:
            self._live.update(Frame(view, self.name, self._widths))


class Plain(Display):
    """Prints a line now and then: after ten seconds, and then the longer the job takes, the more seldom, but each minute.

    Args: out: where they are printed; clock: returns the time in seconds; title: what runs, where that must be told; "": it need not.
    """

    def __init__(self, out: Writer, clock: Callable[[], float] = time.monotonic, title: str = "") -> None:
        super().__init__()
        self._out = out
        self._clock = clock
        self._title = f"{title}: " if title else ""
        self._began = self._told = clock()

    def __enter__(self) -> Plain:
        self._began = self._told = self._clock()
        return self

    def show(self, view: View) -> None:
        now = self._clock()
        every = min(max(_LINE_SECONDS, (now - self._began) * _LINE_SHARE), _LONGEST_SECONDS)
        if now - self._told >= every:
            self._told = now
            self._out.write(f"akrunner: {printable(self._title + words.line(view, self.name))}\n")


class Events(Display):
    """Prints events (`akrunner.progress.events`), one JSON object a line: progress about every second and whenever the job begins to do
    something else; and whatever else is told.

    Args: out: where they are printed; clock: returns the time in seconds.
    """

    def __init__(self, out: Writer, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._out = out
        self._clock = clock
        self._told = -_EVENT_SECONDS
        self._doing = ""

    def show(self, view: View) -> None:
        now = self._clock()
        if now - self._told >= _EVENT_SECONDS or view.doing != self._doing:
            self._told, self._doing = now, view.doing
            self.tells(events.PROGRESS, events.of_view(view))

    def tells(self, kind: str, body: Mapping[str, Any]) -> bool:
        told = json.dumps(plain(events.event(kind, time.time_ns(), body)), allow_nan=False)
        self._out.write(f"{told}\n")
        return True
