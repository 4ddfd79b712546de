"""A shell script that calls MaxCompute's client -> the statements it would hand over. For a dry run: the script is not run.

::

    x=1; export y="a ${x}"; z=${w:-3}            variables, as far as their values are known without running anything
                                                 (`values`)
    odpscmd --config=c -e "create table ...;"    statements; also by ${odpscmd}, $ODPSCMD, -f FILE, <<HERE, <<< and <
    pai -name tensorflow1150 ...                 a command as it is
    if, case, for, &&, ||, functions             the branch that bash takes, if it is known (`run`); if it is unknown, a
                                                 call in a branch is an error
    tar, zip, rm, echo, ossutil ...              not run; the user is told of those that could matter, with their lines

The result has exactly the calls that bash would make, in bash's order; otherwise there is a ConfigError.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence

from akrunner.errors import ConfigError
from akrunner.foreign import redacted
from akrunner.pai_mode.shell import builtins, calls, declares, filters
from akrunner.pai_mode.shell.calls import Script
from akrunner.pai_mode.shell.flow import MARK, Field, State
from akrunner.pai_mode.shell.nodes import Assign, Chain, Node, Redirection, Simple, Word, tangled
from akrunner.pai_mode.shell.run import Running
from akrunner.pai_mode.shell.scopes import Input, Leave
from akrunner.pai_mode.shell.syntax import DECLARES, Parser
from akrunner.pai_mode.shell.touched import Touched
from akrunner.pai_mode.shell.values import checked, marked

_STATEMENT = re.compile(
    r"\s*(pai\s+-|create\b|drop\b|alter\b|insert\b|select\b|tunnel\b|set\s|use\s|desc\b|show\b|with\b|truncate\b|--|#|add\s)",
    re.IGNORECASE,
)
#: a list within an expansion: `$*`, `${a[@]}`
_LISTS = re.compile(r"[${]([@*])|(\w+)\[[@*]\]")


def read(text: str, folder: str, variables: Mapping[str, str]) -> Script:
    """Return the calls of the client in a shell script.

    Args:
        text: the script's text.
        folder: the script's directory.
        variables: the variables the script begins with; `1` is its first argument. Where only running the script would tell a
            variable's value, the value given here is taken.
    Raises:
        Unread: from some line on it is unknown what bash would run, or a call needs a variable whose value is unknown.
        ConfigError: a quote or a here-document is not closed.
    """
    try:
        reader = Reader(checked(text), folder, variables)
        try:
            return reader.read()
        except ConfigError as e:
            raise Unread(str(e), reader.script) from None
    except RecursionError:
        raise ConfigError("the script's expansions are nested too deep") from None


class Unread(ConfigError):
    """Only running a script would tell what it calls from some line on. Attributes: found: the calls before that line."""

    def __init__(self, message: str, found: Script) -> None:
        super().__init__(message)
        self.found = found


def _file_alone(body: list[Node]) -> Word | None:
    """Return the file's name in `$(< file)`, None if the body is something else."""
    chain = body[0] if len(body) == 1 else None
    only = chain.first.parts[0] if isinstance(chain, Chain) and not chain.rest and len(chain.first.parts) == 1 else None
    if not isinstance(only, Simple) or only.words or only.assigns or [one.sign for one in only.redirections] != ["<"]:
        return None
    return only.redirections[0].target


class Reader(Running):
    """Reads the commands of a script: follows what each of them would do, and collects the calls of the client."""

    def __init__(self, text: str, folder: str, variables: Mapping[str, str]) -> None:
        super().__init__(variables)
        self.lines = text.split("\n")
        self.nodes = Parser(text).whole()
        self.folder = folder
        self.began = self.state.folder
        self.script = Script()
        self.client = calls.Client(self)
        #: whether an earlier command may have changed files
        self.passed = False
        #: whether an earlier program may have made directories
        self.ran = False
        #: whether stderr goes where stdout goes
        self.joined = False
        #: file -> the text that the script writes into it, None if it is unknown; and the files that programs may have changed
        self.written: dict[str, str | None] = {}
        self.touched = Touched(self.path)

    def read(self) -> Script:
        try:
            self.run(self.nodes)
        except Leave as left:
            if left.kind != "exit":
                raise ConfigError(f"the script has a {left.kind} outside of what it could leave") from None
        return self.script

    def node(self, node: Node) -> State:
        if isinstance(node, Simple) and node.redirections:
            words = ["".join(part.text for part in one.parts) for one in node.words if isinstance(one, Word)]
            if words and words[-1] == "exec" and not {*words[:-1]} - {"command", "builtin"}:
                self._for_good(node.redirections, node.line)
        return super().node(node)

    def simple(self, node: Simple) -> State:
        line = node.line
        first = node.words[0] if node.words else None
        if isinstance(first, Word) and first.literal == "[[":
            return builtins.brackets(self, [one for one in node.words[1:-1] if isinstance(one, Word)])
        self.called_state = State.YES
        if isinstance(first, Word) and first.literal in DECLARES and first.literal not in self.functions:
            return declares.declared(self, first.literal, node.words[1:])
        words = [one for word in node.words for one in (self.words(word) if isinstance(word, Word) else [])]
        state = self.called_state
        if not words:
            for one in node.assigns:
                self.assigned(one)
                state = self.called_state
            return state
        return self.command(words, node.assigns, line)

    def assigned(self, one: Assign) -> None:
        """Follow an assignment: `a=b`, `a+=b`, `a=(b c)`, `a[i]=b`."""
        if one.index is not None or isinstance(one.value, list):
            values = self.array(one) if isinstance(one.value, list) else self.element(one, self.text(one.value))
            if values is None and one.name in self.given:
                self.assign(one.name, self.given[one.name])
            else:
                self.assign(one.name, marked(one.name))
                self.state.arrays[one.name] = None if self.why else values
            return
        value = self.text(one.value)
        before = (self.value(one.name) or "") if one.sign == "+=" else ""
        if one.sign == "+=" and (one.name in self.state.arrays or (self.value(one.name) is None and not self.unset(one.name))):
            before = marked(one.name)
        self.assign(one.name, before + value)

    def command(self, words: list[Field], assigns: Sequence[Assign], line: int, own: bool = True) -> State:
        """Follow a command. Args: own: whether the command's name may be a function of the script."""
        name = words[0].text
        if own and name in self.functions:
            if assigns:
                raise ConfigError(
                    f"line {line}: akrunner does not read an assignment in front of a function: put it on a line of its own"
                )
            return self.call(name, words[1:], line)
        if assigns and name in ("eval", "source", "."):
            raise ConfigError(
                f"line {line}: akrunner does not read an assignment in front of {name}: put it on a line of its own"
            )
        # these values hold for this command alone; a call of the client in them is an error
        self.prefixed = {} if own else self.prefixed
        self.prefixed = self.prefixed | {
            one.name: "".join(field.text for field in self.fields(one.value))
            if isinstance(one.value, list)
            else self.text(one.value)
            for one in assigns
        }
        builtin = builtins.BUILTINS.get(name)
        if builtin is not None:
            return builtin(self, words, line)
        if self.client.meant(words[0]):
            return self.client.called(words[1:], line)
        if name.lower() == "pai" and len(words) > 1 and words[1].text.startswith("-"):
            return self.client.bare(words, line)
        return self.unread(words, line)

    # -- what is not run

    def unread(self, words: list[Field], line: int) -> State:
        texts = [word.text for word in words]
        name = os.path.basename(texts[0])
        given = self.stdin.text or ""
        if MARK in texts[0] and (
            any(re.match(r"-[ef]\b|--(execute|file)\b", one) or _STATEMENT.match(one) for one in [*texts[1:], given])
        ):
            asked = calls.UNKNOWN.sub(r"$\1", texts[0])
            raise ConfigError(
                f"line {line}: whether {asked} is odpscmd is not known; give it: --var {calls.giving(texts[0])}=odpscmd"
            )
        if name not in builtins.PLAIN and (self.mentions(" ".join(texts[1:])) or self._calls(texts)):
            raise ConfigError(
                f"line {line}: {name} may call odpscmd, and only running it would tell how; put the call into the script "
                "as it is, or run it without --dry-run"
            )
        made = filters.printed(name, texts[1:], self.read_text())
        if made is not None:
            self.stdin.text, self.stdin.file = None, ""
            self.emit(made)
            return State.YES
        if name not in builtins.HARMLESS:
            self.touch(texts)
            shown = redacted(" ".join(calls.UNKNOWN.sub(r"$\1", text) for text in texts))
            if not self.inside:
                self.tell(f"line {line} is not run: {shown if len(shown) <= 70 else shown[:67] + '...'}")
        if name not in builtins.DOERS:
            self.stdin.text, self.stdin.file = None, ""
        return builtins.answered(self, name, texts)

    def read_text(self) -> str | None:
        """Return what the next command reads from stdin; None if it is unknown."""
        return self.content(self.stdin.file) if self.stdin.file else self.stdin.text

    def content(self, name: str) -> str | None:
        """Return what a file holds; None if it is unknown, for example because an earlier command may have changed the file."""
        full = self.path(name)
        if full is None or full in self.touched:
            return None
        if full in self.written:
            return self.written[full]
        if self.passed or self.state.stale or not os.path.isfile(full) or os.path.getsize(full) > 1_000_000:
            return None
        try:
            with open(full, encoding="utf-8", newline="") as opened:
                text = opened.read()
        except (OSError, UnicodeDecodeError):
            return None
        return None if MARK in text else text

    def tell(self, note: str) -> None:
        if note not in self.script.unread:
            self.script.unread.append(note)

    def touch(self, texts: Sequence[str]) -> None:
        """Note that a program may have changed files. Args: texts: the program and its words."""
        self.touched.by(texts, self.written, self.ran)
        self.passed = self.ran = True

    def mentions(self, text: str) -> bool:
        names = [
            re.escape(name)
            for name, one in self.functions.items()
            if one is None or re.search("odpscmd|pai", one.text, re.IGNORECASE)
        ]
        return (
            re.search(
                "|".join(["odpscmd", r"\bpai\s+-name", *(rf"(?<![\w-]){name}(?![\w-])" for name in names)]), text, re.IGNORECASE
            )
            is not None
        )

    def _calls(self, texts: Sequence[str]) -> bool:
        """Whether a command runs another script, which calls the client."""
        shells = ("sh", "bash", "dash", "zsh", "ksh", "source", ".")
        if os.path.basename(texts[0]) in shells:
            named = [text for text in texts[1:] if not text.startswith("-")][:1]
        else:
            named = [texts[0]] if "/" in texts[0] else []
        for one in named:
            for folder in (self.state.folder, self.folder):
                path = os.path.join(folder or "", one)
                if MARK not in path and os.path.isfile(path) and os.path.getsize(path) < 1_000_000:
                    with open(path, "rb") as opened:
                        return self.mentions(opened.read().decode("utf-8", "replace"))
        return False

    # -- files and what is printed

    def path(self, text: str) -> str | None:
        """Return a file's absolute path; None if it is unknown."""
        if MARK in text:
            return None
        if text.startswith("/"):
            return os.path.normpath(text)
        return None if self.state.folder is None else os.path.normpath(os.path.join(self.state.folder, text))

    def look(self, test: str, path: str) -> bool | None:
        """Return the result of a file test; None if it is unknown, because an earlier command may have changed files."""
        full = self.path(path)
        return None if self.passed or full is None or self.state.stale else builtins.looked(test, full if path else "")

    def emit(self, text: str) -> None:
        """Add a text to what is printed."""
        if self.printed is not None:
            self.printed.append(text if not self.why else marked("..."))

    def called(self, text: str, body: list[Node]) -> str:
        """Return what the commands in `$(...)` print. They run as a subshell; a call of the client in them is an error."""
        before, self.printed = self.printed, []
        self.inside += 1
        try:
            ends = self.state.ends_at_failure

            only = _file_alone(body)

            def inner() -> State:
                if only is not None:
                    self.emit(marked("<") if (held := self.content(self.text(only))) is None else held)
                    return State.HOPED
                # in a command substitution, bash switches `set -e` off
                self.state.ends_at_failure = ends and None if ends is None else False
                return self.run(body)

            self.called_state = self.apart(inner)
            made = "".join(self.printed).rstrip("\n")
        finally:
            self.inside -= 1
            self.printed = before
        return made if MARK not in made else marked(f"$({text.strip()})")

    def is_program(self, node: Simple) -> bool:
        first = node.words[0] if node.words else None
        if not isinstance(first, Word) or (first.literal or "") in DECLARES | {"[["}:
            return False
        return first.literal not in self.functions and not builtins.is_bash(first.literal or "")

    def redirected(self, redirections: Sequence[Redirection], body: Callable[[], State], program: bool = False) -> State:
        stdin, printed, joined = self.stdin, self.printed, self.joined
        target: Redirection | None = None
        mixed = tangled(redirections)
        path: str | None = None
        into = ""
        for one in redirections:
            text = self._target(one) if program else self.text(one.target)
            self._here_list(one)
            if one.sign.startswith("<") and one.descriptor in ("", "0"):
                self.stdin = self._input(one.sign, text)
            if ">" in one.sign and not re.fullmatch(r"/dev/(null|stderr|stdout|tty)", text):
                if one.sign == ">&" and re.fullmatch(r"\d+|-", text):
                    self._duplicated(one.descriptor, text)
                    continue
                path = self.path(text)
                if path is None:
                    self.touch([">", text])
                there = self._there(path, text)
                self.passed = True
                if one.sign == "<>":
                    self.touch(["<>", text])
                if path is not None and not there:
                    self.written[path] = None
                elif path is not None:
                    self.written[path] = self.written.get(path) if one.sign == ">>" and not mixed else None
                    if not mixed and one.descriptor in ("", "1") and one.sign in (">", ">>", ">|"):
                        target, into = one, path
            if ">" in one.sign and one.descriptor in ("", "1") and one.sign != "<>" and text != "/dev/stdout":
                self.printed = [] if not (self.joined and text == "/dev/stderr") else self.printed
        try:
            return body()
        finally:
            made, self.printed, self.stdin, self.joined = self.printed, printed, stdin, joined
            if mixed:
                self.emit(marked("..."))
            if target is not None and made is not None and len(redirections) <= 2:
                before = self.written.get(into) if target.sign == ">>" else ""
                self.written[into] = None if before is None or self.why else before + "".join(made)
                if target.sign != ">>":
                    self.touched.renewed(into)

    def _for_good(self, redirections: Sequence[Redirection], line: int) -> None:
        """Follow `exec > log`, which redirects all commands after it.

        Raises:
            ConfigError: the redirection may matter to a call.
        """
        for one in redirections:
            text = self.text(one.target)
            path = self.path(text)
            follows = one is not redirections[0] and (one.descriptor, one.sign, text) == ("2", ">&", "1")
            if (text == "/dev/null" or follows) and self.printed is None:
                continue
            if self.printed is not None or path is None or one.sign not in (">", ">>", ">|", "&>", "&>>") or self.why:
                raise ConfigError(
                    f"line {line}: akrunner does not read `exec {one.descriptor}{one.sign} "
                    f"{redacted(text).replace(MARK, '$')}`: put it behind the commands that need it"
                )
            self.touched.opened(path)

    def _target(self, one: Redirection) -> str:
        """Return a redirection's target for a program.

        Raises:
            ConfigError: the target sets a variable: in front of a program, bash sets it in the program's process only.
        """
        before = self.state.copy()
        text = self.text(one.target)
        if before.known != self.state.known:
            name = next(name for name, value in self.state.known.items() if before.known.get(name, MARK) != value)
            raise ConfigError(
                f"line {self.line}: {name} is set in a redirection or here-document: set it on a line of its own in front"
            )
        return text

    def _here_list(self, one: Redirection) -> None:
        """Check the lists in a here-document.

        Raises:
            ConfigError: bash joins a list here in another way than between quotes.
        """
        if one.sign not in ("<<", "<<-"):
            return
        texts = [part.text for part in one.target.parts if part.kind == "name"]
        lists = [match[1] or match[2] for text in texts for match in _LISTS.finditer(f"{{{text}")]
        nested = any(re.search(r"[-+=?].*(?:[${][@*]|\[[@*]\])", text, re.DOTALL) for text in texts)
        if nested or any("" in (self._held(name) or []) or self.value("IFS") not in (None, " \t\n") for name in lists):
            raise ConfigError(
                f"line {self.line}: akrunner does not read a list in a here-document where IFS is set, an element is empty or "
                'it stands in a default: x="$*" in front of it'
            )

    def _there(self, path: str | None, text: str) -> bool:
        """Return whether the directory of a file that is written exists, or an earlier program had its name among its words.

        Raises:
            ConfigError: the directory does not exist, and no earlier program can have made it.
        """
        folder = os.path.dirname(path or "/")
        if os.path.isdir(folder) or self.touched.named(os.path.basename(folder)):
            return True
        if not self.ran and not self.why:
            raise ConfigError(
                f"line {self.line}: the directory of {redacted(text)} is not there, and bash does not run a command whose "
                f"output has no place: mkdir -p {redacted(os.path.dirname(text))}"
            )
        return False

    def _duplicated(self, descriptor: str, to: str) -> None:
        """Follow `2>&1` or `>&2`: what is printed goes elsewhere from now on."""
        if descriptor == "2" and to == "1":
            self.joined = True
        elif descriptor in ("", "1") and to not in ("1", "2", "-"):
            self.emit(marked("..."))
        elif descriptor in ("", "1") and to != "1" and not self.joined:
            self.printed = []

    def _input(self, sign: str, text: str) -> Input:
        if sign in ("<<", "<<-"):
            return Input(text)
        if sign == "<<<":
            return Input(f"{text}\n")
        return Input(file=text) if sign == "<" and text != "/dev/stdin" else Input()
