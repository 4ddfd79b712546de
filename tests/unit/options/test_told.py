"""The decorator that checks what a public function is called with."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.options.told import told


@told("run")
def run(*args: Any, **options: Any) -> Any:
    """It runs."""
    return args, options


class Predictor:
    @told("LocalPredictor")
    def __init__(self, *args: Any, **options: Any) -> None:
        self.given = (args, options)


def test_what_fits_reaches_the_function_as_it_was_given() -> None:
    assert run("s.py", "t.csv", num_workers=2) == (("s.py", "t.csv"), {"num_workers": 2})
    assert (run.__name__, run.__doc__) == ("run", "It runs.")
    assert Predictor("m.zip", python_env="tf2").given == (("m.zip",), {"python_env": "tf2"})


def test_a_keyword_that_the_function_lacks_is_a_type_error_with_the_one_that_is_meant() -> None:
    with pytest.raises(
        TypeError, match="^akrunner.run: there is no option 'num_worker' for run; did you mean 'num_workers'[?]$"
    ):
        run("s.py", "t.csv", num_worker=2)


def test_an_option_that_means_nothing_beside_the_others_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="^stall_action= .* means nothing with stall_timeout=0 "):
        run("s.py", stall_action="warn", stall_timeout=0)


def test_what_is_given_without_a_name_counts_as_given() -> None:
    """`output_live` and others need a source, which stands second."""
    with pytest.raises(ConfigError, match="means nothing without source="):
        run("s.py", select="SELECT 1")
    assert run("s.py", "t.csv", select="SELECT 1")[1] == {"select": "SELECT 1"}
