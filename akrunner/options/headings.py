"""The headings of the options, and groups of verbs and commands that take the same options."""

from __future__ import annotations

from akrunner.options.declared import SCRIPTS

SCRIPT, MODEL, STATEMENTS = "Script", "Model", "Statements"
INPUT, OUTPUT = "Input", "Output"
CLUSTER, PYTHON, RESOURCES = "Cluster", "Interpreter", "Resources"
TROUBLE, PLACES = "When something goes wrong", "Directories and progress"
TOLD = "Telling other programs"

BATCH = ("run", "train")
PREDICTIONS = ("predict", "predict_stream")
MODELS = (*PREDICTIONS, "LocalPredictor")
#: functions for PyFlink programs
FLINK = ("flink.run", "flink.stream", "flink.predict")
#: verbs that run a script; verbs that run jobs; those whose jobs have a page; verbs that start worker processes (`LocalPredictor` keeps one, without a job)
SCRIPTED = (*SCRIPTS, "pai")
JOBS = (*SCRIPTS, *PREDICTIONS, "pai")
PAGED = (*SCRIPTS, *PREDICTIONS)
WORKERS = (*SCRIPTS, *MODELS, "pai")

#: commands that run a job
RUNNING = ("run", "train", "stream", "predict", "pai")
#: text of options whose values a PAI command also has
IN_PLACE = "Number in place of the one in PAI's command."
