"""What programs that read a pipe print: `tr`, `cut`, `head`, `tail`, `wc`, `sed`, `awk`, `sort`, in their most common forms.

::

    echo a,b | tr , ' '            a b
    echo 20200101 | cut -c1-4      2020; also -d, -f2
    ... | awk '{print $2}', sed 's/a/b/g', head -1, tail -n 2, wc -l, sort -u
"""

from __future__ import annotations

import re
from collections.abc import Callable

_CLASSES = {"[:upper:]": "A-Z", "[:lower:]": "a-z", "[:digit:]": "0-9", "[:space:]": " \t\n\v\f\r"}


def printed(name: str, words: list[str], text: str | None) -> str | None:
    """Return what a program prints, None if it is unknown.

    Args:
        name: the program's name.
        words: the words after the name.
        text: what the program reads, None if it is unknown.
    """
    reads = _FILTERS.get(name)
    if reads is None or text is None or not text.isascii() or "\0" in text or any("\0" in one for one in words):
        return None
    return reads(words, text)


def _lines(text: str) -> list[str]:
    found = text.split("\n")
    return found[:-1] if found[-1] == "" else found


def _joined(lines: list[str]) -> str:
    return "".join(f"{one}\n" for one in lines)


def _tr(words: list[str], text: str) -> str | None:
    # other options, which may stand anywhere, are not followed
    kind = words[0] if words and words[0] in ("-d", "-s") else ""
    if any(one.startswith("-") and len(one) > 1 for one in words[1 if kind else 0 :]):
        return None
    sets = [_characters(one) for one in words[1 if kind else 0 :]]
    known = [one for one in sets if one]
    if len(known) != len(sets) or len(sets) != (1 if kind else 2):
        return None
    if kind == "-d":
        return "".join(char for char in text if char not in known[0])
    if kind == "-s":
        return re.sub(rf"([{re.escape(known[0])}])\1+", r"\1", text)
    put = known[1] + known[1][-1] * (len(known[0]) - len(known[1]))
    table: dict[str, str] = {}
    for char, other in zip(known[0], put):
        table[char] = other
    return "".join(table.get(char, char) for char in text)


def _characters(text: str) -> str | None:
    """Return the characters of a set in the notation of `tr`, such as `a-z`; None if it has something else."""
    for name, put in _CLASSES.items():
        text = text.replace(name, put)
    text = re.sub(r"\\([nt\\])", lambda match: {"n": "\n", "t": "\t"}.get(match[1], "\0"), text)
    text = re.sub(
        r"([a-z])-([a-z])|([A-Z])-([A-Z])|(\d)-(\d)",
        lambda match: "".join(chr(one) for one in range(ord(match[0][0]), ord(match[0][2]) + 1)),
        text,
    )
    return None if re.search(r"[\[\]\\\0]|.-.", text, re.DOTALL) else text


def _cut(words: list[str], text: str) -> str | None:
    given = " ".join(words) if len(words) == 1 or any(one in ("-d", "-f", "-c") for one in words) else "\0".join(words)
    match = re.fullmatch(r"-c ?(\d+)(?:(-)(\d*))?", given)
    if match is not None:
        first = int(match[1])
        last = None if match[2] and not match[3] else int(match[3] or first)
        return None if not first or (last or first) < first else _joined([one[first - 1 : last] for one in _lines(text)])
    match = re.fullmatch(r"-d[ \0]?(\S| (?=[ \0]-f))[ \0]-f ?(\d)|-f ?(\d)[ \0]-d[ \0]?(.)", given)
    if match is None:
        return None
    between, number = match[1] or match[4], int(match[2] or match[3])
    if not number:
        return None
    return _joined([one if between not in one else (one.split(between) + [""] * number)[number - 1] for one in _lines(text)])


def _head(words: list[str], text: str) -> str | None:
    number = _count(words)
    return None if number is None else "".join(re.findall(r"[^\n]*\n|[^\n]+\Z", text)[:number])


def _tail(words: list[str], text: str) -> str | None:
    number = _count(words)
    return None if number is None else "".join(re.findall(r"[^\n]*\n|[^\n]+\Z", text)[-number:] if number else "")


def _count(words: list[str]) -> int | None:
    match = re.fullmatch(r"(?:-n ?)?-?(\d{1,6})", " ".join(words)) if words and words[0].startswith("-") else None
    if match is None or re.fullmatch(r"-n ?-\d+", " ".join(words)):
        return None if words else 10
    return int(match[1])


def _wc(words: list[str], text: str) -> str | None:
    counts = {"-l": text.count("\n"), "-w": len(text.split()), "-c": len(text)}
    return f"{counts[words[0]]}\n" if len(words) == 1 and words[0] in counts else None


def _sed(words: list[str], text: str) -> str | None:
    """Return what `sed s/a/b/` prints; None unless the texts mean the same in every kind of regular expression."""
    words = words[1:] if words[:1] == ["-e"] else words
    match = (
        re.fullmatch(r"s([/|#,@])(\^?)([\w :=,/@%-]*)(\$?)\1([\w :=,/@%.*-]*)\1(g?)", words[0], re.ASCII)
        if len(words) == 1
        else None
    )
    if match is None or match[1] in match[3] + match[5] or not match[2] + match[3] + match[4]:
        return None
    pattern = ("^" if match[2] else "") + re.escape(match[3]) + (r"\Z" if match[4] else "")
    return (
        _joined([re.sub(pattern, lambda _: match[5], one, count=0 if match[6] else 1) for one in _lines(text)])
        if text.endswith("\n")
        else None
    )


def _awk(words: list[str], text: str) -> str | None:
    """Return what `awk '{print $2}'` prints, also with `-F` and one character; None for any other program."""
    between = None
    if words and re.fullmatch(r"-F[^\w\s\\|.*?+^$()\[\]{}]|-F[:,;|]", words[0]):
        between, words = words[0][2:], words[1:]
    elif len(words) > 1 and words[0] == "-F" and re.fullmatch(r"[:,;|/=#@%_-]", words[1]):
        between, words = words[1], words[2:]
    match = re.fullmatch(r"\s*\{\s*print\s+\$(\d|NF)\s*;?\s*\}\s*", words[0]) if len(words) == 1 else None
    if match is None:
        return None
    found: list[str] = []
    for line in _lines(text):
        parts = (
            (re.split(r"[ \t]+", line.strip(" \t")) if line.strip(" \t") else [])
            if between is None
            else line.split(between)
            if line
            else []
        )
        number = len(parts) if match[1] == "NF" else int(match[1])
        found.append(line if not number else parts[number - 1] if number <= len(parts) else "")
    return _joined(found)


def _sort(words: list[str], text: str) -> str | None:
    lines = _lines(text)
    # the order of any other texts depends on the locale
    if words not in ([], ["-u"], ["-r"], ["-n"]) or not all(
        re.fullmatch("[0-9]+" if "-n" in words else "[0-9a-z]*", one) for one in lines
    ):
        return None
    if words == ["-n"]:
        return _joined(sorted(lines, key=lambda one: (int(one), one)))
    return _joined(sorted(set(lines) if words == ["-u"] else lines, reverse=words == ["-r"]))


def _uniq(words: list[str], text: str) -> str | None:
    lines = _lines(text)
    return None if words else _joined([one for at, one in enumerate(lines) if not at or one != lines[at - 1]])


_FILTERS: dict[str, Callable[[list[str], str], str | None]] = {
    "tr": _tr, "cut": _cut, "head": _head, "tail": _tail, "wc": _wc, "sed": _sed, "awk": _awk, "sort": _sort, "uniq": _uniq,
}  # fmt: skip
