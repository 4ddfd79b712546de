"""A shell script that calls MaxCompute's client: bash runs it, and akrunner stands in the client's place.

::

    akrunner pai -f run.sh 20260101          bash run.sh 20260101
      odpscmd -e "create ...; PAI -name ..."   a function of bash, or what PATH has first  ->  `akrunner odpscmd -e ...`
      pai -name tensorflow1150 ...                                                         ->  `akrunner pai -name ...`
      /opt/odps/bin/odpscmd -f job.sql         a function of this name (`clientpaths`)
      tar, rm, python, ossutil ...             as they are

Each call is a process of its own, which takes the options of the run from a directory (0700), and leaves there what it came to.
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
#: bash takes these as a function's name, and needs no quotes
_NAME = re.compile(r"[\w./+-]+")
#: `[ -x "$(command -v odpscmd)" ]`: a function has no path
_ASKED = re.compile(r"\b(?:command\s+-[vV]|type|hash)\b[^\n]*\bodpscmd\b")
#: `set -e`, `set -euo pipefail`, `set -o errexit`, and the same as flags of the first line
_STRICT = re.compile(r"(?m)^\s*set\s+(?:[^#\n]*\s)?-(?:[a-zA-Z]*e[a-zA-Z]*\b|o\s+errexit\b)")
#: seconds that what a script has started gets to end
_GRACE, _GRACE_OF_OTHERS = 20.0, 3.0
_LOOK = 0.1
#: seconds for which what is left in the background is waited for without a word
_QUIET = 5.0
#: failed calls that a sentence names, and characters of each
_TOLD, _LONGEST = 3, 200
_COMMANDS = {"odpscmd": "odpscmd", "pai": "pai", "PAI": "pai"}


@dataclass(frozen=True)
class ShellScript:
    """A script, and how it is to be started.

    Attributes: path; arguments: its own; shell: that runs it; flags: of that, from its first line; paths: for which akrunner stands; notes: what a caller
    is told; asks: whether it asks bash where odpscmd is; strict: whether it sets -e.
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
    """Attributes: code: the script's exit code, 128 and the signal's number for one that was killed; calls: in the order they began."""

    code: int
    calls: list[Called]

    @property
    def failed(self) -> list[Called]:
        return [one for one in self.calls if one.error is not None or not one.ended]


def is_shell(path: str, text: str) -> bool:
    """Whether a file of statements is a shell's: by its name, or its first line."""
    if path.lower().endswith((".sh", ".bash")):
        return True
    return re.match(r"\ufeff?#!.*\b(ba|z|da|k)?sh\b", text) is not None


def prepared(path: str, text: str, arguments: Sequence[str], variables: Mapping[str, str]) -> ShellScript:
    """Args: variables: "1", "2" among them are arguments, too; the others are in its environment.

    Raises: ConfigError: there is no bash; the script has a fault that bash sees before it runs; line ends of Windows.
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
            f"which file {one} will be, only running the script tells: if there is one, it is started itself. Write odpscmd alone for akrunner"
        )
    _check(found, path)
    paths = [one for one in paths if _NAME.fullmatch(one)]
    asks, strict = _ASKED.search(text) is not None, _STRICT.search("\n".join([f"set {' '.join(flags)}", text])) is not None
    return ShellScript(path, tuple(words), found, flags, tuple(paths), tuple(notes), asks, strict)


def _first_line(text: str) -> tuple[str, tuple[str, ...]]:
    """The shell that a script asks for, and its flags."""
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
    """The number of the argument that holds the client's path, if it is the next that is not given: `odpscmd=$1`, in no function."""
    found = re.search(r"(?mi)^(?:export\s+)?\w*odps_?cmd\w*=[\"']?\$\{?([1-9])\}?[\"']?\s*(?:#.*)?$", text)
    return found[1] if found is not None and int(found[1]) == given + 1 else ""


def _check(shell: str, path: str) -> None:
    """Raises: ConfigError: it is no script that the shell can read."""
    with ours(ConfigError, f"file: {path}", path):
        read = subprocess.run([shell, "-n", path], stdin=subprocess.DEVNULL, capture_output=True, env=_plain(os.environ))
    if read.returncode:
        why = read.stderr.decode("utf-8", "replace").strip().splitlines()[:2]
        raise ConfigError(f"file: bash does not take it: {'; '.join(why) or f'exit code {read.returncode}'}")


def _plain(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name != "BASH_ENV"}


def run(
    script: ShellScript,
    options: Mapping[str, Any],
    variables: Mapping[str, str],
    output: int | IO[Any] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Run it to its end, and what it has called.

    Args: options: of `Runner`, which hold for each call; variables: for its environment; output: where its stdout goes, None: to this process's;
        say: is told what is waited for, if that takes long.
    Raises: ConfigError: options cannot be handed on; OSError: bash cannot be started.
    """
    folder = leftovers.temp_folder("akrunner-pai-")
    # whoever carries it is killed if this process dies
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
                # somebody has ended the script, not what it has started
                _stop(process, folder, mark)
        except BaseException:
            _stop(process, folder, mark)
            raise
        return Outcome(128 - code if code < 0 else code, calls.read(folder))
    finally:
        leftovers.unmark(mark)
        leftovers.drop(folder)


def failure(script: ShellScript, outcome: Outcome) -> JobError:
    """The error of a script whose exit code is not 0: with what the last of its calls that failed said."""
    failed = [one for one in outcome.failed if one.error is not None]
    made = JobError(sentence(script, outcome))
    if failed:
        made.__cause__ = failed[-1].error
    made.failure = getattr(made.__cause__, "failure", None)
    return made


def sentence(script: ShellScript, outcome: Outcome) -> str:
    """How a script has ended, in words."""
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
    """What the calls need. Raises: ConfigError."""
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
        # a disk that knows no case has pai and PAI as one file
        with contextlib.suppress(FileExistsError), calls.private(path) as stream:
            # from its first moment on it is seen that a call is about to begin
            begins = f"{{ : > {shlex.quote(os.path.join(folder, calls.CALLS))}/$$.{calls.BEGINS}; }} 2> /dev/null"
            stream.write(f'#!/bin/sh\n{begins}\nexec {python} {client} {command} "$@"\n'.encode())
            os.fchmod(stream.fileno(), 0o700)
    with calls.private(os.path.join(folder, "prelude")) as stream:
        stream.write(_prelude(folder, script).encode())


#: beside: where this akrunner lies, if the interpreter does not know; a module of the current directory is never taken for one of its
_CLIENT = """import sys
sys.path[:1] = []
sys.path.append({beside!r})
sys.argv[:1] = ["akrunner"]
from akrunner.__main__ import main
main()
"""


def _prelude(folder: str, script: ShellScript) -> str:
    """What every bash reads before its script. By `sh`, where nothing in the temp directory may be started by itself (noexec)."""
    lines = [f'if [ -n "${{{calls.BEFORE}:-}}" ]; then . "${calls.BEFORE}"; fi']
    # those on PATH too: a script may set that anew, and a function tells the line it is called in
    plain = {} if script.asks else _COMMANDS
    for name, command in [*plain.items(), *((path, "odpscmd") for path in script.paths)]:
        there = shlex.quote(os.path.join(folder, "bin", command))
        place = f'{calls.PLACE}="${{BASH_SOURCE[1]:-}}:${{BASH_LINENO[0]:-}}"'
        # the caller's `set -e` and `trap ... ERR` are to see that it failed, and not the line in here
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
        # a script may go elsewhere
        made["AKRUNNER_TABLES"] = os.path.abspath(os.path.expanduser(made["AKRUNNER_TABLES"]))
    return made


def _await(folder: str, mark: str, command: Sequence[str], say: Callable[[str], None]) -> None:
    """Wait for calls that a script has left in the background, and for parts of itself there, which may call yet: `( sleep 1; odpscmd ... ) &`."""
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
    """Processes of a script that are parts of itself."""
    return [one.pid for one in _carrying(mark) if _command(one) == command]


def _stop(process: subprocess.Popen[Any], folder: str, mark: str) -> None:
    """End a script, and all that it has started."""
    with contextlib.suppress(OSError), calls.private(os.path.join(folder, calls.STOPPED)):
        # a call that is about to begin does not
        pass
    # the script first, that it does not go on to its next line
    process.terminate()
    for one in _carrying(mark):
        if one.pid != process.pid:
            with contextlib.suppress(psutil.Error):
                one.terminate()
    began = time.monotonic()
    while left := _carrying(mark):
        # a call ends its job first; what else does not heed SIGTERM is not waited for
        patience = _GRACE if calls.under_way(folder) else _GRACE_OF_OTHERS
        if time.monotonic() - began > patience:
            break
        psutil.wait_procs(left, timeout=_LOOK)
    ending.end([], [mark])
    process.kill()
    process.wait()


def _carrying(mark: str) -> list[psutil.Process]:
    """All that a script has started and that is still there, itself among it; but not what the workers of its calls have."""
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
