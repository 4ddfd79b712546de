"""What a shell script's commands stand in: what can be left, what a subshell has for itself, and where their input comes from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from akrunner.pai_mode.flow import State


class Leave(Exception):
    """Attributes: kind: "exit", "return", "break", "continue"; count: of loops; state, code: it ends with."""

    def __init__(self, kind: str, count: int = 1, state: State = State.YES, code: str | None = None) -> None:
        super().__init__(kind)
        self.kind, self.count, self.state, self.code = kind, count, state, code


@dataclass
class Scope:
    """What can be left. Attributes: kind: "script", "apart", "function", "loop"; doubt: line from which on nobody knows whether it was; saved: locals."""

    kind: str
    doubt: int = 0
    saved: dict[str, str | None] = field(default_factory=dict)


@dataclass
class Input:
    """What a command reads. Attributes: text; file: in its place. Neither: nobody knows."""

    text: str | None = None
    file: str = ""


@dataclass
class Held:
    """What a subshell has for itself. Attributes: known: variables, None: it is not set; arrays; arguments: None: nobody knows; folder: one is in."""

    known: dict[str, str | None] = field(default_factory=dict)
    arrays: dict[str, list[str] | None] = field(default_factory=dict)
    arguments: list[str] | None = None
    folder: str | None = ""
    status: str = "0"
    #: whether `set -e` and `set -u` hold; None: nobody knows
    ends_at_failure: bool | None = False
    needs_values: bool = False
    frozen: tuple[str, ...] = ()
    #: `set -o pipefail`
    pipes: bool = False
    #: a file has been read into the script: any variable may have any value
    stale: bool = False

    def copy(self) -> Held:
        arguments = None if self.arguments is None else list(self.arguments)
        return replace(self, known=dict(self.known), arrays=dict(self.arrays), arguments=arguments)
