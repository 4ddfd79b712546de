"""The observer of a job, whom its engine tells of progress and of the lines that scripts print."""

from __future__ import annotations

from typing import Any

from akrunner.checks import shown
from akrunner.errors import ConfigError
from akrunner.foreign import ours


def check_observer(observer: Any) -> None:
    """Check that an observer is None or has the methods `progress` and `log`. Raises: ConfigError: it is neither."""
    with ours(ConfigError, "observer: it cannot be asked what it is"):
        right = observer is None or all(callable(getattr(observer, name, None)) for name in ("progress", "log"))
    if not right:
        raise ConfigError(f"observer must have progress(progress) and log(task, line), not be {shown(observer)}")
