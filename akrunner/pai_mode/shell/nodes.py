"""The syntax tree of a shell script: words, commands, and the nodes that contain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Part:
    """A part of a word.

    Attributes:
        kind: "text"; "name", the expansion of a parameter; "sum", arithmetic; or "call", a command substitution.
        text: the text, or what stands between the expansion's signs.
        quoted: whether the part is quoted.
        body: the commands of a "call".
        closed: whether a "name" is written `${...}`.
    """

    kind: str
    text: str
    quoted: bool
    body: list[Node] = field(default_factory=list)
    closed: bool = False


def joined(parts: Sequence[Part]) -> list[Part]:
    """Return the parts with neighbouring texts joined, if both or neither are quoted."""
    found: list[Part] = []
    for part in parts:
        if found and part.kind == found[-1].kind == "text" and part.quoted == found[-1].quoted:
            found[-1] = Part("text", found[-1].text + part.text, part.quoted)
        else:
            found.append(part)
    return found


@dataclass
class Word:
    """A word. Attributes: parts: its parts; line: where it begins; sign: whether it is an operator of `[[ ]]`."""

    parts: list[Part]
    line: int
    sign: bool = False

    @property
    def literal(self) -> str | None:
        """The word's text; None if something in it is quoted or expanded."""
        if any(part.kind != "text" or part.quoted for part in self.parts):
            return None
        return "".join(part.text for part in self.parts)


@dataclass
class Assign:
    """An assignment.

    Attributes:
        name: the variable's name.
        sign: `=` or `+=`.
        value: a word, or the words of an array.
        index: the index of an array's element, as arithmetic; None if there is none.
    """

    name: str
    sign: str
    value: Word | list[Word]
    index: str | None = None


@dataclass
class Redirection:
    """A redirection.

    Attributes:
        sign: the operator, such as `>`.
        descriptor: the number in front of the sign, "" if there is none.
        target: the word after the sign; for a here-document, its text.
    """

    sign: str
    descriptor: str
    target: Word


def tangled(redirections: Sequence[Redirection]) -> bool:
    """Whether the order of redirections matters: `2>&1 > file`, `> file >&2`; but not in the usual `> file 2>&1`."""
    outs = [one for one in redirections if ">" in one.sign]
    twice = [one for one in outs if one.descriptor in ("", "1")]
    doubled = [one.sign == ">&" or (one.target.literal or "").startswith(("/dev/std", "/dev/fd")) for one in outs]
    plain = [one.sign == ">&" and one.descriptor == "2" and one.target.literal == "1" for one in outs]
    if len(outs) == 2 and plain[1] and outs[0].sign == ">&" and outs[0].target.literal == "2" and twice:
        # `>&2 |&`: nothing goes to stdout
        return False
    return len(outs) > 1 and (len(twice) > 1 or (any(doubled) and not (plain[-1] and not any(doubled[:-1]))))


@dataclass
class Simple:
    line: int
    assigns: list[Assign] = field(default_factory=list)
    words: list[Word | Assign] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)


@dataclass
class Sum:
    """`((...))`: arithmetic as a command."""

    line: int
    text: str


@dataclass
class Chain:
    """A list of pipelines.

    Attributes:
        first: the first pipeline.
        rest: (`&&` or `||`, pipeline) for each other one.
        background: whether `&` ends the list.
    """

    line: int
    first: Pipeline
    rest: list[tuple[str, Pipeline]]
    background: bool


@dataclass
class Pipeline:
    line: int
    negated: bool
    parts: list[Node]


@dataclass
class Branches:
    """`if`. Attributes: ways: condition and body of `if` and of each `elif`; other: the body after `else`."""

    line: int
    ways: list[tuple[list[Node], list[Node]]]
    other: list[Node]


@dataclass
class Case:
    line: int
    value: Word
    ways: list[tuple[list[Word], list[Node]]]


@dataclass
class Loop:
    """A `while` or `until` loop."""

    line: int
    until: bool
    condition: list[Node]
    body: list[Node]


@dataclass
class For:
    """A loop `for x in ...`. Attributes: values: the words to go through; None for the script's arguments."""

    line: int
    name: str
    values: list[Word] | None
    body: list[Node]


@dataclass
class Count:
    """A loop `for ((first; test; step))`."""

    line: int
    first: str
    test: str
    step: str
    body: list[Node]


@dataclass
class Group:
    """`{ }`, `( )`, and any compound command with redirections. Attributes: apart: whether the body is run in a subshell."""

    line: int
    apart: bool
    body: list[Node]
    redirections: list[Redirection] = field(default_factory=list)


@dataclass
class Function:
    line: int
    name: str
    body: Node
    text: str


Node = Simple | Sum | Chain | Pipeline | Branches | Case | Loop | For | Count | Group | Function


def stops(body: Sequence[Node]) -> bool:
    """Whether a list of commands certainly ends in `exit` or `return`."""
    last = body[-1] if body else None
    if isinstance(last, Chain):
        return not last.rest and not last.background and stops([last.first])
    if isinstance(last, Pipeline):
        # each part of several is run in a subshell, and leaves only that
        return len(last.parts) == 1 and stops(last.parts)
    if isinstance(last, Group):
        return not last.apart and stops(last.body)
    if isinstance(last, Simple) and last.words and isinstance(last.words[0], Word):
        return last.words[0].literal in ("exit", "return")
    return False
