"""The sizes that files from outside may have, and how a user allows more.

::

    a.zip#max=20GB                    this file alone, downloaded and unpacked
    AKRUNNER_MAX_DOWNLOAD=20GB        every download
    AKRUNNER_MAX_UNPACKED=20GB        every archive, unpacked
    AKRUNNER_MAX_MEMBERS=2000000      members of one archive

Standard library only: Flink's agents use it.
"""

from __future__ import annotations

import os
import re

from akrunner.errors import AkrunnerError, ConfigError
from akrunner.launch.trees import Blame

DOWNLOAD = 16 << 30
UNPACKED = 64 << 30
#: any archive may unpack to so many bytes; it may unpack to more only up to RATIO times its own size
ALWAYS = 1 << 30
RATIO = 100
MEMBERS = 200_000

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}


def parsed(text: str, parameter: str) -> int:
    """Return the bytes that a size such as "20GB", "512MiB" or "1000" says. Raises: ConfigError: it is no size."""
    match = re.fullmatch(r"([0-9]{1,15})\s*([kmgt]i?)?b?", text.strip().lower())
    if match is None or int(match[1]) == 0:
        raise ConfigError(f"{parameter}={text}: give a size like 20GB, 512MB or 1000000")
    return int(match[1]) * _UNITS[match[2] or ""]


def shown(size: int) -> str:
    """Return a number of bytes in words: "20 GB", "1.5 MB"."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        # 999,960 bytes are 1 MB, not 1000 kB
        if size >= 0.99995 * factor:
            return f"{size / factor:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} bytes"


class Budget:
    """The bytes and files that an archive, or a download, may still bring.

    Attributes:
        most: bytes in all.
        members: files in all.
    """

    def __init__(self, most: int, words: str, variable: str, blame: Blame) -> None:
        """Begin with nothing taken.

        Args:
            most: bytes in all.
            words: how the error begins, "a.zip unpacks to".
            variable: the environment variable that raises the limit for all.
        """
        self.most = most
        self._left = most
        self._words = words
        self._variable = variable
        self._blame = blame
        self.members = _from_environment("AKRUNNER_MAX_MEMBERS") or MEMBERS
        self._members_left = self.members

    def take(self, size: int) -> None:
        """Count bytes that have come, or are announced. Raises: `blame.kind`: they are too many."""
        self._left -= size
        if self._left < 0:
            wanted = _rounded(max(2 * self.most, self.most - self._left))
            given = self._blame.given
            behind = re.sub(r"(?<=[#&])max=[^&]*&?", "", given).rstrip("#&")
            fits = f"write {behind}{'&' if '#' in behind else '#'}max={wanted}, or " if given else ""
            how = f"{fits}set {self._variable}={wanted}"
            raise self._blame.error(f"{self._words} more than {shown(self.most)}; if it should, {how}")

    def member(self) -> None:
        """Count another member. Raises: `blame.kind`: there are too many."""
        self._members_left -= 1
        if self._members_left < 0:
            raise self._too_many()

    def announced(self, members: int) -> None:
        """Check the number of members that are going to come, without counting them.

        Raises:
            `blame.kind`: they are too many.
        """
        if members > self._members_left:
            raise self._too_many()

    def _too_many(self) -> AkrunnerError:
        return self._blame.error(
            f"{self._words} more than {self.members:,} files; if it should, set AKRUNNER_MAX_MEMBERS={10 * self.members}"
        )


def downloading(what: str, blame: Blame, most: int = 0, usual: int = 0) -> Budget:
    """Return the budget of a download.

    Args:
        what: the thing that is downloaded, in words.
        most: the bytes that the user allows; 0: the user has not said.
        usual: the bytes allowed if neither the user nor the environment sets a limit; 0: DOWNLOAD.
    """
    return Budget(
        most or _from_environment("AKRUNNER_MAX_DOWNLOAD") or usual or DOWNLOAD, f"{what} has", "AKRUNNER_MAX_DOWNLOAD", blame
    )


def unpacking(what: str, blame: Blame, packed: int | None = None, most: int = 0) -> Budget:
    """Return the budget of an archive that is unpacked.

    Args:
        what: the archive, in words.
        packed: the archive's size in bytes; None: not known.
        most: the bytes that the user allows; 0: the user has not said.
    """
    default = UNPACKED if packed is None else min(UNPACKED, max(ALWAYS, RATIO * packed))
    return Budget(
        most or _from_environment("AKRUNNER_MAX_UNPACKED") or default, f"{what} unpacks to", "AKRUNNER_MAX_UNPACKED", blame
    )


def _from_environment(variable: str) -> int:
    text = os.environ.get(variable)
    return parsed(text, variable) if text else 0


def _rounded(size: int) -> str:
    """Return the size to suggest to the user for at least so many bytes."""
    if size >= 10**9:
        return f"{-(-size // 10**9)}GB"
    return f"{-(-size // 10**6)}MB"
