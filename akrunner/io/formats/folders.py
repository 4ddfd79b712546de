"""Folders of many small files that are read as one table; `akrunner.folders` reads them, which is above this room."""

from __future__ import annotations

from akrunner.io.formats.base import Format


class Folder(Format):
    """Files that are rows, or have rows, and are listed and read all together."""

    writes = False

    def __init__(self, name: str) -> None:
        self.name = name


IMAGES = Folder("images")
TEXTS = Folder("texts")
LINES = Folder("lines")
