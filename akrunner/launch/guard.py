"""What one job has that must not outlive this process: its part of `akrunner.leftovers`."""

from __future__ import annotations

from types import TracebackType

from akrunner import leftovers


class Guard:
    """Context manager: when the block ends, nothing of what it was told is held any longer."""

    def __init__(self) -> None:
        self._groups: dict[int, bool] = {}
        self._marks: dict[str, bool] = {}
        self._paths: dict[str, bool] = {}
        self._lost = leftovers.guards()

    def watch(self, group: int) -> None:
        """End this process group when the host is gone."""
        self._groups[group] = True
        leftovers.watch(group)

    def forget(self, group: int) -> None:
        """Watch this process group no longer: it has ended by itself."""
        self._groups.pop(group, None)
        leftovers.unwatch(group)

    def watch_mark(self, value: str) -> None:
        """End what carries this mark when the host is gone. Say it before there is such a process."""
        self._marks[value] = True
        leftovers.mark(value)

    def forget_mark(self, value: str) -> None:
        """Watch this mark no longer: nothing carries it any more."""
        self._marks.pop(value, None)
        leftovers.unmark(value)

    def remove(self, directory: str) -> None:
        """Remove this directory when the host is gone. Say it before it is made."""
        self._paths[directory] = True
        leftovers.register(directory)

    def check(self) -> str | None:
        """See to it that the guard process is there. Returns: what to say about it, None when it was."""
        lost, self._lost = self._lost, leftovers.guards()
        if self._lost == lost:
            return None
        return "the guard process, which cleans up should this process be killed, was killed itself; another one took its place"

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for group in self._groups:
            leftovers.unwatch(group)
        for value in self._marks:
            leftovers.unmark(value)
        for path in self._paths:
            leftovers.forget(path)
