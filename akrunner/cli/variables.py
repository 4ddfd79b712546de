"""Environment variables that look as if akrunner read them, and that it does not."""

from __future__ import annotations

import difflib
from typing import List, Mapping

from akrunner.jobfile import HEADS
from akrunner.options import OPTIONS, of_command

_OURS = "AKRUNNER_"
#: those that give no option its default: of the machine, or set in tasks for programs, where a script may start akrunner, too
_OTHERS = (
    "ENV_PATH FLINK_CREDENTIALS FLINK_MASTER MAX_DOWNLOAD MAX_MEMBERS MAX_UNPACKED PROJECT TABLES WARM "
    "CHECKPOINT_DIR DATASET_FILE DATASET_LENGTH HOST JOB OUTPUT_FILE SAVED_MODEL_DIR TABLES_SOCKET TASK"
).split()


def unread(environment: Mapping[str, str], command: str) -> List[str]:
    """In words, what is wrong with each variable that has the name of an option of the command that is read from none, or nearly the name of one that is read."""
    known = [*_OTHERS, *(one.variable[len(_OURS) :] for one in OPTIONS if one.variable)]
    flags = {one.name.upper(): one.words_in(command)[0] for one in of_command(command) if one.words_in(command)}
    told = []
    for variable in sorted(environment):
        name = variable[len(_OURS) :]
        if not variable.startswith(_OURS) or name in known:
            continue
        if name in flags:
            where = "on the command line or in a job file" if command in HEADS else "on the command line"
            told.append(f"{variable} is not read: {flags[name]} is given {where}")
            continue
        near = difflib.get_close_matches(name, known, 1, 0.8)
        if near:
            told.append(f"{variable} is not read; did you mean {_OURS}{near[0]}?")
    return told
