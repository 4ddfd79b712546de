"""The stand-in for Alink's plugin downloader: it downloads nothing, and says what scripts run on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from akrunner.alink import plugins
from akrunner.alink.plugins import PluginDownloader, instead
from akrunner.errors import ConfigError, PythonEnvError


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The environments that are there, by name."""
    found: dict[str, Any] = {"tf1.15": SimpleNamespace(tensorflow="1.15.5", path="/envs/tf1")}

    def of(name: str) -> Any:
        if name not in found:
            raise PythonEnvError(f"no environment is called {name}")
        return found[name]

    monkeypatch.setattr(plugins, "environment_of", of)
    monkeypatch.setattr(plugins, "instead_of", lambda name, other: found.get(other) if name not in found else None)
    return found


def test_plugins_with_a_python_are_listed_with_their_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_SYSTEM", "linux")
    downloader = PluginDownloader()
    assert downloader.listAvailablePlugins() == ["tf115_python_env_linux", "tf231_python_env_linux"]
    assert downloader.listAvailablePluginVersions("tf231_python_env_macosx") == ["2.3"]
    assert downloader.listAvailablePluginVersions("hive") == []
    with pytest.raises(ConfigError, match="pluginName"):
        downloader.listAvailablePluginVersions(None)  # type: ignore[arg-type]


def test_what_is_used_in_place_of_a_plugin(there: dict[str, Any]) -> None:
    assert instead("hive") == "hive: akrunner has no plugins and downloads none"
    assert instead("tf115_python_env_linux") == (
        "tf115_python_env_linux: nothing to download, scripts run on TensorFlow 1.15.5 of /envs/tf1"
    )
    assert instead("tf231_python_env_linux").endswith("downloads no plugins. no environment is called tf2.3")
    there["tf2"] = SimpleNamespace(tensorflow="2.16.1", path="/envs/tf2")
    assert instead("tf231_python_env_linux").endswith(
        "TensorFlow 2.16.1 of /envs/tf2; for TensorFlow 2.3: `akrunner env create tf2.3`"
    )
    there["tf2.3"] = SimpleNamespace(tensorflow="2.3.1", path="/envs/tf23")
    assert instead("tf231_python_env_linux").endswith("TensorFlow 2.3.1 of /envs/tf23")


def test_nothing_is_downloaded_and_a_line_is_printed(there: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    downloader = PluginDownloader()
    downloader.loadConfig()
    downloader.loadJarsPluginConfig("x")
    downloader.downloadPlugin("hive", "3")
    assert capsys.readouterr().err == "hive: akrunner has no plugins and downloads none\n"
    for call in (downloader.downloadAll, downloader.upgrade, downloader.upgradePlugin):
        call()
        printed = capsys.readouterr()
        assert printed.out == "" and len(printed.err.splitlines()) == 2
