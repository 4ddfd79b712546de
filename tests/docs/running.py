"""A page's blocks, run in a directory: commands by the real `akrunner`, programs by Python, each in a process of its own."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import hosts
from tests.docs.pages import Block

#: seconds: none takes half of it
_PATIENCE = 120.0
#: what only a shell understands
_SHELL = set("|&;<>()$`*?")
#: before a program: TensorFlow writes programs to the temp directory, and Python would write what it makes of them beside. As a variable, jobs would
#: have it too, and take no warm worker
_NO_BYTECODE = "import sys; sys.dont_write_bytecode = True\n"
AKRUNNER = [sys.executable, "-m", "akrunner"]


class Runner:
    """Attributes: folder: where they run; said: all that they have printed; instead: what the test has in place of names of the page."""

    def __init__(self, folder: Path, before: str = "", ahead: Mapping[str, str] = {}, instead: Mapping[str, str] = {}) -> None:
        self.folder, self.said = folder, ""
        self._before, self._ahead, self._instead = before, ahead, instead
        self._tools: Path | None = None
        self._exported: dict[str, str] = {}

    def write(self, block: Block) -> None:
        name = block.told["file"]
        (self.folder / name).write_text(self._ahead.get(name, "") + self._text(block))

    def run(self, block: Block) -> None:
        if block.language == "sh":
            self._shell(block)
        else:
            self.program(self._text(block), block.place, block.told.get("ends", "0"))

    def program(self, text: str, place: str, ends: str = "0") -> None:
        file = self.folder / f"block-{place.rpartition(':')[2]}.py"
        file.write_text(_NO_BYTECODE + self._before + text)
        self._one([sys.executable, str(file)], place, ends, self.folder)

    def _text(self, block: Block) -> str:
        text = block.code
        for name, other in self._instead.items():
            text = text.replace(name, other)
        return text

    def _shell(self, block: Block) -> None:
        lines, ends, where = commands(self._text(block)), block.told.get("ends", "0"), self.folder
        if not all(simple(line) for line in lines):
            return self._one(["bash", "-euo", "pipefail", "-c", self._text(block)], block.place, ends, where)
        for line in lines:
            name, *words = shlex.split(line, comments=True)
            if name == "cd":
                where = where / words[0]
            elif name == "mkdir":
                (where / words[-1]).mkdir(parents=True)
            elif name == "export":
                # for the blocks behind it, too: a person has one terminal
                variable, _, value = words[0].partition("=")
                self._exported[variable] = value
            else:
                self._one([*AKRUNNER, *words], f"{block.place}: {line}", ends, where)

    def _one(self, words: Sequence[str], place: str, ends: str, where: Path) -> None:
        if ends == "Ctrl-C":
            return self._interrupted(words, place, where)
        environ = {**os.environ, **self._exported}
        options: dict[str, Any] = dict(capture_output=True, text=True, timeout=_PATIENCE, cwd=where, stdin=subprocess.DEVNULL)
        if words[0] == sys.executable:
            done = hosts.run(words, env=environ, **options)
        else:
            environ["PATH"] = f"{self._path()}{os.pathsep}{environ['PATH']}"
            done = subprocess.run(words, env=environ, **options)
        self.said += done.stdout + done.stderr
        assert str(done.returncode) in ends.split(" or "), (
            f"{place}\n\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        )

    def _interrupted(self, words: Sequence[str], place: str, where: Path) -> None:
        with hosts.Popen(words, stdout=hosts.PIPE, stderr=hosts.PIPE, stdin=hosts.DEVNULL, text=True, cwd=where) as process:
            came = select.select([process.stdout], [], [], _PATIENCE)[0]
            first = process.stdout.readline() if came else ""
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=_PATIENCE)
        self.said += first + out + err
        assert first and process.returncode in (0, 130), f"{place}\n\nexit code {process.returncode}\n{first}{out}\n{err}"

    def _path(self) -> Path:
        """A directory with `akrunner` and `python` in it, for shells."""
        if self._tools is None:
            self._tools = self.folder.with_name("tools")
            self._tools.mkdir()
            for name, line in (("akrunner", AKRUNNER), ("python", [sys.executable, "-B"])):
                # with the path of other jobs, which take warm workers of the same
                text = f'#!/bin/sh\nPATH={shlex.quote(os.environ["PATH"])} exec {shlex.join(line)} "$@"\n'
                (self._tools / name).write_text(text)
                (self._tools / name).chmod(0o755)
        return self._tools


def commands(text: str) -> list[str]:
    """Those of a block of shell, each with the lines it goes on in."""
    found: list[str] = []
    held = ""
    for line in text.splitlines():
        held += line
        if held.endswith("\\"):
            held = held[:-1]
            continue
        try:
            words = shlex.split(held, comments=True)
        except ValueError:  # a quote that is open
            held += "\n"
            continue
        if words:
            found.append(held)
        held = ""
    assert not held, f"it has no end: {held}"
    return found


def simple(command: str) -> bool:
    """Whether it is akrunner's, or one of three others, and no shell is needed to read it."""
    words = shlex.split(command, comments=True)
    if words[0] not in ("akrunner", "cd", "mkdir", "export"):
        return False
    lexer = shlex.shlex(command, posix=False, punctuation_chars="".join(_SHELL))
    lexer.whitespace_split = True
    return not any(not word.startswith(("'", '"')) and set(word) & _SHELL for word in lexer)
