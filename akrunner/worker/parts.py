"""What of a batch is given apart, as `Model.fit` takes it: (features, label), or (features, label, weights)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Collection, Dict, List, Optional, Sequence

from akrunner.wire.near import nearest
from akrunner.worker import mapping

if TYPE_CHECKING:
    from akrunner.worker.reading import Reading

#: the column that says how much a row weighs: 0 where it was made up to fill a share, else 1
WEIGHT = "sample_weight"


class Parts(object):
    """The parts of a batch.

    Attributes: label, weights: names of columns, None; padded: whether rows are made up to fill a share (uneven="pad"). Those have zeros in every
        column, the one of weights, too, if the table has one: then `WEIGHT` is not needed.
    """

    def __init__(self, label: Optional[str] = None, weights: Optional[str] = None, padded: bool = False) -> None:
        self.label = label
        self.weights = weights
        self.padded = padded

    @property
    def made(self) -> bool:
        """Whether rows get a column `WEIGHT`."""
        return self.padded and self.weights is None

    def check(self, schema: List[Dict[str, Any]], how: Reading) -> None:
        """Raises: ValueError: there are no such columns; TypeError: `map=` takes something else."""
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
        """The columns to read, None: all. Args: names: those that a script asked for."""
        if names is None or isinstance(names, str):
            return names
        return list(names) + [name for name in (self.label, self.weights) if name is not None and name not in names]

    def of(self, columns: Dict[str, Any]) -> Any:
        """A batch's columns, parted; without a label as they are."""
        if self.label is None:
            return columns
        columns = dict(columns)
        target = columns.pop(self.label)
        if self.weights is not None:
            import tensorflow as tf

            # Keras multiplies losses by them, and those are floats
            return columns, target, tf.cast(columns.pop(self.weights), tf.float32)
        if self.padded:
            return columns, target, columns.pop(WEIGHT)
        return columns, target

    # TensorFlow's autograph leaves it as it is; 1.15 would warn that it has to
    of.autograph_info__ = {}  # type: ignore[attr-defined]


def check_weight(names: Collection[str]) -> None:
    """Raises: ValueError: the column of weights would hide one of the table's."""
    if WEIGHT in names:
        raise ValueError(
            "uneven='pad' gives a column %r, and the table has one: give label= and weights=%r, or rename it with select="
            % (WEIGHT, WEIGHT)
        )
