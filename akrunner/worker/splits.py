"""The splits of a task's rows (`split=` of the job).

A file beside the file of rows has a byte for each row, the number of its split.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, List, Sequence

from akrunner.wire.near import nearest
from akrunner.worker import tf_data

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from akrunner.worker.data import Evener

#: appended to the name of the file of rows
ENDING = ".splits"
#: records that are filtered together
_AT_ONCE = 64


class Split(object):
    """One split. Args: path: the file of rows; number: the split's number. Attributes: number: the same."""

    def __init__(self, path: str, number: int) -> None:
        self._path = path + ENDING
        self.number = number

    def rows(self) -> NDArray[Any]:
        """Return the numbers of its rows in the task, from 0, in order."""
        import numpy as np

        numbers: NDArray[Any] = np.flatnonzero(np.fromfile(self._path, np.uint8) == self.number)
        return numbers

    def of_records(self, records: Any) -> Any:
        """Return a dataset of the records that are in the split. Args: records: a dataset of all records, in order."""
        import tensorflow as tf

        marks = tf.data.FixedLengthRecordDataset(self._path, 1)
        mine = bytes(bytearray([self.number]))
        both = tf.data.Dataset.zip((records.batch(_AT_ONCE), marks.batch(_AT_ONCE)))
        return tf_data.unbatched(
            tf, both.map(tf_data.as_written(lambda some, marked: tf.boolean_mask(some, tf.equal(marked, mine))))
        )


class Splits(object):
    """The splits that the job has declared.

    Args:
        names: the splits' names.
        path: the file of rows.
        shares: [workers, splits], the number of rows of each; empty if unknown.
        evener: the evener of all rows.
    """

    def __init__(self, names: Sequence[str], path: str, shares: Sequence[Sequence[int]], evener: Evener) -> None:
        self.names = list(names)
        self._path = path
        self._shares = shares
        self._evener = evener

    def counts(self) -> Dict[str, int]:
        """Return {split: number of this task's rows in it}."""
        return {name: len(self.of(name).rows()) for name in self.names}

    def of(self, name: str, path: str = "") -> Split:
        """Return a split.

        Args:
            name: its name.
            path: another worker's file of rows, in which the split has the same number; "" for this worker's.
        Raises:
            ValueError: there is no such split.
        """
        return Split(path or self._path, self._number(name))

    def shares(self, name: str) -> List[int]:
        """Return the number of every worker's rows in a split; of this worker's only, if the others are unknown."""
        number = self._number(name)
        return [counts[number] for counts in self._shares] or [len(self.of(name).rows())]

    def source(self, rows: Any, name: str) -> Any:
        """Return the source of the rows in a split.

        Args:
            rows: the source of all rows, `Examples` or `Columns`.
            name: the split's name.
        Raises:
            ValueError: there is no such split.
        """
        split = self.of(name)
        return rows.part(split, self._evener.part(len(split.rows()), self.shares(name)))

    def _number(self, name: Any) -> int:
        if not self.names:
            raise ValueError(
                "split=%.100r: the rows of this job are not split: give run or train split={'train': 0.8, 'test': 0.2} "
                "(--split train=0.8,test=0.2); of data that akrunner pack has split, the input is one split" % (name,)
            )
        if not isinstance(name, str) or name not in self.names:
            hint = nearest(name, self.names)
            raise ValueError("split=%.100r is no split of this job, which has %s%s" % (name, ", ".join(self.names), hint))
        return self.names.index(name)


def make_file(path: str) -> int:
    """Create the empty file for the splits of rows and return its descriptor. Args: path: the file of rows."""
    return os.open(path + ENDING, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
