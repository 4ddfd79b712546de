"""How a command shows its progress (`--progress`), by the ways of `akrunner.screens`."""

from __future__ import annotations

from types import TracebackType
from typing import cast

import typer
from rich.console import Console

from akrunner.cli import signals
from akrunner.cli.stderr import Stderr
from akrunner.outcomes import end_of, failure
from akrunner.progress import events
from akrunner.screens import ways
from akrunner.screens.ways import AUTO, BAR, JSON, NONE, PLAIN, Bar, Display, Plain


def chosen(given: str, console: Console, quiet: bool, between: bool = False) -> str:
    """Return how progress is shown.

    Args:
        given: the value of `--progress`.
        console: where it is shown.
        quiet: whether it is shown only if it was asked for by name.
        between: whether rows are printed on a terminal meanwhile: they would be glued to a bar, which is drawn only if asked for by name.
    Raises: ConfigError: there is no such way.
    """
    if ways.check(given) == AUTO and (quiet or between):
        return NONE if quiet else PLAIN
    return ways.on(console, given)


class Events(ways.Events):
    """Events of a command, which also tell how it has failed."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and not isinstance(error, typer.Exit):
            self.tells(events.END, failure(error, end_of(error, signals.seen())))


def on(console: Console, given: str, quiet: bool, between: bool = False) -> Display:
    """Return the display of a command. Args: console: one on `Stderr`, where it is shown; given, quiet, between: as for `chosen`."""
    form, out = chosen(given, console, quiet, between), cast(Stderr, console.file)
    if form == BAR:
        return Bar(console)
    if form == PLAIN:
        return Plain(out)
    return Events(out) if form == JSON else Display()
