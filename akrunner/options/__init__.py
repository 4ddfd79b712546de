"""Every option of akrunner, declared once: `table` has the options, `functions` the functions and commands that take them.

`scripts/gen-options` generates from them the functions (`akrunner/verbs.py`, `akrunner/serving/verbs.py`, `LocalPredictor`,
`akrunner/packing/verbs.py`, ...), the classes that carry their options (`Arguments`, `PredictArguments`, `PackArguments`, ...),
and `docs/options.md`. The commands read the table when they start.
"""

from __future__ import annotations

from akrunner.options.declared import Command, Option, Verb
from akrunner.options.functions import COMMANDS, VERBS
from akrunner.options.naming import carried, misfit, named, of_command, of_verb, paths_of
from akrunner.options.needs import called, idle, is_given, meaningless
from akrunner.options.table import OPTIONS

__all__ = [
    "COMMANDS",
    "OPTIONS",
    "VERBS",
    "Command",
    "Option",
    "Verb",
    "called",
    "carried",
    "idle",
    "is_given",
    "meaningless",
    "misfit",
    "named",
    "of_command",
    "of_verb",
    "paths_of",
]
