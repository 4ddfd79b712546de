"""Alink's plugins, which akrunner has no use for: what downloads them says which interpreter scripts run on, and downloads nothing."""

from __future__ import annotations

import sys

from akrunner.checks import check_text
from akrunner.errors import PythonEnvError
from akrunner.prepare.python import environment_of, instead_of

#: how Alink's plugins that are Pythons begin, whatever system they end with -> the environment that stands for them
_PYTHONS: dict[str, str] = {"tf115_python_env": "tf1.15", "tf231_python_env": "tf2.3"}
_SYSTEM = {"darwin": "macosx", "win32": "windows"}.get(sys.platform, "linux")


class PluginDownloader:
    """Alink's, for programs that begin with it. It downloads nothing; each of its methods that did says so in a line."""

    def loadConfig(self, configFileName: str | None = None) -> None:
        """Nothing: there is no list of plugins to be had.

        Args:
            configFileName: ignored.
        """

    loadJarsPluginConfig = loadResourcePluginConfig = loadConfig

    def listAvailablePlugins(self) -> list[str]:
        """The Pythons that Alink has as plugins; akrunner has environments for them.

        Returns:
            their names.
        """
        return [f"{name}_{_SYSTEM}" for name in _PYTHONS]

    def listAvailablePluginVersions(self, pluginName: str) -> list[str]:
        """The version of TensorFlow of such a Python.

        Args:
            pluginName: its name.
        Returns:
            one version; nothing for any other plugin.
        """
        stands = _environment(pluginName)
        return [stands.removeprefix("tf")] if stands else []

    def downloadPlugin(self, pluginName: str, pluginVersion: str | None = None) -> None:
        """Say what is used in place of a plugin.

        Args:
            pluginName: its name.
            pluginVersion: ignored.
        """
        print(instead(pluginName), file=sys.stderr)

    downloadPluginSafely = downloadPlugin

    def downloadAll(self) -> None:
        """The same of all there are."""
        for name in self.listAvailablePlugins():
            self.downloadPlugin(name)

    def upgrade(self) -> None:
        """As `downloadAll`."""
        self.downloadAll()

    def upgradePlugin(self, pluginFiles: object = None) -> None:
        """As `downloadAll`.

        Args:
            pluginFiles: ignored.
        """
        self.downloadAll()


def instead(plugin: str) -> str:
    """A line: what is used in place of a plugin, and how to make it if it is not there."""
    stands = _environment(plugin)
    if stands is None:
        return f"{plugin}: akrunner has no plugins and downloads none"
    try:
        other = instead_of(stands, "tf2") if stands == "tf2.3" else None
        found = other or environment_of(stands)
    except PythonEnvError as e:
        return f"{plugin}: akrunner downloads no plugins. {e}"
    make = "" if other is None else f"; for TensorFlow 2.3: `akrunner env create {stands}`"
    return f"{plugin}: nothing to download, scripts run on TensorFlow {found.tensorflow} of {found.path}{make}"


def _environment(plugin: str) -> str | None:
    check_text("pluginName", plugin)
    return next((stands for name, stands in _PYTHONS.items() if plugin.startswith(name)), None)
