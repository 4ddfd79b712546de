"""docs/pictures/report-*.png and site-*.png: the page about a run that has just trained, and the documentation's site as it was just built.

::

    docs/tutorials/ps.md, run ──────► report.html ──┐
    scripts/docs ───────────────────► site/ ────────┴─► Chromium, light or dark, on a screen or a phone ──► PNG of few colours
"""

from __future__ import annotations

import base64
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from tests import browser
from tests.docs.pages import blocks

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
#: letters on a ground, and some lines in colours: more are not seen, and take bytes
COLOURS = 96
#: pixels above what a picture begins with
MARGIN = 16
#: bytes of a picture: pages with several of them still come at once
MOST = 150_000
#: where a user has it
HOME = "/home/me/films"


class View(NamedTuple):
    """A page, and what is photographed of it.

    Attributes:
        name: of the picture.
        page: its address.
        width: of the screen and the picture, in pixels.
        height: of the picture.
        first: what it begins with, as CSS selects it.
        dark: whether the reader's theme is.
        until: what JavaScript says when the page is whole.
    """

    name: str
    page: str
    width: int
    height: int
    first: str = "html"
    dark: bool = False
    until: str = "return document.readyState === 'complete'"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="akrunner-pictures-") as folder, browser.started(Path(folder, "profile")) as driver:
        for view in views(reported(Path(folder)), built(Path(folder))):
            path = PICTURES / f"{view.name}.png"
            path.write_bytes(photographed(driver, view))
            print(path.relative_to(ROOT), path.stat().st_size)
            if path.stat().st_size > MOST:
                raise SystemExit(f"{path.name} has more than {MOST:,} bytes: show less of the page")


def views(report: str, site: str) -> tuple[View, ...]:
    """Return what is photographed. Args: report: the address of the page about a run; site: that of the site's directory."""
    found = "return document.querySelector('#search-results h2')?.textContent === 'Search Results'"
    return (
        View("report-light", report, 1000, 1300),
        View("report-dark", report, 1000, 770, first="figure:has(#curve-1)", dark=True),
        View("report-phone", report, 390, 1100),
        View("site-start", f"{site}/index.html", 1400, 860),
        View("site-tutorial", f"{site}/tutorials/ps.html", 1400, 860, dark=True),
        View("site-search", f"{site}/search.html?q=max_restarts", 1400, 860, until=found),
    )


def reported(folder: Path) -> str:
    """Run what the tutorial about parameter servers runs first, for longer. Returns: the address of the page about it."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state"), "AKRUNNER_WARM": "0"}
    films = folder / "films"
    akrunner = [sys.executable, "-m", "akrunner"]
    subprocess.run([*akrunner, "init", str(films), "--template", "ps"], env=environ, check=True)
    [script] = (block for block in blocks("docs/tutorials/ps.md") if block.told.get("file") == "stars.py")
    (films / "stars.py").write_text(script.code)
    head, *rows = (films / "ratings.csv").read_text().splitlines(keepends=True)
    for name, some in (("train.csv", rows[:5000]), ("test.csv", rows[5000:])):
        (films / name).write_text("".join([head, *some]))
    options = "--num-workers 2 --num-ps 1 --coordinator --evaluator --user-file test.csv --param epochs=20 --report report.html --model-out model.zip"
    subprocess.run(
        [*akrunner, "train", "stars.py", "--input", "train.csv", *options.split()], cwd=films, env=environ, check=True
    )
    page = films / "report.html"
    page.write_text(page.read_text(encoding="utf-8").replace(str(films), HOME), encoding="utf-8")
    return page.as_uri()


def built(folder: Path) -> str:
    """Build the site. Returns: the address of its directory."""
    subprocess.run([str(ROOT / "scripts" / "docs"), str(folder / "site")], check=True)
    return (folder / "site").as_uri()


def photographed(driver: Any, view: View) -> bytes:
    """Return the picture of a part of a page, as a PNG."""
    browser.look(driver, view.page, view.width, view.dark)
    browser.until(driver, view.until)
    top = driver.execute_script(
        "return document.querySelector(arguments[0]).getBoundingClientRect().top + window.scrollY", view.first
    )
    size = {"x": 0, "y": max(0, top - MARGIN), "width": view.width, "height": view.height, "scale": 1}
    told = driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": size, "captureBeyondViewport": True})
    with Image.open(io.BytesIO(base64.b64decode(told["data"]))) as image, io.BytesIO() as out:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
        return out.getvalue()


if __name__ == "__main__":
    main()
