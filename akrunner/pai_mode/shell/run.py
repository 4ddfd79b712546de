"""Follows the control flow of a shell script, in bash's order. What the single commands do is in `reader`.

::

    if, case, for, &&, ||, ( ), functions    the branch that bash takes is followed, if it is known; otherwise both are,
                                             `why` is the line that decides, and a call of the client in them is an error
    exit, return, break, set -e              end what they end in bash; if it is unknown whether they are run, `why` is not 0
                                             up to that end
"""

from __future__ import annotations

import abc
import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell import loops
from akrunner.pai_mode.shell.flow import DONE_MARK, MARK, Field, State, fits, of
from akrunner.pai_mode.shell.nodes import (
    Branches,
    Case,
    Chain,
    Count,
    For,
    Function,
    Group,
    Loop,
    Node,
    Pipeline,
    Redirection,
    Simple,
    Sum,
    stops,
)
from akrunner.pai_mode.shell.scopes import Held, Input, Leave, Scope
from akrunner.pai_mode.shell.values import Values, marked

#: how deep functions may call each other
_DEEPEST = 50


class Running(Values):
    """One pass over a script. Subclasses say what the single commands do."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(variables)
        self.rounds = 0
        self.functions: dict[str, Function | None] = {}
        self.scopes = [Scope("script")]
        self.unsure = 0
        self.tested = 0
        self._here = 0
        self.inside = 0
        self.code: str | None = None
        self.stdin = Input()
        self.printed: list[str] | None = None
        self.called_state = State.YES
        #: variables that are set for one command only: `TZ=UTC date`
        self.prefixed: dict[str, str] = {}

    @property
    def why(self) -> int:
        """The line that decides whether the next command is run, if it is unknown whether it is. Otherwise 0."""
        return self.unsure or next((scope.doubt for scope in self.scopes if scope.doubt), 0)

    def run(self, nodes: Sequence[Node]) -> State:
        found = State.YES
        for node in nodes:
            found = self.node(node)
        return found

    @property
    def line(self) -> int:
        return self._here

    def node(self, node: Node) -> State:
        self._here = node.line
        if isinstance(node, Chain):
            return self._chain(node) if not node.background else self._background(node)
        if isinstance(node, Pipeline):
            return self._pipeline(node)
        if isinstance(node, Simple):
            return self.redirected(node.redirections, lambda: self.simple(node), self.is_program(node))
        if isinstance(node, Branches):
            return self._branches(node)
        if isinstance(node, Case):
            return self._case(node)
        if isinstance(node, Loop):
            return loops.tested(self, node)
        if isinstance(node, For):
            return loops.over_words(self, node)
        if isinstance(node, Count):
            return loops.counted(self, node)
        if isinstance(node, Group):
            body = node.body
            return self.redirected(
                node.redirections, lambda: self.apart(lambda: self.run(body)) if node.apart else self.run(body)
            )
        if isinstance(node, Sum):
            value = self.sum(node.text)
            return State.UNKNOWN if MARK in value else of(value != "0")
        self.functions[node.name] = None if self.why else node
        return State.YES

    @abc.abstractmethod
    def simple(self, node: Simple) -> State:
        """Follow one simple command."""

    @abc.abstractmethod
    def redirected(self, redirections: Sequence[Redirection], body: Callable[[], State], program: bool = False) -> State:
        """Follow `body` with its input and output redirected.

        Args:
            program: whether the body is one program. Then what its redirections' targets set is set in the program's process
                only.
        """

    @abc.abstractmethod
    def is_program(self, node: Simple) -> bool:
        """Whether a command is a program, and not a function or a command of bash itself."""

    # -- what is run, and what may be

    @contextlib.contextmanager
    def perhaps(self, line: int) -> Iterator[None]:
        before, self.unsure = self.unsure, line
        try:
            yield
        finally:
            self.unsure = before

    @contextlib.contextmanager
    def _asked(self) -> Iterator[None]:
        """Mark the block's commands as tested: a failure in it does not end the script."""
        self.tested += 1
        try:
            yield
        finally:
            self.tested -= 1

    def leave(self, left: Leave, line: int) -> None:
        """Leave scopes. If it is unknown whether this command is run, only note in the scope that it may have been left.

        Raises:
            Leave: the command is certainly run.
        """
        why = self.why
        if not why:
            raise left
        kinds = {"exit": ("script", "apart"), "return": ("function", "script", "apart")}.get(
            left.kind, ("loop", "apart", "script")
        )
        count = left.count
        for scope in reversed(self.scopes):
            if scope.kind in kinds:
                count -= 1
                if not count or scope.kind != "loop":
                    scope.doubt = scope.doubt or why
                    return

    def _failed(self, state: State, line: int) -> None:
        """Do what `set -e` does after a command: leave the script if the command failed."""
        if self.tested or self.state.ends_at_failure is False or state.likely:
            return
        if state is State.NO and self.state.ends_at_failure:
            self.leave(Leave("exit", state=state, code="1"), line)
        else:
            with self.perhaps(self.unsure or line):
                self.leave(Leave("exit"), line)

    def _pipeline(self, node: Pipeline) -> State:
        self.code = None
        if node.negated:
            with self._asked():
                state = self._parts(node).opposite
                self.code = None
        else:
            state = self._parts(node)
        shown = {State.YES: "0", State.NO: self.code or "1", State.DONE: DONE_MARK, State.HOPED: DONE_MARK}
        self.state.status = shown.get(state, marked("?"))
        only = node.parts[0]
        if not node.negated and (
            len(node.parts) > 1 or isinstance(only, (Simple, Sum)) or (isinstance(only, Group) and only.apart)
        ):
            self._failed(state, node.line)
        return state

    def _parts(self, node: Pipeline) -> State:
        if len(node.parts) == 1:
            return self.node(node.parts[0])
        found = State.YES
        worst = State.YES
        made: list[str]
        before = self.stdin
        for number, part in enumerate(node.parts):
            printed, made = self.printed, []
            last = number == len(node.parts) - 1
            if not last:
                self.printed = made
            try:
                found = self.apart(partial(self._pipeline, Pipeline(node.line, False, [part])))
            finally:
                self.printed = printed
                text = "".join(made)
                self.stdin = Input(None if last or MARK in text else text)
            worst = found if worst.likely else worst
        self.stdin = before
        return found if not self.state.pipes or worst.likely else State.UNKNOWN

    def _background(self, node: Chain) -> State:
        self.apart(lambda: self._chain(node))
        self.state.status = "0"
        return State.YES

    def apart(self, body: Callable[[], State]) -> State:
        """Follow a subshell: its variables and its current directory are its own, and `exit` ends only the subshell."""
        held, functions, unsure, tested, stdin = self.state, self.functions, self.unsure, self.tested, self.stdin
        self.state, self.functions = held.copy(), dict(functions)
        scope, count = Scope("apart"), len(self.scopes)
        self.scopes.append(scope)
        code: str | None = None
        try:
            found = body()
        except Leave as left:
            found, code = left.state, left.code
        finally:
            status = self.state.status
            self.state, self.functions, self.unsure, self.tested, self.stdin = held, functions, unsure, tested, stdin
            del self.scopes[count:]
        self.code = code or (status if found is State.NO and re.fullmatch("[0-9]+", status) else None)
        return State.UNKNOWN if scope.doubt else found

    def _chain(self, node: Chain) -> State:
        state = self._tested_unless(not node.rest, node.first)
        for number, (sign, pipeline) in enumerate(node.rest):
            wanted = sign == "&&"
            runs = self.decided(state, wanted, [pipeline], [], hoped=state in (State.DONE, State.UNDONE))
            last = number == len(node.rest) - 1
            if runs:
                state = self._tested_unless(last, pipeline)
            elif runs is None:
                with self.perhaps(node.line):
                    then = self._tested_unless(last, pipeline)
                state = then if then.likely and not wanted else State.UNKNOWN
                self.state.status = "0" if state is State.YES else marked("?")
        return state

    def _tested_unless(self, last: bool, node: Pipeline) -> State:
        if last:
            return self._pipeline(node)
        with self._asked():
            return self._pipeline(node)

    @staticmethod
    def decided(state: State, wanted: bool, body: Sequence[Node], instead: Sequence[Node], hoped: bool = False) -> bool | None:
        """Return whether a body is run; None if it is unknown.

        A command that was not run counts as successful if the script would end if it had failed.

        Args:
            state: how the condition has ended.
            wanted: the result of the condition with which the body is run.
            body: the commands in question.
            instead: the commands that are run otherwise.
            hoped: whether a likely result of the condition is enough.
        """
        if state.known is not None or state.likely is None:
            return None if state.known is None else state.known == wanted
        if state.likely == wanted:
            return True if hoped or stops(instead) else None
        return False if stops(body) else None

    def condition(self, nodes: Sequence[Node]) -> State:
        with self._asked():
            return self.run(nodes)

    def _branches(self, node: Branches) -> State:
        for number, (condition, body) in enumerate(node.ways):
            state = self.condition(condition)
            rest = node.ways[number + 1 :]
            others: Sequence[Node] = [Branches(node.line, rest, node.other)] if rest else node.other
            runs = self.decided(state, True, body, others)
            if runs:
                return self.run(body)
            if runs is None:
                with self.perhaps(node.line):
                    self.run(body)
                    self.run(others)
                return State.UNKNOWN
        return self.run(node.other)

    def _case(self, node: Case) -> State:
        value, perhaps = self.compared(node.value), False
        for patterns, body in node.ways:
            here = fits(value, [self.compared(one) for one in patterns])
            if here and not perhaps:
                return self.run(body)
            if here is not False:
                perhaps = True
                with self.perhaps(node.line):
                    self.run(body)
            if here:
                break
        return State.UNKNOWN if perhaps else State.YES

    # -- functions

    def call(self, name: str, words: Sequence[Field], line: int) -> State:
        """Follow the call of a function of the script."""
        function = self.functions[name]
        if function is None:
            raise ConfigError(
                f"line {line}: akrunner cannot tell which of its functions {name} is: it is defined where nobody knows "
                "whether that is run"
            )
        if self.calls > _DEEPEST:
            raise ConfigError(f"line {line}: {name} calls itself too often")
        scope, count = Scope("function"), len(self.scopes)
        arguments, tested, unsure = self.state.arguments, self.tested, self.unsure
        self.state.arguments = None if any(word.loose for word in words) else [word.text for word in words]
        self.calls += 1
        self.scopes.append(scope)
        self.code = None
        try:
            found = self.node(function.body)
            code = self.code
        except Leave as left:
            if left.kind == "exit":
                raise
            if left.kind != "return":
                raise ConfigError(f"line {line}: {name} leaves a loop it does not have") from None
            found, code = left.state, left.code
        finally:
            del self.scopes[count:]
            self.calls -= 1
            self.state.arguments, self.tested, self.unsure = arguments, tested, unsure
            self._restore(scope)
        self.code = code
        return State.UNKNOWN if scope.doubt else found

    def _restore(self, scope: Scope) -> None:
        for name, value in scope.saved.items():
            self.state.arrays.pop(name, None)
            self.state.frozen = tuple(one for one in self.state.frozen if one != name)
            if value == "\0absent":
                self.state.known.pop(name, None)
            else:
                self.state.known[name] = value

    def keep(self, name: str) -> None:
        """Make a variable local to the function that is being followed."""
        scope = next((one for one in reversed(self.scopes) if one.kind in ("function", "apart")), None)
        if scope is not None and scope.kind == "function" and name not in scope.saved:
            if name in self.state.arrays:
                raise ConfigError(f"akrunner does not read a local {name} over an array of that name")
            scope.saved[name] = self.state.known.get(name, "\0absent")

    def assign(self, name: str, value: str | None) -> None:
        """Give a variable a value; None if it is not set.

        If it is unknown whether the assignment is run, and the value differs from the old one, the value is unknown
        afterwards. The script's own value replaces the one the script began with; but if only running the script would tell
        its own value, the value that the caller gave is taken.
        """
        held: Held = self.state
        if name in held.frozen:
            raise ConfigError(f"the script sets {name}, which it has made readonly: bash does not go on as written")
        if self.why and (name in held.arrays or self.value(name) != value):
            value = marked(name)
        if value is not None and MARK in value:
            value = self.given.get(name, value)
        if name in held.arrays and value is not None:
            # for an array, the value becomes its first element
            whole = held.arrays[name]
            held.arrays[name] = None if whole is None or MARK in value else [value, *whole[1:]]
        else:
            held.arrays.pop(name, None)
        held.known[name] = value
