"""What a caller hands over -> statements: a text, words of a shell, a file for MaxCompute's client, or a shell script."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from akrunner.checks import check_arguments
from akrunner.errors import ConfigError
from akrunner.foreign import ours
from akrunner.launch.fetch import fetch
from akrunner.launch.files import read_local_text
from akrunner.pai_mode import scripts, words
from akrunner.pai_mode.words import Command
from akrunner.tables.sqltext import tokens
from akrunner.tables.statements import Statement, split

#: variables that a scheduler would fill in: ${bizdate}, ${bizdate-1}, $[yyyymmdd-1], $[add_months(yyyymmdd,-1)]; but not
#: `$[0].a`, which is a path in JSON
_VARIABLE = re.compile(r"\$\{([^{}\n]*)\}|\$\[\s*((?:add_months\s*\(\s*)?(?:yy|mm|dd|hh|mi|ss)[^\[\]\n]*)\]", re.IGNORECASE)
#: the beginning of a comment line
_COMMENT = re.compile(r"\s*(--\s|--$|#)")
#: how deep shell scripts may call each other
_DEEPEST = 8
#: how many bytes of a shell script are read
_LONGEST = 16 << 20


@dataclass(frozen=True)
class Statements:
    """The statements that a caller hands over.

    Attributes:
        texts: texts of one or more statements each. Empty lines before a statement give it the line number it has in its file.
        command: in place of texts, a PAI command that came as words.
        folder: the directory of the file they come from.
        single: whether the caller gave one command, and expects one result.
        notes: programs of a shell script that are not run, in words.
        untold: from which line on, and why, it is unknown what a shell script calls; "" if all its calls are known.
        clients: for each text: the project that a new client begins with ("" for the caller's project), or None if the text
            continues the session of the client before it. A text without an entry has a new client.
    """

    texts: tuple[str, ...] = ()
    command: Command | None = None
    folder: str = ""
    single: bool = False
    notes: tuple[str, ...] = ()
    untold: str = ""
    clients: tuple[str | None, ...] = ()

    @property
    def others(self) -> list[Statement]:
        """The statements that are not PAI commands."""
        return [one for one in self.every if one.kind != "pai"]

    @property
    def every(self) -> list[Statement]:
        """All statements, in order. Raises: ConfigError: a quote is not closed."""
        return [one for one, _ in self.called]

    @property
    def called(self) -> list[tuple[Statement, str | None]]:
        """All statements, in order; each with None, or, if it is the first of a new client, with the client's project.

        The project is "" for the caller's.
        """
        found: list[tuple[Statement, str | None]] = []
        project: str | None = None
        for number, text in enumerate(self.texts):
            begins = self.clients[number] if number < len(self.clients) else ""
            project = project if begins is None else begins
            for one in split(text):
                found.append((one, project))
                project = None
        return found


def given(command: str | Sequence[str] | None, file: str | None, variables: Mapping[str, str]) -> Statements:
    """Return the statements of a text, of words, or of a file.

    Args:
        command: a text, or words.
        file: a file's path, in place of command.
        variables: the values of `${name}`.
    Raises:
        ConfigError: neither command nor file is given, or both; a variable has no value; a file cannot be read.
    """
    if (command is None) == (file is None):
        raise ConfigError("give PAI's command, or file= (-f) with a file of statements")
    if file is not None:
        return from_file(file, variables)
    if not isinstance(command, str):
        listed = list(check_arguments("command", command))
        if len(listed) != 1:
            return Statements(command=words.from_words(listed), single=True)
        command = listed[0]
    text = filled(command, variables)
    first = next(tokens(text), None)
    if first is not None and first.text == "-":
        # parameters without PAI; what stands before them are comments
        text = f"{text[: first.at].lstrip()}PAI {text[first.at :]}"
    found = split(text)
    if not found:
        raise ConfigError("command: there is no statement in it (is a variable of the shell empty?)")
    return Statements((text,), single=len(found) == 1 and found[0].kind == "pai")


def of_parts(parts: Sequence[tuple[str, str]], variables: Mapping[str, str], folder: str, first: int) -> Statements:
    """Return the statements of one call of MaxCompute's client. They share one session.

    Args:
        parts: as in `akrunner.pai_mode.client.Call`.
        variables: the values of `${name}`.
        folder: where a file is looked for if it is not found by its path.
        first: the number, from 1, of the statement to begin with.
    Raises:
        ConfigError: a part cannot be read, or there are fewer statements than `first`.
    """
    texts: list[str] = []
    for kind, text in parts:
        _check_encoded(text)
        if kind == "file":
            there = text if os.path.exists(text) else os.path.join(folder, text)
            held = _piped(text)
            if held is None:
                held = read_local_text(there if os.path.exists(there) else text, "odpscmd -f")
            texts.append(filled(held, variables))
        else:
            texts.append(filled(text, variables))
    if first > 1:
        every = [one for text in texts for one in split(text)]
        if first > len(every):
            raise ConfigError(f"odpscmd: -k {first}: there are {len(every)} statements")
        texts = ["\n" * (one.line - 1) + one.text for one in every[first - 1 :]]
    clients = ("", *(None for _ in texts[1:]))
    single = len(texts) == 1 and [one.kind for one in split(texts[0])] == ["pai"]
    return Statements(tuple(texts), folder=folder, single=single, clients=clients)


def from_file(path: str, variables: Mapping[str, str], depth: int = 0) -> Statements:
    """Return the statements of a file for `odpscmd -f`, or those that a shell script would hand to the client.

    Args:
        path: the file's path.
        variables: the values of `${name}`, and the variables a shell script begins with.
        depth: how many shell scripts lead to this file.
    Raises:
        ConfigError: the file cannot be read, or it is unknown what the script calls.
    """
    text = read_local_text(path, "file")
    folder = os.path.dirname(os.path.abspath(os.path.expanduser(path)))
    if not scripts.is_shell(path, text):
        return Statements((filled(text, variables),), folder=folder)
    if depth > _DEEPEST:
        raise ConfigError(f"file: {path} calls files that call files, more than {_DEEPEST} deep")
    # what knows bash, which each call of a script's client does without
    from akrunner.pai_mode.shell import reader

    untold = ""
    try:
        script = reader.read(text, folder, variables)
    except reader.Unread as e:
        script, untold = e.found, str(e)
    except ConfigError as e:
        raise ConfigError(f"--dry-run: {path} is only read, not run, and it cannot be told what it calls: {e}") from None
    texts: list[str] = []
    clients: list[str | None] = []
    notes = list(script.unread)
    for piece in script.pieces:
        if piece.file:
            # as odpscmd does, look in the current directory; then beside the script
            there = piece.text if os.path.exists(piece.text) else os.path.join(folder, piece.text)
            inner = from_file(there, variables, depth + 1)
            texts += inner.texts
            own = inner.clients or ("",)
            clients += [
                None if piece.more else own[0] or piece.project,
                *(one if one is None else one or piece.project for one in own[1:]),
            ]
            # what follows the call may depend on what is unknown in the inner script
            notes += [*inner.notes, *([inner.untold] if inner.untold else [])]
        else:
            # empty lines in front, so that errors name the line of the script
            texts.append("\n" * (piece.line - 1) + piece.text)
            clients.append(None if piece.more else piece.project)
    if untold and not texts:
        raise ConfigError(f"--dry-run: {path} is only read, not run, and it cannot be told what it calls: {untold}")
    if untold:
        untold = f"a dry run reads {os.path.basename(path)}, and only running it tells what it calls from here on: {untold}"
    if not texts:
        raise ConfigError(
            f"--dry-run: {path} makes no call of odpscmd, as far as can be told without running it; " + "; ".join(notes[:5])
        )
    return Statements(tuple(texts), folder=folder, notes=tuple(notes), untold=untold, clients=tuple(clients))


def _check_encoded(text: str) -> None:
    """Check that a text is UTF-8. Raises: ConfigError: it came from a script in another encoding."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as e:
        byte = ord(e.object[e.start]) & 0xFF
        raise ConfigError(
            f"the statements are not UTF-8 (there is a byte 0x{byte:02x}); if the script is in GBK: iconv -f GBK -t UTF-8 "
            "run.sh > run.utf8.sh"
        ) from None


def _piped(path: str) -> str | None:
    """Return what comes from a pipe, `-f <(...)`; None if the path is not a pipe."""
    if not os.path.exists(path) or not stat.S_ISFIFO(os.stat(path).st_mode):
        return None
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        return stream.read()


def shell_text(path: str) -> str | None:
    """Return the text of a shell script, whatever encoding its comments have; None if the file is not a shell script.

    Raises:
        ConfigError: the file cannot be read.
    """
    by_name = scripts.is_shell(path, "")
    with ours(ConfigError, f"file: cannot read {path}", path), open(fetch(path, "file").path, "rb") as stream:
        if not by_name and stream.read(2) != b"#!":
            return None
        stream.seek(0)
        text = stream.read(_LONGEST).decode("utf-8-sig", "surrogateescape")
    return text if scripts.is_shell(path, text) else None


def filled(text: str, variables: Mapping[str, str]) -> str:
    """Replace each `${name}` by its value. Raises: ConfigError: a variable has no value; the error names the line."""

    def value(match: re.Match[str]) -> str:
        name = match[1] if match[1] is not None else match[2]
        if name in variables:
            return variables[name]
        if _COMMENT.match(text, text.rfind("\n", 0, match.start()) + 1):
            return match[0]
        line = text.count("\n", 0, match.start()) + 1
        raise ConfigError(f"line {line}: {match[0]} has no value; give it: --var '{name}=VALUE' (variables=)")

    return _VARIABLE.sub(value, text)
