"""The families of messages: each message of the source has one, and what is written from them is current."""

from __future__ import annotations

import ast
import errno
import importlib.util
import os
import re
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from akrunner.cli.main import load
from akrunner.codes import catalogue, matching
from akrunner.codes.catalogue import families, family
from tests.trees import nodes, uncollected

ROOT = Path(__file__).parents[3]
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")


def generator() -> Any:
    spec = importlib.util.spec_from_file_location("gen_codes", ROOT / "scripts" / "gen_codes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Source(NamedTuple):
    """The source, which is parsed once. Attributes: found: each message with its family; texts: what stands between the gaps of each text."""

    found: dict[Any, catalogue.Family]
    texts: set[str]


@pytest.fixture(scope="module")
def source() -> Source:
    module, texts = generator(), set()
    trees = module.trees

    def passing() -> Iterator[tuple[str, ast.Module]]:
        for name, tree in trees():
            texts.update(literals(tree))
            yield name, tree

    module.trees = passing
    with uncollected():
        return Source(module.given(), texts)


def test_every_message_of_the_source_has_one_code(source: Source) -> None:
    """That of its own words, also without the place that says it; no family is without a message; and the files are those of the source."""
    module, found = generator(), source.found
    assert len(found) > 1500
    wrong = []
    for message, own in found.items():
        kind = own.classes[0] if message.kind == module.ANY else message.kind
        if sum(map(str.isalpha, "".join(matching.pieces_of(message.text)))) >= matching.LEAST:
            told = matching.code_of([kind], message.text.replace(matching.GAP, "x"))
            wrong += [(own.code, told, message)] * (told != own.code)
    assert wrong == []
    unused = {one.code for one in families().values()} - {one.code for one in found.values()}
    assert [one.code for one in map(families().__getitem__, unused) if not one.is_rest and not one.foreign] == []
    assert module.INDEX.read_text() == module.index(found), "run scripts/gen-codes"
    assert module.PAGE.read_text() == module.page(found), "run scripts/gen-codes"


def literals(tree: ast.Module) -> set[str]:
    """Return what stands between the gaps of each text of a module, docstrings apart."""
    every = nodes(tree)
    docs = {id(node.value) for node in every if isinstance(node, ast.Expr)}
    return {
        node.value for node in every if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    }


class Said:
    """Texts, as one in which there is a character that none of them has before and behind each."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = frozenset(texts)
        self.all = "\0" + "\0".join(text for text in self.texts if "\0" not in text) + "\0"

    def has(self, piece: str) -> bool:
        """Whether a piece stands in one of the texts, or is the end of one, at most one whole text, and the beginning of another."""
        if piece in self.all:
            return True
        ends = [at for at in range(4, len(piece)) if f"{piece[:at]}\0" in self.all]
        begins = [at for at in range(1, len(piece) - 3) if f"\0{piece[at:]}" in self.all]
        return any(end == begin or (end < begin and piece[end:begin] in self.texts) for end in ends for begin in begins)


def test_pieces_that_are_put_together_while_a_job_runs_are_said_by_somebody(source: Source) -> None:
    # the system's words are among them
    said = Said([*source.texts, *(one.name for one in signal.Signals), *map(os.strerror, errno.errorcode)])
    pieces = [
        (one.code, part) for one in families().values() for piece in one.foreign for part in piece.removeprefix("^").split("*")
    ]
    assert len(pieces) > 50 and [piece for piece in pieces if not said.has(piece[1])] == []
    assert not any(map(said.has, ("SIGKILX (exit code", "ended before it told that it had started", "stdout was shut")))


def test_each_class_has_a_code_for_whatever_else_it_says() -> None:
    rest = [kind for one in families().values() if one.is_rest for kind in one.classes]
    assert sorted(rest) == sorted({*generator()._KINDS, "UsageError", "InternalError"})


def test_each_family_says_cause_and_cure() -> None:
    for one in families().values():
        assert re.fullmatch(r"AK\d{3}", one.code) and one.title and not one.title.endswith(".")
        assert one.cause.endswith(".") and len(one.cause.split()) > 5, one.code
        assert one.cure.rstrip(')`"').endswith((".", "?")) or one.cure.endswith("."), one.code
    titles = [one.title for one in families().values()]
    causes = [one.cause for one in families().values()]
    assert len(set(titles)) == len(titles) and len(set(causes)) == len(causes)


#: flags in the catalogue that are none of akrunner's: stand-ins, one of pip, and one of a user's program
OTHERS = {"--option", "--no-x", "--upgrade", "--epochs"}


def flags_of(command: Any) -> set[str]:
    """Return the flags of a command, and of those in it."""
    own = {word for one in command.params for word in (*one.opts, *one.secondary_opts)} | {"--help", "--help-all"}
    return own.union(*map(flags_of, getattr(command, "commands", {}).values()))


def test_flags_that_are_named_exist() -> None:
    everything = load([])
    there = flags_of(everything) | OTHERS
    wrong = []
    for one in families().values():
        for text in (one.title, one.cause, one.cure):
            wrong += [(one.code, flag) for flag in FLAG.findall(text) if flag not in there]
            # in a command line those of the command; behind -- are those of a script, and `rerun` takes those of what it repeats
            for name, words in re.findall(r"`akrunner ([a-z]+)((?: [^`]*)?)`", text):
                own = flags_of(everything.commands[name]) | OTHERS | (there if name == "rerun" else set())
                wrong += [(one.code, name, flag) for flag in FLAG.findall(words.partition(" -- ")[0]) if flag not in own]
    assert wrong == []


@pytest.mark.parametrize("word", ["AK301", "ak301", "301", "[AK301]", " AK-301 "])
def test_a_code_as_people_type_it(word: str) -> None:
    found = family(word)
    assert found is not None and found.code == "AK301" and found.classes == ("SourceError",)


def test_no_family_has_another_word() -> None:
    assert family("AK999") is None and family("SourceError") is None and family("") is None
    with pytest.raises(ValueError, match="AK999 has clas"):
        catalogue._family("AK999", {"clas": "x"})


def test_messages_that_nobody_claims_or_two_do(monkeypatch: pytest.MonkeyPatch) -> None:
    module = generator()
    message = module.Message("SourceError", "nowhere", "these words are in no message")
    with pytest.raises(LookupError, match="no family claims"):
        module.family_of(message)
    two = {code: catalogue.Family(code, ("SourceError",), "t", "c", "c", says=("these words",)) for code in ("AK001", "AK002")}
    monkeypatch.setattr(module, "families", lambda: two)
    with pytest.raises(LookupError, match=r"\['AK001', 'AK002'\] both claim"):
        module.family_of(message)
    monkeypatch.setattr(module, "gathered", lambda: [message])
    with pytest.raises(SystemExit, match="both claim"):
        module.given()
