"""Datasets of tables. TensorFlow is imported only when the script asks for one."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "TableRecordDataset":
        from akrunner.worker.tables.dataset import TableRecordDataset

        return TableRecordDataset
    raise AttributeError("module 'paiio.data' has no attribute %r" % name)
