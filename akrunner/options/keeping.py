"""Options of `warm` and `doctor`, and of the commands `warm start`, `doctor` and `replay`."""

from __future__ import annotations

from akrunner.options.declared import Option
from akrunner.options.headings import CLUSTER, PYTHON, RESOURCES, TROUBLE

_WARM, _DOCTOR = ("warm",), ("doctor",)
_START, _REPLAY = ("warm start",), ("replay",)

OPTIONS = (
    Option(
        "workers",
        "int",
        CLUSTER,
        "how many workers wait for jobs.",
        2,
        verbs=_WARM,
        help="How many workers wait. They are forked from one process, whose 200 to 650 MiB of memory they share.",
    ),
    Option(
        "idle_timeout",
        "float",
        TROUBLE,
        "seconds without a job after which the warm workers end; the next job starts new ones.",
        900.0,
        verbs=_WARM,
        # a longer time on the command line, as commands follow each other more slowly than the jobs of a program
        defaults={"warm start": 3600.0},
        help="Seconds without a job after which all of them end.",
    ),
    Option(
        "max_memory",
        "int | str | None",
        RESOURCES,
        'bytes of memory that the warm workers may take together, or a size ("2GB"); None: a quarter of the '
        "machine's. One with TensorFlow takes 200 to 650 MiB, each one that is forked from it 3 MiB more.",
        verbs=_WARM,
        help="What they may have together: 2GB, 800MiB, or bytes. Default: a quarter of the machine's.",
    ),
    Option(
        "preload",
        "SequenceNotStr[str]",
        PYTHON,
        "modules that the warm workers import.",
        ("tensorflow",),
        verbs=_WARM,
    ),
    Option(
        "wait",
        "bool",
        TROUBLE,
        "",
        False,
        verbs=(),
        commands=_START,
        help="Return when all of them wait for a job; fail if they do not within a minute.",
    ),
    Option(
        "flink_master",
        "str | None",
        CLUSTER,
        "REST address of a Flink cluster to check, as for `akrunner.engines.flink.FlinkEngine`; None: no cluster is checked.",
        verbs=_DOCTOR,
        commands=("run", "train", "stream", "predict", "pai"),
        help="Flink's REST address, HOST:PORT or a URL; local: a cluster that comes and goes with the job. Default: "
        "$AKRUNNER_FLINK_MASTER, else local.",
        helps={"doctor": "REST address of a Flink cluster to ask, HOST:PORT or a URL."},
        flagged={"doctor": ("--flink-master", "--flink-rest")},
    ),
    Option(
        "flink_python",
        "PathLike | None",
        CLUSTER,
        "interpreter that has PyFlink; None: this one.",
        verbs=_DOCTOR,
        commands=("run", "train", "stream", "predict", "pai"),
        help="Interpreter with PyFlink. Default: the one that runs akrunner.",
    ),
    Option(
        "quick",
        "bool",
        PYTHON,
        "do not import TensorFlow, which takes seconds.",
        False,
        verbs=_DOCTOR,
        help="Do not import TensorFlow, which takes seconds.",
    ),
    Option(
        "task",
        "str | None",
        CLUSTER,
        "",
        verbs=(),
        commands=_REPLAY,
        help="The task to run. Default: the chief.",
    ),
    Option(
        "cluster",
        "bool",
        CLUSTER,
        "",
        False,
        verbs=(),
        commands=_REPLAY,
        help="Keep the TF_CONFIG of the job, which names the other tasks, too. Default: one that names this task alone.",
    ),
    Option(
        "print_command",
        "bool",
        CLUSTER,
        "",
        False,
        verbs=(),
        commands=_REPLAY,
        help="Only print the command, for an IDE.",
    ),
)
