"""The table of all options, each declared once, in a module for each group of headings."""

from __future__ import annotations

from akrunner.options import course, keeping, own, packs, rows, scripts, statements, tasks

OPTIONS = (
    *scripts.OPTIONS,
    *statements.OPTIONS,
    *rows.OPTIONS,
    *packs.OPTIONS,
    *tasks.OPTIONS,
    *keeping.OPTIONS,
    *course.OPTIONS,
    *own.OPTIONS,
)
