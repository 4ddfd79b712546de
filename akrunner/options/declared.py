"""What is said of an option, and of a verb."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Any, Mapping, Tuple

#: verbs that run a script
SCRIPTS = ("run", "train", "stream")


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        name: its keyword.
        type: its annotation, as it is written in a signature.
        group: the heading it stands under in the reference.
        text: what it does: values, units, what None means.
        default: what it is when nobody gives it.
        verbs: the functions that take it.
        required: those of them that do not go without.
        also: what is true in one verb only, after the text.
        instead: its text in a verb where it means something else.
        defaults: its default in a verb where it is another one.
        positional: may be given without its name.
        private: is left out of the `repr` of a job's arguments, as it may hold secrets.
        apart: reaches the verb's function beside `Arguments`, since only that verb knows what to do with it.
        help: its line on the command line; "": the command does not have it.
        helps: its line for a command where it is another one.
        flags: its names there, if they are not `--name`.
        often: most people need it: short help shows it.
        environment: a variable `AKRUNNER_<NAME>` may give the command its default, as it is a matter of the machine or the person, not of
            the job.
        inner: its annotation in `Arguments`, where akrunner itself may give more than a person, or the type is not known there.
    """

    name: str
    type: str
    group: str
    text: str
    default: Any = None
    verbs: Tuple[str, ...] = SCRIPTS
    required: Tuple[str, ...] = ()
    also: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    positional: bool = False
    private: bool = False
    apart: bool = False
    inner: str = ""
    help: str = ""
    helps: Mapping[str, str] = field(default_factory=dict)
    flags: Tuple[str, ...] = ()
    often: bool = False
    environment: bool = False

    @property
    def words(self) -> Tuple[str, ...]:
        """How it is called on the command line; none: it stands there without a name, or is not there."""
        if self.flags or not self.help or self.positional:
            return self.flags
        return ("--" + self.name.replace("_", "-"),)

    @property
    def variable(self) -> str:
        """The environment variable that may give its default; "": there is none."""
        return f"AKRUNNER_{self.name.upper()}" if self.environment else ""

    @property
    def choices(self) -> Tuple[str, ...]:
        """The words it is one of; none: it may be any."""
        found = re.search(r"Literal\[(.*?)\]", self.type)
        return tuple(ast.literal_eval(f"({found[1]},)")) if found else ()

    def default_in(self, verb: str) -> Any:
        """What it is in a verb when nobody gives it."""
        return self.defaults.get(verb, self.default)

    def text_in(self, verb: str) -> str:
        """What it does in a verb."""
        return " ".join([self.instead.get(verb, self.text), *([self.also[verb]] if verb in self.also else [])])


@dataclass(frozen=True)
class Verb:
    """A public function, or class, that takes options.

    Attributes:
        name: its name.
        returns: its return annotation.
        does: what it calls.
        text: its docstring above `Args:`.
        closing: its docstring below them.
        arguments: the class that carries its options.
        home: the file it is in.
        of_class: it is the `__init__` of the class.
    """

    name: str
    returns: str
    does: str
    text: str
    closing: str
    arguments: str = "Arguments"
    home: str = "akrunner/verbs.py"
    of_class: bool = False
