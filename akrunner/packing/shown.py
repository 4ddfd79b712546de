"""What `akrunner.pack` has done as HTML for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from akrunner import markup

if TYPE_CHECKING:
    from akrunner.packing.result import Packed

#: how many broken files, and names of classes, are shown
_FILES, _LABELS = 20, 40


def packed(told: Packed) -> str:
    """Return the HTML of a run's result: how many rows each split has, and what was left out."""
    would = "would pack" if told.dry_run else "packed"
    new = f"{would} {told.rows:,} row{'s' * (told.rows != 1)} in {told.seconds:.1f} s" if told.rows else "there was nothing new"
    more = f" and {len(told.labels) - _LABELS:,} more" if len(told.labels) > _LABELS else ""
    first = next(iter(told.splits), None)
    return markup.block(
        markup.head("Packed", f"{told.path}: {new}"),
        markup.warned(told.warnings),
        markup.table(["split", "rows"], [(name, f"{count:,}") for name, count in told.splits.items()]),
        markup.facts(
            {
                "in all": f"{told.total_rows:,} rows of {told.kind} in {told.shards:,} files, {told.bytes / 1e6:,.1f} MB",
                "classes": markup.text(", ".join(told.labels[:_LABELS]) + more),
                "left out": f"{told.skipped_rows:,} broken files" if told.skipped_rows else "",
                "not fetched": f"{told.unfetched_rows:,} files" if told.unfetched_rows else "",
            }
        ),
        _files("broken files", told.skipped),
        _files("files that could not be fetched", told.unfetched),
        markup.line(f"<code>akrunner.run(script, {markup.text(repr(f'{told.path}/{first}'))})</code> reads a split", small=True)
        if first is not None and not told.dry_run
        else "",
    )


def _files(title: str, found: list[tuple[str, str]]) -> str:
    return markup.folded(
        f"the first {min(len(found), _FILES)} {title}", markup.table(["file", "why"], found[:_FILES]) if found else ""
    )
