"""What a shell script's commands stand in: what can be left, and where their input comes from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Optional

from akrunner.pai_mode.flow import State


class Leave(Exception):
    """Attributes: kind: "exit", "return", "break", "continue"; count: of loops; state, code: it ends with."""

    def __init__(self, kind: str, count: int = 1, state: State = State.YES, code: Optional[str] = None) -> None:
        super().__init__(kind)
        self.kind, self.count, self.state, self.code = kind, count, state, code


@dataclass
class Scope:
    """What can be left. Attributes: kind: "script", "apart", "function", "loop"; doubt: line from which on nobody knows whether it was; saved: locals."""

    kind: str
    doubt: int = 0
    saved: Dict[str, Optional[str]] = field(default_factory=dict)


@dataclass
class Input:
    """What a command reads. Attributes: text; file: in its place. Neither: nobody knows."""

    text: Optional[str] = None
    file: str = ""
