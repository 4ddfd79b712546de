"""A plugin: what pytest-xdist does for each test, done once, or not at all where nobody reads it.

::

    pytest (the scheduler)  -- numbers of tests -->  its processes
                            <-- how each ended ----

With 20,000 tests, what pytest-xdist does by itself for each of them adds up to minutes of processor: it looks a test up among all of them, it counts
all that a process has had so far, and a process says six times how one test goes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    # imported here: without pytest-xdist, tests run in one process
    from xdist.scheduler import LoadGroupScheduling

    class Scheduling(LoadGroupScheduling):
        """pytest-xdist's own; it knows where a test stands, and forgets groups that have been run."""

        def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
            super().add_node_collection(node, collection)
            if node in self.registered_collections:
                self.registered_collections[node] = Places(collection)

        def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
            super().mark_test_complete(node, item_index, duration)
            group = self._split_scope(self.registered_collections[node][item_index])
            if all(self.assigned_work[node][group].values()):
                del self.assigned_work[node][group]

    return Scheduling(config, log) if config.getvalue("dist") == "loadgroup" else None


class Places(list[str]):
    """A list that knows the place of each of its members. Args: members: in order."""

    def __init__(self, members: Sequence[str]) -> None:
        super().__init__(members)
        self._places = {member: place for place, member in reversed(list(enumerate(members)))}

    def index(self, member: str, *_: Any) -> int:
        return self._places[member]


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    if hasattr(session.config, "workerinput") and not _read_by_somebody(session.config):
        for plugin in session.config.pluginmanager.get_plugins():
            if type(plugin).__name__ == "WorkerInteractor":
                plugin.sendevent = told(plugin.sendevent)


def _read_by_somebody(config: pytest.Config) -> bool:
    """Whether more is wanted than the ends of tests: each phase's seconds, a file for another program, the name of a test before it runs."""
    option = config.option
    return bool(
        option.verbose > 0
        or option.times
        or option.durations is not None
        or option.xmlpath
        or set("AP") & set(option.reportchars)
    )


def told(send: Callable[..., None]) -> Callable[..., None]:
    """Returns: `send` for what changes a result: how a test ended, and whatever did not pass."""

    def sent(name: str, **of: Any) -> None:
        report = of["data"] if name == "testreport" else {}
        passed = report.get("outcome") == "passed"
        if name in ("logstart", "logfinish") or (passed and report["when"] != "call"):
            return
        if passed:
            # marks and names, of which pytest looks at those of tests that are skipped
            report["keywords"] = {}
        send(name, **of)

    return sent
