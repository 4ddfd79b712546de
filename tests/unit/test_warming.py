"""The arguments of `akrunner.warm` that are refused before anything is started."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner import warm
from akrunner.errors import ConfigError
from akrunner.warming import _most_bytes


@pytest.mark.parametrize("given", [5, 255 << 20, "5", "200MB", "255MiB"])
def test_memory_that_holds_no_worker(given: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"^max_memory=.*\(--max-memory\): .*with TensorFlow has 200 to 650 MiB; give at least 256 MiB"
    ):
        warm(max_memory=given)
    with pytest.raises(ConfigError, match="give at least 1 MiB"):
        warm(max_memory=5, preload=())


@pytest.mark.parametrize("given", ["2 gigs", "", "0", 0, 1.5, True])
def test_memory_that_is_no_size(given: Any) -> None:
    with pytest.raises(ConfigError, match="^max_memory"):
        warm(max_memory=given)


def test_memory_with_a_unit() -> None:
    assert _most_bytes("2GB", ("tensorflow",)) == 2 * 10**9
    assert _most_bytes("1GiB", ("tensorflow.python",)) == _most_bytes(1 << 30, ()) == 1 << 30
    assert _most_bytes(1 << 20, ("numpy",)) == 1 << 20
