"""Runs a shell script that calls MaxCompute's client: bash runs the script, and akrunner takes the client's place.

::

    akrunner pai -f run.sh 20260101          bash run.sh 20260101
      odpscmd -e "create ...; PAI -name ..."   a bash function, or the first on PATH  ->  `akrunner odpscmd -e ...`
      pai -name tensorflow1150 ...             the same                               ->  `akrunner pai -name ...`
      /opt/odps/bin/odpscmd -f job.sql         a bash function of this name (`clientpaths`)
      tar, rm, python, ossutil ...             the programs themselves

Each call is a process of its own. It reads the options of the run from a directory (mode 0700), and leaves its outcome there:
see `calls`.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import psutil

from akrunner import leftovers
from akrunner.errors import ConfigError, JobError
from akrunner.foreign import ours
from akrunner.pai_mode import calls, clientpaths
from akrunner.pai_mode.calls import Called
from akrunner.wire import ending

_SHELLS = ("bash", "sh", "dash", "ash")
#: names that bash accepts as a function's name, and that need no quotes
_NAME = re.compile(r"[\w./+-]+")
#: the script asks for the client's path, as `[ -x "$(command -v odpscmd)" ]` does: a function has none
_ASKED = re.compile(r"\b(?:command\s+-[vV]|type|hash)\b[^\n]*\bodpscmd\b")
#: `set -e`, `set -euo pipefail`, `set -o errexit`, and the same as flags of the first line
_STRICT = re.compile(r"(?m)^\s*set\s+(?:[^#\n]*\s)?-(?:[a-zA-Z]*e[a-zA-Z]*\b|o\s+errexit\b)")
#: seconds between SIGTERM and SIGKILL for a script's processes: while a call is under way, and otherwise
_GRACE, _GRACE_OF_OTHERS = 20.0, 3.0
#: seconds between two looks at the processes
_LOOK = 0.1
#: seconds of waiting for processes in the background before the user is told
_QUIET = 5.0
#: how many failed calls a sentence names, and how many characters of each error
_TOLD, _LONGEST = 3, 200
_COMMANDS = {"odpscmd": "odpscmd", "pai": "pai", "PAI": "pai"}


@dataclass(frozen=True)
class ShellScript:
    """A shell script, and how to start it.

    Attributes:
        path: the script's path.
        arguments: the script's arguments.
        shell: the path of the shell that runs it.
        flags: the shell's flags, from the script's first line.
        paths: the paths by which the script may call the client; akrunner takes the place of each.
        notes: what the user is told before the script runs.
        asks: whether the script asks bash where odpscmd is.
        strict: whether the script sets -e.
    """

    path: str
    arguments: tuple[str, ...]
    shell: str
    flags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    asks: bool = False
    strict: bool = False

    @property
    def folder(self) -> str:
        return os.path.dirname(os.path.abspath(self.path))


@dataclass
class Outcome:
    """How a script has ended.

    Attributes:
        code: the script's exit code; 128 plus the signal's number if a signal killed it.
        calls: its calls of the client, in the order they began.
    """

    code: int
    calls: list[Called]

    @property
    def failed(self) -> list[Called]:
        return [one for one in self.calls if one.error is not None or not one.ended]


def is_shell(path: str, text: str) -> bool:
    """Whether a file is a shell script: by its name, or by its first line."""
    if path.lower().endswith((".sh", ".bash")):
        return True
    return re.match(r"\ufeff?#!.*\b(ba|z|da|k)?sh\b", text) is not None


def prepared(path: str, text: str, arguments: Sequence[str], variables: Mapping[str, str]) -> ShellScript:
    """Check a shell script, and return it with what it takes to start it.

    Args:
        path: the script's path.
        text: its text.
        arguments: its arguments.
        variables: those named "1", "2" ... are arguments, too; the others are put into the script's environment.
    Raises:
        ConfigError: its shell is not on PATH; bash finds a syntax error; or it has the line ends of Windows.
    """
    if "\r\n" in text:
        raise ConfigError(
            f"file: {path} has the line ends of Windows, which bash takes for part of each word: dos2unix {shlex.quote(path)}"
        )
    name, flags = _first_line(text)
    found = shutil.which("bash" if name in _SHELLS else name)
    if found is None:
        raise ConfigError(f"file: {path} is a script of {name}, which is not on PATH")
    words = _numbered(list(arguments), variables)
    notes = []
    missing = _client_argument(text, len(words))
    if missing:
        words.append("odpscmd")
        notes.append(f"${missing} of the script is the client: odpscmd is given for it")
    paths, untold = clientpaths.named(text, path, {**os.environ, **variables})
    for one in untold:
        notes.append(
            f"which file {one} will be, only running the script tells: if there is one, it is started itself. Write odpscmd "
            "alone for akrunner"
        )
    _check(found, path)
    paths = [one for one in paths if _NAME.fullmatch(one)]
    asks, strict = _ASKED.search(text) is not None, _STRICT.search("\n".join([f"set {' '.join(flags)}", text])) is not None
    return ShellScript(path, tuple(words), found, flags, tuple(paths), tuple(notes), asks, strict)


def _first_line(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the name of the shell in the script's first line ("bash" if there is none), and the shell's flags."""
    match = re.match(r"\ufeff?#!\s*(\S+)[ \t]*([^\n]*)", text)
    if match is None:
        return "bash", ()
    words = [match[1], *match[2].split()]
    if os.path.basename(words[0]) == "env":
        words = [one for one in words[1:] if one != "-S"] or ["bash"]
    name = os.path.basename(words[0])
    return (name, tuple(words[1:])) if re.fullmatch("(ba|z|da|k|a)?sh", name) else ("bash", ())


def _numbered(arguments: list[str], variables: Mapping[str, str]) -> list[str]:
    numbers = {int(name): value for name, value in variables.items() if re.fullmatch("[1-9][0-9]?", name)}
    if numbers and arguments:
        raise ConfigError("give the script's arguments behind its name, or as --var 1=..., not both")
    return arguments or [numbers.get(number, "") for number in range(1, max(numbers, default=0) + 1)]


def _client_argument(text: str, given: int) -> str:
    """Return the number of the argument that holds the client's path (`odpscmd=$1`, outside of functions), or "".

    Only the first argument that is not given counts. Args: given: the number of arguments that are given.
    """
    found = re.search(r"(?mi)^(?:export\s+)?\w*odps_?cmd\w*=[\"']?\$\{?([1-9])\}?[\"']?\s*(?:#.*)?$", text)
    return found[1] if found is not None and int(found[1]) == given + 1 else ""


def _check(shell: str, path: str) -> None:
    """Have the shell parse the script. Raises: ConfigError: the shell finds a syntax error."""
    with ours(ConfigError, f"file: {path}", path):
        read = subprocess.run([shell, "-n", path], stdin=subprocess.DEVNULL, capture_output=True, env=_plain(os.environ))
    if read.returncode:
        why = read.stderr.decode("utf-8", "replace").strip().splitlines()[:2]
        raise ConfigError(
            f"file: {os.path.basename(shell)} does not take it: {'; '.join(why) or f'exit code {read.returncode}'}"
        )


def _plain(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name != "BASH_ENV"}


def run(
    script: ShellScript,
    options: Mapping[str, Any],
    variables: Mapping[str, str],
    output: int | IO[Any] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Run a script, and wait for its end and for its calls in the background.

    Args:
        script: the script.
        options: options of `Runner` that apply to each call.
        variables: are put into the script's environment.
        output: where its stdout goes; None: to this process's stdout.
        say: is told what `run` is waiting for, if that takes long.
    Raises:
        ConfigError: the options cannot be handed to another process.
        OSError: bash cannot be started.
    """
    folder = leftovers.temp_folder("akrunner-pai-")
    # if this process dies, the guard kills the processes that carry this mark in their environment
    mark = uuid.uuid4().hex
    leftovers.mark(mark)
    try:
        _lay(folder, script, options)
        words = [script.shell, *script.flags, script.path, *script.arguments]
        process = subprocess.Popen(
            words,
            env={**_environment(folder, variables), ending.MARK: mark},
            stdout=output,
        )
        try:
            code = process.wait()
            if code >= 0:
                _await(folder, mark, words, say)
            else:
                # a signal has ended the script, but not the processes it has started
                _stop(process, folder, mark)
        except BaseException:
            _stop(process, folder, mark)
            raise
        return Outcome(128 - code if code < 0 else code, calls.read(folder))
    finally:
        leftovers.unmark(mark)
        leftovers.drop(folder)


def failure(script: ShellScript, outcome: Outcome) -> JobError:
    """Return the error for a script whose exit code is not 0. Its cause is the error of the last call that failed."""
    failed = [one for one in outcome.failed if one.error is not None]
    made = JobError(sentence(script, outcome))
    if failed:
        made.__cause__ = failed[-1].error
    made.failure = getattr(made.__cause__, "failure", None)
    return made


def sentence(script: ShellScript, outcome: Outcome) -> str:
    """Return a sentence that says how a script has ended."""
    name = os.path.basename(script.path)
    told_of = (
        f"{len(outcome.calls)} call{'s' * (len(outcome.calls) != 1)} of odpscmd" if outcome.calls else "odpscmd was not called"
    )
    ended = f"{name} ended with exit code {outcome.code}" if outcome.code else f"{name} has ended"
    if not outcome.failed:
        absent = [one for one in script.paths if not os.path.exists(one)]
        if not outcome.calls and absent:
            return f"{ended}; {told_of}: it names {absent[0]}, which is not there; write odpscmd alone"
        return f"{ended}; {told_of}{', none failed' if outcome.calls else ''}"
    told = [f"{one} {_why(one)}" for one in outcome.failed[:_TOLD]]
    more = f"; and {len(outcome.failed) - _TOLD} more" if len(outcome.failed) > _TOLD else ""
    hint = "" if script.strict else "; `set -e` ends it at the first that fails"
    went_on = "" if outcome.code else f" (the script went on{hint})"
    return f"{ended}; {told_of}, {len(outcome.failed)} failed{went_on}: {'; '.join(told)}{more}"


def _why(one: Called) -> str:
    if one.error is None:
        return "was killed"
    text = str(one.error).partition("\n")[0]
    return f"({type(one.error).__name__}: {text if len(text) <= _LONGEST else text[: _LONGEST - 3] + '...'})"


def _lay(folder: str, script: ShellScript, options: Mapping[str, Any]) -> None:
    """Write the files that the script's calls need. Raises: ConfigError: the options cannot be pickled."""
    os.mkdir(os.path.join(folder, calls.CALLS))
    os.mkdir(os.path.join(folder, "bin"))
    with calls.private(os.path.join(folder, calls.OPTIONS)) as stream:
        try:
            pickle.dump({**options, "folder": script.folder}, stream)
        except (pickle.PicklingError, TypeError, AttributeError):
            raise ConfigError(
                "engine: a shell script's calls are processes of their own, to which this one cannot be handed on"
            ) from None
    beside = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with calls.private(os.path.join(folder, "client.py")) as stream:
        stream.write(_CLIENT.format(beside=beside).encode())
    python, client = shlex.quote(sys.executable), shlex.quote(os.path.join(folder, "client.py"))
    for name, command in _COMMANDS.items():
        path = os.path.join(folder, "bin", name)
        # on a file system that ignores case, pai and PAI are one file
        with contextlib.suppress(FileExistsError), calls.private(path) as stream:
            # the first thing a call does is leave a file, so that akrunner sees from then on that a call is about to begin
            begins = f"{{ : > {shlex.quote(os.path.join(folder, calls.CALLS))}/$$.{calls.BEGINS}; }} 2> /dev/null"
            stream.write(f'#!/bin/sh\n{begins}\nexec {python} {client} {command} "$@"\n'.encode())
            os.fchmod(stream.fileno(), 0o700)
    with calls.private(os.path.join(folder, "prelude")) as stream:
        stream.write(_prelude(folder, script).encode())


#: the program that each call runs. beside: the directory of this akrunner, in case the interpreter does not find it. The
#: program takes its own directory out of sys.path, and puts akrunner's at the end: no module of the current directory is
#: imported in place of akrunner's
_CLIENT = """import sys
sys.path[:1] = []
sys.path.append({beside!r})
sys.argv[:1] = ["akrunner"]
from akrunner.__main__ import main
main()
"""


def _prelude(folder: str, script: ShellScript) -> str:
    """Return the text that every bash of the run reads before its script (BASH_ENV).

    Its functions start the client by `sh`, because files in the temp directory cannot be executed if it is mounted noexec.
    """
    lines = [f'if [ -n "${{{calls.BEFORE}:-}}" ]; then . "${calls.BEFORE}"; fi']
    # functions for odpscmd and pai, too, though both are on PATH: a script may set PATH anew, and a function knows the line of
    # its call
    plain = {} if script.asks else _COMMANDS
    for name, command in [*plain.items(), *((path, "odpscmd") for path in script.paths)]:
        there = shlex.quote(os.path.join(folder, "bin", command))
        place = f'{calls.PLACE}="${{BASH_SOURCE[1]:-}}:${{BASH_LINENO[0]:-}}"'
        # with `|| return`, the script's own `set -e` and `trap ... ERR` see the failed call, and not this line
        lines.append(f'function {name} {{ {place} sh {there} "$@" || return $?; }}')
    return "\n".join(lines) + "\n"


def _environment(folder: str, variables: Mapping[str, str]) -> dict[str, str]:
    made = {**os.environ, **{name: value for name, value in variables.items() if re.fullmatch(r"[A-Za-z_]\w*", name)}}
    if made.get("BASH_ENV"):
        made[calls.BEFORE] = made["BASH_ENV"]
    made["BASH_ENV"] = os.path.join(folder, "prelude")
    made["PATH"] = os.pathsep.join([os.path.join(folder, "bin"), made.get("PATH") or os.defpath])
    made[calls.HERE] = folder
    if made.get("AKRUNNER_TABLES"):
        # the script may change its directory
        made["AKRUNNER_TABLES"] = os.path.abspath(os.path.expanduser(made["AKRUNNER_TABLES"]))
    return made


def _await(folder: str, mark: str, command: Sequence[str], say: Callable[[str], None]) -> None:
    """Wait for the calls that a script has left in the background.

    Also wait for its subshells there, which may still call the client: `( sleep 1; odpscmd ... ) &`.
    """
    began, told = time.monotonic(), False
    while True:
        parts = _parts(mark, command)
        called = calls.under_way(folder)
        if not parts and not called:
            return
        if not told and time.monotonic() - began > _QUIET:
            told = True
            left = f"process {', '.join(map(str, parts))} of it" if parts else "a call of odpscmd"
            say(f"the script has ended; {left} is still at work in the background, and is waited for (Ctrl-C ends it)")
        time.sleep(_LOOK)


def _parts(mark: str, command: Sequence[str]) -> list[int]:
    """Return the process ids of the script's subshells: the processes with the script's own command line."""
    return [one.pid for one in _carrying(mark) if _command(one) == command]


def _stop(process: subprocess.Popen[Any], folder: str, mark: str) -> None:
    """End a script, and all processes that it has started."""
    with contextlib.suppress(OSError), calls.private(os.path.join(folder, calls.STOPPED)):
        # this file keeps a call that is about to begin from beginning
        pass
    # end the script first, so that it does not go on to its next line
    process.terminate()
    for one in _carrying(mark):
        if one.pid != process.pid:
            with contextlib.suppress(psutil.Error):
                one.terminate()
    began = time.monotonic()
    while left := _carrying(mark):
        # a call needs time to end its job; other processes that ignore SIGTERM get less
        patience = _GRACE if calls.under_way(folder) else _GRACE_OF_OTHERS
        if time.monotonic() - began > patience:
            break
        psutil.wait_procs(left, timeout=_LOOK)
    ending.end([], [mark])
    process.kill()
    process.wait()


def _carrying(mark: str) -> list[psutil.Process]:
    """Return the live processes of a run: the script and all it has started, except for the worker processes of its calls.

    Those, and the processes that they start, carry marks of their own.
    """
    return [one for one in psutil.process_iter() if _carries(one, mark)]


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except (psutil.Error, OSError):
        return []


def _carries(process: psutil.Process, mark: str) -> bool:
    try:
        return bool(process.environ().get(ending.MARK) == mark and process.status() != psutil.STATUS_ZOMBIE)
    except (psutil.Error, OSError):
        return False
