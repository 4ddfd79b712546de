"""Divides the rows of a table in a database, which the tasks' own machines read, among the tasks."""

from __future__ import annotations

import functools
import json

from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.host.files import BLOCKS_EACH, WORTH, Part, dealt, must_not
from akrunner.engines.flink.schemas import schema_bytes
from akrunner.foreign import in_words
from akrunner.io.pg_ranges import Ranges
from akrunner.io.shared import Unshared
from akrunner.io.systems.pg_snapshot import Snapshot
from akrunner.io.table import TableSource


class SharedTable:
    """A state of a table in a database that the tasks' machines may read. It has what `SharedFiles` has, and must be closed.

    Attributes:
        source: the table.
        tasks: the number of tasks that get rows.
        must: whether it is an error if the machines cannot read it.
        begun: whether machines were told to read it, so that no other state will do if the job starts again.
        closed: whether the state is given up.
    """

    def __init__(self, source: TableSource, snapshot: Snapshot, tasks: int, must: bool) -> None:
        self.source, self.tasks, self.must = source, tasks, must
        self.begun = self.closed = False
        self._snapshot = snapshot

    @classmethod
    def of(cls, source: TableSource, tasks: int, trusted: bool, must: bool) -> SharedTable | None:
        """Return the present state of a table; None if other machines cannot read it.

        Args:
            source: a table that can be `held`.
            tasks: the number of tasks that get rows.
            trusted: whether the password may be sent to the machines.
            must: whether it is an error if the machines cannot read it.
        Raises:
            ConfigError: they cannot, and must.
        """
        assert source.held is not None
        try:
            made = cls(source, source.held(tasks, trusted), tasks, must)
            made.check_size()
            return made
        # whatever the driver raises: reading the table here says it better
        except Exception as e:
            if must:
                raise must_not(str(e) if isinstance(e, Unshared) else in_words(e)) from None
            return None

    def check_size(self) -> None:
        """Close the table if it is too small to be divided.

        Raises:
            Unshared: it is.
        """
        if self._snapshot.pages < BLOCKS_EACH * self.tasks:
            self.close()
            raise Unshared(
                f"it has {self._snapshot.pages} pages, and must have {BLOCKS_EACH * self.tasks} for {self.tasks} tasks"
            )

    @property
    def place(self) -> Ranges:
        """What the machines are told of the table."""
        return self._snapshot.ranges

    @property
    def asked(self) -> tuple[tuple[str, int], ...]:
        """What stands for the files that a machine must see."""
        return ((self.place.shown, 0),)

    @property
    def is_worth_it(self) -> bool:
        """Whether the table is so large that it matters who reads it."""
        return self._snapshot.bytes >= WORTH * self.tasks

    @functools.cached_property
    def shares(self) -> list[list[Part]] | None:
        """For each task, the parts that it reads, in order; None if there are too few, or their rows cannot be counted."""
        if isinstance(self._counted, str):
            return None
        parts = [Part("", [first, end, rows], 0, rows) for first, end, rows in self._counted]
        return dealt(parts, self.tasks) if len(parts) >= BLOCKS_EACH * self.tasks else None

    @property
    def undivided(self) -> str:
        """Half a sentence that says why there are no shares."""
        return self.broken or (
            f"the number of its ranges of pages with rows is {len(self._counted)}, and must be {BLOCKS_EACH * self.tasks} for "
            f"{self.tasks} tasks"
        )

    @property
    def broken(self) -> str:
        """Half a sentence that says why the database cannot count the rows; "" if it can."""
        return self._counted if isinstance(self._counted, str) else ""

    @functools.cached_property
    def _counted(self) -> list[tuple[int, int, int]] | str:
        try:
            return self._snapshot.counted(BLOCKS_EACH * self.tasks)
        except Exception as e:
            return f"its rows cannot be counted: {in_words(e)}"

    def order(self, share: int) -> pb.Files:
        """Return what the agent of a task is told.

        Args:
            share: the task's index among the tasks that get rows.
        """
        assert self.shares is not None
        self.begun = True
        parts = [pb.Files.Part(block=json.dumps(part.block), start=part.start, stop=part.stop) for part in self.shares[share]]
        return pb.Files(schema=schema_bytes(self.source.schema), parts=parts)

    def close(self) -> None:
        """End the transaction that holds the state."""
        self.closed = True
        self._snapshot.close()
