"""The navigation beside each page of the site. It is the same for all pages, but for where it is read: Sphinx and the theme, which make it anew for each
of them, would take half of the time that the site takes.
"""

from __future__ import annotations

import posixpath
import re

_LINK = re.compile(r'(?<=<a class="reference internal" href=")[^"#:]+(?=\.html">)')


class Sidebar:
    """Args: html: as it is for the first page, which is in the top directory, and not in the navigation itself."""

    def __init__(self, html: str) -> None:
        self._lines = html.split("\n")
        #: page -> its line, and the lines in which the lists around it begin
        self._places: dict[str, tuple[int, list[int]]] = {}
        around: list[int] = []
        for number, line in enumerate(self._lines):
            page = _LINK.search(line)
            if page is not None:
                self._places[page[0]] = (number, [*around])
            if line.endswith("<ul>"):
                around.append(number)
            elif line == "</ul>":
                around.pop()

    def of(self, page: str) -> str:
        """Return the navigation beside a page: it is the current one, and links begin where it is."""
        lines = [*self._lines]
        number, around = self._places.get(page, (None, []))
        for begin in around:
            lines[begin] = _current(lines[begin]).removesuffix("<ul>") + '<ul class="current">'
        if number is not None:
            own = _current(lines[number]).replace('">', ' current-page">', 1)
            lines[number] = own.replace(f'"reference internal" href="{page}.html"', '"current reference internal" href="#"')
        folder = posixpath.dirname(page) or "."
        return _LINK.sub(lambda link: posixpath.relpath(link[0], folder), "\n".join(lines))


def _current(line: str) -> str:
    """Mark an entry as one around the current page, or as itself. Args: line: the entry, or what has a list alone."""
    line = re.sub(r'^<li class="toctree-l\d', r"\g<0> current", line)
    return line.replace(' class="toctree-checkbox"', ' checked="" class="toctree-checkbox"')
