"""The arguments of `pack`, and the settings that are made of them once they are checked."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from akrunner.checks import check_choice, check_count, check_path, shown
from akrunner.errors import ConfigError
from akrunner.folders.gathered import MOST_BYTES
from akrunner.folders.pool import THREADS
from akrunner.io import formats
from akrunner.io.paths import PathLike
from akrunner.io.splits import NAMES, shares_of
from akrunner.options import named
from akrunner.packing.progress import PackProgress
from akrunner.schema import Schema

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)b?\s*", re.IGNORECASE)
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SIDE = 16_384

Split = str | Sequence[float] | Mapping[str, float] | None


@dataclass(frozen=True)
class Settings:
    """Checked settings of a run.

    Attributes:
        form: format of the shards.
        splits: names of the splits; empty if folders are the splits.
        fractions: share of each split; empty if folders are the splits.
        split_by: name, exact or folder.
        seed: seed of the order and the splits.
        shard_size: bytes of a shard, about.
        resize: (height, width); None: images are not resized.
        check: how images are checked: none, header or whole.
        bad_rows: fail, skip, or the directory that broken files are copied to.
        threads: how many threads read files.
        memory: bytes of memory for shuffling tables.
        max_file_size: most bytes of a file.
    """

    form: str
    splits: tuple[str, ...]
    fractions: tuple[float, ...]
    split_by: str
    seed: int
    shard_size: int
    resize: tuple[int, int] | None
    check: str
    bad_rows: str
    threads: int
    memory: int
    max_file_size: int

    def fractions_of(self, names: Sequence[str]) -> tuple[float, ...]:
        """Return the shares of the splits, in the order of `names`."""
        return tuple(self.fractions[self.splits.index(name)] for name in names)

    def kept(self) -> dict[str, Any]:
        """Return the settings that must be the same for a run to go on, and for new files to be added."""
        return {
            "format": self.form,
            "split": dict(zip(self.splits, self.fractions)) if self.split_by != "folder" else "folders",
            "split_by": self.split_by,
            "seed": self.seed,
            "resize": list(self.resize) if self.resize else None,
        }


@dataclass(frozen=True)
class PackArguments:
    """The arguments of `pack`; `akrunner.options` describes each of them."""

    # options: written by scripts/gen-options
    source: Any
    output: PathLike
    select: str | None = None
    columns: str | Sequence[str] | None = None
    decimals: str = "refuse"
    split: Split = None
    split_by: str = "name"
    input_schema: str | Schema | None = None
    input_format: str | None = None
    input_csv: str | Mapping[str, Any] | None = None
    bad_rows: PathLike = "fail"
    overwrite: bool = False
    seed: int = 0
    kind: str | None = None
    label: str | None = None
    paths: str | None = None
    paths_in: PathLike | None = None
    format: str = "tfrecord"
    shard_size: int | str = "128MB"
    resize: int | str | tuple[int, int] | None = None
    check: str = "header"
    max_file_size: int | str = "256MB"
    threads: int | None = None
    memory: int | str = "512MB"
    verify: bool = False
    progress: Callable[[PackProgress], None] | str = "auto"
    dry_run: bool = False
    # end of what scripts/gen-options writes


def settings_of(given: PackArguments) -> Settings:
    """Check the arguments, and return settings. Raises: ConfigError: an argument is wrong."""
    for name in ("format", "check", "split_by"):
        check_choice(name, getattr(given, name), named(name).choices_in("pack"))
    splits, fractions = splits_of(given.split)
    if given.split_by == "exact" and not splits:
        raise ConfigError(
            "split_by='exact' (--split-by exact) means nothing with split='folders' (--split folders): the folders say the "
            "split; leave it out"
        )
    return Settings(
        form=given.format,
        splits=splits,
        fractions=fractions,
        split_by=given.split_by if splits else "folder",
        seed=check_count("seed", given.seed, 0, 2**63 - 1),
        shard_size=size_of("shard_size", given.shard_size, 1000, 1 << 40),
        resize=None if given.resize is None else resize_of(given.resize),
        check=given.check,
        bad_rows=_bad_rows(given.bad_rows),
        threads=check_count("threads", given.threads, 1, 256) if given.threads is not None else THREADS,
        memory=size_of("memory", given.memory, 16 << 20, 1 << 44),
        max_file_size=size_of("max_file_size", given.max_file_size, 1, MOST_BYTES),
    )


def _bad_rows(given: Any) -> str:
    text = check_path("bad_rows", given)
    near = difflib.get_close_matches(text, ("fail", "skip"), 1, 0.7)
    if near and text not in near and os.path.basename(text) == text and not os.path.exists(text):
        raise ConfigError(
            f"bad_rows={text!r} (--bad-rows): did you mean {near[0]!r}? A directory of that name is written ./{text}"
        )
    return text if text in ("fail", "skip") else os.path.abspath(os.path.expanduser(text))


def splits_of(given: Any) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return (names of the splits, shares that add up to 1), from "0.8,0.1,0.1", "train=0.8,test=0.2", a list or a dict.

    Both are empty for "folders"; None means one split of all rows. Raises: ConfigError: the value is wrong.
    """
    if given is None:
        return NAMES[1], (1.0,)
    if isinstance(given, str) and given.strip() == "folders":
        return (), ()
    if isinstance(given, str) and difflib.get_close_matches(given.strip(), ["folders"], 1, 0.8):
        raise ConfigError(f"split={given!r} (--split): did you mean 'folders'?")
    return shares_of(given)


def size_of(name: str, given: Any, least: int, most: int) -> int:
    """Return a number of bytes, from a number or a text such as "128MB" (128 x 10^6) or "128MiB" (128 x 2^20).

    Raises: ConfigError: it is not a size, or is not between `least` and `most`.
    """
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


def resize_of(given: Any) -> tuple[int, int]:
    """Return (height, width), from "WIDTHxHEIGHT", a pair (height, width) as TensorFlow writes it, or one number for both."""
    if isinstance(given, str):
        match = re.fullmatch(r"\s*([0-9]{1,6})\s*(?:[xX\u00d7]\s*([0-9]{1,6}))?\s*", given)
        if match is None:
            raise ConfigError(f"resize={shown(given)}: give WIDTHxHEIGHT, like 256x256, or one number for both")
        sides: Sequence[Any] = (int(match[2] or match[1]), int(match[1]))
    elif isinstance(given, (list, tuple)) and len(given) == 2:
        sides = given
    elif isinstance(given, int):
        sides = (given, given)
    else:
        raise ConfigError(f"resize={shown(given)}: give 'WIDTHxHEIGHT', (height, width), or one number for both")
    height, width = (check_count("resize", side, 1, _SIDE) for side in sides)
    return height, width


def ending(form: str) -> str:
    return formats.named(form).endings[0]
