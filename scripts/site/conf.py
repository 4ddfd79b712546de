"""Sphinx's settings for the site of the documentation (`scripts/docs`)."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pages
from docutils import nodes
from sidebar import Sidebar
from sphinx.search.en import SearchEnglish

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


def _outdated(app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]) -> set[str]:
    """Return pages that are read again: Sphinx itself goes by the times of files, and does not know what `pages` reads."""
    known = getattr(env, "akrunner_origins", {})
    texts = {page: _made(env, page, Path(env.doc2path(page)).read_text()) for page in env.found_docs}
    return {page for page, text in texts.items() if known.get(page) != pages.origin(text)}


def _prepare(app: Any, page: str, source: list[str]) -> None:
    source[0] = _made(app.env, page, source[0])
    # it is kept with what Sphinx has read
    app.env.akrunner_origins = {**getattr(app.env, "akrunner_origins", {}), page: pages.origin(source[0])}


def _made(env: Any, page: str, text: str) -> str:
    return pages.made(page, text) if Path(env.doc2path(page)).suffix == ".md" else text


def _docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = pages.docstring(lines)


def _worded(app: Any, tree: nodes.document, page: str) -> None:
    """Call the fields of a class what docstrings call them."""
    for name in tree.findall(nodes.field_name):
        if name.astext() == "Variables":
            name[0] = nodes.Text("Attributes")


@functools.cache
def _sidebar(app: Any) -> Sidebar:
    from furo.navigation import get_navigation_tree

    options = {"collapse": False, "titles_only": True, "maxdepth": -1, "includehidden": True}
    return Sidebar(get_navigation_tree(app.builder._get_local_toctree(app.config.root_doc, **options)))


def _no_tree(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    context["toctree"] = lambda **options: ""


def _navigation(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    context["furo_navigation_tree"] = _sidebar(app).of(page)


class _English(SearchEnglish):
    """Finds the stem of each word once, and not once for each page that has it."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.stem = functools.cache(self.stem)  # type: ignore[method-assign]


def setup(app: Any) -> None:
    app.add_search_language(_English)
    # before and behind the theme, which has 500
    app.connect("html-page-context", _no_tree, priority=400)
    app.connect("html-page-context", _navigation, priority=600)
    app.connect("env-get-outdated", _outdated)
    app.connect("source-read", _prepare)
    app.connect("doctree-resolved", _worded)
    # before napoleon, which has 500
    app.connect("autodoc-process-docstring", _docstring, priority=400)
