"""Write docs/commands.md: what `--help` says of every command, as a page. `scripts/gen-options` runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from akrunner.cli.main import load
from akrunner.options import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
_INTRODUCTION = """\
# Commands

Written by `scripts/gen-options` from the commands themselves: what `akrunner COMMAND --help` says of each. Of the commands with many options \
it has those that most people need, as `--help` does; \
`--help-all` and [options](options.md) have all of them. [Exit codes](operations.md#exit-codes) and what `--json` prints are a contract."""


def page() -> str:
    """Return the text of the page."""
    lines = [_INTRODUCTION]
    for name, command in load([]).commands.items():
        lines += _section(f"akrunner {name}", command, "##")
    return "\n".join([*lines, ""])


def _section(called: str, command: Any, level: str) -> Iterator[str]:
    yield from ("", f"{level} {called}", "")
    text, _, examples = (command.help or "").partition("[bold]Examples[/bold]")
    yield _plain(text)
    yield from ("", f"`{_usage(called, command)}`")
    if examples.strip():
        yield ""
        # an example that is longer than a line goes on behind a backslash, or in the next line
        yield from (f"- {_code(' '.join(one.split()))}" for one in re.split(r"\n\s*\n", examples.strip()))
    rows = [_row(one) for one in command.params if not getattr(one, "hidden", False) and "--help" not in one.opts]
    if rows:
        yield from ("", "| option | default | |", "| --- | --- | --- |", *rows)
    name = called.removeprefix("akrunner ")
    if name in COMMANDS and COMMANDS[name].is_long:
        yield from ("", "All others are among the [options](options.md).")
    if command.epilog:
        yield from ("", _plain(command.epilog))
    for inner, one in getattr(command, "commands", {}).items():
        yield from _section(f"{called} {inner}", one, f"{level}#")


def _usage(called: str, command: Any) -> str:
    words = [_named(one) for one in command.params if one.param_type_name == "argument" and not getattr(one, "hidden", False)]
    behind = ["COMMAND"] if getattr(command, "commands", None) else []
    return " ".join([called, *words, "[OPTIONS]", *behind])


def _named(argument: Any) -> str:
    word = argument.metavar or argument.name.upper()
    word = word if argument.required or word.startswith("[") else f"[{word}]"
    return f"{word}..." if argument.nargs == -1 and "..." not in word else word


def _row(one: Any) -> str:
    if one.param_type_name == "argument":
        names = f"`{_named(one)}`"
    else:
        words = ", ".join(one.opts)
        names = f"`{words}`" + (f", `{', '.join(one.secondary_opts)}`" if one.secondary_opts else "")
    if isinstance(one.envvar, str):
        names += f"<br>`{one.envvar}`"
    value = one.default
    default = f"`{value}`" if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "" else ""
    if one.required:
        default = "required"
    return f"| {names} | {default} | {_plain(one.help or '').replace('|', chr(92) + '|')} |"


def _code(text: str) -> str:
    text = text.replace("\\[", "[")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _plain(text: str) -> str:
    """Return a text of a help as Markdown: what looks like markup there is none, but for code between backticks."""
    text = re.sub(r"\[/?bold\]", "**", text.strip()).replace("\\[", "[")
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"(?<!\*)([*<>\[\]])(?!\*)", r"\\\1", part) for part in parts)


if __name__ == "__main__":
    (ROOT / "docs" / "commands.md").write_text(page())
