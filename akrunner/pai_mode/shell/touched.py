"""The files that the programs of a shell script may change.

No program is run, so a file on the disk may not be what it would be after the program.

::

    sed -i s/a/b/ a.sql          a.sql
    rm -rf logs, cp -r n/. t     every file below these directories
    rm -f *.sql                  every file, because the names are unknown
    xargs, find -delete, unzip   every file
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from akrunner.pai_mode.shell.flow import MARK

#: programs that change no file, whatever their words are, or only a file they make
_READERS = frozenset(
    (
        "echo printf date sleep wait ls pwd cat grep egrep fgrep diff cmp head tail wc uniq cut tr ps du df stat file md5sum "
        "sha1sum sha256sum basename dirname which type hash mkdir chmod chown kill whoami id uname hostname true false awk "
        "mail logger ping nc pgrep mountpoint expr seq clear"
    ).split()
)
#: programs whose words do not say which files they change
_SWEEPING = frozenset("xargs parallel unzip git svn make patch eval".split())
#: programs that may change files below a directory that is their word, or that they name themselves
_MOVERS = frozenset("cp mv rm rsync scp tar find install wget curl ossutil ossutil64 osscmd hadoop hdfs".split())
_SHELLS = frozenset("sh bash dash zsh ksh".split())
#: programs that run another program, given as a word, in a file, or on stdin
_RUNNERS = re.compile(
    r"(python|perl|ruby|php|node|lua|Rscript|sh|bash|dash|zsh|ksh|source|\.|sqlite|mysql|psql|hive|spark)[-a-z0-9.]*"
)
#: of these, those whose first word is a program, which they read and leave as it is
_INTERPRETERS = re.compile(r"(python|perl|ruby|php|node|lua)[0-9.]*|Rscript|sh|bash|dash|zsh|ksh|source|\.")
#: of these, the first word is a database, and the program comes from stdin
_CLIENTS = ("sqlite", "mysql", "psql")
#: options after which the program is not the next word: it comes from stdin, or is a module
_ELSEWHERE = frozenset(("-", "-s", "-m"))
#: how many characters of a program's text are read
_MOST_TEXT = 1 << 20


class Touched:
    """Keeps note of the files that programs may have changed.

    Args:
        path: returns the absolute path of a file as the script names it, None if it is unknown.
    """

    def __init__(self, path: Callable[[str], str | None]) -> None:
        self._path = path
        self._names: set[str] = set()
        self._everything = False
        #: words of programs that change files, and texts of programs that they run: a file named in one may have been changed
        self._texts: list[str] = []
        #: directories below which every file may have been changed
        self._folders: set[str] = set()
        #: files that the script itself has written anew since then
        self._fresh: set[str] = set()
        #: files to which everything is printed from some line on (`exec >`)
        self._open: set[str] = set()

    def __contains__(self, full: str) -> bool:
        """Whether a file may hold something else than it does on the disk, or than the script wrote into it last."""
        if full in self._open:
            return True
        if full in self._fresh:
            return False
        named = os.path.basename(full) in self._names or _is_named(full, self._texts)
        return self._everything or named or any(map(_below(full), self._folders))

    def named(self, name: str) -> bool:
        """Whether an earlier program had this name among its words."""
        return name in self._names

    def opened(self, full: str) -> None:
        self._open.add(full)

    def renewed(self, full: str) -> None:
        """Note that the script itself writes a whole file."""
        self._fresh.add(full)

    def by(self, words: Sequence[str], written: dict[str, str | None], ran: bool) -> None:
        """Note the files that a program may change.

        Args:
            words: the program's name and its words.
            written: the files that the script itself has written, and their texts (None if unknown).
            ran: whether programs before this one may have made directories.
        """
        below: set[str] = set()
        before = len(self._texts)
        # asked first, because the program that is run is as the programs before this one have left it
        unknown = self._runs_unknown(words, written)
        given = list(words[1:])
        script = _script(words)
        if not unknown and script is not None and _INTERPRETERS.fullmatch(os.path.basename(words[0])):
            # its text is known, and says what it changes
            given.remove(script)
        names = {os.path.basename(one) for text in given for one in (text, text.rpartition("=")[2]) if one}
        self._names |= names
        self._fresh = {one for one in self._fresh if os.path.basename(one) not in names}
        if not _reads(os.path.basename(words[0]), words[1:]):
            # a file's name may be part of an option, or stand within a program
            self._texts.append(" ".join(one for one in words[1:] if one.startswith("-") or re.search(r"[^\w./=-]", one)))
        if unknown or self._sweeps(os.path.basename(words[0]), words[1:], written, ran, below):
            self._everything = True
            self._fresh.clear()
        self._folders |= below
        texts = self._texts[before:]
        self._fresh = {one for one in self._fresh if not any(map(_below(one), below)) and not _is_named(one, texts)}

    def _runs_unknown(self, words: Sequence[str], written: dict[str, str | None]) -> bool:
        """Whether the program runs another one, whose text is unknown.

        A text that is known is kept: it may name files it changes.
        """
        if _RUNNERS.fullmatch(os.path.basename(words[0])) is None:
            return False
        if _in_words(words):
            return False
        script = _script(words)
        full = self._path(script) if script is not None and MARK not in script else None
        if full is None:
            return words[1:] not in (["--version"], ["-V"])
        text = written.get(full, "")
        if text is None or MARK in text or full in self:
            # the script has written the program, or something has changed it: it is unknown what it does
            return True
        if full not in written:
            if os.path.exists(full) and not os.path.isfile(full):
                # opening a FIFO would wait for its writer
                return True
            try:
                with open(full, encoding="utf-8", errors="replace") as stream:
                    text = stream.read(_MOST_TEXT)
            except OSError:
                if script != words[1] or os.path.exists(full):
                    # the word may be the value of the option before it, or a directory
                    return True
                # the program is not there: it will not run; or it lies elsewhere, and is assumed to name no file
                text = ""
        self._texts.append(text)
        return os.path.basename(words[0]) in _SHELLS and _sweeps_in(text)

    def _sweeps(self, name: str, words: Sequence[str], written: dict[str, str | None], ran: bool, below: set[str]) -> bool:
        """Whether the program may change any file. Args: below: gets the directories below which it may change any file."""
        if name in _SWEEPING or MARK in name or (name in _SHELLS and any(re.match("-[a-z]*c", one) for one in words)):
            return True
        if _hides(name, words):
            return True
        if _reads(name, words):
            return False
        # a directory that an earlier program has made is not on the disk, so rm of it changes nothing there
        deep = name != "rm" and any(re.match(r"-[a-zA-Z]*[rRa]|--(recursive|archive)", one) for one in words)
        for word in words:
            for one in (word, word.rpartition("=")[2]):
                if one.startswith("-") and MARK not in one:
                    continue
                full = self._path(one)
                if MARK in one or full is None:
                    # the name is unknown, or relative to an unknown directory
                    return True
                if one and _is_folder(full, written, deep and ran):
                    below.add(os.path.normpath(full))
        return False


def _in_words(words: Sequence[str]) -> bool:
    """Whether the text of a program that another one runs is one of the words: `python3 -c TEXT`."""
    # -e of a shell is another option: to end at an error
    pattern = "-[a-zA-Z]*c$" if os.path.basename(words[0]) in _SHELLS else "-[a-zA-Z]*[ce]$"
    return any(re.match(pattern, one) for one in words[1:])


def _script(words: Sequence[str]) -> str | None:
    """Return the file of the program that another one runs, `python3 prep.py`; None if there is none, or it is read from elsewhere."""
    name = os.path.basename(words[0])
    if _RUNNERS.fullmatch(name) is None or name.startswith(_CLIENTS) or _in_words(words):
        return None
    at = next((at for at, one in enumerate(words) if at and not one.startswith("-")), len(words))
    return words[at] if at < len(words) and not _ELSEWHERE & set(words[1:at]) else None


def _sweeps_in(text: str) -> bool:
    """Whether a shell script that is run by another may change files that it does not name, as far as its words tell."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    names = {os.path.basename(one) for one in re.split(r"[\s;&|()<>`\"'${}=]+", "\n".join(lines)) if one}
    return any("*" in one or one in _SWEEPING | _MOVERS or _RUNNERS.fullmatch(one) for one in names)


def _is_named(full: str, texts: Sequence[str]) -> bool:
    """Whether a text may name a file. Only the name's ending is looked for: a program may put the rest together from pieces."""
    name = os.path.basename(full)
    ending = os.path.splitext(name)[1] or name
    return any(ending in text for text in texts)


def _below(full: str) -> Callable[[str], bool]:
    place = os.path.normpath(full)
    return lambda folder: place.startswith(folder.rstrip("/") + "/")


def _hides(name: str, words: Sequence[str]) -> bool:
    """Whether a program changes files that are named inside of a word, or in an archive."""
    if name == "tar":
        return bool(words) and re.match("-?[a-zA-Z]*x|--(extract|get)", words[0]) is not None
    if name == "awk":
        return any(re.search(r"[>|]|system", one) for one in words)
    return name == "sed" and any(re.search(r"(?:^|[^A-Za-z])[wW] *[^ ;/]+$", one) for one in words)


def _reads(name: str, words: Sequence[str]) -> bool:
    """Whether a program changes none of the files among its words."""
    plain = [one for one in words if not one.startswith("-")]
    if name == "tar":
        return bool(words) and re.match("-?[a-zA-Z]*c|--create", words[0]) is not None
    if name in ("ossutil", "ossutil64", "osscmd"):
        return plain[-1:] != [] and plain[-1].startswith("oss://")
    if name == "find":
        return not any(re.match("-(delete|exec|ok|fprint|fls)", one) for one in words)
    if name == "sed":
        return not any(re.match("-[a-zA-Z]*i|--in-place", one) for one in words)
    if name == "zip":
        return not any(re.match("-[a-zA-Z]*m", one) for one in words)
    if name == "sort":
        return not any(re.match("-[a-zA-Z]*o|--output", one) for one in words)
    if name in ("hadoop", "hdfs"):
        return not {"-get", "-copyToLocal", "-getmerge", "-moveToLocal"} & set(words)
    return name in _READERS


def _is_folder(full: str, written: dict[str, str | None], made: bool) -> bool:
    """Whether a path is, or may be, a directory. Args: made: whether a program may have made directories."""
    if os.path.isdir(full) or any(one.startswith(f"{full}/") for one in written):
        return True
    return made and not os.path.isfile(full) and full not in written
