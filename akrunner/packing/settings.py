"""What `pack` was asked for, checked: values in, plain values out."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from akrunner.checks import check_choice, check_count, check_path, check_text, shown
from akrunner.errors import ConfigError
from akrunner.io import formats
from akrunner.io.formats import arrow, parquet, tfrecord

KINDS = ("images", "texts", "files", "rows")
FORMATS = (tfrecord.FORMAT.name, parquet.FORMAT.name, arrow.FORMAT.name)
CHECKS = ("none", "header", "whole")
SPLIT_BY = ("name", "exact")
#: what splits are called that nobody named
_NAMES: Dict[int, Tuple[str, ...]] = {1: ("all",), 2: ("train", "test"), 3: ("train", "validation", "test")}
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_MOST_SPLITS = 100
#: the longest a file may be: an Example has less than 2 GiB
MOST_BYTES = (1 << 31) - (1 << 20)
#: that read files: they wait for the disk, not for a processor
_THREADS = 16
_SIDE = 16_384

Split = Union[str, Sequence[float], Mapping[str, float], None]


@dataclass(frozen=True)
class Settings:
    """Attributes: splits, fractions: the names and shares of the splits, none by folder; split_by: name, exact or folder; resize: (height, width);
    bad_rows: fail, skip, or a directory."""

    form: str
    splits: Tuple[str, ...]
    fractions: Tuple[float, ...]
    split_by: str
    seed: int
    shard_size: int
    resize: Optional[Tuple[int, int]]
    check: str
    bad_rows: str
    threads: int
    memory: int
    max_file_size: int

    def fractions_of(self, names: Sequence[str]) -> Tuple[float, ...]:
        """The shares of the splits in another order."""
        return tuple(self.fractions[self.splits.index(name)] for name in names)

    def kept(self) -> Dict[str, Any]:
        """What has to be the same when a run goes on, and when new files are added."""
        return {
            "format": self.form,
            "split": dict(zip(self.splits, self.fractions)) if self.split_by != "folder" else "folders",
            "split_by": self.split_by,
            "seed": self.seed,
            "resize": list(self.resize) if self.resize else None,
        }


def settings_of(
    split: Any,
    split_by: Any,
    seed: Any,
    shard_size: Any,
    resize: Any,
    form: Any,
    check: Any,
    bad_rows: Any,
    threads: Any,
    memory: Any,
    max_file_size: Any,
) -> Settings:
    """Raises: ConfigError: one of them is not what its parameter takes."""
    check_choice("format", form, FORMATS)
    check_choice("check", check, CHECKS)
    check_choice("split_by", split_by, SPLIT_BY)
    splits, fractions = splits_of(split)
    wanted = None if resize is None else resize_of(resize)
    return Settings(
        form=form,
        splits=splits,
        fractions=fractions,
        split_by=split_by if splits else "folder",
        seed=check_count("seed", seed, 0, 2**63 - 1),
        shard_size=size_of("shard_size", shard_size, 1000, 1 << 40),
        resize=wanted,
        check=check,
        bad_rows=_bad_rows(bad_rows),
        threads=check_count("threads", threads, 1, 256) if threads is not None else _THREADS,
        memory=size_of("memory", memory, 16 << 20, 1 << 44),
        max_file_size=size_of("max_file_size", max_file_size, 1, MOST_BYTES),
    )


def _bad_rows(given: Any) -> str:
    text = check_path("bad_rows", given)
    return text if text in ("fail", "skip") else os.path.abspath(os.path.expanduser(text))


def splits_of(given: Any) -> Tuple[Tuple[str, ...], Tuple[float, ...]]:
    """(names, shares that add up to 1) of "0.8,0.1,0.1", "train=0.8,test=0.2", a list or a dict; neither, where folders say it."""
    if given is None:
        return _NAMES[1], (1.0,)
    if isinstance(given, str):
        check_text("split", given)
        if given.strip() == "folders":
            return (), ()
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


def _named(given: Any, names: Sequence[str]) -> Tuple[str, ...]:
    if not any(names):
        if not names or len(names) > len(_NAMES):
            raise ConfigError(f"split={shown(given)}: name so many splits: 'train=0.7,validation=0.1,test=0.1,holdout=0.1'")
        return _NAMES[len(names)]
    odd = next((name for name in names if not _NAME.fullmatch(name)), None)
    if odd is not None:
        raise ConfigError(
            f"split={shown(given)}: {odd!r} is no name of a split: letters, digits, - and _, as it becomes a directory"
        )
    if len({name.lower() for name in names}) < len(names):
        raise ConfigError(f"split={shown(given)}: a name is there twice")
    if len(names) > _MOST_SPLITS:
        raise ConfigError(f"split: {len(names):,} splits; the most is {_MOST_SPLITS}")
    return tuple(names)


def _shares(given: Any, values: Sequence[float]) -> Tuple[float, ...]:
    if not all(0 < value < math.inf for value in values):
        raise ConfigError(f"split={shown(given)}: shares are numbers above 0, like '0.8,0.1,0.1'")
    whole = sum(values)
    if abs(whole - 100) < 1e-6:
        return tuple(value / 100 for value in values)
    if abs(whole - 1) > 1e-6:
        raise ConfigError(f"split={shown(given)}: the shares add up to {whole:g}, not to 1")
    return tuple(value / whole for value in values)


def size_of(name: str, given: Any, least: int, most: int) -> int:
    """Bytes, of a number or of "128MB" (10^6) and "128MiB" (2^20)."""
    if isinstance(given, str):
        match = _SIZE.fullmatch(given)
        if match is None or len(given) > 40:
            raise ConfigError(f"{name}={shown(given)}: give bytes, like 128MB or 1GiB")
        number, unit, binary = match.groups()
        value: Any = int(float(number) * (1024 if binary else 1000) ** _UNITS[unit.lower()])
    else:
        value = check_count(name, given, 0, most)
    if not least <= value <= most:
        raise ConfigError(f"{name}={shown(given)}: give between {_bytes_in_words(least)} and {_bytes_in_words(most)}")
    return int(value)


def _bytes_in_words(number: int) -> str:
    power = next((power for power in (4, 3, 2, 1) if number % 1024**power == 0), 0)
    return f"{number >> 10 * power} {' KMGT'[power]}iB" if power else f"{number:,} bytes"


def resize_of(given: Any) -> Tuple[int, int]:
    """(height, width) of "WIDTHxHEIGHT", of a pair (height, width) as TensorFlow has it, or of one number for both."""
    if isinstance(given, str):
        match = re.fullmatch(r"\s*([0-9]{1,6})\s*(?:[xX\u00d7]\s*([0-9]{1,6}))?\s*", given)
        if match is None:
            raise ConfigError(f"resize={shown(given)}: give WIDTHxHEIGHT, like 256x256")
        sides: Sequence[Any] = (int(match[2] or match[1]), int(match[1]))
    elif isinstance(given, (list, tuple)) and len(given) == 2:
        sides = given
    elif isinstance(given, int):
        sides = (given, given)
    else:
        raise ConfigError(f"resize={shown(given)}: give 'WIDTHxHEIGHT', or (height, width)")
    height, width = (check_count("resize", side, 1, _SIDE) for side in sides)
    return height, width


def ending(form: str) -> str:
    return formats.named(form).endings[0]
