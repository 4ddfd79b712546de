"""A type for sequences that are no `str`, as a single text would be taken for a sequence of its characters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class SequenceNotStr(Protocol[T_co]):
    """A list, a tuple or another sequence, but no `str`.

    A `str` is a sequence of `str`, so with `Sequence[str]` type checkers would let "ab" pass for ["a", "b"]. The trick is
    pandas': `str.__contains__` takes only a `str`, while this protocol's takes any object, so that a `str` does not match.
    """

    def __contains__(self, value: object, /) -> bool: ...

    def __getitem__(self, index: int, /) -> T_co: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...

    def __reversed__(self) -> Iterator[T_co]: ...

    def index(self, value: Any, /) -> int: ...

    def count(self, value: Any, /) -> int: ...
