from collections.abc import Iterator

import duckdb
import pytest

from akrunner.io import writers
from tests.guards import one_guard

__all__ = ["one_guard"]


@pytest.fixture(autouse=True, scope="session")
def lines_database() -> Iterator[None]:
    """The database with which writers of JSON lines work, which all of a process share: it is made once, and not for each of hundreds of writers
    that are alone, which takes 13 ms."""
    with duckdb.connect(writers._LINES_DATABASE):
        yield
