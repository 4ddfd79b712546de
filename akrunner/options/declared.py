"""The classes in which options, and the functions and commands that take them, are declared."""

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
        name: its keyword in a function.
        type: its annotation, as it is written in a signature.
        group: its heading in the reference.
        text: what it does: values, units, what None means; "" if only commands have it, as then `help` says what it does.
        default: its value if it is not given.
        verbs: the functions that take it.
        required: the verbs among them that require it.
        also: verb -> a sentence after the text that is true only in this verb.
        instead: verb -> the text, if it means something else in this verb.
        defaults: verb -> the default, if it is another one in this verb.
        private: whether the `repr` of a job's arguments leaves it out, as it may hold secrets.
        rows: whether it says where rows come from or go to, or how they are read or written; functions for PyFlink programs do
            not have such options, as these programs use Tables.
        types: verb -> the annotation, if it is another one in this verb.
        apart: whether it is passed to the verb's function beside `Arguments`, since only this verb knows what to do with it.
        inner: its annotation in `Arguments`, if akrunner itself may give other values than a user, or the type is not known
            there.
        commands: commands that have it although none of their functions takes it: only the command itself uses it.
        help: its line in the help of commands; "": commands do not have it.
        helps: command -> the line, if it is another one in this command; "": this command does not have it.
        flags: its names on the command line, if they are not `--name`.
        flagged: command -> its names, if they are others in this command.
        stands: commands in which it is positional: it is given without a name.
        needed: commands that require it, even if their functions do not.
        many: the word for its value in help, if it can be given several times on the command line; "": it can be given once.
        manys: command -> `many`, if it is another one in this command.
        often: whether most people need it, so that short help shows it; or the commands whose short help shows it.
        hidden: whether no help shows it.
        environment: whether a variable `AKRUNNER_<NAME>` can set the command's default, as the option depends on the machine or
            the user, and not on the job.
        least: the smallest number it can be.
        above: the number that it must be larger than.
        most: the largest number it can be.
        needs: verb, or command -> options of which at least one must be given, too; without them this one means nothing there.
        unheeded: commands in which that variable does not set the default, as something closer to the job says the value.
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
        """Return the option's names on the command line, except in commands with other names.

        Returns: an empty tuple if it is positional there, or if commands do not have it.
        """
        if self.flags or not (self.help or any(self.helps.values())):
            return self.flags
        return () if self.stands else (f"--{self.name.replace('_', '-')}",)

    @property
    def variable(self) -> str:
        """Return the environment variable that can set the option's default, "" if there is none."""
        return f"AKRUNNER_{self.name.upper()}" if self.environment else ""

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the words among which the option's value must be; empty if it can be any value."""
        return self.choices_in("")

    def choices_in(self, verb: str) -> tuple[str, ...]:
        """Return the words among which the option's value must be in a verb; empty if it can be any value."""
        found = re.search(r"Literal\[(.*?)\]", self.type_in(verb))
        return tuple(ast.literal_eval(f"({found[1]},)")) if found else ()

    def default_in(self, verb: str) -> Any:
        """Return the option's default in a verb."""
        return self.defaults.get(verb, self.default)

    def required_in(self, verb: Verb) -> bool:
        """Whether a verb requires the option."""
        return verb.name in self.required or verb.takes in self.required

    def type_in(self, verb: str) -> str:
        """Return the option's annotation in a verb."""
        return self.types.get(verb, self.type)

    def text_in(self, verb: str) -> str:
        """Return the option's text in a verb; for the plan of a verb, the text of that verb."""
        verb = verb.removeprefix("plan_")
        return " ".join([self.instead.get(verb, self.text), *([self.also[verb]] if verb in self.also else [])])

    def help_in(self, command: str) -> str:
        """Return the option's line in a command's help; "" if the command does not have it."""
        return self.helps.get(command, self.help)

    def words_in(self, command: str) -> tuple[str, ...]:
        """Return the option's names in a command that has it; empty if it is positional there."""
        if command in self.stands:
            return ()
        return self.flagged.get(command) or self.flags or (f"--{self.name.replace('_', '-')}",)

    def many_in(self, command: str) -> str:
        """Return the word for the option's value in a command's help, "" if the option can be given only once."""
        return self.manys.get(command, self.many)

    def often_in(self, command: str) -> bool:
        """Whether the short help of a command shows the option."""
        return self.often if isinstance(self.often, bool) else command in self.often

    def variable_in(self, command: str) -> str | None:
        """Return the environment variable that can set the option's default in a command, None if there is none."""
        return self.variable or None if command not in self.unheeded else None


@dataclass(frozen=True)
class Verb:
    """A public function, or class, that takes options.

    Attributes:
        name: its name.
        returns: its return annotation.
        does: the function that it calls.
        text: the part of its docstring above `Args:`.
        closing: the part of its docstring below the arguments.
        positional: the options that can be given without a name, in order.
        arguments: the class whose fields carry its options.
        home: the file that it is in.
        of_class: whether it is the `__init__` of a class.
        takes: for a function for PyFlink programs: the verb whose options it takes, except the options about rows; "": it takes
            the options that name it themselves.
        leaves: options of that verb that it does not take, as they mean nothing there.
        apart: options that are passed to `does` beside `Arguments` in this verb only.
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
        """Return the function's name within its module."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True)
class Command:
    """A command of `akrunner` whose options come from the table.

    Attributes:
        name: the command as it is typed.
        verbs: the functions whose options it takes.
        is_long: whether its `--help` shows only the options most people need, and `--help-all` shows all, in groups.
    """

    name: str
    verbs: tuple[str, ...]
    is_long: bool = False
