"""The fenced blocks of the documentation, and what each is to a test: a program, commands, a file that they name, or neither.

What a block is stands in the page itself, in its language and in a comment above it, which nobody sees who reads the page:

::

    ```python                             a program; of one that has two columns (`# before   # after`) the right one
    ```sh                                 commands
    ```text                               what something prints, or a drawing
    <!-- file: train.py -->               it is written under this name, for the programs and commands of its section
    <!-- ends: 130 -->                    the exit code, where it is not 0; `Ctrl-C`: it goes on until it is interrupted
    <!-- not run: needs two machines -->  nobody can run it in a test, and why
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LANGUAGES = ("python", "sh", "toml", "text")
DIRECTIVES = ("file", "ends", "not run")
_FENCE = re.compile(r"^( *)```(.*)$")
_COMMENT = re.compile(r"^ *<!-- (.+) -->$")
_COLUMNS = re.compile(r"# \w[\w ]*? {2,}(?=# (after|akrunner)$)")


class Block(NamedTuple):
    """Attributes: page: its path from the root; line: of its fence; section: the number of the heading it stands below; told: its comment's directives."""

    page: str
    line: int
    section: int
    language: str
    text: str
    told: dict[str, str]

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def code(self) -> str:
        """Its text; of two columns the right one."""
        first, _, _ = self.text.partition("\n")
        columns = _COLUMNS.match(first)
        if columns is None:
            return self.text
        return "".join(f"{line[columns.end() :]}\n" for line in self.text.splitlines())


def pages() -> list[str]:
    """All that have to run. (Those of `docs/operators` are generated, and their examples have tests of their own.)"""
    found = (
        path
        for folder in ("docs", "docs/tutorials", "docs/moving", "docs/decisions")
        for path in sorted((ROOT / folder).glob("*.md"))
    )
    return ["README.md", "CONTRIBUTING.md", *(str(path.relative_to(ROOT)) for path in found)]


def blocks(page: str) -> list[Block]:
    return parse(page, (ROOT / page).read_text(encoding="utf-8"))


def parse(page: str, text: str) -> list[Block]:
    found: list[Block] = []
    section, begun, indent = 0, 0, ""
    language, inside, told = "", [], {}  # type: str, List[str], Dict[str, str]
    for number, line in enumerate(text.splitlines(), start=1):
        fence, comment = _FENCE.match(line), _COMMENT.match(line)
        if begun and fence and not fence[2]:
            found.append(Block(page, begun, section, language, "\n".join([*inside, ""]), told))
            begun, told = 0, {}
        elif begun:
            inside.append(line[len(indent) :] if line.startswith(indent) else line)
        elif fence:
            begun, indent, language, inside = number, fence[1], fence[2], []
        elif comment:
            told = _directives(f"{page}:{number}", comment[1])
        elif line.strip():
            told = {}
            section += line.startswith("#")
    assert not begun, f"{page}:{begun}: the block has no end"
    return found


def _directives(place: str, comment: str) -> dict[str, str]:
    reason = comment.partition("not run: ")[2] if comment.startswith("not run: ") else ""
    if reason:
        return {"not run": reason}
    told = {}
    for one in comment.split("; "):
        name, colon, value = one.partition(": ")
        if not colon or name not in DIRECTIVES:
            assert not told and name.split(":")[0] not in DIRECTIVES, f"{place}: what is {one!r}?"
            return {}
        told[name] = value.strip()
    return told
