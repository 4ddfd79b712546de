"""One guard for a module of tests of what this process does by itself, where each test would start some."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from akrunner import leftovers


@pytest.fixture(autouse=True, scope="module")
def one_guard(request: pytest.FixtureRequest) -> Iterator[None]:
    """For tests of what a process does by itself: one guard for all of a module, where each would start some. Modules take it by importing it;
    `leaves_nothing` then asks whether anything is held instead of whether there is a guard."""
    if ".leftovers." in request.module.__name__:
        yield
        return
    with leftovers.together():
        yield
