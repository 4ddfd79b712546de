"""Separates the label and the weights from a batch's columns, as `Model.fit` takes them.

A batch is then (features, label), or (features, label, weights).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Collection, Dict, List, Optional, Sequence

from akrunner.wire.near import nearest
from akrunner.worker import mapping

if TYPE_CHECKING:
    from akrunner.worker.reading import Reading

#: the column with each row's weight: 0 for a row of padding, else 1
WEIGHT = "sample_weight"


class Parts(object):
    """The parts of a batch.

    Attributes:
        label, weights: names of columns, None for none.
        padded: whether rows of padding are added (uneven="pad"). They have zeros in every column, also in the table's column of
            weights if there is one; `WEIGHT` is not needed then.
    """

    def __init__(self, label: Optional[str] = None, weights: Optional[str] = None, padded: bool = False) -> None:
        self.label = label
        self.weights = weights
        self.padded = padded

    @property
    def made(self) -> bool:
        """Whether the column `WEIGHT` is added to the rows."""
        return self.padded and self.weights is None

    def check(self, schema: List[Dict[str, Any]], how: Reading) -> None:
        """Check the parts against the columns of the table and the steps that are asked for.

        Raises:
            ValueError: there are no such columns, or they cannot be used.
            TypeError: the function given as `map=` takes other arguments.
        """
        for asked, name in (("label", self.label), ("weights", self.weights)):
            if name is None:
                continue
            if how.interleave is not None:
                raise ValueError(
                    "%s=%.100r and interleave=: what interleave= gives has no columns of the table; part it in map="
                    % (asked, name)
                )
            names = [column["name"] for column in schema]
            if name not in names:
                raise ValueError(
                    "%s=%.100r is not a column; columns: %s%s" % (asked, name, ", ".join(names), nearest(name, names))
                )
        if self.weights is not None:
            self._check_weights(next(column for column in schema if column["name"] == self.weights))
        if self.made:
            check_weight([column["name"] for column in schema])
        if how.map is not None and how.interleave is None:
            mapping.check_arguments(how.map, self.label, self.padded or self.weights is not None)

    def _check_weights(self, column: Dict[str, Any]) -> None:
        if self.label is None:
            raise ValueError("weights=%r without label=: Keras takes (features, label, weights)" % self.weights)
        if self.label == self.weights:
            raise ValueError("label= and weights= are both %r" % self.label)
        if column["kind"] == "bytes" or column["shape"] != []:
            raise ValueError(
                "weights=%r: a weight is a number for each row, and the column is %s"
                % (self.weights, column.get("type") or "none")
            )

    def taken(self, names: Optional[Sequence[str]]) -> Optional[Sequence[str]]:
        """Return the columns to read, None for all. Args: names: the columns that the script asked for, None for all."""
        if names is None or isinstance(names, str):
            return names
        return list(names) + [name for name in (self.label, self.weights) if name is not None and name not in names]

    def of(self, columns: Dict[str, Any]) -> Any:
        """Return a batch with its parts separated; without a label, return the columns unchanged."""
        if self.label is None:
            return columns
        columns = dict(columns)
        target = columns.pop(self.label)
        if self.weights is not None:
            import tensorflow as tf

            # Keras multiplies losses, which are floats, by the weights
            return columns, target, tf.cast(columns.pop(self.weights), tf.float32)
        if self.padded:
            return columns, target, columns.pop(WEIGHT)
        return columns, target

    # tells TensorFlow's AutoGraph not to translate it; TensorFlow 1.15 would warn that it cannot
    of.autograph_info__ = {}  # type: ignore[attr-defined]


def check_weight(names: Collection[str]) -> None:
    """Raise a ValueError if the table already has a column named `WEIGHT`."""
    if WEIGHT in names:
        raise ValueError(
            "uneven='pad' gives a column %r, and the table has one: give label= and weights=%r, or rename it with select="
            % (WEIGHT, WEIGHT)
        )
