"""Jobs that save their model and their place in the rows, and are killed again and again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import akrunner
from tests.conftest import Script

pytestmark = pytest.mark.slow

COUNTS = """
    import json, os, random, signal

    def main(task_config):
        seen = {}

        def save(folder):
            with open(os.path.join(folder, "seen"), "w") as f:
                json.dump(seen, f)

        def restore(folder):
            with open(os.path.join(folder, "seen")) as f:
                seen.update(json.load(f))

        kills, attempt = task_config.user_params["kills"], task_config.attempt
        # both draw the same number: the task that is killed, and before which of its batches
        victim, last = random.Random(attempt).choice(["chief", "worker"]), random.Random(attempt).randint(1, 9)
        checkpoint = task_config.checkpoint(every=3, save=save, restore=restore)
        begun = checkpoint.step
        for epoch in checkpoint.epochs(3):
            for batch in checkpoint.batches(10):
                if attempt < kills and task_config.task_type == victim and checkpoint.step == begun + last:
                    os.kill(os.getpid(), signal.SIGKILL)
                seen.setdefault(str(epoch), []).extend(batch["a"].tolist())
                checkpoint.trained()
        for epoch, rows in sorted(seen.items()):
            task_config.output_writer.write_batch({"epoch": [int(epoch)], "rows": [len(rows)], "sum": [sum(set(rows))]})
"""


def test_twenty_kills_change_no_epoch(script: Script, tmp_path: Path, leaves_nothing: Path) -> None:
    path, table = script(COUNTS), {"a": list(range(1003))}
    given: Any = dict(num_workers=2, output_schema="epoch bigint, rows bigint, sum bigint")
    for form, kills in (("examples", 3), ("columns", 20)):
        undisturbed = akrunner.run(path, table, user_params={"kills": 0}, data_format=form, **given)
        killed = akrunner.run(
            path, table, user_params={"kills": kills}, max_restarts=kills, restart_delay=0, data_format=form, **given
        )
        assert killed.stats.attempt == kills and undisturbed.table is not None and killed.table is not None
        assert undisturbed.table["rows"].to_pylist() == [502] * 3 + [501] * 3
        assert killed.table.equals(undisturbed.table)
