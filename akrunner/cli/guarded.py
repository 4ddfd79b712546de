"""The end of every command: its exit code, and its error in words on stderr or as JSON on stdout. Commands only raise."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import select
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

import typer
from rich.text import Text

import akrunner
from akrunner.checks import shown
from akrunner.cli import again, records, signals, stderr
from akrunner.codes import code_of, with_code
from akrunner.errors import notes_of
from akrunner.folders.words import harmless
from akrunner.foreign import in_words, redacted
from akrunner.outcomes import (
    EXIT_FAILED,
    EXIT_FAULT,
    EXIT_TIMEOUT,
    EXIT_USAGE,
    EXIT_WRITE,
    End,
    end_of,
    failure,
    head,
    plain,
    short_code,
)

_STDOUT = 1
#: where akrunner's own modules are
_OURS = os.path.dirname(os.path.abspath(akrunner.__file__)) + os.sep

#: how many seconds the reader of stdout has, when a command is ended early, to make room for its last words
_READER_SECONDS = 1.0


#: what --json is, in the help of each command that has it
JSON_EPILOG = (
    "With --json, the command prints one JSON object on stdout, whatever the code is, unless stdout cannot be written."
)


def exit_codes(own: str, terminated: str = "", timeout: str = "") -> str:
    """Return the last paragraph of a command's help.

    Args:
        own: the codes that mean something of their own for the command: "0 ...; 1 ...".
        terminated: what 143 means besides a signal.
        timeout: what 124 means, if a time limit can end the command.
    """
    return (
        f"Exit codes: {own}; 70 a fault of akrunner; {f'124 {timeout}; ' if timeout else ''}130 interrupted (Ctrl-C); 143 terminated "
        f"(129 by a terminal that was closed, 131 by Ctrl-\\){f', or {terminated}' if terminated else ''}."
    )


def of_jobs(failed: str, limit: str = "--timeout") -> str:
    """Return the same for a command that runs jobs. Args: failed: what is on stderr if the job fails; limit: its time limit."""
    return exit_codes(
        f"0 the job succeeded; 1 it failed, and stderr has {failed}; 2 nothing was started, because of an argument, the input or a "
        "limit of this machine; 3 the input could not be read to its end, or has a value that cannot be converted; 4 what was written "
        "could not be stored",
        "the Flink job was cancelled",
        f"{limit} has passed, and the job was ended",
    )


EPILOG = of_jobs("the script's traceback")


class Untold(Exception):
    """Stdout cannot be written, so a command's result is not printed. Attributes: done: what the command has done, in words."""

    def __init__(self, done: str) -> None:
        super().__init__(done)
        self.done = done


@contextlib.contextmanager
def telling(done: str) -> Iterator[None]:
    """Print a result in the block. If stdout cannot be written, the error on stderr says what was done.

    Args: done: what was done, in words.
    Raises: Untold: stdout cannot be written.
    """
    try:
        yield
        sys.stdout.flush()
    except (OSError, SystemExit) as e:
        # Rich turns a broken pipe into a SystemExit
        raise Untold(done) from e


def ended(run: Callable[[], Any], as_json: bool, is_help: bool = False, only_tells: bool = False) -> int:
    """Run a command, and print its error if it fails.

    Args:
        run: the command.
        as_json: whether errors are printed as JSON.
        is_help: whether it only prints help, which a reader need not read to its end (`| head`).
        only_tells: whether it does nothing but print: a reader who goes need not be told what was done.
    Returns: the exit code.
    """
    try:
        with _warnings_in_words():
            code = int(run() or 0)
        sys.stdout.flush()
        # a signal that comes now no longer stops anything
        signals.decided()
        return code
    except BaseException as e:
        if is_help and signals.seen() is None and any(isinstance(one, BrokenPipeError) for one in _chain(e)):
            silence_stdout()
            return 0
        return _failed(e, as_json, only_tells)
    finally:
        records.off()


@contextlib.contextmanager
def looking(goes_on: str) -> Iterator[None]:
    """Look in the block at work that goes on without this command, so that a signal has stopped none of it.

    Args: goes_on: half a sentence about that work, for the line about a signal; "": nothing is to be said.
    """
    try:
        yield
    except BaseException as e:
        vars(e)["goes_on"] = goes_on
        raise


@contextlib.contextmanager
def _warnings_in_words() -> Iterator[None]:
    """In the block, print what akrunner itself warns of as a command does, without Python's class, file and line."""
    usual = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not filename.startswith(_OURS):
            usual(message, category, filename, lineno, file, line)
        elif records.active():
            records.say(str(message), logging.WARNING)
        else:
            stderr.say(f"warning: {harmless(redacted(str(message)))}")

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


def _chain(error: BaseException) -> list[BaseException]:
    """Return an exception, its cause (or context), the cause's cause and so on."""
    chain = [error]
    while (above := chain[-1].__cause__ or chain[-1].__context__) is not None and above not in chain:
        chain.append(above)
    return chain


def _failed(error: BaseException, as_json: bool, only_tells: bool) -> int:
    if any(getattr(one, "logged", False) for one in _chain(error)):
        records.end_is_told()
    number = signals.seen()
    if isinstance(error, KeyboardInterrupt):
        number = number or signal.SIGINT
    if isinstance(error, typer.Exit) and number is None:
        return int(error.exit_code)
    code = 128 + number if number is not None else None
    if code is None and isinstance(error, stderr.LIMITS):
        code = EXIT_TIMEOUT if isinstance(error, akrunner.JobTimeoutError) else EXIT_FAILED
    with signals.last_output(code):
        if code is not None and not as_json:
            _give_up_stdout()
        return _stopped(error, number, as_json) if number is not None else _explained(error, as_json, only_tells)


def _stopped(error: BaseException, number: int, as_json: bool) -> int:
    """Print that a signal has stopped the command. Returns: the exit code."""
    kind, word, code = end_of(error, number)
    message = f"{word}{_left(error)}"
    kept, run = (
        next((value for value in (getattr(one, name, None) for one in _chain(error)) if value), None)
        for name in ("work_dir", "run")
    )
    told = {**head(kind, message, code), "work_dir": kept, "run": run}
    message += f"; its logs: {kept}" if kept else ""
    return _say(
        kind, message + (f"\nrun: {run}   (akrunner show {run})" if run and not as_json else ""), code, as_json, body=told
    )


def _explained(error: BaseException, as_json: bool, only_tells: bool) -> int:
    """Print what has failed. Returns: the exit code."""
    if hasattr(error, "format_message"):
        return _misused(error, as_json)
    untold = isinstance(error, Untold)
    done = f"; {error.done}" if isinstance(error, Untold) else ""
    error = (error.__cause__ or error) if isinstance(error, Untold) else error
    lost = _of_stdout(error) if untold or _in_printing(error) else None
    if lost is not None:
        is_gone = any(isinstance(one, BrokenPipeError) for one in _chain(error))
        return EXIT_WRITE if only_tells and is_gone else _lost_stdout(lost + done, EXIT_WRITE)
    end = end_of(error)
    if end.code == EXIT_FAULT and not isinstance(error, akrunner.AkrunnerError):
        return _say(*end, as_json, redacted("".join(traceback.format_exception(error))), short=short_code(error, end))
    return _told(error, end, as_json)


def _told(error: BaseException, end: End, as_json: bool) -> int:
    """Print an error with its notes. Returns: the exit code."""
    body = failure(error, end) if as_json else None
    kept = getattr(error, "run", None)
    text = str(error) if isinstance(error, akrunner.AkrunnerError) else end.message
    last = [again.advice(error), f"run {kept}: akrunner show {kept}" if kept else ""]
    message = "\n".join([text, *notes_of(error), *filter(None, last)])
    return _say(end.name, message, end.code, as_json, kind=True, body=body, short=short_code(error, end))


def _lost_stdout(why: str, code: int) -> int:
    """Print that stdout cannot be written. Returns: the exit code."""
    return _say("WriteError", why, code, False, kind=True, short=code_of(["WriteError"], why))


def _left(error: BaseException) -> str:
    """Return half a sentence that says what a signal leaves behind.

    It says that every task of a job was stopped, if this command has started tasks, and that no table was changed, or which tables are
    changed already; and what became of an output that was just being committed. A command that only looks at a job (`looking`) says
    what becomes of the job.
    """
    looked = next((value for one in _chain(error) if (value := getattr(one, "goes_on", None)) is not None), None)
    if looked is not None:
        return f"; {looked}" if looked else ""
    group, store = sys.modules.get("akrunner.engines.group"), sys.modules.get("akrunner.tables.store")
    commits = sys.modules.get("akrunner.io.commits")
    names = list(dict.fromkeys(store.CHANGED)) if store is not None else []
    said = [told for one in _chain(error) for told in commits.told_of(one)] if commits is not None else []
    tasks = group is not None and group.BEGUN.is_set() and not _raised_in(error, "akrunner.tables.statements")
    told = "; every task was stopped" if tasks else ""
    if names:
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        said.append(f"Changed already, and it stays so: {', '.join(names[:5])}{more}")
    if said:
        return f"{told}. {'. '.join(said)}"
    # it is not known whether MaxCompute has run a statement that it was sent; and an output of `pack` is no table
    untouched = store is not None and "akrunner.tables.maxcompute" not in sys.modules
    untouched = untouched and not _raised_in(error, "akrunner.packing.job")
    return told or ("; no table was changed" if untouched else "")


def _raised_in(error: BaseException, module: str) -> bool:
    """Whether a function of a module was running when an exception, or one of its causes, was raised."""
    places = (frame for one in _chain(error) for frame, _ in traceback.walk_tb(one.__traceback__))
    return any(frame.f_globals.get("__name__", "") == module for frame in places)


#: packages whose code writes to stdout
_PRINTING = ("akrunner.cli", "akrunner.__main__", "click", "typer", "rich")


def _in_printing(error: BaseException) -> bool:
    """Whether an exception, or one of its causes, was raised where a command prints.

    A job writes to many other files, and an error of one of these says nothing about stdout.
    """
    for one in _chain(error):
        places = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(one.__traceback__)]
        if isinstance(one, OSError) and places and f"{places[-1]}.".startswith(tuple(f"{name}." for name in _PRINTING)):
            return True
    return False


def _of_stdout(error: BaseException) -> str | None:
    """Return half a sentence if an error of printing means that stdout cannot be written, and silence stdout; else None."""
    # Rich turns a broken pipe into a SystemExit, which has it as its cause or context
    lost = next((one for one in _chain(error) if isinstance(one, BrokenPipeError)), None)
    if isinstance(error, akrunner.AkrunnerError) or not (lost or isinstance(error, OSError)):
        return None
    if lost is None and getattr(error, "filename", None) is not None:
        return None  # the error is about a file: an error of writing to an open stream names no file
    silence_stdout()
    if getattr(error, "errno", None) == errno.EBADF:
        return "stdout is closed"
    return "stdout was closed before everything was written to it" if lost else f"stdout: {in_words(error)}"


def _give_up_stdout() -> None:
    """Silence stdout if it takes nothing for a while, so that what stderr has to say is not held up."""
    poll = select.poll()
    poll.register(_STDOUT, select.POLLOUT)
    if not poll.poll(_READER_SECONDS * 1000):
        silence_stdout()


def silence_stdout() -> None:
    """Send stdout to /dev/null from now on, so that Python's flush at its end raises no further error."""
    null = os.open(os.devnull, os.O_WRONLY)
    if null != 1:
        os.dup2(null, 1)
        os.close(null)


def _misused(error: Any, as_json: bool) -> int:
    """Print Typer's error about the command line itself. Returns: the exit code."""
    code = int(getattr(error, "exit_code", EXIT_USAGE))
    lost = ""
    _show_variable(error)
    if as_json:
        lost = _lost(head("UsageError", error.format_message() or "which command? see --help", code))
        if not lost:
            return code
    from typer import rich_utils

    words = error.format_message()
    if words:
        error.format_message = lambda: with_code(words, code_of(["UsageError"], words))
    # a reader of stderr who is gone is no further error; Rich makes a SystemExit of it
    with contextlib.suppress(OSError, SystemExit):
        rich_utils.rich_format_error(error)
    if lost:
        _lost_stdout(lost, code)
    return code


def _show_variable(error: Any) -> None:
    """Add an environment variable's value to an error about it, as Click shows only values of the command line."""
    ctx, param = getattr(error, "ctx", None), getattr(error, "param", None)
    if ctx is None or param is None:
        return
    source = ctx.get_parameter_source(param.name)
    if source is None or source.name != "ENVIRONMENT":
        return
    given = param.value_from_envvar(ctx)
    if isinstance(given, str) and repr(given) not in error.message:
        error.message = f"{shown(given)}: {error.message}"


def _say(
    name: str,
    message: str,
    code: int,
    as_json: bool,
    more: str = "",
    kind: bool = False,
    body: dict[str, Any] | None = None,
    short: str = "",
) -> int:
    """Print an error as JSON on stdout, or in words on stderr; also in words if stdout cannot take the JSON.

    Args:
        name: the error's class.
        message: its text.
        code: the exit code.
        as_json: whether to print JSON.
        more: further text for stderr, even beside JSON.
        kind: whether the words begin with the name.
        body: the JSON object, None: one made of name, message and code.
        short: the short code of the error, which words end with; "": it has none.
    Returns: the exit code.
    """
    lost = _lost(body or head(name, message, code)) if as_json else ""
    message = with_code(message, short)
    if records.active():
        if records.wants_end() or lost:
            words = "\n".join(filter(None, (message, more, f"WriteError: {lost}" if lost else "")))
            records.say(f"{name}: {words}", logging.ERROR, error=name, exit_code=code, error_code=short or None)
        return code
    console = stderr.console()
    if lost or not as_json:
        words = f"{name}: {message}" if kind else message
        console.print(Text(harmless(redacted(f"akrunner: {words}")), style="red" if console.is_terminal and kind else ""))
    if more:
        console.print(Text(harmless(more)))
    if lost:
        console.print(Text(f"akrunner: WriteError: {lost}"))
    return code


def emit(body: dict[str, Any]) -> None:
    """Print the one JSON object of a command. Raises: OSError: stdout cannot be written."""
    text = json.dumps(plain(body), allow_nan=False) + "\n"
    with signals.last_output(None):
        sys.stdout.write(text)
        sys.stdout.flush()


def _lost(body: dict[str, Any]) -> str:
    """Emit a JSON object. Returns: why stdout could not be written, in words; "" if it was."""
    try:
        emit(body)
    except OSError as e:
        return f"the JSON object could not be written: {_of_stdout(e)}"
    return ""


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether a command line has --json, even if it is wrong otherwise."""
    return "--json" in arguments[: arguments.index("--") if "--" in arguments else None]
