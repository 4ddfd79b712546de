"""A stand-in for Alink's plugin downloader, which akrunner does not need.

It downloads nothing: it prints which interpreter scripts run on instead.
"""

from __future__ import annotations

import sys

from akrunner.checks import check_text
from akrunner.errors import PythonEnvError
from akrunner.prepare.python import environment_of, instead_of

#: first part of the name of an Alink plugin that holds a Python (its operating system follows) -> the environment used instead
_PYTHONS: dict[str, str] = {"tf115_python_env": "tf1.15", "tf231_python_env": "tf2.3"}
_SYSTEM = {"darwin": "macosx", "win32": "windows"}.get(sys.platform, "linux")


class PluginDownloader:
    """Stands in for Alink's PluginDownloader. Nothing is downloaded; methods that download in Alink print a line saying so."""

    def loadConfig(self, configFileName: str | None = None) -> None:
        """Do nothing: there is no list of plugins to load.

        Args:
            configFileName: ignored.
        """

    loadJarsPluginConfig = loadResourcePluginConfig = loadConfig

    def listAvailablePlugins(self) -> list[str]:
        """Return the names of Alink's plugins that hold a Python; akrunner has environments that replace them.

        Returns:
            the names of the plugins.
        """
        return [f"{name}_{_SYSTEM}" for name in _PYTHONS]

    def listAvailablePluginVersions(self, pluginName: str) -> list[str]:
        """Return the TensorFlow version of a plugin that holds a Python.

        Args:
            pluginName: name of the plugin.
        Returns:
            a list of one version; an empty list for any other plugin.
        """
        stands = _environment(pluginName)
        return [stands.removeprefix("tf")] if stands else []

    def downloadPlugin(self, pluginName: str, pluginVersion: str | None = None) -> None:
        """Print what is used in place of a plugin, to stderr.

        Args:
            pluginName: name of the plugin.
            pluginVersion: ignored.
        """
        print(instead(pluginName), file=sys.stderr)

    downloadPluginSafely = downloadPlugin

    def downloadAll(self) -> None:
        """Print what is used in place of each plugin that `listAvailablePlugins` names."""
        for name in self.listAvailablePlugins():
            self.downloadPlugin(name)

    def upgrade(self) -> None:
        """Do the same as `downloadAll`."""
        self.downloadAll()

    def upgradePlugin(self, pluginFiles: object = None) -> None:
        """Do the same as `downloadAll`.

        Args:
            pluginFiles: ignored.
        """
        self.downloadAll()


def instead(plugin: str) -> str:
    """Return a line that says what is used in place of a plugin, and how to make that environment if it does not exist."""
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
