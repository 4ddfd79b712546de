"""Every test of Alink's operators begins, and ends, with an environment of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from akrunner.alink import resetEnv


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    resetEnv()
    yield
    resetEnv()
