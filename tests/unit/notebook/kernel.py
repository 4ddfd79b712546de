"""A kernel's display, which keeps what it is given."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest


class Shown:
    """Attributes: bundles: each that was shown, the first one and those in its place; broken: whether it takes none."""

    def __init__(self) -> None:
        self.bundles: list[dict[str, str]] = []
        self.broken = False

    def display(self, bundle: dict[str, str], **options: Any) -> Shown:
        assert options == {"raw": True, "display_id": True}
        return self._take(bundle)

    def update(self, bundle: dict[str, str], **options: Any) -> None:
        assert options == {"raw": True} and self.bundles
        self._take(bundle)

    def _take(self, bundle: dict[str, str]) -> Shown:
        if self.broken:
            raise ConnectionError("the kernel's socket is closed")
        self.bundles.append(bundle)
        return self

    @property
    def plain(self) -> list[str]:
        return [one["text/plain"] for one in self.bundles]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """This process is the kernel of a notebook."""
    shown = Shown()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shown.display))  # type: ignore[arg-type]
    monkeypatch.delenv("AKRUNNER_PROGRESS", raising=False)
    return shown
