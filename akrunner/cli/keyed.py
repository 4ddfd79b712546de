"""Options with keys (`user_params`, `env`, `defaults`), joined key by key from the job file and the command line.

::

    job file:      params_file, user_params     from left to right and from top to bottom, each place wins over those before it
    command line:  --params-file, --param
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from akrunner.cli import values
from akrunner.jobfile import FILES, JobFile, contributions, without_times
from akrunner.options import named

#: the key under which a command's values have the joined options
KEYED = "(keyed)"


@dataclass(frozen=True)
class Layer:
    """The values from one place.

    Attributes:
        option: the option that gives the values.
        of_file: whether the option is in the job file, and not on the command line.
        values: key -> value.
        hidden: keys whose values must not be shown.
    """

    option: str
    of_file: bool
    values: Mapping[str, Any]
    hidden: Collection[str] = ()


@dataclass(frozen=True)
class Joined:
    """An option's values from all places.

    Attributes: name: the option; layers: the places, of which each wins over those before.
    """

    name: str
    layers: Sequence[Layer]

    @property
    def values(self) -> dict[str, Any]:
        return {key: value for layer in self.layers for key, value in layer.values.items()}

    @property
    def hidden(self) -> set[str]:
        """Return the keys whose values must not be shown, as they come from files."""
        return {key for key in self.values if key in self.giver(key).hidden}

    def giver(self, key: str) -> Layer:
        return next(layer for layer in reversed(self.layers) if key in layer.values)

    def flag(self, key: str) -> str:
        """Return the flag that gave a key, "" if the job file gave it."""
        layer = self.giver(key)
        return "" if layer.of_file else named(layer.option).words[0]

    def origins(self) -> str:
        """Return which keys came from where, in words: "-p (lr) and the job file (x, y)"; "" if there are no keys."""
        told: dict[str, list[str]] = {}
        for layer in reversed(self.layers):
            where = named(layer.option).words[-1]
            if layer.of_file:
                where = "the job file" if layer.option == self.name else f"{layer.option} of the job file"
            told[where] = [key for key in layer.values if self.giver(key) is layer]
        return contributions(told)


def joined(words: Mapping[str, Any], file: JobFile | None = None) -> dict[str, Joined]:
    """Return the options with keys that a command has, joined.

    Args: words: the values of the command line, by option; file: the job file, None if there is none.
    Raises: ConfigError: a value is wrong.
    """
    said = file.options if file is not None else {}
    made = {name: [*_layers(name, said, True), *_layers(name, words, False)] for name in _READ if name in words}
    return {name: Joined(name, layers) for name, layers in made.items()}


def _layers(name: str, said: Mapping[str, Any], of_file: bool) -> Iterator[Layer]:
    """Yield the layers of an option in a job file, or on a command line, the weaker first."""
    files = FILES.get(name, "")
    if said.get(files) not in (None, []):
        # errors name the option by its key in the job file, or by its flag
        what = files if of_file else named(files).words[0]
        found = _WHOLE[name](said[files], what)
        yield Layer(files, of_file, found, set(found))
    if of_file and name in said:
        yield Layer(name, of_file, without_times(said[name]))
    elif not of_file:
        yield Layer(name, of_file, _READ[name](said[name]), values.in_files(said[name]) if name in FILES else ())


def _variables(paths: str | Sequence[str], what: str) -> dict[str, str]:
    return values.environment([], [paths] if isinstance(paths, str) else paths, what)


#: options -> the function that reads KEY=VALUE of a command line; `_WHOLE`: options -> the function that reads their files
_READ: Mapping[str, Any] = {
    "user_params": lambda given: values.params(given, None),
    "env": lambda given: values.environment(given, []),
    "defaults": lambda given: values.valued(given, "--default"),
}
NAMES = tuple(_READ)
_WHOLE: Mapping[str, Any] = {"user_params": lambda path, what: values.params([], path, what), "env": _variables}
