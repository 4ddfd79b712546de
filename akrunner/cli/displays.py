"""How a command shows its progress (`--progress`): a display on the terminal, lines of text, events of JSON, or not at all.

::

    View (akrunner.progress)   bar: drawn on the terminal, over itself      plain: a line now and then
                               json: an event about every second            none: nothing
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, cast

import typer
from rich.console import Console

import akrunner
from akrunner.checks import shown
from akrunner.cli import signals
from akrunner.cli.drawing import Frame
from akrunner.cli.progress import Live
from akrunner.cli.stderr import Stderr
from akrunner.folders.words import printable
from akrunner.options import named
from akrunner.outcomes import end_of, failure, plain
from akrunner.progress import events, words
from akrunner.progress.views import STARTING, View

AUTO, BAR, PLAIN, NONE, JSON = "auto", "bar", "plain", "none", "json"
#: seconds between two events
_EVENT_SECONDS = 1.0
#: seconds between two lines: at least, at most, and else this share of the time so far
_LINE_SECONDS, _LONGEST_SECONDS, _LINE_SHARE = 10.0, 60.0, 0.1


def chosen(given: str, console: Console, quiet: bool) -> str:
    """Return how progress is shown.

    Args:
        given: the value of `--progress`.
        console: where it is shown.
        quiet: whether it is shown only if it was asked for by name.
    Raises: ConfigError: there is no such way.
    """
    choices = named("progress").choices
    if given not in choices:
        raise akrunner.ConfigError(f"progress={shown(given)}: it is {', '.join(choices[:-1])} or {choices[-1]}")
    if given == AUTO and quiet:
        return NONE
    if given in (AUTO, BAR):
        # what is no terminal, or cannot move its cursor, gets lines
        return BAR if console.is_terminal and not console.is_dumb_terminal else PLAIN
    return given


class Display:
    """Shows the progress of a command in a `with` block. This class shows nothing.

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
    """Draws over itself on a terminal, and is gone when its block has ended."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._live: Live | None = None
        self._widths: list[int] = []

    def __enter__(self) -> Bar:
        self._live = Live(Frame(View(0.0, STARTING), str, self._widths), self._console, self._widths)
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

    Args: out: where they are printed; clock: returns the time in seconds.
    """

    def __init__(self, out: Stderr, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._out = out
        self._clock = clock
        self._began = self._told = clock()

    def __enter__(self) -> Plain:
        self._began = self._told = self._clock()
        return self

    def show(self, view: View) -> None:
        now = self._clock()
        every = min(max(_LINE_SECONDS, (now - self._began) * _LINE_SHARE), _LONGEST_SECONDS)
        if now - self._told >= every:
            self._told = now
            self._out.write(f"akrunner: {printable(words.line(view, self.name))}\n")


class Events(Display):
    """Prints events (`akrunner.progress.events`), one JSON object a line: progress about every second and whenever the job begins to do
    something else; and whatever else is told.

    Args: out: where they are printed; clock: returns the time in seconds.
    """

    def __init__(self, out: Stderr, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._out = out
        self._clock = clock
        self._told = -_EVENT_SECONDS
        self._doing = ""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and not isinstance(error, typer.Exit):
            self.tells(events.END, failure(error, end_of(error, signals.seen())))

    def show(self, view: View) -> None:
        now = self._clock()
        if now - self._told >= _EVENT_SECONDS or view.doing != self._doing:
            self._told, self._doing = now, view.doing
            self.tells(events.PROGRESS, events.of_view(view))

    def tells(self, kind: str, body: Mapping[str, Any]) -> bool:
        told = json.dumps(plain(events.event(kind, time.time_ns(), body)), allow_nan=False)
        self._out.write(f"{told}\n")
        return True


def on(console: Console, given: str, quiet: bool) -> Display:
    """Return the display of a command. Args: console: one on `Stderr`, where it is shown; given, quiet: as for `chosen`."""
    form, out = chosen(given, console, quiet), cast(Stderr, console.file)
    if form == BAR:
        return Bar(console)
    if form == PLAIN:
        return Plain(out)
    return Events(out) if form == JSON else Display()
