"""Who may look on at a job."""

from __future__ import annotations

import types
from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.running.observer import check_observer


class Watching:
    def progress(self, progress: Any) -> None: ...

    def log(self, task: str, line: str) -> None: ...


class Broken:
    @property
    def progress(self) -> Any:
        raise ZeroDivisionError("injected")


@pytest.mark.parametrize("observer", [None, Watching(), types.SimpleNamespace(progress=print, log=print)])
def test_nobody_or_whoever_has_both_methods_may_look_on(observer: Any) -> None:
    check_observer(observer)


@pytest.mark.parametrize(
    "observer", [print, "me", 0, object(), types.SimpleNamespace(progress=print), types.SimpleNamespace(progress=print, log=3)]
)
def test_whoever_could_not_be_told_anything_is_refused(observer: Any) -> None:
    with pytest.raises(ConfigError, match=r"^observer must have progress\(progress\) and log\(task, line\), not be "):
        check_observer(observer)


def test_what_an_observer_raises_when_it_is_asked_is_told() -> None:
    with pytest.raises(ConfigError, match="^observer: it cannot be asked what it is: .*injected"):
        check_observer(Broken())
