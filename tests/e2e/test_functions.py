"""A function of the program's own in place of a script."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import akrunner

FACTOR = 2.0


def _scaled(x: Any) -> Any:
    return x * FACTOR + math.floor(1.5)


def scale(args: Any) -> None:
    for batch in args.batches(2):
        args.output_writer.write_batch({"id": batch["id"], "y": _scaled(batch["id"])})
    if args.user_params.get("fail"):
        raise ValueError("as asked")


@pytest.mark.slow
def test_a_function_is_run_like_a_script(leaves_nothing: Path) -> None:
    result = akrunner.run(scale, {"id": [1, 2, 3]}, output_schema="id int64, y float64", num_workers=2)
    assert result.table is not None
    assert sorted(row["y"] for row in result.table.to_pylist()) == [3.0, 5.0, 7.0]


@pytest.mark.slow
def test_its_traceback_has_the_lines_of_its_own_file(leaves_nothing: Path) -> None:
    with pytest.raises(akrunner.ScriptFailedError) as caught:
        akrunner.run(scale, {"id": [1]}, output_schema="id int64, y float64", user_params={"fail": True})
    line = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "as asked" in text)
    assert f'File "{__file__}", line {line}, in scale\n    raise ValueError("as asked")' in str(caught.value)
