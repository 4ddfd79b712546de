"""The report of real jobs, in a real browser: every plot is drawn, every text can be read, and nothing of a script runs in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import akrunner
from akrunner import runs
from akrunner.runs.serving import RunServer
from tests import browser
from tests.conftest import ENDS, wait_for

pytestmark = pytest.mark.slow

LEARNS = """
import time

def main(task_config):
    for step in range(200):
        task_config.report({"loss": 5 / (step + 1) + (step % 7) / 50, "accuracy": 1 - 1 / (step + 2)}, step=step)
        time.sleep(0.004)
    print("learned")
    task_config.output_writer.write_batch({"id": [1, 2]})
"""
ATTACKS = """
WORDS = "</script><script>window.attacked = 1</script><img src=x onerror='window.attacked = 2'>"

def main(task_config):
    print(WORDS, flush=True)
    for step in range(3):
        task_config.report({WORDS: step, "loss": float("nan") if step else 1.0}, step=step)
    raise ValueError(WORDS)
"""
WAITS = """
import os, time

def main(task_config):
    task_config.report({"loss": 0.75}, step=1)
    while not os.path.exists(task_config.user_params["go"]):
        time.sleep(0.02)
    task_config.report({"loss": 0.25}, step=2)
    while not os.path.exists(task_config.user_params["end"]):
        time.sleep(0.02)
"""
#: for each text that is seen: its size in pixels, and the contrast of its colour with the page's
TEXTS = """
const parsed = (color) => color.match(/[\\d.]+/g).map(Number);
const light = (color) => {
  const [r, g, b] = parsed(color).map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (one) => {
  for (; one; one = one.parentElement) {
    const color = getComputedStyle(one).backgroundColor;
    if (parsed(color)[3] !== 0) return color;
  }
  return "rgb(255, 255, 255)";
};
return [...document.querySelectorAll("#body *")].filter((one) => one.getClientRects().length && [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())).map((one) => {
  const css = getComputedStyle(one), drawn = one.namespaceURI.includes("svg");
  const [high, low] = [light(drawn ? css.fill : css.color), light(behind(one))].sort((a, b) => b - a);
  return [one.textContent.slice(0, 40), parseFloat(css.fontSize), (high + 0.05) / (low + 0.05)];
});
"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with browser.started(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> Iterator[dict[str, str]]:
    """The addresses of the pages of a job that succeeded, and of one that failed."""
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(folder / "state"))
        for name, script in (("learns", LEARNS), ("attacks", ATTACKS)):
            (folder / f"{name}.py").write_text(script)
        learns, attacks = folder / "learns.html", folder / "attacks.html"
        result = akrunner.run(folder / "learns.py", {"a": [1, 2, 3]}, num_workers=2, output_schema="id bigint", report=learns)
        assert result.stats.warnings == [] and result.run == "r1"
        with pytest.raises(akrunner.ScriptFailedError):
            akrunner.run(folder / "attacks.py", {"a": [1, 2, 3]}, report=attacks)
        yield {"learns": learns.as_uri(), "attacks": attacks.as_uri()}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_plot_is_drawn_and_every_text_is_legible(pages: dict[str, str], chromium: Any, width: int, dark: bool) -> None:
    browser.look(chromium, pages["learns"], width, dark)
    assert browser.complaints(chromium) == []
    drawn = chromium.execute_script(
        "return [...document.querySelectorAll('.plot')].map((one) => [one.id, one.querySelectorAll('svg path[aria-roledescription], svg .mark-line path, "
        "svg .mark-rect path').length, one.getBoundingClientRect().width])"
    )
    assert [id for id, _, _ in drawn] == ["curve-0", "curve-1", "timeline", "rows", "bytes", "memory", "processor"]
    assert all(marks > 0 and 200 < wide <= width for _, marks, wide in drawn), drawn
    # nothing sticks out: only tables and logs scroll, within themselves
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= width
    poor = [one for one in chromium.execute_script(TEXTS) if one[1] < 11 or one[2] < 4.5]
    assert poor == []
    # the page has asked nobody for anything
    assert chromium.execute_script("return performance.getEntriesByType('resource').map((one) => one.name)") == []


def test_the_numbers_are_those_of_the_run(pages: dict[str, str], chromium: Any) -> None:
    browser.look(chromium, pages["learns"])
    text = chromium.find_element("id", "body").text
    assert "r1 succeeded" in text and "run learns.py" in text and "3 in, 4 out" in text and "loss in numbers" in text
    legend = chromium.find_element("css selector", "#when .legend").text.splitlines()
    assert {"starting", "main"} <= set(legend)


def test_a_keyboard_smooths_the_curves_and_opens_what_is_folded(pages: dict[str, str], chromium: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.look(chromium, pages["learns"])
    line = "return document.querySelector('#curve-0 .mark-line path').getAttribute('d')"
    before = chromium.execute_script(line)
    active = chromium.switch_to.active_element
    for _ in range(20):
        active.send_keys(Keys.TAB)
        active = chromium.switch_to.active_element
        if active.get_attribute("id") == "smoothing":
            break
    active.send_keys(Keys.ARROW_RIGHT * 10)
    assert chromium.find_element("css selector", "output").text == "0.20"
    browser.until(chromium, f"return (() => {{ {line} }})() !== {before!r}")
    drawn = "return document.querySelectorAll('#curve-0 .mark-line path').length"
    assert chromium.execute_script(drawn) == 2
    active.send_keys(Keys.TAB)
    name = chromium.switch_to.active_element
    assert name.text == "chief:0" and name.get_attribute("aria-pressed") == "true"
    name.send_keys(Keys.ENTER)
    browser.until(chromium, f"return (() => {{ {drawn} }})() === 1")
    assert name.get_attribute("aria-pressed") == "false"
    name.send_keys(Keys.TAB)
    chromium.switch_to.active_element.send_keys(Keys.TAB)
    folded = chromium.switch_to.active_element
    assert folded.tag_name == "summary"
    folded.send_keys(Keys.ENTER)
    assert chromium.find_element("id", "curve-0-numbers").get_attribute("open") and browser.complaints(chromium) == []


def test_nothing_that_a_script_wrote_runs(pages: dict[str, str], chromium: Any) -> None:
    browser.look(chromium, pages["attacks"])
    assert chromium.execute_script("return window.attacked") is None and browser.complaints(chromium) == []
    assert chromium.execute_script("return document.images.length") == 0
    failure = chromium.find_element("id", "failure").text
    assert "ScriptFailedError" in failure and "<script>window.attacked = 1</script>" in failure and "Traceback" in failure
    # the failure is the first that is seen
    assert chromium.find_element("id", "failure").location["y"] < 200
    assert "2 values were nan or inf, and cannot be drawn." in chromium.find_element("id", "metrics").text
    # Vega shows the metric's name as it is when somebody points at it
    chromium.execute_script(
        "document.querySelector('#curve-1 .mark-symbol path').dispatchEvent(new MouseEvent('mousemove', {bubbles: true}))"
    )
    assert chromium.execute_script("return window.attacked") is None


def test_a_run_that_goes_on_is_followed(
    leaves_nothing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chromium: Any
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    script = tmp_path / "waits.py"
    script.write_text(WAITS)
    params = {name: str(tmp_path / name) for name in ("go", "end")}
    job = threading.Thread(target=lambda: akrunner.run(script, {"a": [1]}, user_params=params))
    with RunServer() as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        try:
            job.start()
            wait_for(lambda: any(one.metrics for one in runs.listed()))
            browser.look(chromium, server.url)
            assert chromium.current_url == server.url.partition("?")[0]
            chromium.find_element("link text", "r1").click()
            browser.until(chromium, "return document.getElementById('body').dataset.state === 'running'")
            browser.until(chromium, "return document.querySelector('#curve-0[data-drawn]')")
            # what a reader has opened and chosen stays
            chromium.execute_script("document.getElementById('versions').open = true; window.same = true")
            points = "return document.querySelectorAll('#curve-0 .mark-symbol path').length"
            assert chromium.execute_script(points) == 1
            (tmp_path / "go").touch()
            browser.until(chromium, f"return (() => {{ {points} }})() === 2")
            (tmp_path / "end").touch()
            browser.until(chromium, "return document.getElementById('body').dataset.state === 'succeeded'")
            assert chromium.execute_script("return window.same && document.getElementById('versions').open")
            assert browser.complaints(chromium) == []
        finally:
            for path in params.values():
                Path(path).touch()
            job.join(ENDS)
            server.shutdown()
            serving.join()
    assert not job.is_alive()
