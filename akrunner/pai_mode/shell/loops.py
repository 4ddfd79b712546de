"""Follows a shell script's loops: turn by turn while it is known whether there is another, otherwise as what may be run.

::

    for x in a b          one turn for each word
    while, until          turn by turn as long as the condition is known; `for ((;;))` the same
    while grep ...        the number of turns is unknown: the body is followed until no variable changes any more, and a
                          call of the client in it is an error
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from akrunner.errors import ConfigError
from akrunner.pai_mode.shell.flow import MARK, Field, State, of
from akrunner.pai_mode.shell.nodes import Count, For, Loop, Node
from akrunner.pai_mode.shell.scopes import Leave, Scope
from akrunner.pai_mode.shell.values import marked

if TYPE_CHECKING:
    from akrunner.pai_mode.shell.run import Running

#: how many turns all loops of a script may have together
_MOST_ROUNDS = 5000
#: how often a body is followed, at most, until nothing changes any more
_DEEPEST = 50


def over_words(running: Running, node: For) -> State:
    if node.values is None:
        held = running.state.arguments
        values = None if held is None else [Field([(one, True)]) for one in held]
    else:
        values = running.fields(node.values)
    if values is None or any(one.loose for one in values):

        def once() -> None:
            running.assign(node.name, marked(node.name))
            running.run(node.body)

        return _again(running, node.line, once)
    found, scope, count = State.YES, Scope("loop"), len(running.scopes)
    running.scopes.append(scope)
    try:
        for one in values:
            _counted(running, node.line)
            running.assign(node.name, one.text)
            found, goes_on = _turn(running, count, lambda: running.run(node.body))
            if not goes_on:
                break
    finally:
        del running.scopes[count:]
    return State.UNKNOWN if scope.doubt else found


def tested(running: Running, node: Loop) -> State:
    def asks() -> State:
        state = running.condition(node.condition)
        return state.opposite if node.until else state

    return _while(running, node.line, asks, node.body, lambda: None)


def counted(running: Running, node: Count) -> State:
    if node.first.strip():
        running.sum(node.first)

    def asks() -> State:
        value = running.sum(node.test) if node.test.strip() else "1"
        return State.UNKNOWN if MARK in value else of(value != "0")

    def steps() -> None:
        if node.step.strip():
            running.sum(node.step)

    return _while(running, node.line, asks, node.body, steps)


def _while(running: Running, line: int, asks: Callable[[], State], body: Sequence[Node], steps: Callable[[], None]) -> State:
    """Follow a loop turn by turn as long as it is known how `asks` ends; then as a loop with an unknown number of turns."""

    def once() -> None:
        asks()
        running.run(body)
        steps()

    found, scope, count = State.YES, Scope("loop"), len(running.scopes)
    code = None
    running.scopes.append(scope)
    try:
        while not running.why:
            _counted(running, line)
            before = (running.state.copy(), dict(running.functions), running.stdin.text)
            state, goes_on = _turn(running, count, asks)
            if not scope.doubt and (state.known is False or not goes_on):
                running.code = code
                return found
            if scope.doubt or state.known is None:
                break
            found, goes_on = _turn(running, count, lambda: running.run(body))
            code = running.code
            if not goes_on and not scope.doubt:
                return found
            if scope.doubt:
                break
            steps()
            if before == (running.state, running.functions, running.stdin.text):
                # nothing has changed, so every further turn is the same: whatever ends the loop is outside of the script
                break
    finally:
        del running.scopes[count:]
    return _again(running, line, once)


def _counted(running: Running, line: int) -> None:
    running.rounds += 1
    if running.rounds > _MOST_ROUNDS:
        raise ConfigError(
            f"line {line}: the script's loops go round more than {_MOST_ROUNDS:,} times; put the statements into a file, or "
            "run it without --dry-run"
        )


def _turn(running: Running, count: int, body: Callable[[], State]) -> tuple[State, bool]:
    """Follow one turn of a loop.

    Args:
        count: the number of scopes around the loop.
        body: follows the turn's commands.
    Returns:
        How the turn ended; and whether the loop goes on.
    """
    try:
        return body(), True
    except Leave as left:
        del running.scopes[count + 1 :]
        if left.kind not in ("break", "continue"):
            raise
        if left.count > 1 and any(outer.kind == "loop" for outer in _around(running.scopes[:count])):
            raise Leave(left.kind, left.count - 1) from None
        return State.YES, left.kind == "continue"


def _around(scopes: Sequence[Scope]) -> list[Scope]:
    """Return the enclosing loops, the innermost first, out to the next function or subshell."""
    found: list[Scope] = []
    for scope in reversed(scopes):
        if scope.kind != "loop":
            break
        found.append(scope)
    return found


def _again(running: Running, line: int, body: Callable[[], None]) -> State:
    """Follow a body that is run an unknown number of times: again and again until nothing changes any more."""
    scope, count = Scope("loop"), len(running.scopes)
    running.scopes.append(scope)
    try:
        with running.perhaps(line):
            for _ in range(_DEEPEST):
                before, functions = running.state.copy(), dict(running.functions)
                body()
                if before == running.state and functions == running.functions:
                    return State.UNKNOWN
    finally:
        del running.scopes[count:]
    raise ConfigError(f"line {line}: akrunner cannot tell what this loop comes to")
