"""What a script asks of `dataset()`, `batches()` and such by a wrong name: which one is meant."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Sequence, TypeVar, cast

from akrunner.wire.near import nearest

F = TypeVar("F", bound=Callable[..., Any])

#: what reads a task's rows
_READ_BY = ("dataset", "batches", "per_worker_dataset", "steps_per_epoch")


def told(method: F) -> F:
    """Of a task config's method: a keyword that it does not have is a TypeError that names the one that is meant, or the method that has it."""
    known = list(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def called(self: Any, *args: Any, **options: Any) -> Any:
        for name in options:
            if name not in known:
                raise TypeError(unknown(type(self), method.__name__, name, known))
        return method(self, *args, **options)

    return cast(F, called)


def unknown(kind: type, method: str, name: str, known: Sequence[str]) -> str:
    """In words, what is wrong with an argument that a method does not have. Args: kind: the class of it."""
    others = [other for other in _READ_BY if other != method and hasattr(kind, other)]
    has = [other for other in others if name in inspect.signature(getattr(kind, other)).parameters]
    if has:
        return "%s() has no argument %r; it is one of %s" % (method, name, " and ".join("%s()" % one for one in has))
    hint = nearest(name, known)
    return "%s() has no argument %r%s" % (method, name, hint or "; it takes %s" % ", ".join(known))
