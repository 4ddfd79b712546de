"""Functions of MaxCompute's that are made in DuckDB."""

from __future__ import annotations

import re

import pytest

from akrunner.tables.functions import MACROS, macros_for


@pytest.mark.parametrize("name", MACROS)
def test_a_function_comes_with_those_it_calls_before_it(name: str) -> None:
    made = macros_for(f"SELECT {name.upper()}(1)")
    names = list(made)
    assert names[-1] == name
    for at, statement in enumerate(made.values()):
        assert MACROS.keys() & set(re.findall(r"\w+", statement)) <= set(names[: at + 1])


def test_what_a_query_does_not_call_is_not_made() -> None:
    assert macros_for("SELECT lower(x), odps_unitary FROM t") == {}
    assert list(macros_for("SELECT odps_datediff(a, b, 'dd'), toLower(x) FROM t")) == ["odps_unit", "odps_datediff", "tolower"]
