"""Options of many keys, `user_params`, `env` and `defaults`: what the command line and its job file say of each key, and who wins.

::

    job file:      params_file, user_params     the first loses against all that follow, key by key
    command line:  --params-file, --param
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from akrunner.cli import values
from akrunner.jobfile import FILES, JobFile, contributions, without_times
from akrunner.options import named

#: under which the words of a command have them
KEYED = "(keyed)"


@dataclass(frozen=True)
class Layer:
    """What one place says.

    Attributes: option: that says it; of_file: whether it is the job file's, not the command line's; hidden: keys whose values nobody is to see.
    """

    option: str
    of_file: bool
    values: Mapping[str, Any]
    hidden: Collection[str] = ()


@dataclass(frozen=True)
class Joined:
    """An option from all places. Attributes: layers: each wins over those before it."""

    name: str
    layers: Sequence[Layer]

    @property
    def values(self) -> dict[str, Any]:
        return {key: value for layer in self.layers for key, value in layer.values.items()}

    @property
    def hidden(self) -> set[str]:
        """Keys whose values nobody is to see: they stand in files."""
        return {key for key in self.values if key in self.giver(key).hidden}

    def giver(self, key: str) -> Layer:
        return next(layer for layer in reversed(self.layers) if key in layer.values)

    def flag(self, key: str) -> str:
        """The flag that gave a key; "": the job file did."""
        layer = self.giver(key)
        return "" if layer.of_file else named(layer.option).words[0]

    def origins(self) -> str:
        """In words, which keys came from where: "-p (lr) and the job file (x, y)"; "": there are none."""
        told: dict[str, list[str]] = {}
        for layer in reversed(self.layers):
            where = named(layer.option).words[-1]
            if layer.of_file:
                where = "the job file" if layer.option == self.name else f"{layer.option} of the job file"
            told[where] = [key for key in layer.values if self.giver(key) is layer]
        return contributions(told)


def joined(words: Mapping[str, Any], file: JobFile | None = None) -> dict[str, Joined]:
    """Those a command has. Args: words: what its line says. Raises: ConfigError: something of it is wrong."""
    said = file.options if file is not None else {}
    made = {name: [*_layers(name, said, True), *_layers(name, words, False)] for name in _READ if name in words}
    return {name: Joined(name, layers) for name, layers in made.items()}


def _layers(name: str, said: Mapping[str, Any], of_file: bool) -> Iterator[Layer]:
    """What a job file, or a command line, says of an option, the weaker first."""
    files = FILES.get(name, "")
    if said.get(files) not in (None, []):
        # an error names the key of the file, or the flag
        what = files if of_file else named(files).words[0]
        found = _WHOLE[name](said[files], what)
        yield Layer(files, of_file, found, set(found))
    if of_file and name in said:
        yield Layer(name, of_file, without_times(said[name]))
    elif not of_file:
        yield Layer(name, of_file, _READ[name](said[name]), values.in_files(said[name]) if name in FILES else ())


def _variables(paths: str | Sequence[str], what: str) -> dict[str, str]:
    return values.environment([], [paths] if isinstance(paths, str) else paths, what)


#: options -> what reads KEY=VALUE of a command line; and what reads their files
_READ: Mapping[str, Any] = {
    "user_params": lambda given: values.params(given, None),
    "env": lambda given: values.environment(given, []),
    "defaults": lambda given: values.valued(given, "--default"),
}
NAMES = tuple(_READ)
_WHOLE: Mapping[str, Any] = {"user_params": lambda path, what: values.params([], path, what), "env": _variables}
