"""`akrunner explain`: what the short code of an error stands for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

import akrunner
from akrunner.cli.guarded import emit, exit_codes, telling
from akrunner.codes import link, templates
from akrunner.codes.catalogue import Family, families, family

HELP = """
Say what the short code at the end of an error stands for: what causes it, what to do, and which messages have it.

CODE is written as the error has it, or without its letters: AK301, ak301, 301. The name of an exception lists the codes of this exception, \
and no CODE those of all. The texts are part of akrunner: no network is needed.

[bold]Examples[/bold]

  akrunner explain AK301

  akrunner explain SourceError
"""
EPILOG = exit_codes("0 it was explained; 2 there is no such code; 4 stdout could not be written")
#: [words](page.md#section)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_WIDTH = 100


def explain(
    code: str | None = typer.Argument(None, help="The code, or the name of an exception. Default: all codes are listed."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object on stdout."),
) -> None:
    found = family(code) if code is not None else None
    if found is not None:
        told = {
            **_head(found),
            "cause": _plain(found.cause),
            "cure": _plain(found.cure),
            "messages": _messages(found),
            "page": link(found.code),
        }
    else:
        listed = list(families().values()) if code is None else _of_class(code)
        told = {"codes": [_head(one) for one in listed]}
    with telling("the code was explained"):
        if as_json:
            emit({"ok": True, "exit_code": 0, **told})
            return
        console = Console(highlight=False)
        # lines of prose are no wider than people read well; a terminal that is narrower wraps them
        width = min(console.width, _WIDTH)
        for line in _section(found) if found is not None else _list(listed):
            console.print(line, width=width)


def _of_class(name: str) -> list[Family]:
    """Return the families of an exception. Raises: ConfigError: it is the name of none, and no code."""
    listed = [one for one in families().values() if name.lower() in [kind.lower() for kind in one.classes]]
    if not listed:
        names = sorted({kind for one in families().values() for kind in one.classes})
        # letters that look like the digits
        misread = family(name.upper().translate(str.maketrans("OIL", "011")))
        close = difflib.get_close_matches(name.lower(), [one.lower() for one in names], 1, 0.7)
        near = misread.code if misread is not None else next((one for one in names if one.lower() in close), "")
        said = f"did you mean {near}? " if near else ""
        raise akrunner.ConfigError(f"explain: there is no code {name!r}; {said}`akrunner explain` lists them")
    return listed


def _head(of: Family) -> dict[str, Any]:
    return {"code": of.code, "classes": list(of.classes), "title": _plain(of.title)}


def _messages(of: Family) -> list[str]:
    """Return the messages of a family, each in one line, with dots for what differs."""
    return sorted(
        {re.sub(r"\s+", " ", re.sub(r"(\{\})+", "...", one.text)).strip() for one in templates() if one.code == of.code}
    )


def _plain(text: str) -> str:
    """Return a text of the catalogue as a terminal shows it: a link with its page behind it."""
    return _LINK.sub(lambda found: f"{found[1]} ({found[2] if '://' in found[2] else f'docs/{found[2]}'})", text)


def _section(of: Family) -> Iterator[Text]:
    yield Text.assemble((of.code, "bold"), f"  {of.title}  ", (f"({', '.join(of.classes)})", "dim"))
    for name, text in (("Cause", of.cause), ("Cure", of.cure)):
        yield Text.assemble((f"\n{name}: ", "bold"), _plain(text))
    messages = _messages(of)
    if messages:
        yield Text(f"\nMessage{'s' * (len(messages) != 1)}:", style="bold")
        yield from (Text(f"  {message}") for message in messages)
    yield Text(f"\n{link(of.code)}", style="dim")


def _list(listed: list[Family]) -> Iterator[Text]:
    last = ""
    for one in listed:
        if one.classes[0] != last:
            last = one.classes[0]
            yield Text(last, style="bold")
        yield Text.assemble("  ", (one.code, "cyan"), f"  {one.title}")
    yield Text("\n`akrunner explain CODE` says what causes it, and what to do.")
