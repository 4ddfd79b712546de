"""Params, variables, names and numbers of any shape: what crosses is plain and the same; what does not is a ConfigError."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from akrunner.checks import (
    check_count,
    check_environment,
    check_host,
    check_names,
    check_params,
    check_path,
    check_paths,
    check_seconds,
)  # fmt: skip
from akrunner.cli.values import params
from akrunner.errors import ConfigError
from akrunner.spec import ClusterSpec

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.complex_numbers(), st.just(object()), st.sets(st.integers())
)  # fmt: skip
KEYS = st.one_of(st.text(), st.integers(), st.none(), st.tuples(st.integers()))
ANYTHING = st.recursive(LEAVES, lambda inner: st.one_of(st.lists(inner), st.tuples(inner, inner), st.dictionaries(KEYS, inner)))


@given(ANYTHING)
def test_params(value: Any) -> None:
    try:
        plain = check_params("user_params", value)
    except ConfigError as e:
        assert "user_params" in str(e) and len(str(e)) < 1000
        return
    # what Python's own JSON would make of it, and nothing else
    assert plain == json.loads(json.dumps(value, allow_nan=False))


@given(ANYTHING)
def test_variables(value: Any) -> None:
    try:
        made = check_environment("env", value)
    except ConfigError as e:
        assert "env" in str(e)
        return
    assert all(name and "=" not in name and "\0" not in name + text for name, text in made.items())


@given(ANYTHING)
def test_numbers_names_and_paths(value: Any) -> None:
    for check in (check_path, check_paths, check_names, check_host):
        try:
            check("it", value)
        except ConfigError as e:
            assert "it" in str(e)
    try:
        seconds = check_seconds("timeout", value, none=True)
        assert seconds is None or (0 < seconds < math.inf)
    except ConfigError as e:
        assert "timeout" in str(e)
    try:
        assert check_count("n", value, 1) >= 1
    except ConfigError as e:
        assert "n" in str(e)


@given(ANYTHING, ANYTHING, ANYTHING)
def test_clusters(workers: Any, servers: Any, parallelism: Any) -> None:
    try:
        cluster = ClusterSpec.of(workers, servers, parallelism)
    except ConfigError:
        return
    assert 1 <= cluster.num_workers <= 100_000


@given(st.text())
def test_a_param_of_the_command_line(text: str) -> None:
    try:
        params([text], None)
    except ConfigError as e:
        assert "--param" in str(e)
