"""What one job has that must not outlive this process: the part of `akrunner.leftovers` that belongs to the job."""

from __future__ import annotations

from types import TracebackType

from akrunner import leftovers


class Guard:
    """Context manager that registers what a job holds with the guard process; when the block ends, all of it is forgotten."""

    def __init__(self) -> None:
        self._groups: dict[int, bool] = {}
        self._marks: dict[str, bool] = {}
        self._paths: dict[str, bool] = {}
        self._lost = leftovers.guards()

    def watch(self, group: int) -> None:
        """Have this process group killed if the host dies."""
        self._groups[group] = True
        leftovers.watch(group)

    def forget(self, group: int) -> None:
        """Stop watching a process group, because it has ended by itself."""
        self._groups.pop(group, None)
        leftovers.unwatch(group)

    def watch_mark(self, value: str) -> None:
        """Have every process that carries this mark killed if the host dies. Call it before there is such a process."""
        self._marks[value] = True
        leftovers.mark(value)

    def forget_mark(self, value: str) -> None:
        """Stop watching a mark, because no process carries it any more."""
        self._marks.pop(value, None)
        leftovers.unmark(value)

    def remove(self, directory: str) -> None:
        """Have this directory removed if the host dies. Call it before the directory is made."""
        self._paths[directory] = True
        leftovers.register(directory)

    def check(self) -> str | None:
        """Make sure that the guard process runs. Returns: a warning if it had to be replaced, None otherwise."""
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
