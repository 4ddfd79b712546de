"""The page as a text: it holds all it needs, and nothing that a script wrote becomes a part of it."""

from __future__ import annotations

import base64
import builtins
import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from akrunner.errors import ConfigError
from akrunner.history import record, series
from akrunner.history.logs import LogCopy
from akrunner.history.series import Series
from akrunner.reports import page
from tests.unit.runs.conftest import make

__all__ = ["make"]

Make = Callable[..., str]
ATTACK = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


def written(path: str, name: str, *lines: dict[str, Any]) -> None:
    made = Series(path, name)
    for line in lines:
        made.add(line)
    made.close()


def kept(make: Make, **fields: Any) -> tuple[record.Record, str]:
    path = make(**fields)
    written(path, series.METRICS, *({"task": "chief:0", "step": step, "time_ns": 5, "loss": 1 / step} for step in (1, 2)))
    return record.read(path), path


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is shorter."""
    monkeypatch.setattr(page, "library", lambda: "window.vegaEmbed = null;")


def test_a_page_holds_all_that_it_needs(make: Make, library: None, tmp_path: Path) -> None:
    run, path = kept(make, warnings=["be careful"], stats={"rows_in": 3, "rows_out": 2, "input_verdict": ["[chief:0] waits"]})
    output = tmp_path / "r.html"
    output.write_text("an older one")
    page.write(run, path, str(output))
    text = output.read_text()
    assert "<title>r1 succeeded: run t.py</title>" in text and "3 in, 2 out" in text and "be careful" in text
    assert "[chief:0] waits" in text and '"smooths": true' in text and 'id="curve-0"' in text
    # no other address than the names of languages, which nobody loads
    assert not set(re.findall(r"https?://[^\"'<\\ ]+", text)) - {"https://vega.github.io/schema/vega-lite/v6.json"}
    assert sorted(os.listdir(tmp_path)) == ["r.html", "state"]


def test_the_browser_may_run_the_scripts_of_the_page_alone(make: Make, library: None) -> None:
    text = page.page(page.told(*kept(make)))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    hashes = {f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts}
    assert len(scripts) == 2 and hashes == set(re.findall(r"'sha256-[^']+'", policy))
    assert policy.startswith("default-src 'none'; ") and "connect-src" not in policy and "unsafe-eval" not in policy
    assert "connect-src 'self'" in page.page(page.told(*kept(make)), live=True)


def test_what_a_script_wrote_is_text(make: Make, library: None) -> None:
    path = make(
        state=record.FAILED, error="JobError", message=ATTACK, failure={"traceback": ATTACK, "log_tail": ATTACK},
        others=[{"task": "ps:0", "what": ATTACK}], warnings=[ATTACK], metrics={"chief:0": {ATTACK: 1.0}}, tasks=[ATTACK],
        arguments={"user_params": {ATTACK: ATTACK}}, cwd=ATTACK, script=ATTACK, versions={"a": ATTACK}, output=ATTACK,
        stats={"rows_in": 1, "rows_out": 1, "input_verdict": [ATTACK]}, results=[{"name": ATTACK, "exit": ATTACK}],
    )  # fmt: skip
    written(path, series.METRICS, {"task": ATTACK, "step": 1, "time_ns": 5, ATTACK: 1.0})
    written(path, series.STATES, {"task": ATTACK, "attempt": 0, "time_ns": 5, "state": "running"})
    log = LogCopy(path, "chief:0")
    log.write(ATTACK.encode())
    log.close()
    text = page.page(page.told(record.read(path), path))
    assert "<img" not in text and "<script>alert" not in text and text.count("</script>") == 3
    assert text.count("&lt;/script&gt;&lt;script&gt;alert(1)") > 10


def test_secrets_and_control_characters_are_not_in_it(make: Make, library: None) -> None:
    path = make(warnings=["\x1b[31mred\x1b[0m \x07"])
    log = LogCopy(path, "chief:0")
    log.write(b"connects to postgresql://me:hunter2@host/db\n")
    log.close()
    text = page.page(page.told(record.read(path), path))
    assert "hunter2" not in text and "postgresql://me:***@host/db" in text and "\x1b" not in text and "red \\x07" in text


def test_a_run_of_which_little_is_known_has_a_page(make: Make, library: None) -> None:
    path = make(state=record.RUNNING, ended=None, tasks=[])
    text = page.page(page.told(record.read(path), path))
    assert 'data-state="running"' in text and "script-src 'none'" in text and "<script" not in text


@pytest.mark.slow
def test_the_library_is_whole_and_is_put_together_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page.library.cache_clear()
    text = page.library()
    assert "vegaEmbed" in text and len(text) > 300_000 and "</script" not in text
    monkeypatch.setattr(page, "_put_together", lambda: 1 / 0)
    page.library.cache_clear()
    assert page.library() == text


def test_without_a_cache_the_library_is_there_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(page, "_put_together", lambda: "the library")
    page.library.cache_clear()
    assert page.library() == "the library"
    page.library.cache_clear()


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def missing(name: str, *more: Any, **options: Any) -> Any:
        if name == "vl_convert":
            raise ImportError("No module named 'vl_convert'")
        return imported(name, *more, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ConfigError, match=r"pip install 'akrunner\[report\]' \(No module named 'vl_convert'\)"):
        page.check_extra()


def test_only_a_page_is_replaced(tmp_path: Path, make: Make, library: None) -> None:
    place = tmp_path / "r.html"
    place.touch()
    for _ in range(2):
        page.write(*kept(make), page.check_output(place))
    for other in ("def main(t): ...\n", "<!DOCTYPE html>\n<title>mine</title>\n"):
        place.write_text(other)
        with pytest.raises(
            ConfigError, match=r"report: .*/r\.html is there already, and is no page of akrunner's; name another file"
        ):
            page.check_output(place, "report")


def test_a_place_that_takes_no_page_is_told(tmp_path: Path, make: Make, library: None) -> None:
    with pytest.raises(ConfigError, match=r"report: .* is a directory; give the name of a file, such as .*report\.html"):
        page.check_output(tmp_path, "report")
    with pytest.raises(ConfigError, match="output: there is no directory /no/such"):
        page.check_output("/no/such/r.html")
    assert page.check_output("r.html") == "r.html"
    with pytest.raises(
        ConfigError, match="output: /dev/null is there already, and is no page of akrunner's; name another file"
    ):
        page.check_output("/dev/null")
    full = tmp_path / "full"
    full.mkdir()
    with pytest.raises(ConfigError, match="output: cannot write"):
        page.write(*kept(make), str(full))
    assert sorted(os.listdir(tmp_path)) == ["full", "state"]
