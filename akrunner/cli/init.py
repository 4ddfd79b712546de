"""`akrunner init`: it writes a starting project."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import akrunner
from akrunner.checks import check_choice, check_path
from akrunner.cli.guarded import emit, exit_codes, telling
from akrunner.folders.words import printable
from akrunner.starters import writing
from akrunner.starters.templates import DATA, DEFAULT, TEMPLATES, Template, contents

HELP = """
Make a project to start from: a script, a job file, small data, a README and a test. Each runs as it is made, in seconds, and learns something; change it \
until it is yours.

DIRECTORY is made if it does not exist. Files that are there already are never overwritten, unless --force says so. Without --template, \
a directory that is called as a template gets that one; else the command asks which one you want, if it runs at a terminal, or takes classification.

[bold]Examples[/bold]

  akrunner init --list

  akrunner init flowers && cd flowers && akrunner train job.toml

  akrunner init shop --template regression
"""
EPILOG = exit_codes(
    "0 it is done; 2 an argument is wrong, or a file is in the way, and nothing was written; 4 the files, or stdout, could not be written"
)


def init(ctx: typer.Context, words: Mapping[str, Any]) -> None:
    as_json = words["as_json"]
    if words["list_templates"]:
        _check_alone(words)
        emit({"ok": True, "exit_code": 0, "templates": [_told(one) for one in TEMPLATES.values()]}) if as_json else _list()
        return
    directory = check_path("directory", words["directory"])
    if "://" in directory:
        raise akrunner.ConfigError(f"{directory}: a project is a directory of this machine, and no URL")
    template = TEMPLATES[_chosen(words["template"], directory, as_json)]
    files = contents(template)
    writing.write(directory, files, words["force"])
    with telling(f"the project is in {directory}"):
        if as_json:
            told = {"template": template.name, "directory": os.path.abspath(directory), "files": list(files)}
            emit({"ok": True, "exit_code": 0, **told, "commands": list(template.commands)})
        else:
            _show(template, directory, files)


def _check_alone(words: Mapping[str, Any]) -> None:
    """Check that nothing else is given with --list. Raises: ConfigError: something is."""
    others = {"DIRECTORY": words["directory"] != ".", "--template": words["template"], "--force": words["force"]}
    given = next((name for name, is_given in others.items() if is_given), None)
    if given is not None:
        raise akrunner.ConfigError(f"--list writes nothing, so {given} means nothing beside it: leave one of them out")


def _chosen(name: str | None, directory: str, as_json: bool) -> str:
    """Return the name of a template: the given one, or the directory's, or the answer of a person at a terminal, or the default.

    Raises: ConfigError: there is no such template, or the person has given no answer.
    """
    if name is not None:
        check_choice("template", name, tuple(TEMPLATES))
        return name
    if (called := os.path.basename(os.path.abspath(directory))) in TEMPLATES:
        # "akrunner init images" means images, and no table of flowers in a directory of this name
        return called
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return DEFAULT
    return _asked()


def _asked() -> str:
    console = Console(stderr=True, highlight=False)
    console.print("Which project do you want to start from?", _table(numbered=True), sep="\n")
    names = tuple(TEMPLATES)
    while True:
        console.print(f"a number or a name [{DEFAULT}]: ", end="", markup=False)
        line = sys.stdin.readline()
        if not line:
            console.print()
            raise akrunner.ConfigError("no template was chosen: give --template NAME (akrunner init --list shows them)")
        answer = line.strip().lower() or DEFAULT
        if answer.isdecimal() and 1 <= int(answer) <= len(names):
            return names[int(answer) - 1]
        try:
            check_choice("template", answer, names)
            return answer
        except akrunner.ConfigError as e:
            # without the name of the argument, which nobody has typed
            console.print(Text(str(e).partition(": ")[2]))


def _told(template: Template) -> dict[str, Any]:
    """Return what JSON says of a template."""
    return {
        "name": template.name,
        "text": template.text,
        "tensorflow": template.tensorflow,
        "commands": list(template.commands),
    }


def _table(numbered: bool = False) -> Table:
    """Return the templates as a table for a terminal, of 80 columns at most."""
    table = Table(
        *([""] if numbered else []), "template", "what it learns", "TensorFlow", box=None, pad_edge=False, header_style="dim"
    )
    for number, one in enumerate(TEMPLATES.values(), 1):
        head = [Text(str(number), style="dim")] if numbered else []
        table.add_row(*head, Text(one.name, style="bold"), Text(one.text), Text(one.tensorflow))
    return table


def _list() -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        for one in TEMPLATES.values():
            typer.echo(f"{one.name}\t{one.text}\tTensorFlow {one.tensorflow}")
        return
    console.print(_table())
    console.print(Text("\nakrunner init DIRECTORY --template NAME makes one of them"))


def _show(template: Template, directory: str, files: Mapping[str, bytes]) -> None:
    """Print what was made, and what to type next."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text.assemble((template.name, "bold"), f": {template.text}; {len(files)} files in {printable(directory)}"))
    told = {name: text for name, text in template.own.items() if text != DATA}
    told[", ".join(_at_top(name for name in files if name not in told))] = DATA
    width = max(map(len, told))
    for name, text in told.items():
        console.print(Text(f"  {name:{width}}  {text}"))
    console.print(Text("\nType next:"))
    inside = [] if os.path.abspath(directory) == os.getcwd() else [f"cd {shlex.quote(directory)}"]
    for command in (*inside, *template.commands):
        console.print(Text(f"  {printable(command)}", style="bold"))


def _at_top(names: Iterable[str]) -> list[str]:
    """Return each file that lies in no folder, and each folder once, as `folder/`."""
    return list(dict.fromkeys(f"{first}/" if rest else first for first, _, rest in (name.partition("/") for name in names)))
