"""Several of something, where one text alone would be taken for its characters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class SequenceNotStr(Protocol[T_co]):
    """A list, a tuple or another sequence, but no `str`: that is one of its own, and type checkers would let "ab" pass for ["a", "b"].

    As pandas has it: what a `str` may be asked whether it has in it is a `str`.
    """

    def __contains__(self, value: object, /) -> bool: ...

    def __getitem__(self, index: int, /) -> T_co: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[T_co]: ...

    def __reversed__(self) -> Iterator[T_co]: ...

    def index(self, value: Any, /) -> int: ...

    def count(self, value: Any, /) -> int: ...
