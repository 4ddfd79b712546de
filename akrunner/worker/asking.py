"""Error messages for wrong argument names of `dataset()`, `batches()` and the like: they suggest the right name."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Sequence, TypeVar, cast

from akrunner.wire.near import nearest

F = TypeVar("F", bound=Callable[..., Any])

#: methods that read a task's rows
_READ_BY = ("dataset", "batches", "per_worker_dataset", "steps_per_epoch")


def told(method: F) -> F:
    """Decorate a method of a task config so that an unknown keyword raises a TypeError with a suggestion.

    The suggestion is the argument that is probably meant, or the method that has an argument of this name.
    """
    known = list(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def called(self: Any, *args: Any, **options: Any) -> Any:
        for name in options:
            if name not in known:
                raise TypeError(unknown(type(self), method.__name__, name, known))
        return method(self, *args, **options)

    # a function that TensorFlow traces (`create_per_worker_dataset`) calls it: AutoGraph would try to translate it, and warn that it cannot
    called.autograph_info__ = {}  # type: ignore[attr-defined]
    return cast(F, called)


def unknown(kind: type, method: str, name: str, known: Sequence[str]) -> str:
    """Return the message about an argument that a method does not have.

    Args:
        kind: the method's class.
        method: the method's name.
        name: the unknown argument.
        known: the arguments that the method has.
    """
    others = [other for other in _READ_BY if other != method and hasattr(kind, other)]
    has = [other for other in others if name in inspect.signature(getattr(kind, other)).parameters]
    if has:
        return "%s() has no argument %r; it is one of %s" % (method, name, " and ".join("%s()" % one for one in has))
    hint = nearest(name, known)
    return "%s() has no argument %r%s" % (method, name, hint or "; it takes %s" % ", ".join(known))
