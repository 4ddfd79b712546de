"""DataFrames become operators, and operators DataFrames."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from akrunner.alink import BatchOperator, StreamOperator
from akrunner.alink.frames import collectToDataframes, dataframeToOperator
from akrunner.errors import ConfigError

FRAME = pd.DataFrame({"a": [1, 2], "s": ["x", None]})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"op_type": "batch"}, BatchOperator),
        ({"opType": "stream"}, StreamOperator),
        ({"op_type": "batch", "opType": "stream"}, StreamOperator),
    ],
)
def test_a_frame_becomes_the_operator_that_is_asked_for(given: dict[str, str], kind: type) -> None:
    made = dataframeToOperator(FRAME, None, **given)
    assert isinstance(made, kind) and made.getSchemaStr() == "a BIGINT, s VARCHAR"
    assert dataframeToOperator(FRAME, "n double, t string", **given).getSchemaStr() == "n DOUBLE, t VARCHAR"


@pytest.mark.parametrize("kind", [None, "", "Batch", 1])
def test_another_type_of_operator_is_an_error(kind: Any) -> None:
    with pytest.raises(ConfigError, match=r"dataframeToOperator: op_type=.*: give 'batch' or 'stream'"):
        dataframeToOperator(FRAME, op_type=kind)


def test_operators_become_frames_in_their_order() -> None:
    one = dataframeToOperator(FRAME, op_type="batch")
    first, second = collectToDataframes(one, one.select("a"))
    assert first.equals(FRAME) and second.a.tolist() == [1, 2] and collectToDataframes() == []
