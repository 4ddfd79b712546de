"""Statements and PAI jobs of `akrunner pai` and `akrunner odpscmd`, run one after the other, with their results shown."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import typer

import akrunner
from akrunner.cli import show, signals
from akrunner.cli.guarded import emit
from akrunner.outcomes import end_of, failure

if TYPE_CHECKING:
    from akrunner.pai_mode.calls import Inside
    from akrunner.pai_mode.job import Done
    from akrunner.pai_mode.plan import Plan
    from akrunner.pai_mode.scripts import ShellScript
    from akrunner.pai_mode.texts import Statements as Given


def inside(name: str, typed: Mapping[str, Any]) -> Inside | None:
    """Return the call if this command was called by a shell script that akrunner runs, else None.

    The call's `options` are the options of that run, updated with the options typed behind this command.
    Args: name: the command's name; typed: the options typed behind it.
    """
    from akrunner.pai_mode import calls

    called = calls.inside(name)
    if called is None:
        return None
    # if Ctrl-C ends a program by an exit code and not by the signal, the shell goes on to its next line
    signals.end_by_it()
    for key, value in typed.items():
        called.options[key] = {**(called.options.get(key) or {}), **value} if isinstance(value, dict) else value
    return called


def telling(called: Inside | None, done: list[Done]) -> AbstractContextManager[None]:
    """Return a context manager that tells the calling script what its block has done, or why it failed.

    Args: called: the call, None if no script has called this command; done: the statements' results, to which the block adds.
    """
    return called.telling(done) if called is not None else contextlib.nullcontext()


class Statements:
    """The runner of one command's statements.

    Args:
        options: the options of `PaiArguments`, and others.
        screen: where results are shown.
        as_json: whether one JSON object is printed at the end.
        quiet: whether only rows and errors are shown.
        done: the list to which the result of each statement is added.
    """

    def __init__(self, options: dict[str, Any], screen: show.Screen, as_json: bool, quiet: bool, done: list[Done]) -> None:
        from akrunner.pai_mode.arguments import PaiArguments
        from akrunner.pai_mode.job import Runner

        self._screen, self._json, self._quiet, self._done = screen, as_json, quiet, done
        #: the plan of the last job
        self._plan: Plan | None = None
        self.runner = Runner(PaiArguments.of(options), screen, screen.note, self._begin)

    def run(self, given: Given, printed: Callable[[str, pa.Table], None] | None = None) -> None:
        """Run each statement and show its result.

        Args: printed: prints the rows of a statement, given its text and the rows; None: print them as a table.
        Raises: the exceptions of `Runner.running`.
        """
        if not self._json:
            for note in given.notes:
                self._screen.note(note)
        self._each(given, printed or _printed)
        if self._json:
            emit({"ok": True, "exit_code": 0, "statements": list(map(_as_json, self._done))})

    def _each(self, given: Given, printed: Callable[[str, pa.Table], None]) -> None:
        statements = self.runner.running(given)
        while True:
            with self._screen:
                try:
                    one = next(statements, None)
                except akrunner.AkrunnerError as e:
                    e.results = list(map(_as_json, self._done))
                    raise
            if one is None:
                return
            self._done.append(one)
            if isinstance(one, akrunner.Result):
                self._screen.asked(one, _checkpoints(self._plan))
            elif self._json:
                continue
            elif one.rows is not None:
                printed(one.statement.text, one.rows)
                if one.message:
                    self._screen.note(one.message)
            elif one.message and not self._quiet:
                self._screen.note(one.message)

    def run_script(self, script: ShellScript) -> int:
        """Run a shell script, and the statements that it hands to odpscmd. Returns: the script's exit code."""
        from akrunner.pai_mode import scripts

        if not self._quiet and not self._json:
            self._screen.note(f"bash runs {script.path}, all of it; what it hands to odpscmd comes here")
        # with --json the script prints to stderr, as stdout must be one JSON object
        sys.stdout.flush()
        outcome = self.runner.called(script, sys.stderr if self._json else None, self._quiet)
        done = [_as_json(one) for call in outcome.calls for one in call.done]
        if self._json:
            error = scripts.failure(script, outcome) if outcome.code else None
            head = {"ok": True, "exit_code": 0} if error is None else failure(error, end_of(error)._replace(code=outcome.code))
            failed = [str(one) for one in outcome.failed]
            emit({**head, "calls": len(outcome.calls), "calls_failed": failed, "statements": done})
        elif outcome.code or outcome.failed or not outcome.calls or not self._quiet:
            self._screen.note(scripts.sentence(script, outcome))
        return outcome.code

    def _begin(self, plan: Plan) -> None:
        from akrunner.pai_mode import pais

        self._plan = plan
        self._screen.known_as = pais.names(plan.cluster)
        self._screen.renamed = lambda text: pais.both(text, self._screen.known_as)


def _printed(statement: str, rows: pa.Table) -> None:
    from akrunner.cli.tables import print_table

    print_table(rows)


def _checkpoints(plan: Plan | None) -> list[str]:
    """Return the line that says where a job's checkpoints are; [] if it has none.

    If they are in a bucket in the cloud, the local copy is gone when the job has ended, and the line names the bucket.
    """
    found = plan.checkpoint_dir if plan is not None else None
    if plan is None or found is None:
        return []
    uri = next((uri for uri, path in plan.directories if path == found), found)
    return [f"checkpoints: {found}{f' ({uri})' if uri != found else ''}" if os.path.isdir(found) else f"checkpoints: {uri}"]


def _as_json(done: Done) -> dict[str, Any]:
    if isinstance(done, akrunner.Result):
        return {
            "kind": "pai",
            "output": done.output,
            "work_dir": done.work_dir,
            "stats": dataclasses.asdict(done.stats),
            "tasks": [dataclasses.asdict(task) for task in done.tasks],
        }
    rows = done.rows.to_pylist() if done.rows is not None else None
    return {"kind": done.statement.kind, "line": done.statement.line, "message": done.message, "rows": rows}


def ended(code: int) -> None:
    """End a command with this exit code; everything was printed already."""
    if code:
        raise typer.Exit(code)
