"""The end of every command: its exit code, and its error in words on stderr or as JSON on stdout. Commands only raise."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import math
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import typer
from rich.text import Text

import akrunner
from akrunner.checks import shown
from akrunner.cli import signals, stderr
from akrunner.folders.words import harmless
from akrunner.foreign import in_words, redacted, shortage

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_READ = 3
EXIT_WRITE = 4
EXIT_FAULT = 70
EXIT_TIMEOUT = 124
EXIT_TERMINATED = 143
_STDOUT = 1

#: how many seconds the reader of stdout has, when a command is ended early, to make room for its last words
_READER_SECONDS = 1.0

#: exceptions -> exit code; the first class that fits is taken
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (akrunner.JobTimeoutError, EXIT_TIMEOUT),
    (akrunner.ConfigError, EXIT_USAGE),
    (akrunner.ReadError, EXIT_READ),
    (akrunner.DataError, EXIT_READ),
    (akrunner.WriteError, EXIT_WRITE),
    # the same code as if the command itself had been terminated: the job is not to be started again
    (akrunner.JobCancelledError, EXIT_TERMINATED),
    (akrunner.AkrunnerError, EXIT_FAILED),
)

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


def ended(run: Callable[[], Any], as_json: bool, is_help: bool = False) -> int:
    """Run a command, and print its error if it fails.

    Args: run: the command; as_json: whether errors are printed as JSON; is_help: whether it only prints help, which a reader
        need not read to its end (`| head`).
    Returns: the exit code.
    """
    try:
        code = int(run() or 0)
        sys.stdout.flush()
        # a signal that comes now no longer stops anything
        signals.decided()
    except BaseException as e:
        if is_help and signals.seen() is None and any(isinstance(one, BrokenPipeError) for one in _chain(e)):
            silence_stdout()
            return 0
        return _failed(e, as_json)
    return code


def _chain(error: BaseException) -> list[BaseException]:
    """Return an exception, its cause (or context), the cause's cause and so on."""
    chain = [error]
    while (above := chain[-1].__cause__ or chain[-1].__context__) is not None and above not in chain:
        chain.append(above)
    return chain


def _failed(error: BaseException, as_json: bool) -> int:
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
        return _stopped(error, number, as_json) if number is not None else _explained(error, as_json)


def _stopped(error: BaseException, number: int, as_json: bool) -> int:
    """Print that a signal has stopped the command. Returns: the exit code."""
    kind = "Interrupted" if number == signal.SIGINT else "Terminated"
    message = f"{signals.words(number)}{_left(error)}"
    kept, run = (
        next((value for value in (getattr(one, name, None) for one in _chain(error)) if value), None)
        for name in ("work_dir", "run")
    )
    told = {**_head(kind, message, 128 + number), "work_dir": kept, "run": run}
    return _say(kind, message + (f"; its logs: {kept}" if kept else ""), 128 + number, as_json, body=told)


def _explained(error: BaseException, as_json: bool) -> int:
    """Print what has failed. Returns: the exit code."""
    if hasattr(error, "format_message"):
        return _misused(error, as_json)
    untold = isinstance(error, Untold)
    done = f"; {error.done}" if isinstance(error, Untold) else ""
    error = (error.__cause__ or error) if isinstance(error, Untold) else error
    lost = _of_stdout(error) if untold or _in_printing(error) else None
    if lost is not None:
        return _say("WriteError", lost + done, EXIT_WRITE, False, kind=True)
    code = next((code for kind, code in _CODES if isinstance(error, kind)), EXIT_FAULT)
    if isinstance(error, akrunner.JobError) and error.fault:
        return _told(error, EXIT_FAULT, as_json)
    if code == EXIT_FAULT and shortage(error):
        started = _in_engine(error)
        ours = akrunner.JobError if started else akrunner.ConfigError
        words = in_words(error)
        # what needs less memory is said of a job: other commands have no tasks, and no rows
        error, code = ours(words if started else words.partition("; ")[0]), EXIT_FAILED if started else EXIT_USAGE
    if code == EXIT_FAULT:
        message = f"this is a fault of akrunner, not yours: {type(error).__name__}: {in_words(error)}"
        trace = redacted("".join(traceback.format_exception(error)))
        return _say("InternalError", message, code, as_json, trace)
    return _told(error, code, as_json)


def _told(error: BaseException, code: int, as_json: bool) -> int:
    """Print an error with its notes. Returns: the exit code."""
    body = failure(error, code) if as_json else None
    kept = getattr(error, "run", None)
    message = "\n".join(
        [str(error), *getattr(error, "__notes__", ()), *([f"run {kept}: akrunner show {kept}"] if kept else [])]
    )
    return _say(type(error).__name__, message, code, as_json, kind=True, body=body)


def _left(error: BaseException) -> str:
    """Return half a sentence that says what a signal leaves behind.

    It says that every task of a job was stopped, and that no table was changed, or which tables are changed already; and what became of an output that was
    just being committed.
    """
    store, commits = sys.modules.get("akrunner.tables.store"), sys.modules.get("akrunner.io.commits")
    names = list(dict.fromkeys(store.CHANGED)) if store is not None else []
    said = [told for one in _chain(error) for told in commits.told_of(one)] if commits is not None else []
    tasks = "akrunner.engines.supervisor" in sys.modules and not _raised_in(error, "akrunner.tables.statements")
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


def _in_engine(error: BaseException) -> bool:
    """Whether an exception was raised while a job ran, and not before."""
    places = traceback.walk_tb(error.__traceback__)
    return any(frame.f_globals.get("__name__", "").startswith("akrunner.engines.") for frame, _ in places)


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
        lost = _lost(_head("UsageError", error.format_message() or "which command? see --help", code))
        if not lost:
            return code
    from typer import rich_utils

    # a reader of stderr who is gone is no further error; Rich makes a SystemExit of it
    with contextlib.suppress(OSError, SystemExit):
        rich_utils.rich_format_error(error)
    if lost:
        _say("WriteError", lost, code, False, kind=True)
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
    Returns: the exit code.
    """
    lost = _lost(body or _head(name, message, code)) if as_json else ""
    console = stderr.console()
    if lost or not as_json:
        words = f"{name}: {message}" if kind else message
        console.print(Text(harmless(redacted(f"akrunner: {words}")), style="red" if console.is_terminal and kind else ""))
    if more:
        console.print(Text(harmless(more)))
    if lost:
        console.print(Text(f"akrunner: WriteError: {lost}"))
    return code


def code_of(error: BaseException) -> int:
    """Return the exit code of a command that an exception ends."""
    number = signals.seen() or (signal.SIGINT if isinstance(error, KeyboardInterrupt) else None)
    if number is not None:
        return 128 + number
    if isinstance(error, akrunner.JobError) and error.fault:
        return EXIT_FAULT
    return next((code for kind, code in _CODES if isinstance(error, kind)), EXIT_FAULT)


def failure(error: BaseException, code: int) -> dict[str, Any]:
    """Return an error as a dict for JSON."""
    first = getattr(error, "failure", None)
    body = _head(type(error).__name__, str(error.args[0]) if error.args else "", code)
    body["failure"] = dataclasses.asdict(first) if first is not None else None
    body["others"] = [dataclasses.asdict(other) for other in getattr(error, "others", ())]
    body["warnings"] = [*getattr(error, "warnings", ()), *getattr(error, "__notes__", ())]
    body["work_dir"] = getattr(error, "work_dir", None)
    body["run"] = getattr(error, "run", None)
    body["log"] = (first.log_path or None) if first is not None else None
    for name in ("broken", "unfetched"):
        if getattr(error, name, ()):
            body[name] = [list(one) for one in getattr(error, name)]
    for name in ("row", "column", "statement", "lines"):
        if getattr(error, name, None) is not None:
            body[name] = getattr(error, name)
    if "statement" in body:
        body["results"] = getattr(error, "results", ())
    return body


def _head(name: str, message: str, code: int) -> dict[str, Any]:
    # every error has the same keys
    none: dict[str, Any] = {"failure": None, "others": [], "warnings": [], "work_dir": None, "run": None, "log": None}
    return {"ok": False, "error": name, "message": message, "exit_code": code, **none}


def emit(body: dict[str, Any]) -> None:
    """Print the one JSON object of a command. Raises: OSError: stdout cannot be written."""
    text = json.dumps(for_json(body), allow_nan=False) + "\n"
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


def for_json(value: Any) -> Any:
    """Return a value that JSON can hold: NaN and infinities become null, and secrets in texts ***."""
    if isinstance(value, dict):
        return {redacted(str(key)): for_json(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [for_json(inner) for inner in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    return redacted(str(value))


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether a command line has --json, even if it is wrong otherwise."""
    return "--json" in arguments[: arguments.index("--") if "--" in arguments else None]
