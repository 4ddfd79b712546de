"""`akrunner replay`: it runs one task again, from the work dir that its job has kept."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from typing import Any

import typer

import akrunner
from akrunner import argument_files
from akrunner.cli.guarded import emit, exit_codes
from akrunner.foreign import ours

HELP = """
Run one task's main() again from the work dir a job kept (--debug or --work-dir): in the foreground, in the task's own
interpreter, so that breakpoint() works. Its rows, files and parameters are all in there.

[bold]Examples[/bold]

  akrunner replay /tmp/akrunner-ab12cd

  akrunner replay /tmp/akrunner-ab12cd --task worker:0
"""
EPILOG = exit_codes(
    "0 main() returned; 1 it raised, and stderr has the traceback, or the interpreter could not run it; 2 WORK_DIR or an option is "
    "wrong, and nothing was run; another number: the script called sys.exit() with it, or a signal has ended the script, and it is 128 "
    "and the signal's number (137: SIGKILL)"
)


def replay(ctx: typer.Context, words: Mapping[str, Any]) -> None:
    work_dir, task, print_command, as_json = (words[name] for name in ("work_dir", "task", "print_command", "as_json"))
    try:
        job = json.loads(argument_files.read(os.path.join(work_dir, "job.json")))
        tasks, python = [str(name) for name in job["tasks"]], str(job["python"])
        chosen = task or tasks[0]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise akrunner.ConfigError(
            f"{work_dir} is not a work dir a job kept: it has no job.json (run the job with --debug)"
        ) from None
    if chosen not in tasks:
        raise akrunner.ConfigError(f"--task {chosen}: this job had {', '.join(tasks)}")
    directory = os.path.abspath(os.path.join(work_dir, "tasks", chosen.replace(":", "-")))
    if not os.path.exists(os.path.join(directory, "context.json")):
        raise akrunner.ConfigError(
            f"{directory} has no context.json: this work dir was not kept whole (run the job with --debug)"
        )
    if as_json and not print_command:
        raise akrunner.ConfigError("--json: what is printed is the script's own; with --print-command it is the command")
    command = [python, os.path.join(os.path.abspath(work_dir), "bundle.zip"), "replay", directory]
    command += ["--cluster"] if words["cluster"] else []
    if as_json:
        emit({"ok": True, "exit_code": 0, "command": command})
        return
    if print_command:
        typer.echo(shlex.join(command))
        return
    sys.stdout.flush()
    # replace this process, so that a debugger has the terminal to itself
    with ours(akrunner.ConfigError, f"{python} cannot be run"):
        os.execv(command[0], command)
