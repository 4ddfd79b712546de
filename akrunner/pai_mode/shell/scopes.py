"""The surroundings of a shell script's commands: the scopes that can be left, the state of a subshell, and the input."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from akrunner.pai_mode.shell.flow import State


class Leave(Exception):
    """Is raised to leave one or more scopes.

    Attributes:
        kind: "exit", "return", "break" or "continue".
        count: how many loops are left.
        state, code: how the scope ends, and its exit code (None if it is not known).
    """

    def __init__(self, kind: str, count: int = 1, state: State = State.YES, code: str | None = None) -> None:
        super().__init__(kind)
        self.kind, self.count, self.state, self.code = kind, count, state, code


@dataclass
class Scope:
    """A scope that can be left.

    Attributes:
        kind: "script", "apart" (a subshell), "function" or "loop".
        doubt: the line that decides whether the scope has been left already, if that is unknown; otherwise 0.
        saved: the local variables of a function, with the values they had before.
    """

    kind: str
    doubt: int = 0
    saved: dict[str, str | None] = field(default_factory=dict)


@dataclass
class Input:
    """What a command reads from stdin. Attributes: text: None if there is a file, or it is unknown; file: a path, or ""."""

    text: str | None = None
    file: str = ""


@dataclass
class Held:
    """The state of a shell, of which each subshell has a copy.

    Attributes:
        known: variables and their values; None: the variable is not set.
        arrays: arrays and their elements; None: they are unknown.
        arguments: the arguments of the script, or of the function being followed; None: they are unknown.
        folder: the current directory; None: it is unknown.
        status: the value of `$?`.
        frozen: readonly variables.
    """

    known: dict[str, str | None] = field(default_factory=dict)
    arrays: dict[str, list[str] | None] = field(default_factory=dict)
    arguments: list[str] | None = None
    folder: str | None = ""
    status: str = "0"
    #: whether `set -e` and `set -u` are on; None if it is unknown
    ends_at_failure: bool | None = False
    needs_values: bool = False
    frozen: tuple[str, ...] = ()
    #: whether `set -o pipefail` is on
    pipes: bool = False
    #: whether the script has sourced a file: any variable may have any value since
    stale: bool = False

    def copy(self) -> Held:
        arguments = None if self.arguments is None else list(self.arguments)
        return replace(self, known=dict(self.known), arrays=dict(self.arrays), arguments=arguments)
