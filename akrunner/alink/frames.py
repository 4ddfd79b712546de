"""Alink's functions between pandas and operators."""

from __future__ import annotations

from typing import Any

from akrunner.alink.flow import StreamOperator
from akrunner.alink.operator import BatchOperator
from akrunner.checks import shown
from akrunner.errors import ConfigError


def dataframeToOperator(df: Any, schemaStr: str | None = None, op_type: str | None = None, opType: str | None = None) -> Any:
    """A pandas DataFrame as an operator: `BatchOperator.fromDataframe`, or `StreamOperator.fromDataframe`.

    Args:
        df: its rows.
        schemaStr: names and types of its columns, in their order; None: its own.
        op_type: "batch" or "stream".
        opType: the same.
    Returns:
        the operator.
    Raises:
        ConfigError: the type is neither, or the frame does not fit the schema.
    """
    kind = opType if opType is not None else op_type
    if kind not in ("batch", "stream"):
        raise ConfigError(f"dataframeToOperator: op_type={shown(kind)}: give 'batch' or 'stream'")
    return (BatchOperator if kind == "batch" else StreamOperator).fromDataframe(df, schemaStr)


def collectToDataframes(*ops: BatchOperator) -> list[Any]:
    """Compute operators, and bring their rows here.

    Args:
        *ops: the operators.
    Returns:
        a pandas DataFrame of each.
    """
    return [op.collectToDataframe() for op in ops]
