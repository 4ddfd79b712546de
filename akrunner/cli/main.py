"""The `akrunner` command and its subcommands.

A subcommand's module is imported only if that subcommand is used; for `--help` all are imported.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import typer
from rich.markup import escape

import akrunner
from akrunner.cli import converting, values
from akrunner.cli.guarded import EPILOG, JSON_EPILOG, asks_for_json, ended, exit_codes
from akrunner.cli.values import GIVEN
from akrunner.options import COMMANDS, of_command


def akrunner_command(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        typer.echo(f"akrunner {akrunner.__version__}")
        raise typer.Exit()


#: the exit codes of commands with subcommands, and of each of these
_EXIT_CODES = exit_codes(
    "0 it is done; 1 it failed; 2 an argument does not allow it, or what it names is not there; 3 rows could not be read; 4 what was "
    "written could not be stored"
)
#: the same for commands that read and write no rows
_WITHOUT_ROWS = exit_codes(
    "0 it is done; 1 it failed; 2 an argument does not allow it, or what it names is not there; 4 stdout could not be written"
)
#: those that all commands have; what else one has is in its own help
_ALL = exit_codes(
    "each command's --help has its own; of all of them: 0 it is done; 1 it failed; 2 an argument does not allow it"
)


# -- the commands: each function adds one to an app


def _scripted(name: str, app: typer.Typer) -> None:
    from akrunner.cli import given, running

    help = getattr(running, f"{name.upper()}_HELP")
    app.command(name, help=help, epilog=EPILOG)(given.command(name, getattr(running, name)))


def _of_detached(name: str, app: typer.Typer) -> None:
    from akrunner.cli import detached

    app.command(name, epilog=detached.EPILOGS[name])(getattr(detached, name))


def _doctor(app: typer.Typer) -> None:
    from akrunner.cli import doctor, given

    app.command("doctor", help=doctor.HELP, epilog=doctor.EPILOG)(given.command("doctor", doctor.doctor))


def _pack(app: typer.Typer) -> None:
    from akrunner.cli import given, pack

    app.command("pack", help=pack.HELP, epilog=pack.EPILOG)(given.command("pack", pack.pack))


def _init(app: typer.Typer) -> None:
    from akrunner.cli import given, init

    app.command("init", help=init.HELP, epilog=init.EPILOG)(given.command("init", init.init))


def _odpscmd(app: typer.Typer) -> None:
    from akrunner.cli import odpscmd

    app.command("odpscmd", help=odpscmd.HELP, epilog=odpscmd.EPILOG)(odpscmd.odpscmd)


def _pai(app: typer.Typer) -> None:
    from akrunner.cli import given, pai

    app.command("pai", help=pai.HELP, epilog=pai.EPILOG)(given.command("pai", pai.pai))


def _predict(app: typer.Typer) -> None:
    from akrunner.cli import given, predicting

    app.command("predict", help=predicting.HELP, epilog=predicting.EPILOG)(given.command("predict", predicting.predict))


def _replay(app: typer.Typer) -> None:
    from akrunner.cli import given, replaying

    app.command("replay", help=replaying.HELP, epilog=replaying.EPILOG)(given.command("replay", replaying.replay))


def _runs(app: typer.Typer) -> None:
    from akrunner.cli import runs

    app.add_typer(runs.app, name="runs", epilog=runs.EPILOG)


def _show(app: typer.Typer) -> None:
    from akrunner.cli import runs

    app.command("show", help=runs.SHOW_HELP, epilog=runs.EPILOG)(runs.show)


def _report(app: typer.Typer) -> None:
    from akrunner.cli import runs

    app.command("report", help=runs.REPORT_HELP, epilog=runs.REPORT_EPILOG)(runs.report)


def _rerun(app: typer.Typer) -> None:
    from akrunner.cli import rerunning

    app.command("rerun", help=rerunning.HELP, epilog=rerunning.EPILOG)(rerunning.rerun)


def _explain(app: typer.Typer) -> None:
    from akrunner.cli import explaining

    app.command("explain", help=explaining.HELP, epilog=explaining.EPILOG)(explaining.explain)


def _env(app: typer.Typer) -> None:
    from akrunner.cli import env

    app.add_typer(env.app, name="env", epilog=_WITHOUT_ROWS)


def _flink(app: typer.Typer) -> None:
    from akrunner.cli import flink

    app.add_typer(flink.app, name="flink", epilog=_WITHOUT_ROWS)


def _tables(app: typer.Typer) -> None:
    from akrunner.cli import tables

    app.add_typer(tables.app, name="tables", epilog=_EXIT_CODES)


def _warm(app: typer.Typer) -> None:
    from akrunner.cli import warm

    app.add_typer(warm.app, name="warm", epilog=_WITHOUT_ROWS)


#: the variable that a shell's completion script (`--show-completion`) sets when it calls the command for possible next words
_COMPLETES = "_AKRUNNER_COMPLETE"
#: commands that run a script; the words behind -- are the script's
_SCRIPTED = ("run", "train", "stream")
#: the command that stands for the command of a run that was kept
_AGAIN = "rerun"
#: commands that take a job file
_JOBS = (*_SCRIPTED, "predict")
#: commands whose short help shows only some of their options
_LONG = tuple(one.name for one in COMMANDS.values() if one.is_long)

#: commands, in the order in which `--help` shows them -> the function that adds the command to an app
_COMMANDS: dict[str, Callable[[typer.Typer], None]] = {
    **{name: functools.partial(_scripted, name) for name in _SCRIPTED},
    "predict": _predict,
    "runs": _runs,
    "show": _show,
    "report": _report,
    "rerun": _rerun,
    "status": functools.partial(_of_detached, "status"),
    "logs": functools.partial(_of_detached, "logs"),
    "cancel": functools.partial(_of_detached, "cancel"),
    "init": _init,
    "doctor": _doctor,
    "explain": _explain,
    "pack": _pack,
    "pai": _pai,
    "odpscmd": _odpscmd,
    "replay": _replay,
    "env": _env,
    "flink": _flink,
    "tables": _tables,
    "warm": _warm,
}


#: commands that do nothing but print what is known; `runs` is another
_TELLING = (["show"], ["logs"], ["status"], ["doctor"], ["tables", "ls"], ["tables", "show"])

#: Click's context settings of every command
_SETTINGS: Any = {"help_option_names": ["--help", "-h"]}


@functools.cache
def _made(names: tuple[str, ...], every: bool = False) -> Any:
    """Return Typer's command for some of the commands. Args: every: whether their help shows all options."""
    app = typer.Typer(
        name="akrunner",
        help="Run a TensorFlow script over a table.\n\nAn error ends with a short code, and `akrunner explain CODE` says what causes it.",
        epilog=_ALL,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings=_SETTINGS,
    )
    app.callback(invoke_without_command=True)(akrunner_command)
    for name in names:
        _COMMANDS[name](app)
    made: Any = typer.main.get_command(app)
    _legible(made)
    for name in () if every else set(names) & set(_LONG):
        from akrunner.cli import given

        given.shorten(made.commands[name], name)
    return made


def _legible(command: Any) -> None:
    """Make Rich print the help of a command, and of its subcommands, correctly at any width."""
    # a subcommand may have the epilog of its group, which says it already
    if any("--json" in parameter.opts for parameter in command.params) and JSON_EPILOG not in (command.epilog or ""):
        command.epilog = f"{command.epilog} {JSON_EPILOG}"
    command.help, command.epilog = (_flowing(text) if text else text for text in (command.help, command.epilog))
    for parameter in (*command.params, command.get_help_option(_context(command))):
        # the help of a parameter is plain text: [/pt=VALUE] is no markup
        if getattr(parameter, "help", None):
            parameter.help = escape(parameter.help)
        converting.hasten(parameter)
        # without this, help shows <bool> behind a flag, as if it took a value
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    for one in getattr(command, "commands", {}).values():
        one.epilog = one.epilog or command.epilog
        _legible(one)


def _context(command: Any) -> Any:
    """Return a context for examining a command without running it.

    It has the same settings as when the command runs, as the command makes its help option only once.
    """
    return command.context_class(command, **_SETTINGS)


def _flowing(text: str) -> str:
    """Return a text with each paragraph as one line, which the terminal wraps; a line that ends in a backslash stays a line."""
    return re.sub(r"(?<![\\\n])\n[ ]*(?=\S)", " ", text.strip("\n"))


def load(arguments: Sequence[str]) -> Any:
    """Import the modules that a command line needs. Returns: Typer's command for it."""
    if not arguments and os.environ.get(_COMPLETES):
        # only the command that was typed; bash and the other shells pass the words in different variables
        words = (os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or "").split()
        return _made((words[1],) if words[1:2] and words[1] in _COMMANDS else tuple(_COMMANDS), True)
    first = next((word for word in arguments if word != "--json"), None)
    if first in _COMMANDS:
        return _made((first,), _wants_all(arguments))
    # for help, and for words that are no command, all commands are needed
    return _made(() if list(arguments) == ["--version"] else tuple(_COMMANDS))


def _wants_all(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for the help of all options."""
    return "--help-all" in arguments[: arguments.index("--") if "--" in arguments else None]


def _divided(given: list[str]) -> tuple[list[str], list[str]]:
    """Divide a command line into the words for Typer and the script's own words."""
    # all words behind -- are the script's, even if they look like options of akrunner
    ours, script_args = given, []
    if given[:1] in [[name] for name in (*_SCRIPTED, _AGAIN)] and "--" in given:
        ours, script_args = given[: given.index("--")], given[given.index("--") + 1 :]

    if ours[:1] == ["--json"]:
        # every command has --json as an option of its own
        ours = [*ours[1:], "--json"]
    if _wants_all(ours):
        # --help shows all options then. For a command with subcommands, the words say which subcommand's help is wanted
        words = list(itertools.takewhile(lambda word: not word.startswith("-"), ours))
        ours = [*(words[:1] if words[:1] in [[name] for name in COMMANDS] else words), "--help"]
    if ours[:1] == ["pai"]:
        from akrunner.cli import pai

        ours, script_args = pai.divided(ours[1:])
        ours = ["pai", *ours]
    if ours[:1] == ["odpscmd"] and ours[1:2] not in (["--help"], ["-h"]):
        return ours[:1], given[1:]
    return values.with_values(ours), script_args


def contrary(words: Sequence[str]) -> None:
    """Check that no option is given with both its forms (--x and --no-x), of which Typer would take the last.

    Raises: ConfigError: one is.
    """
    for one in of_command(words[0]) if words and words[0] in COMMANDS else ():
        for pair in (word.split("/") for word in one.words_in(words[0]) if "/" in word):
            if all(word in words for word in pair):
                raise akrunner.ConfigError(f"{' and '.join(pair)} are both given: leave one of them out")


def check_once(command: Any, words: Sequence[str]) -> None:
    """Check that no option with a single value is given twice, of which Typer would take the last.

    Args: command: Typer's, of all commands; words: those for it, without the words of a PAI command.
    Raises: ConfigError: one is.
    """
    own, rest = command, list(words)
    while hasattr(own, "commands"):
        # a command with subcommands has no options of its own
        own = own.commands.get(rest.pop(0)) if rest else None
    if own is None:
        return
    try:
        _, _, order = own.make_parser(_context(own)).parse_args(args=rest)
    except Exception:
        # the same error is reported when the command line is parsed to run it
        return
    for one, times in Counter(order).items():
        if times > 1 and one.param_type_name == "option" and not one.multiple and not one.is_flag:
            flag = "--dry-run" if one.name == "dry_run_rows" else one.opts[0]
            raise akrunner.ConfigError(
                f"{flag} is given {'twice' if times == 2 else f'{times} times'}, and has one value: which one is meant?"
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, this process's by default, and print its results and errors. Returns: the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given and os.environ.get(_COMPLETES):
        # print the words that may follow, and exit
        return int(load([]).main([], "akrunner", _COMPLETES, standalone_mode=False) or 0)
    command = load(given)
    ours, script_args = _divided(given)

    is_help = not ours or bool({"--help", "-h"} & set(ours)) or ours == ["--version"] or ours[:1] == ["explain"]

    def run() -> Any:
        words, script_words, made = ours, script_args, command
        more: dict[str, Any] = {}
        if ours[:1] == [_AGAIN] and not is_help:
            from akrunner.cli import rerunning

            name = rerunning.command_of(ours)
            made = load([name])
            line = rerunning.line(made.commands[name], ours, script_args)
            words, script_words, more = line.words, line.script_args, line.more
        elif ours[:1] in [[name] for name in _JOBS] and any(word.lower().endswith(".toml") for word in ours):
            from akrunner.cli import jobfiles

            line = jobfiles.read(command.commands[ours[0]], ours, script_args)
            words, script_words, more = line.words, line.script_args, line.more
        contrary(words)
        check_once(made, words)
        # as Typer runs a command, except for its handling of exceptions
        try:
            # a copy, as Click removes words from the list
            with made.make_context("akrunner", list(words), obj=script_words, **more) as context:
                context.meta[GIVEN] = given
                return made.invoke(context)
        except SystemExit as e:
            # Typer's options for completion end with SystemExit
            if e.code or not any(word in ("--install-completion", "--show-completion") for word in given):
                raise
            return 0
        except Exception as e:
            if hasattr(e, "format_message"):
                from akrunner.cli import jobfiles, mistaken

                lacking = jobfiles.missing(e)
                if lacking is not None:
                    raise lacking from None
                number = mistaken.no_number(e, ours)
                if number is not None:
                    raise number from None
                mistaken.explain(e, ours, lambda: _made(tuple(_COMMANDS), True))
            raise

    return ended(run, asks_for_json(given), is_help=is_help, only_tells=_only_tells(ours))


def _only_tells(words: Sequence[str]) -> bool:
    """Whether a command does nothing but print what is known. Args: words: those of its line that are akrunner's."""
    if words[:1] == ["runs"]:
        return words[1:2] != ["prune"] and not any(word.startswith("--serve") for word in words)
    return words[:1] in _TELLING or words[:2] in _TELLING
