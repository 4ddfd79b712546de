"""Gives each message of the source its code by akrunner/codes/catalogue.toml, and writes index.json there and docs/errors.md."""

from __future__ import annotations

import ast
import fnmatch
import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from akrunner import errors
from akrunner.codes.catalogue import ROOT, Family, families
from akrunner.codes.matching import GAP, LEAST, pieces_of

PACKAGE = Path(__file__).resolve().parents[1] / "akrunner"
INDEX = PACKAGE / "codes" / "index.json"
PAGE = PACKAGE.parent / "docs" / "errors.md"
BEGIN, END = "<!-- codes of {}: written by scripts/gen-codes -->\n", "<!-- to here -->\n"
#: of values that are chosen when the message is made, so many are told apart
_CHOICES = 6
#: blocks that make an exception of their class of whatever is raised in them: its words are put behind these
_BLOCKS = ("ours", "underway")
_KINDS = tuple(name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, errors.AkrunnerError))
_OF_ARGUMENTS = tuple(name for name in _KINDS if issubclass(getattr(errors, name), errors.ConfigError))
#: the exception of a message whose class is decided by a caller
ANY = "*"


class Message(NamedTuple):
    """A message of the source. Attributes: kind: its exception, `ANY`: that is decided by its caller; module: as `io/paths`; text: with `GAP`s."""

    kind: str
    module: str
    text: str


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Yield each module, as `io/paths`, and what stands in it."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).with_suffix("").as_posix(), ast.parse(path.read_text())


def gathered() -> list[Message]:
    """Return every message that the source has, in its order."""
    found: dict[Message, None] = {}
    for module, tree in trees():
        if module != "errors" and not module.startswith(("worker/", "wire/", "starters/files/")):
            found.update(dict.fromkeys(_of_module(module, tree)))
    return list(found)


class _Scope:
    """A function, or a module. It is searched once, however many messages take their words from it."""

    def __init__(self, node: ast.AST) -> None:
        self._node = node

    @functools.cached_property
    def given(self) -> Mapping[str, Sequence[ast.expr]]:
        """The values that each name is given in it."""
        found: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self._node):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
            for name in dict.fromkeys(one.id for one in targets if isinstance(one, ast.Name)):
                if node.value is not None:
                    found.setdefault(name, []).append(node.value)
        return found

    @functools.cached_property
    def made(self) -> Mapping[str, Sequence[ast.FunctionDef]]:
        """The functions in it, by their names."""
        found: dict[str, list[ast.FunctionDef]] = {}
        for node in ast.walk(self._node):
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append(node)
        return found


class _Place(NamedTuple):
    """Where a call or a class stands.

    Attributes: node: it; raised: whether it is what a `raise` raises; scopes: the functions around it, and the module, the nearest first.
    """

    node: ast.Call | ast.ClassDef
    raised: bool
    scopes: Sequence[_Scope]


#: what no call is in; more than half of all nodes
_WITHOUT = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.alias)


def _places(tree: ast.Module) -> Iterator[_Place]:
    """Yield each call and class of a module, in the order of `ast.walk`."""
    pending: list[tuple[ast.AST, bool, Sequence[_Scope]]] = [(tree, False, ())]
    for node, raised, scopes in pending:
        if isinstance(node, (ast.Call, ast.ClassDef)):
            yield _Place(node, raised, scopes)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            scopes = (_Scope(node), *scopes)
        raises = isinstance(node, ast.Raise)
        for value in vars(node).values():
            for one in value if isinstance(value, list) else (value,):
                if isinstance(one, ast.AST) and not isinstance(one, _WITHOUT):
                    pending.append((one, raises, scopes))


def _of_module(module: str, tree: ast.Module) -> Iterator[Message]:
    places = list(_places(tree))
    own = {
        node.name: base
        for node, _, _ in places
        if isinstance(node, ast.ClassDef)
        for base in map(_name, node.bases)
        if base in _KINDS
    }
    for node, raised, scopes in places:
        if not isinstance(node, ast.Call):
            continue
        name, arguments = _name(node.func), node.args
        if name in _BLOCKS and len(arguments) == 2 and _name(arguments[0]) in _KINDS:
            kind, arguments, more = str(_name(arguments[0])), arguments[1:], ": " + GAP
        elif name in _KINDS or name in own:
            kind, more = own.get(str(name), str(name)), ""
        elif raised and (name is None or name.lstrip("_").islower()) and arguments:
            # a function that makes the exception, or a class that was handed in
            kind, more = ANY, ""
        else:
            continue
        texts = (
            [arg for arg in arguments if isinstance(arg, (ast.JoinedStr, ast.Constant, ast.BinOp, ast.IfExp))]
            if kind == ANY
            else arguments[:1]
        )
        for text in texts:
            for one in _texts(text, scopes):
                # a word or two are the name of a parameter
                if kind != ANY or len(one.replace(GAP, " ").split()) > 2:
                    yield Message(kind, module, one + more)


def _name(node: ast.AST) -> str | None:
    """Return the last part of a name."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _texts(node: ast.AST, scopes: Sequence[_Scope], depth: int = 3) -> list[str]:
    """Return what a text may be."""
    if isinstance(node, ast.Constant):
        return [node.value if isinstance(node.value, str) else GAP]
    if isinstance(node, ast.JoinedStr):
        parts = [
            _texts(one, scopes, depth) if isinstance(one, ast.Constant) else _inner(one, scopes, depth) for one in node.values
        ]
        return _joined(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _joined([_texts(node.left, scopes, depth), _texts(node.right, scopes, depth)])
    if isinstance(node, ast.IfExp):
        return list(dict.fromkeys([*_texts(node.body, scopes, depth), *_texts(node.orelse, scopes, depth)]))[:_CHOICES]
    if isinstance(node, ast.Name) and depth:
        given = _given(node.id, scopes)[:_CHOICES]
        return list(dict.fromkeys(one for value in given for one in _texts(value, scopes, depth - 1)))[:_CHOICES] or [GAP]
    if isinstance(node, ast.Call) and depth:
        # a function of the module that puts the words together
        made = scopes[-1].made.get(str(_name(node.func)), ())
        returned = [one.value for of in made for one in ast.walk(of) if isinstance(one, ast.Return) and one.value is not None]
        return list(dict.fromkeys(text for one in returned for text in _texts(one, [_Scope(made[0]), scopes[-1]], depth - 1)))[
            :_CHOICES
        ] or [GAP]
    return [GAP]


def _inner(node: ast.AST, scopes: Sequence[_Scope], depth: int) -> list[str]:
    """Return what a value within a text may be: only a constant of the module is known."""
    value = node.value if isinstance(node, ast.FormattedValue) else node
    if isinstance(value, ast.Name) and value.id.lstrip("_").isupper():
        return _texts(value, scopes[-1:], depth)
    return [GAP]


def _given(name: str, scopes: Sequence[_Scope]) -> Sequence[ast.expr]:
    """Return the values that a name is given in the nearest scope that gives it any."""
    return next((scope.given[name] for scope in scopes if name in scope.given), ())


def _joined(parts: Sequence[Sequence[str]]) -> list[str]:
    return ["".join(one) for one in itertools.islice(itertools.product(*parts), _CHOICES)]


# -- which code


def family_of(message: Message) -> Family:
    """Return the family of a message. Raises: LookupError: none claims it, or two do."""
    able = [one for one in families().values() if message.kind == ANY or message.kind in one.classes]
    for claims in (lambda one: _said(one.says, message.text), lambda one: _within(one.modules, message.module)):
        lengths = {one.code: claims(one) for one in able}
        best = max(lengths.values(), default=0)
        found = [one for one in able if best and lengths[one.code] == best]
        if len(found) == 1 or (found and message.kind == ANY):
            return found[0]
        if found:
            raise LookupError(f"{[one.code for one in found]} both claim {message}")
    raise LookupError(f"no family claims {message}")


def _said(pieces: Iterable[str], text: str) -> int:
    """Return the length of the longest of the pieces that are in a text."""
    return max((len(piece) for piece in pieces if _is_in(piece, text)), default=0)


def _is_in(piece: str, text: str) -> bool:
    """Whether a text says a piece; * in it stands for anything."""
    at = 0
    for part in piece.split("*"):
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def _within(patterns: Iterable[str], module: str) -> int:
    return max((len(one) for one in patterns if fnmatch.fnmatchcase(module, one)), default=0)


def given() -> dict[Message, Family]:
    """Return each message with its family. Raises: SystemExit: some have none, or several; it names them all."""
    found, wrong = {}, []
    for message in gathered():
        try:
            found[message] = family_of(message)
        except LookupError as e:
            wrong.append(str(e))
    if wrong:
        raise SystemExit("\n".join(wrong))
    return found


# -- what is written


def index(found: Mapping[Message, Family]) -> str:
    """Return index.json: code, classes and words of each message that has enough of its own words to be known by them."""
    rows: dict[tuple[str, str], set[str]] = {}
    beginnings: set[str] = set()
    for message, family in found.items():
        rows.setdefault((family.code, message.text), set()).update(_kinds_of(message, family))
    for family in families().values():
        for piece in family.foreign:
            begin = "" if piece.startswith("^") else GAP
            text = f"{begin}{piece.removeprefix('^').replace('*', GAP)}{GAP}"
            beginnings |= {text} if not begin else set()
            rows.setdefault((family.code, text), set()).update(family.classes)
    known = [
        json.dumps([code, " ".join(sorted(kinds)), text], ensure_ascii=False)
        for (code, text), kinds in sorted(rows.items())
        if text in beginnings or sum(map(str.isalpha, "".join(pieces_of(text)))) >= LEAST
    ]
    rest = {kind: one.code for one in families().values() if one.is_rest for kind in one.classes}
    lines = ",\n  ".join(known)
    return f'{{\n "rest": {json.dumps(rest)},\n "messages": [\n  {lines}\n ]\n}}\n'


def _kinds_of(message: Message, family: Family) -> tuple[str, ...]:
    """Return the exceptions that a message is one of: what checks an argument is handed the class that its caller wants."""
    if message.kind != ANY:
        return (message.kind,)
    return _OF_ARGUMENTS if message.module == "checks" else family.classes


def page(found: Mapping[Message, Family]) -> str:
    """Return docs/errors.md with the sections of all codes as they are now."""
    text = PAGE.read_text()
    for kind in _KINDS:
        begin = BEGIN.format(kind)
        before, _, rest = text.partition(begin)
        if not rest:
            raise SystemExit(f"docs/errors.md has no {begin}")
        text = before + begin + "\n" + "\n".join(_sections(kind, found)) + "\n" + END + rest.partition(END)[2]
    return text


def _sections(kind: str, found: Mapping[Message, Family]) -> Iterator[str]:
    own = [one for one in families().values() if section_of(one) == kind]
    if len(own) > 1:
        yield "| code | what has happened |"
        yield "| --- | --- |"
        yield from (f"| [{one.code}](#{one.code.lower()}) | {one.title} |" for one in own)
        yield ""
    for one in own:
        yield from _section(one, [message.text for message, family in found.items() if family is one])


def section_of(family: Family) -> str:
    """Return the class in whose section a family is."""
    return family.classes[0] if family.classes[0] in _KINDS else ROOT


def _section(family: Family, texts: Sequence[str]) -> Iterator[str]:
    others = [kind for kind in family.classes[1:] if kind in _KINDS]
    yield f"### {family.code}"
    yield ""
    also = f" (also of {', '.join(f'[{kind}](#{kind.lower()})' for kind in others)})" if others else ""
    yield f"**{family.title}**{also}"
    yield ""
    yield f"Cause: {family.cause}"
    yield ""
    yield f"Cure: {family.cure}"
    yield ""
    said = sorted({_shown(text) for text in texts if pieces_of(text)})
    said += [f"... {_shown(piece.replace('*', GAP))} ..." for piece in family.foreign if not piece.startswith("^")]
    if said:
        yield f"<details><summary>{len(said)} message{'s' * (len(said) != 1)}</summary>"
        yield ""
        yield from (f"- {_code(text)}" for text in said)
        yield ""
        yield "</details>"
        yield ""


def _shown(text: str) -> str:
    """Return a message in one line, with dots for what differs."""
    return re.sub(r"\s+", " ", re.sub(r"(\{\})+", "...", text)).strip()


def _code(text: str) -> str:
    """Return a text as code of Markdown, whatever backticks it has."""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " * text.startswith("`")
    return f"{fence}{pad}{text}{' ' * text.endswith('`')}{fence}"


if __name__ == "__main__":
    messages = given()
    INDEX.write_text(index(messages))
    PAGE.write_text(page(messages))
