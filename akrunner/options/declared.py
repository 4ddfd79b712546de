"""What is said of an option, and of the functions and commands that take it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: verbs that run a script
SCRIPTS = ("run", "train", "stream")


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        name: its keyword.
        type: its annotation, as it is written in a signature.
        group: the heading it stands under in the reference.
        text: what it does: values, units, what None means; "" where it is of commands only, whose `help` says it.
        default: what it is when nobody gives it.
        verbs: the functions that take it.
        required: those of them that do not go without.
        also: what is true in one verb only, after the text.
        instead: its text in a verb where it means something else.
        defaults: its default in a verb where it is another one.
        private: is left out of the `repr` of a job's arguments, as it may hold secrets.
        rows: says where rows come from and go to, and how they are read and written: a program of PyFlink has Tables for that.
        types: its annotation in a verb where it is another one.
        apart: reaches the verb's function beside `Arguments`, since only that verb knows what to do with it.
        inner: its annotation in `Arguments`, where akrunner itself may give more than a person, or the type is not known there.
        commands: the commands that have it although none of their functions takes it: it is the command's own business.
        help: its line on the command line; "": commands do not have it.
        helps: its line in a command where it is another one; "": that command does not have it.
        flags: its names there, if they are not `--name`.
        flagged: its names in a command where they are others.
        stands: commands in which it stands without a name.
        needed: commands that do not go without it, also where their functions do.
        many: what stands behind each on the command line, where it may be given several times; "": it may not.
        manys: the same in a command where it is otherwise.
        often: most people need it: short help shows it; or the commands whose short help does.
        hidden: no help shows it.
        environment: a variable `AKRUNNER_<NAME>` may give the command its default, as it is a matter of the machine or the person, not of
            the job.
        least: of a number, the least it may be.
        above: of a number, what it has to be more than.
        most: of a number, the most it may be.
        needs: verb, or command -> options of which one has to be given, too: without it this one means nothing there.
        unheeded: commands whose default that variable does not give, as something that is nearer to the job says it.
    """

    name: str
    type: str
    group: str
    text: str
    default: Any = None
    verbs: tuple[str, ...] = SCRIPTS
    required: tuple[str, ...] = ()
    also: Mapping[str, str] = field(default_factory=dict)
    instead: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    private: bool = False
    rows: bool = False
    types: Mapping[str, str] = field(default_factory=dict)
    apart: bool = False
    inner: str = ""
    commands: tuple[str, ...] = ()
    help: str = ""
    helps: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    flagged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stands: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    many: str = ""
    manys: Mapping[str, str] = field(default_factory=dict)
    often: bool | tuple[str, ...] = False
    hidden: bool = False
    environment: bool = False
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unheeded: tuple[str, ...] = ()
    least: int | None = None
    above: int | None = None
    most: int | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """How it is called on the command line, but for commands that have other words; none: it stands there without a name, or is not there."""
        if self.flags or not (self.help or any(self.helps.values())):
            return self.flags
        return () if self.stands else (f"--{self.name.replace('_', '-')}",)

    @property
    def variable(self) -> str:
        """The environment variable that may give its default; "": there is none."""
        return f"AKRUNNER_{self.name.upper()}" if self.environment else ""

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it is one of; none: it may be any."""
        return self.choices_in("")

    def choices_in(self, verb: str) -> tuple[str, ...]:
        """The words it is one of in a verb."""
        found = re.search(r"Literal\[(.*?)\]", self.type_in(verb))
        return tuple(ast.literal_eval(f"({found[1]},)")) if found else ()

    def default_in(self, verb: str) -> Any:
        """What it is in a verb when nobody gives it."""
        return self.defaults.get(verb, self.default)

    def required_in(self, verb: Verb) -> bool:
        """Whether a verb does not go without it."""
        return verb.name in self.required or verb.takes in self.required

    def type_in(self, verb: str) -> str:
        """Its annotation in a verb."""
        return self.types.get(verb, self.type)

    def text_in(self, verb: str) -> str:
        """What it does in a verb; a plan says of a prediction's options what the prediction does."""
        verb = verb.removeprefix("plan_")
        return " ".join([self.instead.get(verb, self.text), *([self.also[verb]] if verb in self.also else [])])

    def help_in(self, command: str) -> str:
        """Its line in a command."""
        return self.helps.get(command, self.help)

    def words_in(self, command: str) -> tuple[str, ...]:
        """How it is called in a command that has it; none: it stands there without a name."""
        if command in self.stands:
            return ()
        return self.flagged.get(command) or self.flags or (f"--{self.name.replace('_', '-')}",)

    def many_in(self, command: str) -> str:
        """What stands behind each in a command; "": it may be given once."""
        return self.manys.get(command, self.many)

    def often_in(self, command: str) -> bool:
        """Whether the short help of a command shows it."""
        return self.often if isinstance(self.often, bool) else command in self.often

    def variable_in(self, command: str) -> str | None:
        """The environment variable that may give its default in a command."""
        return self.variable or None if command not in self.unheeded else None


@dataclass(frozen=True)
class Verb:
    """A public function, or class, that takes options.

    Attributes:
        name: its name.
        returns: its return annotation.
        does: what it calls.
        text: its docstring above `Args:`.
        closing: its docstring below them.
        positional: the options that may be given without their names, in their order.
        arguments: the class that carries its options.
        home: the file it is in.
        of_class: it is the `__init__` of the class.
        takes: the verb whose options it has, but for those that say where rows are, since it is a function for programs of PyFlink; "":
            it has its own.
        leaves: of those, what means nothing there.
        apart: options that reach what it calls beside `Arguments`, as they do in no other verb.
    """

    name: str
    returns: str
    does: str
    text: str
    closing: str
    positional: tuple[str, ...] = ("script", "source")
    arguments: str = "Arguments"
    home: str = "akrunner/verbs.py"
    of_class: bool = False
    takes: str = ""
    leaves: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()

    @property
    def function(self) -> str:
        """Its name in the module it is in."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Command:
    """A command of `akrunner` whose options come from the table.

    Attributes:
        name: as it is typed.
        verbs: the functions whose options it takes.
        is_long: its `--help` shows what most people need, and `--help-all` all of them, in groups.
    """

    name: str
    verbs: tuple[str, ...]
    is_long: bool = False
