"""The headings options stand under, and who takes the same."""

from __future__ import annotations

from akrunner.options.declared import SCRIPTS

SCRIPT, MODEL, STATEMENTS = "Script", "Model", "Statements"
INPUT, OUTPUT = "Input", "Output"
CLUSTER, PYTHON, RESOURCES = "Cluster", "Interpreter", "Resources"
TROUBLE, PLACES = "When something goes wrong", "Directories and progress"

BATCH = ("run", "train")
PREDICTIONS = ("predict", "predict_stream")
MODELS = (*PREDICTIONS, "LocalPredictor")
#: of PyFlink's programs
FLINK = ("flink.run", "flink.stream", "flink.predict")
#: what runs a script; what runs jobs; those and what keeps a model
SCRIPTED = (*SCRIPTS, "pai")
JOBS = (*SCRIPTS, *PREDICTIONS, "pai")
WORKERS = (*SCRIPTS, *MODELS, "pai")

#: commands that run a job
RUNNING = ("run", "train", "stream", "predict", "pai")
#: what a command of PAI's says itself
IN_PLACE = "In place of the command's."
