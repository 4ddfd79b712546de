"""Online learning: rows are made, sent, predicted and learned from while this loop prints what has come back."""

import pathlib
import random
from typing import Any, Dict, Iterator

import akrunner

HERE = pathlib.Path(__file__).parent


def rows(count: int) -> Iterator[Dict[str, Any]]:
    """y = 2 x1 - x2 + 0.5, and half way the world changes: y = -x1 + 1."""
    random.seed(7)
    for i in range(count):
        x1, x2 = random.uniform(-1, 1), random.uniform(-1, 1)
        y = 2 * x1 - x2 + 0.5 if i < count // 2 else 1 - x1
        yield {"id": i, "x1": x1, "x2": x2, "y": y}


def main() -> None:
    errors = []
    with akrunner.stream(
        HERE / "online.py",
        rows(20_000),
        input_schema="id bigint, x1 double, x2 double, y double",
        output_schema="id bigint, y double, predicted double",
        data_format="columns",
    ) as job:
        for batch in job:
            for row in batch.to_pylist():
                errors.append(abs(row["y"] - row["predicted"]))
                if len(errors) % 2000 == 0:
                    print(f"row {len(errors):6}: off by {sum(errors[-200:]) / 200:.3f} on average")
    print(f"first 200 rows: off by {sum(errors[:200]) / 200:.3f}; last 200: {sum(errors[-200:]) / 200:.3f}")


if __name__ == "__main__":
    main()
