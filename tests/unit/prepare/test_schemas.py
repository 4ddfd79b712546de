"""Whatever a person may give as a schema becomes the same schema, and an error names the parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from akrunner.errors import ConfigError, SchemaError
from akrunner.prepare.schemas import schema_of
from akrunner.schema import Schema

WANTED = pa.schema([("id", pa.int64()), ("p", pa.float64())])


@pytest.mark.parametrize(
    "given",
    ["id bigint, p double", WANTED, Schema.from_arrow(WANTED), {"id": "bigint", "p": float}, {"id": np.int64, "p": pa.float64()}, np.dtype([("id", "i8"), ("p", "f8")])],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_schema_may_be_given_in_many_ways(given: Any) -> None:
    schema = schema_of(given, "input_schema")
    assert schema is not None and schema.arrow == WANTED


def test_dtypes_of_a_frame_are_a_schema() -> None:
    pd = pytest.importorskip("pandas")
    schema = schema_of(pd.DataFrame({"id": [1], "p": [0.5]}).dtypes, "input_schema")
    assert schema is not None and schema.arrow == WANTED


def test_no_schema_stays_none_and_a_schema_stays_itself() -> None:
    made = Schema.from_arrow(WANTED)
    assert schema_of(None, "input_schema") is None and schema_of(made, "input_schema") is made


@pytest.mark.parametrize("parameter", ["input_schema", "output_schema"])
@pytest.mark.parametrize("given", ["id bigimt", "", "id", {}, {"id": "no"}, {3: "bigint"}], ids=str)
def test_a_schema_that_is_wrong_names_its_parameter(given: Any, parameter: str) -> None:
    with pytest.raises(SchemaError, match=parameter):
        schema_of(given, parameter)


@pytest.mark.parametrize("given", [3, ["id bigint"], b"id bigint", np.dtype("i8"), True], ids=str)
def test_what_is_no_schema_at_all_is_told_with_its_type(given: Any) -> None:
    with pytest.raises(
        ConfigError, match=f"^output_schema must be text like 'id bigint, p double', .*not {type(given).__name__}$"
    ):
        schema_of(given, "output_schema")


def test_what_cannot_cross_has_a_hint_for_the_side_that_it_is_on() -> None:
    """`select=` changes columns of the input, not of the output."""
    given = pa.schema([("a", pa.decimal256(50, 2))])
    with pytest.raises(
        SchemaError,
        match=r"which a tf.train.Example cannot hold; decimals=.* what all decimals become; turn it into one that can with select=",
    ):
        schema_of(given, "input_schema")
    with pytest.raises(
        SchemaError, match="^output_schema: column 'a' is .* cannot hold; declare it as a type that one can"
    ) as told:
        schema_of(given, "output_schema")
    assert "select" not in str(told.value)
