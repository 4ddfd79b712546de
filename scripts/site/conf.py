"""Sphinx's settings for the site of the documentation (`scripts/docs`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pages
from docutils import nodes

import akrunner

project = "akrunner"
copyright = "the authors of akrunner"
version = release = akrunner.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["**/*.py", "conf.py"]
#: anchors of headings, as the hosting service makes them
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"akrunner {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
# a quote in a docstring is often part of a value
smartquotes = False
# what is found is shown without an excerpt, for which a browser would read pages from the disk, which it refuses
html_show_search_summary = False
html_theme_options = {
    "footer_icons": [{"name": "Source", "url": pages.SOURCE, "html": "Source", "class": ""}],
    "light_css_variables": {"color-brand-primary": "#1f5fbf", "color-brand-content": "#1f5fbf"},
    "dark_css_variables": {"color-brand-primary": "#7fb2ff", "color-brand-content": "#7fb2ff"},
}
#: light and dark: 4.5 : 1 and more
pygments_style, pygments_dark_style = "friendly", "monokai"
# -- docstrings: fields of a class are no objects of their own
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_use_ivar = True
napoleon_use_rtype = False


def _prepare(app: Any, page: str, source: list[str]) -> None:
    if Path(app.env.doc2path(page)).suffix == ".md":
        source[0] = pages.made(page, source[0])


def _docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = pages.docstring(lines)


def _worded(app: Any, tree: nodes.document, page: str) -> None:
    """Call the fields of a class what docstrings call them."""
    for name in tree.findall(nodes.field_name):
        if name.astext() == "Variables":
            name[0] = nodes.Text("Attributes")


def setup(app: Any) -> None:
    app.connect("source-read", _prepare)
    app.connect("doctree-resolved", _worded)
    # before napoleon, which has 500
    app.connect("autodoc-process-docstring", _docstring, priority=400)
