"""Options about the course of a job: time limits and failures, the directories it keeps, and its progress."""

from __future__ import annotations

from akrunner.options.declared import SCRIPTS, Option
from akrunner.options.headings import BATCH, FLINK, JOBS, PAGED, PLACES, RUNNING, SCRIPTED, TOLD, TROUBLE, WORKERS

_WAYS = 'Literal["auto", "bar", "plain", "none", "json"]'

OPTIONS = (
    Option(
        "timeout",
        "float | None",
        TROUBLE,
        "seconds the job may take, with all that is done before its tasks start: packages of `requirements=` are installed, files "
        "downloaded, tables opened. Installing is not cut short; what it brings is kept. None: as long as it takes.",
        verbs=JOBS,
        help="Seconds the job may take, with what is installed, downloaded and opened before. Then it is ended, with exit code 124, and every "
        "task's stacks are shown.",
        often=True,
        instead={
            **dict.fromkeys(FLINK, "seconds the job may take; None: as long as it takes."),
            "pai": "seconds a job may take, in place of `maxTrainingTimeInHour`.",
        },
        helps={"pai": "Seconds the job may take before it is ended, in place of maxTrainingTimeInHour."},
        above=0,
    ),
    Option(
        "start_timeout",
        "float",
        TROUBLE,
        "seconds a worker process may take to start.",
        60.0,
        verbs=WORKERS,
        help="Seconds a worker process may take to start.",
        environment=True,
        above=0,
    ),
    Option(
        "stall_timeout",
        "float",
        TROUBLE,
        "how many seconds nothing may move (no rows, no `report()`, no processor time) before the job reports every "
        "task's stack, and which task waits for which; 0: never.",
        600.0,
        verbs=JOBS,
        help="Seconds in which nothing moves before the job reports which task waits for which; 0: never.",
        environment=True,
        types={"pai": "float | None"},
        defaults={"pai": None},
        instead={
            "pai": "how many seconds nothing may move before the job reports which task waits for which, in place of "
            "`maxHungTimeBeforeGCInSeconds`; None: 600, if the command does not say."
        },
        helps={
            "pai": "Seconds in which nothing moves before the job reports which task waits for which, in place of "
            "maxHungTimeBeforeGCInSeconds. "
            "Default: 600."
        },
        unheeded=("pai",),
        least=0,
    ),
    Option(
        "stall_action",
        'Literal["fail", "warn"]',
        TROUBLE,
        'what happens then: "fail" ends the job, "warn" lets it go on.',
        "fail",
        verbs=JOBS,
        help="What a job does that has reached --stall-timeout: fail, or warn and go on.",
        environment=True,
        types={"pai": 'Literal["fail", "warn"] | None'},
        defaults={"pai": None},
        instead={"pai": 'what happens then: "fail" ends the job, "warn" lets it go on; None: as the command says, or "fail".'},
        unheeded=("pai",),
    ),
    Option(
        "evaluator_timeout",
        "float",
        TROUBLE,
        "seconds the evaluator gets for the last checkpoint when chief and workers are done.",
        60.0,
        help="Seconds for which the evaluator may go on when the other tasks are done.",
        environment=True,
        needs=dict.fromkeys(SCRIPTS, ("evaluator",)),
        verbs=SCRIPTED,
        least=0,
    ),
    Option(
        "profile_input",
        "int | None",
        TROUBLE,
        "steps, 1 to 10,000, at which TensorFlow's profiler looks for what the scripts' input waits for: `stats.inputs`, and "
        "in words `stats.input_verdict`; 20 is a good number. Not in a task of a cluster, where it can end the process. None, "
        "or False: it is not started; what clocks tell is measured anyway.",
        help="Look closely at what the scripts' input waits for, in so many steps (1 to 10,000; 20 if no number follows), and "
        "say what to change; what costs nothing is measured anyway.",
        verbs=SCRIPTED,
        least=1,
        most=10_000,
    ),
    Option(
        "max_restarts",
        "int",
        TROUBLE,
        "how often everything is started again after a failure, with the rows from the start and the same `checkpoint_dir`; "
        "`task_config.attempt` counts. The source must be one that can be read again. A stream goes on behind what was remembered, or "
        "behind the last save of `task_config.checkpoint()`.",
        0,
        instead={
            **dict.fromkeys(FLINK[1:], "how often what fails itself may be started again, as when a machine fails."),
            "pai": "how often everything is started again after a failure, in place of what `enableDynamicCluster` means (3).",
        },
        types={"pai": "int | None"},
        defaults={"pai": None},
        helps={
            "pai": "How often, at most, the job is started again after a failure, in place of the 3 times of enableDynamicCluster."
        },
        verbs=(*BATCH, "stream", *FLINK[1:], "pai"),
        help="How often, at most, the whole job is started again after a failure.",
        least=0,
    ),
    Option(
        "restart_delay",
        "float",
        TROUBLE,
        "seconds to wait before the job is started again for the first time (`max_restarts=`); before each further time twice as long, up to "
        "300, and a tenth more or less. 0: it never waits.",
        1.0,
        verbs=(*BATCH, "stream", "pai"),
        help="Seconds to wait before the first restart; twice as long before each further one, up to 300.",
        environment=True,
        least=0,
    ),
    Option(
        "tensorboard",
        "PathLike | None",
        PLACES,
        "directory to write what the tasks `report()` to, as event files TensorBoard opens, while the job runs; with `user_params`, for its tab HPARAMS.",
        help="Directory to write what tasks report() to, and the params, for TensorBoard.",
        verbs=SCRIPTED,
    ),
    Option(
        "work_dir",
        "PathLike | None",
        PLACES,
        "new directory to keep everything in; None: a temporary one, which is removed afterwards.",
        verbs=(*JOBS, "doctor"),
        help="New directory to keep logs, rows and files in.",
        commands=("replay",),
        instead={
            "doctor": "the work directory that a job has kept (`debug=True`, `work_dir=`), the directory with the logs of a job "
            "that failed, or a path in one of them: the job is explained. None: the machine is checked."
        },
        helps={
            "pai": "New directory to keep logs and files in.",
            "doctor": "Directory of a job, or a path in it. Default: check the machine.",
            "replay": "Directory that a job has kept (--debug or --work-dir).",
        },
        stands=("doctor", "replay"),
        needed=("replay",),
    ),
    Option(
        "checkpoint_dir",
        "PathLike | None",
        PLACES,
        "directory handed to the script, the same for every task.",
        help="Directory for checkpoints, the same for every task.",
    ),
    Option(
        "resume",
        "bool",
        PLACES,
        "go on where an earlier job with the same `checkpoint_dir` was ended, if the script saves by `task_config.checkpoint()`; "
        "where there is no save yet, the job begins with the first row.",
        False,
        verbs=SCRIPTS,
        needs=dict.fromkeys(SCRIPTS, ("checkpoint_dir",)),
        help="Go on from the saves of task_config.checkpoint() that an earlier job left in --checkpoint-dir.",
    ),
    Option(
        "debug",
        "bool",
        PLACES,
        "keep the work dir, for `akrunner replay`.",
        False,
        help="Echo every task's log (what scripts print) and keep the work dir for `akrunner replay`.",
        often=True,
        verbs=SCRIPTED,
    ),
    Option(
        "keep_run",
        "bool | None",
        PLACES,
        "whether this run is kept, for `akrunner runs` and `akrunner.runs`: its arguments (no secrets), versions, numbers, metrics, warnings, "
        "logs, and why it failed. None: it is, unless AKRUNNER_KEEP_RUN is 0.",
        verbs=JOBS,
        help="Keep this run, or keep nothing of it, for `akrunner runs`, `show`, `logs` and `rerun`. Default: $AKRUNNER_KEEP_RUN, else kept.",
        flags=("--keep-run/--no-keep-run",),
        environment=True,
    ),
    Option(
        "notify",
        "NotifyLike | None",
        TOLD,
        "who is told of the job's end, also of one that is refused: a URL that gets a POST of the JSON object of `--json`, or a function that gets "
        "it as a dict. If that fails, it is a warning.",
        verbs=JOBS,
        help="URL that gets a POST of the result or the failure, as JSON, when the job has ended.",
        environment=True,
        private=True,
    ),
    Option(
        "metrics_file",
        "PathLike | None",
        TOLD,
        "file to write the job's numbers to as OpenMetrics, every five seconds and at the end: rows, bytes, states, restarts, stalls.",
        verbs=JOBS,
        help="File for the job's numbers as OpenMetrics (NAME.prom), which the textfile collector of Prometheus' node_exporter reads.",
    ),
    Option(
        "metrics_port",
        "int | None",
        TOLD,
        "port that serves the same numbers while the job runs, as http://127.0.0.1:PORT/metrics.",
        verbs=JOBS,
        help="Port that serves the same numbers while the job runs: http://127.0.0.1:PORT/metrics.",
        least=1,
        most=65535,
    ),
    Option(
        "metrics_host",
        "str",
        TOLD,
        "address of this machine at which `metrics_port=` listens. Whoever can reach it can read the numbers: there is no password.",
        "127.0.0.1",
        verbs=JOBS,
        needs=dict.fromkeys(JOBS, ("metrics_port",)),
        help="Address at which --metrics-port listens; 0.0.0.0 lets every machine read it.",
        environment=True,
    ),
    Option(
        "mlflow",
        "str | None",
        TOLD,
        "URI of an MLflow tracking server, at which the job becomes a run: params, metrics, status, model, logs; needs akrunner's extra `mlflow`. "
        '"auto": as MLFLOW_TRACKING_URI, or the program around the job, says. What cannot be logged is a warning.',
        verbs=JOBS,
        help="Make the job a run of MLflow tracking, at this URI (http://HOST:5000), or as MLFLOW_TRACKING_URI says if no URI follows.",
        environment=True,
        private=True,
    ),
    Option(
        "mlflow_experiment",
        "str | None",
        TOLD,
        "the name of the run's experiment, which is made if it is not there. None: MLFLOW_EXPERIMENT_NAME, else MLFLOW_EXPERIMENT_ID, else MLflow's default.",
        verbs=JOBS,
        needs=dict.fromkeys(JOBS, ("mlflow",)),
        help="Experiment of the run in MLflow. Default: $MLFLOW_EXPERIMENT_NAME, else MLflow's default.",
        environment=True,
    ),
    Option(
        "report",
        "PathLike | None",
        PLACES,
        "the file of an HTML page about the job (why it failed, learning curves, timeline, memory, logs), written when it has ended, whether it has succeeded "
        "or not; needs akrunner's extra `report`. `akrunner.runs.report` makes it later, too.",
        verbs=PAGED,
        help="Write a page about the job to this file when it has ended: why it failed, curves, timeline, logs. `akrunner report` makes it later, too.",
    ),
    Option(
        "progress",
        _WAYS,
        PLACES,
        "how it is shown how far the job is: bar (drawn on the terminal, in a notebook in the output of the cell), plain (a line on stderr now and "
        "then), json (events on stderr), none. auto: what AKRUNNER_PROGRESS says; else nothing, but in a notebook, without `observer`, as bar.",
        "auto",
        verbs=(*JOBS, "pack"),
        instead={
            "pack": "how it is shown how far the run is: bar (drawn on the terminal, in a notebook in the output of the cell), plain (a line on stderr "
            "now and then), json (events on stderr), none. auto: what AKRUNNER_PROGRESS says; else nothing, but in a notebook as bar. Or a "
            "function that is called now and then with how far it is."
        },
        commands=RUNNING,
        types={"pack": f"Callable[[PackProgress], None] | {_WAYS}"},
        help="Progress on stderr: auto, bar, plain (a line now and then), json (events), none.",
        environment=True,
        often=True,
    ),
    Option(
        "observer",
        "Observer | None",
        PLACES,
        "an object that is told of the job's progress.",
        apart=True,
        verbs=JOBS,
        also={"pai": "A shell script's jobs have none."},
    ),
)
