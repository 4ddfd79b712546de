"""A real browser without a screen: Chromium, by its WebDriver."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from tests.conftest import ENDS, not_run

_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
_NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextlib.contextmanager
def started(profile: Path) -> Iterator[Any]:
    """A browser; afterwards none of its processes is left. Args: profile: a directory that only it uses.

    Where there is none, the tests that need it are left out, and pytest's closing lines say so.
    """
    binary = next(filter(None, map(shutil.which, _NAMES)), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        not_run("a browser", "apt-get install chromium chromium-driver (or another Chromium, and its chromedriver, on PATH)")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(driver))
    started = psutil.Process(made.service.process.pid)
    processes = [started, *started.children(recursive=True)]
    try:
        yield made
    finally:
        processes += [one for one in started.children(recursive=True) if one not in processes]
        made.quit()
        _, left = psutil.wait_procs(processes, ENDS)
        assert not left, f"still running: {left}"


def look(driver: Any, url: str, width: int = 1280, dark: bool = False) -> None:
    """Open a page on a screen of some width, and wait until its plots are drawn."""
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    )
    features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(url)
    until(driver, "return document.documentElement.dataset.drawn === 'yes' || !document.getElementById('plots')")


def until(driver: Any, code: str) -> Any:
    """Wait until JavaScript returns something true. Returns: that."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(driver, ENDS, 0.05).until(lambda _: driver.execute_script(code))


def complaints(driver: Any) -> list[str]:
    """Return what the console of the browser has of warnings and errors, since it was asked last."""
    return [one["message"] for one in driver.get_log("browser") if one["level"] in ("SEVERE", "WARNING")]
