"""What was packed, in a notebook."""

from __future__ import annotations

from akrunner.packing import shown
from akrunner.packing.result import Packed
from tests.unit.test_markup import HOSTILE, read


def test_splits_classes_and_what_was_left_out() -> None:
    labels = [f"c{at}" for at in range(50)]
    splits = {"train": 90, "test": 10}
    made = Packed("out", "images", splits, 100, 100, 2, 5_000_000, labels, skipped=[(HOSTILE, HOSTILE)], skipped_rows=1)
    assert made._repr_html_() == shown.packed(made)
    text = read(shown.packed(made))
    assert text.startswith(
        "Packed out: packed 100 rows in 0.0 ssplitrowstrain90test10in all100 rows of images in 2 files, 5.0 MB"
    )
    assert (
        "c39 and 10 more" in text
        and "the first 1 broken files" in text
        and "akrunner.run(script, 'out/train') reads a split" in text
    )


def test_nothing_new() -> None:
    text = read(Packed("out", "rows", {}, 0, 0, 0, 0, [], dry_run=True)._repr_html_())
    assert text.startswith("Packed out: there was nothing new") and "akrunner.run" not in text
