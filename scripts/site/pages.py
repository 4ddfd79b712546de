"""What the site makes of a page: the pages stand in `docs` as the hosting service of the repository shows them, and Sphinx gets a little more.

Where a page stands in the navigation is in `NAVIGATION`; a block of code that is a file gets the file's name above it; a block with two columns
(`# before   # after`) becomes two blocks, beside each other if there is room; and a link to what is not in `docs` leads to the repository.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: where links lead that leave the site
SOURCE = "https://github.com/akrunner/akrunner"
#: heading -> its pages, without their endings. A page that is in no part, and in no index of `INSIDE`, is an error of Sphinx
NAVIGATION: Mapping[str, Sequence[str]] = {
    "Tutorials": ("start", "tutorials/tabular", "tutorials/images", "tutorials/ps", "tutorials/streaming", "tutorials/nightly", "init"),
    "How to": (
        "scripts", "reading", "tables", "columns", "bad_rows", "databases", "lakehouse", "pack", "outputs", "clusters", "streams", "flink",
        "jobs", "operations", "progress", "notebooks", "runs", "tracking", "doctor", "machine", "warm", "security",
    ),
    "Moving here": ("moving/plain", "moving/ray", "moving/tensorflowonspark", "alink", "pai"),
    "Reference": (
        "options", "commands", "api/jobs", "api/predictions", "api/scripts", "api/results", "api/runs", "api/tools", "api/flink", "api/errors",
        "errors", "types", "operators/README",
    ),
    "Explanation": ("reliability", "benchmarks", "decisions/README", "house", "extending"),
}  # fmt: skip
#: an index -> the pages of its folder stand below it
INSIDE = ("operators/README", "decisions/README")

#: a block of code, with the comment above it that tests read (tests/docs/pages.py)
_BLOCK = re.compile(
    r"^(?P<indent> *)(?:<!-- (?P<told>[^\n]+) -->\n(?P=indent))?```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"\bfile: ([^;]+)")
_COLUMNS = re.compile(r"# (?P<left>\w[\w ]*?) {2,}(?=# (?P<right>after|akrunner)$)")
#: code in a line, or the target of a link
_LINK = re.compile(r"`[^`\n]*`|\]\((?P<target>[^)\s]+)\)")


def made(page: str, text: str) -> str:
    """Return a page as Sphinx gets it. Args: page: its path in `docs`, without its ending; text: its Markdown."""
    parts, at = [], 0
    for block in _BLOCK.finditer(text):
        parts += [_linked(page, text[at : block.start()]), _block(block)]
        at = block.end()
    return "".join([*parts, _linked(page, text[at:]), *_navigation(page)])


def origin(text: str) -> str:
    """Return a hash of all that Sphinx makes a page of before it resolves links. Args: text: as Sphinx gets it."""
    parts = [_sources(Path(__file__).parent), text]
    if re.search(r"^\.\. auto", text, re.MULTILINE):
        parts.append(_sources(ROOT / "akrunner"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@functools.cache
def _sources(folder: Path) -> str:
    """Return a hash of the modules in a directory, and below it."""
    files = {str(path): path.read_bytes() for path in sorted(folder.rglob("*.py"))}
    return hashlib.sha256(repr(files).encode()).hexdigest()


def _linked(page: str, text: str) -> str:
    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if target is None or re.match(r"[a-z]+:|#", target):
            return found[0]
        path, _, anchor = target.partition("#")
        there = (DOCS / page).parent.joinpath(path).resolve()
        if there.is_relative_to(DOCS):
            return found[0]
        kind = "tree" if there.is_dir() else "blob"
        return f"]({SOURCE}/{kind}/main/{there.relative_to(ROOT)}{'#' * bool(anchor)}{anchor})"

    return _LINK.sub(link, text)


def _block(block: re.Match[str]) -> str:
    """Return a block of code, with the name of its file if it has one; two blocks if it has two columns."""
    named = _FILE.search(block["told"] or "")
    name = named[1] if named else ""
    first, _, rest = block["text"].partition("\n")
    columns = _COLUMNS.match(first.strip())
    if columns is None:
        return _code(block["indent"], block["language"], name, block["text"]) if name else block[0]
    lines, width = rest.splitlines(), len(block["indent"]) + columns.end()
    left = _code("", block["language"], columns["left"], "\n".join(line[:width].rstrip() for line in lines).strip("\n") + "\n")
    right = "\n".join(line[width:] for line in lines).strip("\n") + "\n"
    said = f"{columns['right']} ({name})" if name else columns["right"]
    return f"````{{container}} beside\n\n{left}\n\n{_code('', block['language'], said, right)}\n````"


def _code(indent: str, language: str, caption: str, text: str) -> str:
    head = f"{indent}```{{code-block}} {language}\n{indent}:caption: {caption}\n\n"
    return f"{head}{text}{indent}```"


def _navigation(page: str) -> list[str]:
    """Return the lists of the pages that stand below a page."""
    if page == "index":
        return [_toctree(pages, caption) for caption, pages in NAVIGATION.items()]
    if page in INSIDE:
        names = sorted(path.stem for path in (DOCS / page).parent.glob("*.md"))
        return [_toctree([name for name in names if name != "README"])]
    return []


def _toctree(pages: Sequence[str], caption: str = "") -> str:
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n\n```{toctree}\n" + "\n".join([*options, "", *pages]) + "\n```\n"


#: what a docstring has that is no prose: what was typed into Python, to the end of the paragraph; code in a sentence
_TYPED = re.compile(r"(^ *>>> .*(?:\n *\S.*)*|`[^`]+`)", re.MULTILINE)
#: a section in one line
_SHORT = re.compile(r"^( *)(Args|Attributes|Returns|Raises|Yields): (.+)$")


def docstring(lines: Sequence[str]) -> list[str]:
    """Return a docstring as napoleon takes it: sections begin on a line of their own, `x` is code, and nothing else is markup."""
    found: list[str] = []
    for line in _escaped("\n".join(lines)).splitlines():
        short = _SHORT.match(line)
        if short is None:
            found.append(line)
            continue
        # "rows: how many; name: of the file" are two arguments
        entries = [short[3]] if short[2] in ("Returns", "Yields") else re.split(r"; (?=\w+: )", short[3])
        found += ["", f"{short[1]}{short[2]}:", *(f"{short[1]}    {one}" for one in entries)]
    return found


def _escaped(text: str) -> str:
    parts = _TYPED.split(text)
    for at, part in enumerate(parts):
        if part.startswith("`"):
            behind = parts[at + 1][:1] if at + 1 < len(parts) else ""
            parts[at] = f"`{part}`" + ("\\ " if behind.isalnum() else "")
        elif ">>>" not in part:
            parts[at] = re.sub(r"([*|]|(?<=\w)_(?!\w))", r"\\\1", part)
    return "".join(parts)
