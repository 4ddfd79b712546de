"""A shell script -> its syntax tree. Nothing is expanded here, and nothing is run.

::

    x=1; echo "a $x" && f <<E    Chains of Simples: one with an Assign; then two with `&&` between them, and the first has a
                                 Word with the Parts `a ` (text) and x (name)
    if A; then B; fi             Branches, Case, Loop, For, Group, Function: each with the line on which it begins
    select, ;&, <(...)           ConfigError: akrunner does not guess what it cannot read
"""

from __future__ import annotations

import re

from akrunner.pai_mode.shell.nodes import (
    Assign,
    Branches,
    Case,
    Chain,
    Count,
    For,
    Function,
    Group,
    Loop,
    Node,
    Part,
    Pipeline,
    Redirection,
    Simple,
    Sum,
    Word,
    joined,
)
from akrunner.pai_mode.shell.words import Characters

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]\s]*\])?(\+?=)")
_REDIRECTION = re.compile(r"(\d*|\{\w+\})(&>>|&>|<<<|<<-|<<|<>|<&|>&|>>|>\||<(?!\()|>(?!\())")
DECLARES = frozenset(("export", "local", "declare", "typeset", "readonly"))
_ENDS = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}"))


class Parser(Characters):
    """Parses a shell script."""

    def script(self, text: str, line: int) -> list[Node]:
        return type(self)(text, line).whole()

    def whole(self) -> list[Node]:
        """Parse the whole text. Raises: ConfigError: it is not a shell script, or has something that akrunner does not read."""
        found = self._list()
        if self.at < len(self.text):
            raise self.error(f"akrunner does not understand `{self.text[self.at :].split(chr(10))[0][:40]}` here")
        return found

    def commands(self, close: str) -> list[Node]:
        """Parse a list of commands, and the `)` or the word such as `done` after it."""
        found = self._list()
        if close == ")" and self.next_is(")"):
            self.at += 1
        elif close == ")" or self._keyword() != close:
            raise self.error(f"a {close} is missing")
        else:
            self.at += len(close)
        return found

    def _some(self, close: str) -> list[Node]:
        """Parse commands as `commands` does, where bash wants at least one."""
        found = self.commands(close)
        if not found:
            raise self.error(f"a command is missing before {close}")
        return found

    def _keyword(self) -> str:
        match = re.compile(r"[a-z]+(?=[\s;&|<>()]|\Z)|[{}!](?=[\s;&|<>()]|\Z)|\[\[(?=\s)").match(self.text, self.at)
        return match[0] if match else ""

    def _list(self) -> list[Node]:
        found: list[Node] = []
        while True:
            self.newlines()
            if self.at >= len(self.text) or self.next_is(")", ";;") or self._keyword() in _ENDS:
                break
            if self.next_is(";", "&", "|"):
                raise self.error(f"akrunner does not understand `{self.text[self.at]}` here")
            found.append(self._chain())
        if self.waiting and (self.at >= len(self.text) or self.next_is(")")):
            raise self.error(f"the here-document {self.waiting[0][1]} has no end")
        return found

    def _chain(self) -> Chain:
        line = self.line
        first = self._pipeline()
        rest = []
        while True:
            self.blanks()
            if not self.next_is("&&", "||"):
                break
            sign = self.text[self.at : self.at + 2]
            self.at += 2
            self.newlines()
            rest.append((sign, self._pipeline()))
        if self.at < len(self.text) and not self.next_is("\n", ";", "&", ")"):
            raise self.error(f"akrunner does not understand `{self.text[self.at : self.at + 20]}` here")
        background = self.next_is("&")
        if self.next_is(";&", ";;&"):
            raise self.error("akrunner does not read `;&` and `;;&`: end the part with `;;`")
        if self.next_is(";;"):
            return Chain(line, first, rest, False)
        if self.next_is(";", "&"):
            self.at += 1
        return Chain(line, first, rest, background)

    def _pipeline(self) -> Pipeline:
        line, negated = self.line, False
        begin = self.at
        while self._keyword() in ("!", "time"):
            negated ^= self._keyword() == "!"
            self.at += len(self._keyword())
            self.blanks()
        if begin < self.at and (self.at >= len(self.text) or self.next_is("\n", ";", ")")):
            # `!` alone fails, and `time` alone does not
            return Pipeline(line, negated, [Simple(line)])
        parts = [self._command()]
        while True:
            self.blanks()
            if not self.next_is("|") or self.next_is("||"):
                return Pipeline(line, negated, parts)
            if self.next_is("|&"):
                # stderr goes into the pipe as well
                self.at += 1
                self._joins(parts)
            self.at += 1
            self.newlines()
            parts.append(self._command())

    def _joins(self, parts: list[Node]) -> None:
        """Add `2>&1` to the last command of a pipe, after its own redirections."""
        last, added = parts[-1], Redirection(">&", "2", Word([Part("text", "1", False)], self.line))
        if isinstance(last, (Simple, Group)):
            last.redirections.append(added)
        else:
            parts[-1] = Group(last.line, False, [last], [added])

    def _command(self) -> Node:
        line, word = self.line, self._keyword()
        if self.next_is("(("):
            self.at += 2
            return self._redirected(Sum(line, self.balanced("))")))
        if self.next_is("("):
            self.at += 1
            return self._redirected(Group(line, True, self._some(")")))
        if word == "{":
            self.at += 1
            return self._redirected(Group(line, False, self._some("}")))
        reader = {"if": self._if, "case": self._case, "for": self._for, "while": self._loop, "until": self._loop}.get(word)
        if reader is not None:
            self.at += len(word)
            return self._redirected(reader(line))
        if word in ("select", "coproc") or word in _ENDS:
            raise self.error(f"akrunner does not understand `{word}` here")
        if word == "function":
            self.at += len(word)
            self.blanks()
            return self._function(line, self.word().literal or "")
        return self._simple(line)

    def _redirected(self, node: Node) -> Node:
        found: list[Redirection] = []
        self.blanks()
        while self._redirection(found):
            self.blanks()
        if not found:
            return node
        return Group(node.line, False, [node], found)

    def _if(self, line: int) -> Node:
        ways, other = [], []
        condition = self._some("then")
        while True:
            body = self._list()
            ways.append((condition, body))
            word = self._keyword()
            if not body and word in ("elif", "else", "fi"):
                raise self.error(f"a command is missing before {word}")
            self.at += len(word)
            if word == "elif":
                condition = self._some("then")
                continue
            if word == "else":
                other = self._some("fi")
            elif word != "fi":
                raise self.error("a fi is missing")
            return Branches(line, ways, other)

    def _loop(self, line: int) -> Node:
        until = self.text[self.at - 5 : self.at] == "until"
        condition = self._some("do")
        return Loop(line, until, condition, self._some("done"))

    def _for(self, line: int) -> Node:
        self.blanks()
        if self.next_is("(("):
            return self._count(line)
        name = self.word().literal or ""
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise self.error("akrunner reads `for` over words only: for x in a b c")
        self.newlines()
        values: list[Word] | None = None
        if self._keyword() == "in":
            self.at += 2
            values = []
            self.blanks()
            while self.at < len(self.text) and not self.next_is("\n", ";"):
                values.append(self._checked_word())
                self.blanks()
        return For(line, name, values, self._body())

    def _body(self) -> list[Node]:
        """Parse `; do ... done`."""
        if self.next_is(";"):
            self.at += 1
        self.newlines()
        if self._keyword() != "do":
            raise self.error("a do is missing")
        self.at += 2
        return self._some("done")

    def _count(self, line: int) -> Node:
        self.at += 2
        parts = self.balanced("))").split(";")
        if len(parts) != 3:
            raise self.error("akrunner reads `for ((first; test; step))`, with two semicolons")
        self.blanks()
        return Count(line, parts[0], parts[1], parts[2], self._body())

    def _checked_word(self) -> Word:
        before = self.at
        word = self.word()
        if self.at == before:
            raise self.error(f"akrunner does not understand `{self.text[self.at : self.at + 10]}` here")
        return word

    def _case(self, line: int) -> Node:
        self.blanks()
        value = self._checked_word()
        self.newlines()
        if self._keyword() != "in":
            raise self.error("an in is missing")
        self.at += 2
        ways: list[tuple[list[Word], list[Node]]] = []
        while True:
            self.newlines()
            if self._keyword() == "esac":
                self.at += 4
                return Case(line, value, ways)
            if self.next_is("("):
                self.at += 1
            patterns = []
            while True:
                self.blanks()
                patterns.append(self._checked_word())
                self.blanks()
                if self.next_is(")"):
                    break
                if not self.next_is("|"):
                    raise self.error("akrunner does not understand the pattern of this case")
                self.at += 1
            self.at += 1
            ways.append((patterns, self._list()))
            if self.next_is(";;&", ";&"):
                raise self.error("akrunner does not read `;&` and `;;&`: end the part with `;;`")
            if self.next_is(";;"):
                self.at += 2
            elif self._keyword() != "esac":
                raise self.error("an esac is missing")

    def _function(self, line: int, name: str) -> Node:
        self.blanks()
        if self.next_is("("):
            self.at += 1
            self.blanks()
            if not name or not self.next_is(")"):
                raise self.error("akrunner does not understand the ( here")
            self.at += 1
        self.newlines()
        begin = self.at
        body = self._command()
        if isinstance(body, (Simple, Function)):
            raise self.error(f"the body of {name} has to stand between {{ and }}")
        return Function(line, name, body, self.text[begin : self.at])

    def _simple(self, line: int) -> Node:
        made = Simple(line)
        declares = False
        while True:
            self.blanks()
            if self.at >= len(self.text) or self._redirection(made.redirections):
                if self.at >= len(self.text):
                    break
                continue
            if self.next_is("\n", ";", "&", "|", ")"):
                break
            if self.next_is("<(", ">("):
                raise self.error(
                    "akrunner does not read <(...) and >(...): write what they hold into a file, and run the script itself"
                )
            assigned = self._assignment() if not made.words or declares else None
            if assigned is not None:
                (made.words if declares else made.assigns).append(assigned)
                continue
            if self.next_is("("):
                name = (
                    made.words[0].literal
                    if len(made.words) == 1 and isinstance(made.words[0], Word) and not made.assigns
                    else None
                )
                return self._function(line, name or "")
            if not made.words and self._keyword() == "[[":
                self._double_brackets(made)
                continue
            word = self._checked_word()
            made.words.append(word)
            declares = declares or (len(made.words) == 1 and word.literal in DECLARES)
        if not (made.assigns or made.words or made.redirections):
            raise self.error("a command is missing here")
        return made

    def _double_brackets(self, made: Simple) -> None:
        while True:
            self.newlines()
            if self.at >= len(self.text):
                raise self.error("a ]] is missing")
            before = made.words[-1] if made.words else None
            if isinstance(before, Word) and before.literal == "=~":
                made.words.append(self._pattern())
                continue
            sign = re.compile(r"&&|\|\||[()<>]").match(self.text, self.at)
            if sign is not None:
                self.at = sign.end()
                made.words.append(Word([Part("text", sign[0], False)], self.line, True))
                continue
            made.words.append(self._checked_word())
            last = made.words[-1]
            if isinstance(last, Word) and last.literal == "]]":
                return

    def _pattern(self) -> Word:
        """Read the pattern after `=~`: up to a blank, or a `)` that it does not open itself."""
        line, depth = self.line, 0
        parts: list[Part] = []
        while self.at < len(self.text):
            parts += self.word(" \t\n()").parts
            char = self.text[self.at : self.at + 1]
            depth += {"(": 1, ")": -1}.get(char, 0)
            if depth < 0 or (not depth and char.isspace()):
                break
            if char:
                parts.append(Part("text", char, False))
                self.at += 1
        return Word(joined(parts), line)

    def _assignment(self) -> Assign | None:
        match = _ASSIGNMENT.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        index = match[2][1:-1] if match[2] is not None else None
        if not self.next_is("("):
            return Assign(match[1], match[3], self.word(), index)
        self.at += 1
        values = []
        self.newlines()
        while not self.next_is(")"):
            values.append(self._checked_word())
            self.newlines()
            if self.at >= len(self.text):
                raise self.error("a ) is missing")
        self.at += 1
        return Assign(match[1], match[3], values, index)

    def _redirection(self, found: list[Redirection]) -> bool:
        match = _REDIRECTION.match(self.text, self.at)
        if match is None:
            return False
        self.at = match.end()
        self.blanks()
        if match[2] in ("<<", "<<-"):
            word = self._checked_word()
            if any(part.kind != "text" for part in word.parts):
                raise self.error("akrunner does not understand the end of this here-document")
            made = Redirection(match[2], match[1], word)
            end = "".join(part.text for part in word.parts)
            self.waiting.append((made, end, any(part.quoted for part in word.parts), match[2] == "<<-"))
        else:
            made = Redirection(match[2], match[1], self._checked_word())
        found.append(made)
        return True
