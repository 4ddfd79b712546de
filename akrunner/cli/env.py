"""`akrunner env`: the interpreters that tasks can run under."""

from __future__ import annotations

import os
from dataclasses import asdict

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import akrunner
from akrunner.cli import progress, stderr
from akrunner.cli.given import flag
from akrunner.cli.guarded import emit
from akrunner.launch import environments, interpreters

HELP = """
Find, probe, make and remove the interpreters that tasks can run under.

A name (tf1.15, tf2.3, tf2) is what --python-env takes; `create` makes the environment it stands for, with packages known to fit together, in
the user's cache. Nothing of akrunner is installed in any of them.

[bold]Examples[/bold]

  akrunner env list

  akrunner env probe ~/venvs/tf

  akrunner env create tf1.15
"""

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, rich_markup_mode="rich")
JSON = flag("as_json")


@app.command("list", help="List the interpreters of this machine, each with its TensorFlow, and the names that stand for one.")
def list_(as_json: bool = typer.Option(False, "--json", help="JSON on stdout, for machines.")) -> None:
    paths: dict[str, list[str]] = {}
    for recipe in environments.RECIPES.values():
        try:
            paths.setdefault(interpreters.named(recipe).path, []).append(recipe.name)
        except akrunner.PythonEnvError:
            pass
    named = list(paths)
    seen = {(os.path.dirname(path), os.path.realpath(path)) for path in named}
    for path in [interpreters.asked_for(None).path, *environments.configured(), *environments.found()]:
        # not only the real path: a venv's python is a link to the interpreter that the venv was made from
        where = (os.path.dirname(os.path.abspath(path)), os.path.realpath(path))
        if where not in seen:
            seen.add(where)
            paths.setdefault(os.path.abspath(path), [])
    rows = []
    for path, names in paths.items():
        try:
            found = interpreters.probe(path)
        except akrunner.PythonEnvError:
            continue  # a shim that does not run
        if found.python >= interpreters.OLDEST:
            rows.append({"names": names, **asdict(found), "python": _dotted(found)})
    missing = [name for name in environments.RECIPES if not any(name in names for names in paths.values())]
    if as_json:
        emit({"ok": True, "exit_code": 0, "interpreters": rows, "missing": missing})
        return
    _show(rows)
    if missing:
        stderr.say("not there: " + ", ".join(f"{name} (akrunner env create {name})" for name in missing))


@app.command(
    "probe",
    help="Show what an interpreter is. PATH is its path, that of a venv or conda directory, or of a packed environment; or a name.",
)
def probe(
    path: str = typer.Argument(..., help="As for --python-env."),
    as_json: bool = typer.Option(False, "--json", help="JSON on stdout, for machines."),
) -> None:
    found = interpreters.asked_for(path)
    row = {"names": [], **asdict(found), "python": _dotted(found)}
    emit({"ok": True, "exit_code": 0, **row}) if as_json else _show([row])
    if not found.tensorflow:
        stderr.say("it has no TensorFlow: tasks cannot run under it")


@app.command("create", help="Make the environment a name stands for. Takes minutes, and a network.")
def create(
    name: str = typer.Argument(..., help="tf1.15, tf2.3 or tf2."),
    as_json: bool = JSON,
) -> None:
    try:
        with stderr.working() as console, progress.Line(console, f"creating {name}: TensorFlow is a large download", as_json):
            path = environments.create(name)
            found = interpreters.probe(environments.python_in(path))
    except akrunner.ConfigError as e:
        if name not in environments.RECIPES:
            raise
        # the environment was begun, so this is no ConfigError, which means that nothing was started
        raise akrunner.JobError(str(e)) from None
    if as_json:
        emit({"ok": True, "exit_code": 0, "name": name, "path": path, "tensorflow": found.tensorflow, "python": _dotted(found)})
        return
    typer.echo(f"{name}: TensorFlow {found.tensorflow} on Python {_dotted(found)} in {path}")


@app.command("remove", help="Remove what `create` made.")
def remove(
    name: str = typer.Argument(..., help="tf1.15, tf2.3 or tf2."),
    as_json: bool = JSON,
) -> None:
    there = environments.remove(name)
    if as_json:
        emit({"ok": True, "exit_code": 0, "name": name, "removed": bool(there)})
        return
    typer.echo(f"{name}: removed" if there else f"{name}: there is none that akrunner made")


def _dotted(found: interpreters.Interpreter) -> str:
    return ".".join(map(str, found.python))


def _show(rows: list[dict[str, object]]) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("name", "Python", "TensorFlow", "tf-keras", "numpy", "protobuf", "path"):
        table.add_column(title, no_wrap=title != "path", overflow="fold")
    for row in rows:
        names = row["names"]
        assert isinstance(names, list)
        cells = [str(row[key]) for key in ("python", "tensorflow", "tf_keras", "numpy", "protobuf", "path")]
        table.add_row(*map(Text, [", ".join(names), *cells]))
    Console(highlight=False, width=None if Console().is_terminal else 200).print(table)
