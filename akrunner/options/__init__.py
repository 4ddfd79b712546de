"""Every option of a job, declared once: `table` has the options, `functions` the functions that take them. `scripts/gen-options` writes
from them what repeats them: the functions (`akrunner/verbs.py`, `akrunner/serving/verbs.py`, `LocalPredictor`), what carries their options
(`Arguments`, `PredictArguments`), and `docs/options.md`."""

from __future__ import annotations

from akrunner.options.declared import Option, Verb
from akrunner.options.functions import VERBS
from akrunner.options.naming import carried, misfit, of_verb
from akrunner.options.table import OPTIONS

__all__ = ["OPTIONS", "VERBS", "Option", "Verb", "carried", "misfit", "of_verb"]
