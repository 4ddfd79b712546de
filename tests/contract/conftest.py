"""The behavioural suite runs against every engine; an engine joins by being named here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

import akrunner

ENGINES = ["local"]

Run = Callable[..., akrunner.Result]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run(engine: str, leaves_nothing: Path) -> Iterator[Run]:
    """`akrunner.run` on the engine; a job's defaults are a table of ten rows and a schema of two columns."""

    def start(script: str, source: Any = None, **options: Any) -> akrunner.Result:
        table = {"a": list(range(10)), "x": [i / 2 for i in range(10)]} if source is None else source
        options.setdefault("output_schema", "id bigint, p double")
        return akrunner.run(script, table, engine=engine, **options)

    yield start
