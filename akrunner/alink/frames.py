"""Alink's functions that convert pandas DataFrames to operators and back."""

from __future__ import annotations

from typing import Any

from akrunner.alink.flow import StreamOperator
from akrunner.alink.operator import BatchOperator
from akrunner.checks import shown
from akrunner.errors import ConfigError


def dataframeToOperator(df: Any, schemaStr: str | None = None, op_type: str | None = None, opType: str | None = None) -> Any:
    """Turn a pandas DataFrame into an operator, as `BatchOperator.fromDataframe` or `StreamOperator.fromDataframe` does.

    Args:
        df: the DataFrame.
        schemaStr: names and types for its columns, in their order; None: those of the DataFrame.
        op_type: "batch" or "stream".
        opType: another name for `op_type`; where both are given, this one is used.
    Returns:
        the operator.
    Raises:
        ConfigError: the type is neither "batch" nor "stream", or the DataFrame does not fit the schema.
    """
    kind = opType if opType is not None else op_type
    if kind not in ("batch", "stream"):
        raise ConfigError(f"dataframeToOperator: op_type={shown(kind)}: give 'batch' or 'stream'")
    return (BatchOperator if kind == "batch" else StreamOperator).fromDataframe(df, schemaStr)


def collectToDataframes(*ops: BatchOperator) -> list[Any]:
    """Compute operators, and return their rows.

    Args:
        *ops: the operators.
    Returns:
        one pandas DataFrame for each operator, in the same order.
    """
    return [op.collectToDataframe() for op in ops]
