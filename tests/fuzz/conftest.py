"""The profile by which `scripts/fuzz` runs what is here."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.fuzz import UNTIL

# tests/conftest.py's own profile, derandomised and short, is what the suite uses
settings.register_profile(
    "fuzz", deadline=None, derandomize=False, max_examples=1000, print_blob=True, suppress_health_check=list(HealthCheck)
)


def pytest_runtest_setup() -> None:
    if time.time() > UNTIL:
        pytest.skip("the minutes are over")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker("slow")
