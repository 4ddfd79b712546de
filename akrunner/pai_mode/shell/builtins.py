"""The commands that bash itself runs (`cd`, `set`, `exit`, ...), and what is known of programs, which are not run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell import reads, sums
from akrunner.pai_mode.shell.flow import DONE_MARK, MARK, Field, State, compares, holds, looked, of, taken_for_done
from akrunner.pai_mode.shell.nodes import Word
from akrunner.pai_mode.shell.prints import PRINTED, formatted
from akrunner.pai_mode.shell.scopes import Leave
from akrunner.pai_mode.shell.syntax import Parser
from akrunner.pai_mode.shell.values import marked

if TYPE_CHECKING:
    from akrunner.pai_mode.shell.reader import Reader

__all__ = ["looked"]

#: programs whose exit code is an answer: it is unknown
_ASKING = frozenset(
    ("grep", "egrep", "fgrep", "diff", "cmp", "expr", "find", "ls", "hadoop", "hdfs", "pgrep", "ping", "nc", "mountpoint")
)
#: commands whose exit code says whether a program exists
_WHICH = frozenset(("which", "type", "hash"))
#: commands that change nothing a job could need: there is no note that they are not run
HARMLESS = _WHICH | {
    "echo",
    "printf",
    "wait",
    "sleep",
    "date",
    "ls",
    "pwd",
    "chmod",
    "tee",
    "rm",
    "cat",
    "mkdir",
    "basename",
    "dirname",
    "true",
    "false",
}
#: commands that are assumed to succeed: if one failed, the script should not go on
DOERS = frozenset(
    (
        "tar zip unzip gzip gunzip cp mv rm mkdir rmdir touch chmod chown ln echo printf date sleep wait ossutil ossutil64 "
        "osscmd pip pip3 rsync scp wget basename dirname ls pwd kill which type hash trap umask ulimit alias unalias hostname "
        "whoami id uname clear sync seq"
    ).split()
) | {"cat", "tee"}  # fmt: skip
#: commands that run none of their words as another command
PLAIN = (DOERS | _ASKING | {"sed", "awk", "head", "tail", "wc", "sort", "uniq", "cut", "tr", "ps", "export"}) - {
    "find",
    "trap",
    "alias",
}


def is_known(name: str) -> bool:
    return name in PLAIN or name in BUILTINS


def is_bash(name: str) -> bool:
    """Whether bash itself runs a command."""
    own = name in BUILTINS and name not in ("nohup", "sudo", "env", "timeout", "nice", "stdbuf", "command", "time")
    return own or name in ("echo", "pwd", "wait", "type", "hash", "kill", "umask", "ulimit", "alias", "unalias")


def answered(reader: Reader, name: str, texts: Sequence[str]) -> State:
    """Return how a program that is not run would end, and emit what it would print. Files it may change are noted."""
    if marked("$") in texts or name in ("kill", "pkill", "killall"):
        raise ConfigError(f"akrunner cannot tell what `{name}` ends: leave it out, or run the script without --dry-run")
    if name not in DOERS | _ASKING or name in (
        "tee",
        "cp",
        "mv",
        "touch",
        "tar",
        "unzip",
        "gunzip",
        "rm",
        "mkdir",
        "ln",
        "gzip",
        "rmdir",
        "chmod",
    ):
        reader.touch(texts)
    printer = PRINTED.get(name)
    made = printer(reader, list(texts[1:])) if printer is not None else None
    silent = name in _SILENT and not any(re.match("-[a-z]*v", one) or (name == "tar" and "v" in one) for one in texts[1:])
    reader.emit(made if made is not None else "" if silent else marked(f"$({' '.join(texts)})".replace(MARK, "")))
    if name in ("echo", "printf", "sleep", "date", "pwd", "basename", "dirname") and (made is not None or name != "date"):
        return State.YES
    if name == "expr" and made is not None:
        return of(made != "0\n")
    if name in _ASKING:
        return State.UNKNOWN if name not in ("ls", "find") or reader.tested else State.HOPED
    return State.DONE if name in DOERS - _WHICH - {"cat"} else State.HOPED


_SILENT = frozenset(("tar", "cp", "mv", "rm", "mkdir", "touch", "chmod", "chown", "ln", "sleep", "wait", "rmdir"))


# -- bash's own


def brackets(reader: Reader, words: list[Word]) -> State:
    signs = [word.sign for word in words]
    joined = any(word.sign and word.literal in ("&&", "||") for word in words)
    if joined and any(part.kind == "sum" and sums.names(part.text) for word in words for part in word.parts):
        raise ConfigError(f"line {reader.line}: akrunner does not read a sum that sets a variable beside && or || in [[ ]]")
    fields = [reader.whole(word) for word in words]
    return taken_for_done(lambda put: compares(put, signs, reader.look), fields)


def _exit(reader: Reader, words: list[Field], line: int) -> State:
    kind = words[0].text
    if kind == "return" and not reader.calls:
        raise ConfigError(f"line {line}: bash takes no `return` outside of a function; write exit")
    code = words[1].text if len(words) > 1 else reader.state.status
    if code == DONE_MARK:
        state = State.HOPED
    elif re.fullmatch("[0-9]+", code):
        state, code = (State.YES if int(code) % 256 == 0 else State.NO), str(int(code) % 256)
    else:
        state = State.UNKNOWN
    reader.leave(Leave(kind, state=state, code=code if state is State.NO else None), line)
    return State.UNKNOWN


def _break(reader: Reader, words: list[Field], line: int) -> State:
    count = words[1].text if len(words) > 1 else "1"
    if not re.fullmatch("[0-9]+", count) or int(count) < 1:
        raise ConfigError(f"line {line}: akrunner cannot tell how many loops {words[0].text} leaves")
    inner = [scope.kind for scope in reader.scopes]
    if inner[-1] != "loop":
        if "loop" not in inner:
            return State.YES
        raise ConfigError(f"line {line}: akrunner does not read a {words[0].text} in a subshell or function of a loop")
    reader.leave(Leave(words[0].text, int(count)), line)
    return State.UNKNOWN


def _set(reader: Reader, words: list[Field], line: int) -> State:
    texts = [word.text for word in words[1:]]
    state = reader.state
    while texts and re.match(r"[-+]", texts[0]):
        option = texts.pop(0)
        if option in ("--", "-"):
            break
        on = option[0] == "-"
        names = list(option[1:])
        if "o" in names:
            names.remove("o")
            named = texts.pop(0) if texts else ""
            names += {
                "errexit": ["e"],
                "nounset": ["u"],
                "noexec": ["n"],
                "noglob": ["f"],
                "braceexpand": ["B"],
                "posix": ["P"],
                "noclobber": ["C"],
            }.get(named, [])
            state.pipes = (on or bool(reader.why)) if named == "pipefail" else state.pipes
        if "C" in names and on:
            raise ConfigError(f"line {line}: akrunner does not read `set {option}`: write the file with > once, or leave C out")
        if {"n", "f", "k", "P", "t"} & set(names) or (not on and "B" in names):
            raise ConfigError(f"line {line}: akrunner does not read `set {option}`")
        if "e" in names:
            state.ends_at_failure = None if reader.why and state.ends_at_failure is not on else on
        if "u" in names:
            state.needs_values = on
    else:
        if not any(word.text == "--" for word in words) and not texts:
            if len(words) == 1:
                reader.emit(marked("$(set)"))
            return State.YES
    state.arguments = None if reader.why or any(word.loose for word in words) else texts
    return State.YES


def _shift(reader: Reader, words: list[Field], line: int) -> State:
    count = words[1].text if len(words) > 1 else "1"
    held = reader.state.arguments
    if held is None or not re.fullmatch("[0-9]+", count) or reader.why:
        if held is None and not reader.calls:
            raise ConfigError(
                f"line {line}: what shift leaves is not known without the script's arguments; give them: --var 1=VALUE"
            )
        reader.state.arguments = None
        return State.UNKNOWN
    if int(count) > len(held):
        return State.NO
    reader.state.arguments = held[int(count) :]
    return State.YES


def _unset(reader: Reader, words: list[Field], line: int) -> State:
    texts = [word.text for word in words[1:]]
    for text in texts:
        if text in reader.functions and ("-f" in texts or reader.value(text) is None):
            if reader.why:
                reader.functions[text] = None
            else:
                del reader.functions[text]
        elif text != "-v" and text != "-f":
            if not re.fullmatch(r"\w+", text):
                raise ConfigError(f"line {line}: akrunner cannot tell what `unset {text.replace(MARK, '$')}` leaves")
            functions = [scope for scope in reader.scopes if scope.kind == "function"]
            if any(text in scope.saved for scope in functions[:-1]) and text not in functions[-1].saved:
                raise ConfigError(
                    f"line {line}: {text} belongs (local) to the function that calls this one, and bash's unset shows what it "
                    f"was before that: write {text}= instead, or take another name"
                )
            reader.assign(text, None)
    return State.YES


def _let(reader: Reader, words: list[Field], line: int) -> State:
    found: int | None = None
    for word in words[1:]:
        found = reader.reckoned(word.text)
    return of(None if found is None else found != 0)


def _printf_to(reader: Reader, words: list[Field], line: int) -> State:
    """Follow `printf`; with `-v NAME` it prints into a variable."""
    texts = [word.text for word in words[1:]]
    if not texts or texts[0] != "-v" or len(texts) < 3:
        return answered(reader, "printf", ["printf", *(texts if texts[:1] != ["--"] else texts[1:])])
    name = texts[1]
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ConfigError(f"line {line}: akrunner cannot tell what `printf -v {name.replace(MARK, '$')}` sets")
    made = None if any(word.loose for word in words) else formatted(texts[2:])
    reader.assign(name, marked(name) if made is None else made)
    return State.YES


def _source(reader: Reader, words: list[Field], line: int) -> State:
    state = reader.unread(words, line)
    # the sourced file may have set any variable
    reader.state.stale = True
    reader.state.known = {name: marked(name) for name in reader.state.known}
    reader.state.arrays = {}
    reader.state.folder = None
    return state


def _cd(reader: Reader, words: list[Field], line: int) -> State:
    texts = [word.text for word in words[1:] if word.text not in ("-P", "-L", "--")]
    full = reader.path(texts[0]) if len(texts) == 1 and texts[0] not in ("", "-") else None
    if words[0].text != "cd" or not texts or reader.why or reader.value("CDPATH"):
        full = None
    if words[0].text != "cd" or texts == ["-"] or reader.value("CDPATH"):
        # in these cases bash prints the new directory
        reader.emit(marked("$(pwd)"))
    there = full is not None and os.path.isdir(full)
    if full is not None and not there and not reader.passed and not reader.state.stale:
        return State.NO
    reader.state.folder = full if there else None
    reader.state.known.pop("PWD", None)
    return State.YES if there and not reader.passed else State.DONE


def _eval(reader: Reader, words: list[Field], line: int) -> State:
    text = " ".join(word.text for word in words[1:])
    if MARK in text or any(word.loose for word in words):
        raise ConfigError(f"line {line}: akrunner cannot tell what eval runs here: write the command itself")
    return reader.run(Parser(text, line).whole())


def _exec(reader: Reader, words: list[Field], line: int) -> State:
    if len(words) == 1:
        reader.stdin.text, reader.stdin.file = None, ""
        return State.YES
    if words[1].text.startswith("-"):
        raise ConfigError(f"line {line}: akrunner does not read `exec {words[1].text}`")
    state = reader.command(words[1:], [], line, own=False)
    reader.leave(Leave("exit", state=state), line)
    return state


def _before(reader: Reader, words: list[Field], line: int) -> State:
    """Follow a command that runs the command after it: `nohup`, `time`, `sudo`, `command`, `env`, `timeout`, ..."""
    name, rest = words[0].text, words[1:]
    if name in ("command", "builtin") and rest and rest[0].text in ("-v", "-V"):
        reader.emit(marked(f"$({name} {rest[0].text})"))
        return State.DONE
    if name in ("sudo", "env", "timeout", "nice", "time", "command", "nohup", "stdbuf"):
        while rest and rest[0].text.startswith("-"):
            if name in ("sudo", "env", "timeout", "nice") and re.fullmatch(r"-[uCSskng]", rest[0].text):
                rest = rest[1:]
            rest = rest[1:]
    while rest and name in ("env", "sudo") and re.match(r"\w+=", rest[0].text):
        reader.prefixed[rest[0].text.partition("=")[0]] = rest[0].text.partition("=")[2]
        rest = rest[1:]
    if name == "timeout":
        rest = rest[1:]
    if not rest:
        reader.emit(marked(f"$({name})"))
        return State.YES
    if name == "builtin" and not is_bash(rest[0].text):
        raise ConfigError(
            f"line {line}: bash's `builtin` runs no program: leave the word away in front of {rest[0].text.replace(MARK, '$')}"
        )
    if name not in ("command", "builtin", "time"):
        if rest[0].text in BUILTINS and rest[0].text not in ("test", "[", "printf", ":", "true", "false"):
            raise ConfigError(f"line {line}: akrunner cannot tell what `{name} {rest[0].text}` does")
        if name == "nohup":
            reader.touch(["nohup", "nohup.out"])
    return reader.command(rest, [], line, own=False)


def _trap(reader: Reader, words: list[Field], line: int) -> State:
    text = words[1].text if len(words) > 1 else ""
    if MARK in text or reader.mentions(text) or re.search(r"\bexit\b", text):
        raise ConfigError(f"line {line}: akrunner cannot tell when this trap runs: put its calls to the end of the script")
    return State.YES


def _shopt(reader: Reader, words: list[Field], line: int) -> State:
    raise ConfigError(f"line {line}: akrunner does not read `{' '.join(word.text for word in words)}`: leave it out")


def _test(reader: Reader, words: list[Field], line: int) -> State:
    inner = words[1:]
    if words[0].text == "[":
        if inner[-1:] and inner[-1].text == "]":
            inner = inner[:-1]
        else:
            return State.UNKNOWN
    return taken_for_done(lambda put: holds(put, reader.look), inner)


def _true(reader: Reader, words: list[Field], line: int) -> State:
    return State.NO if words[0].text == "false" else State.YES


BUILTINS: dict[str, Callable[[Reader, list[Field], int], State]] = {
    **dict.fromkeys((":", "true", "false"), _true),
    **dict.fromkeys(("exit", "return"), _exit),
    **dict.fromkeys(("break", "continue"), _break),
    **dict.fromkeys(("read", "mapfile", "readarray"), reads.read),
    **dict.fromkeys(("source", "."), _source),
    **dict.fromkeys(("cd", "pushd", "popd"), _cd),
    **dict.fromkeys(("test", "["), _test),
    **dict.fromkeys(("nohup", "time", "sudo", "command", "builtin", "env", "timeout", "nice", "stdbuf"), _before),
    "set": _set,
    "shift": _shift,
    "unset": _unset,
    "let": _let,
    "getopts": reads.getopts,
    "printf": _printf_to,
    "eval": _eval,
    "exec": _exec,
    "trap": _trap,
    "shopt": _shopt,
}
