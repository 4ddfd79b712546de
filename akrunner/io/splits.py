"""Splits of a table: how the user describes them, and which rows belong to which."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from akrunner.checks import check_count, check_text, shown
from akrunner.errors import ConfigError
from akrunner.io import hashes
from akrunner.io.table import TableSource
from akrunner.schema import repeated
from akrunner.spec import SplitSpec
from akrunner.wire.near import nearest

#: the names of the splits if the user gives none, by their number
NAMES: dict[int, tuple[str, ...]] = {1: ("all",), 2: ("train", "test"), 3: ("train", "validation", "test")}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
_MOST_SPLITS = 100
_MOST_SEED = 2**63 - 1


def shares_of(given: Any) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return (names, shares that add up to 1) of "0.8,0.1,0.1", "train=0.8,test=0.2", a list or a dict.

    Raises:
        ConfigError: it does not describe splits.
    """
    if isinstance(given, str):
        check_text("split", given)
        parts = [part.strip() for part in given.split(",")]
        named = ["=" in part for part in parts]
        if any(named) and not all(named):
            raise ConfigError(f"split={shown(given)}: name all of them, or none: train=0.8,test=0.2")
        pairs = [part.partition("=")[::2] if "=" in part else ("", part) for part in parts]
        names, values = [name.strip() for name, _ in pairs], [_number(text) for _, text in pairs]
    elif isinstance(given, Mapping):
        names, values = [one if isinstance(one, str) else "" for one in given], [_number(one) for one in given.values()]
        if not all(names):
            raise ConfigError(f"split={shown(given)}: the names of splits are texts")
    elif isinstance(given, (list, tuple)):
        names, values = [""] * len(given), [_number(one) for one in given]
    else:
        raise ConfigError(f"split={shown(given)}: give shares like '0.8,0.1,0.1', or 'train=0.8,test=0.2'")
    return _named(given, names), _shares(given, values)


def _number(given: Any) -> float:
    try:
        return (
            float(given.strip().rstrip("%"))
            if isinstance(given, str)
            else math.nan
            if isinstance(given, bool)
            else float(given)
        )
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _named(given: Any, names: Sequence[str]) -> tuple[str, ...]:
    if not any(names):
        if not names or len(names) > len(NAMES):
            raise ConfigError(f"split={shown(given)}: name so many splits: 'train=0.7,validation=0.1,test=0.1,holdout=0.1'")
        return NAMES[len(names)]
    odd = next((name for name in names if not _NAME.fullmatch(name)), None)
    if odd is not None:
        raise ConfigError(f"split={shown(given)}: {odd!r:.100} is no name of a split, which has letters, digits, - and _")
    first: dict[str, str] = {}
    for name in names:
        before = first.setdefault(name.lower(), name)
        if before != name:
            raise ConfigError(
                f"split={shown(given)}: {before!r} and {name!r} differ only by case, and count as one name, as they would be "
                "one directory on some disks; give another name"
            )
    if len(first) < len(names):
        raise ConfigError(f"split={shown(given)}: {repeated(list(names))!r} is there twice; give another name")
    if len(names) > _MOST_SPLITS:
        raise ConfigError(f"split: {len(names):,} splits; the most is {_MOST_SPLITS}")
    return tuple(names)


def _shares(given: Any, values: Sequence[float]) -> tuple[float, ...]:
    if not all(0 < value < math.inf for value in values):
        raise ConfigError(f"split={shown(given)}: shares are numbers above 0, like '0.8,0.1,0.1'")
    whole = sum(values)
    if abs(whole - 100) < 1e-6:
        return tuple(value / 100 for value in values)
    if abs(whole - 1) > 1e-6:
        raise ConfigError(f"split={shown(given)}: the shares add up to {whole:g}, not to 1")
    return tuple(value / whole for value in values)


def check_split(split: Any, split_by: Any, split_seed: Any) -> SplitSpec | None:
    """Return `split=`, `split_by=` and `split_seed=` after the checks that need no table; None if there is no split.

    Raises:
        ConfigError: one of them is wrong, or `split=` is missing.
    """
    seed = check_count("split_seed", split_seed, 0, _MOST_SEED)
    by = check_text("split_by", split_by) if split_by is not None else None
    if split is None:
        if by is not None or seed:
            name = "split_by" if by is not None else "split_seed"
            raise ConfigError(
                f"{name}= says how the table is split, and split= is missing: split={{'train': 0.8, 'test': 0.2}}"
            )
        return None
    names, fractions = shares_of(split)
    return SplitSpec(names, fractions, by, seed)


def check_table(spec: SplitSpec, table: TableSource) -> None:
    """Check that the table can be split in this way.

    Raises:
        ConfigError: it cannot.
    """
    if table.elsewhere:
        raise ConfigError(
            "split: rows of a PyFlink program do not come through here; write them to a file, or filter them there"
        )
    if not table.schema.names:
        raise ConfigError(
            "split: there is no table to split (source=, --input); a script splits itself what it asks for by name"
        )
    if spec.by is None:
        return
    if spec.by not in table.schema.names:
        there = ", ".join(table.schema.names)
        raise ConfigError(
            f"split_by: no column {spec.by!r} goes to the tasks (there are {there}){nearest(spec.by, table.schema.names)}"
        )
    kind = table.schema.field(spec.by).type
    if not hashes.can_hash(kind):
        raise ConfigError(
            f"split_by: column {spec.by!r} is {kind}; a column of numbers, booleans, text, bytes, dates or timestamps can say "
            "the split: CAST it in select= (--select)"
        )


class Splitter:
    """Decides to which split rows belong."""

    def __init__(self, spec: SplitSpec) -> None:
        self._spec = spec
        self._base = hashes.mixed(np.array([spec.seed], np.uint64), hashes.ROWS)[0]

    def marks(self, batch: pa.RecordBatch, first: int, step: int) -> NDArray[np.uint8]:
        """Return [rows] the number of each row's split.

        Args:
            first: the number in the table of the batch's first row.
            step: the difference between the numbers of consecutive rows.
        """
        if self._spec.by is None:
            hashed = hashes.of_numbers(self._base, first, batch.num_rows, step)
        else:
            hashed = hashes.of_values(batch.column(self._spec.by), self._base)
        return hashes.by_name(hashed, self._spec.fractions)
