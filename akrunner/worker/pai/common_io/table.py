"""Readers and writers of tables. Text is str."""

from akrunner.worker.tables.reader import TextTableReader as TableReader
from akrunner.worker.tables.writer import TableWriter

__all__ = ["TableReader", "TableWriter"]
