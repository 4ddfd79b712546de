"""A seed -> what is run, who is killed, how and when. No seed starts anything here."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

MODES = ("batch", "stream", "train", "predict")
FORMS = ("o.parquet", "o.jsonl", "o.csv", "o.arrow", "o/")
#: what a job on Flink has besides its tasks, and how often it is chosen: all tasks together are 4
FLINK = {
    "host": 3.0, "guard": 1.0, "client": 1.0, "java": 1.0, "agent": 3.0, "agentguard": 1.0, "taskmanager": 1.5, "jobmanager": 0.7,
}  # fmt: skip
#: who belongs to the cluster, and so to other jobs as well
SHARED = ("taskmanager", "jobmanager")


@dataclass(frozen=True)
class Kill:
    """Attributes: target: host, guard, or a task by its key (`chief-0`); on Flink also the process that submits (client) and its Java, the Python
    worker beside a task (agent) and its guard, or one of the cluster; signal: its name; after: seconds since the moment."""

    target: str
    signal: str
    after: float


@dataclass(frozen=True)
class Plan:
    """Attributes: moment: what the first kill counts from: start (of the host), spawn (of the target), main (entered by some task), done (some
    task's main has returned); command: by the command line rather than a program; before: something is at the output's place; blocks: the
    table is of so many that machines may read it themselves."""

    seed: int
    mode: str
    data_format: str
    workers: int
    servers: int
    evaluator: bool
    command: bool
    form: str
    before: bool
    moment: str
    kills: tuple[Kill, ...]
    blocks: bool = False

    @property
    def tasks(self) -> list[str]:
        """Their keys."""
        return _tasks(self.workers, self.servers, self.evaluator)

    @property
    def lonely(self) -> bool:
        """Whether it has victims that other jobs on the cluster would miss, or needs the next job there to clean up."""
        targets = {kill.target for kill in self.kills}
        return not targets.isdisjoint(SHARED) or targets == {"agent", "agentguard"}

    @classmethod
    def of(cls, seed: int) -> Plan:
        """The same for the same seed, always."""
        chance = random.Random(seed)
        mode = chance.choices(MODES, (4, 3, 2, 1))[0]
        workers = chance.randint(1, 3)
        servers = int(mode in ("batch", "train") and chance.random() < 0.3)
        evaluator = mode in ("batch", "train") and chance.random() < 0.2
        tasks = _tasks(workers, servers, evaluator)
        moment = chance.choices(("start", "spawn", "main", "done"), (3, 2, 4, 3))[0]
        first = _target(chance, tasks)
        targets = [first] if chance.random() < 0.45 else [first, _target(chance, [t for t in tasks if t != first], first)]
        longest = {"start": 1.2, "spawn": 0.3, "main": 0.35, "done": 0.25}[moment]
        kills = _kills(chance, targets, longest, 0.2)
        return cls(
            seed=seed,
            mode=mode,
            workers=workers,
            servers=servers,
            evaluator=evaluator,
            moment=moment,
            kills=kills,
            **_output(chance, mode),
        )

    @classmethod
    def on_flink(cls, seed: int) -> Plan:
        """The same for the same seed, always."""
        chance = random.Random(f"flink-{seed}")
        mode = chance.choices(MODES, (4, 2, 2, 1))[0]
        workers = chance.randint(1, 2)
        servers = int(mode in ("batch", "train") and chance.random() < 0.3)
        evaluator = mode in ("batch", "train") and chance.random() < 0.2
        weights = {**FLINK, **{task: 4.0 / (workers + servers + evaluator) for task in _tasks(workers, servers, evaluator)}}
        targets: list[str] = []
        while len(targets) < chance.choice((1, 2)):
            (target,) = chance.choices([*weights], [*weights.values()])
            del weights[target]
            targets.append(target)
        moment = chance.choices(("start", "spawn", "main", "done"), (3, 2, 4, 3))[0]
        longest = {"start": 7.0, "spawn": 1.0, "main": 0.6, "done": 0.6}[moment]
        kills = _kills(chance, targets, longest, 0.5)
        return cls(
            seed=seed,
            mode=mode,
            workers=workers,
            servers=servers,
            evaluator=evaluator,
            # of a cluster's processes, which are there before: from the first task on
            moment="main" if moment == "spawn" and targets[0] in SHARED else moment,
            kills=kills,
            **_output(chance, mode),
            blocks=mode in ("batch", "train") and chance.random() < 0.5,
        )


def _kills(chance: random.Random, targets: list[str], longest: float, gap: float) -> tuple[Kill, ...]:
    """The first within `longest` seconds, each other at once or within `gap` of the one before."""
    at, kills = chance.uniform(0, longest), []
    for target in targets:
        kills.append(Kill(target, _signal(chance, target), at))
        at += chance.choice((0.0, chance.uniform(0, gap)))
    return tuple(kills)


def _output(chance: random.Random, mode: str) -> dict[str, Any]:
    form = _form(chance, mode)
    return {
        "data_format": chance.choice(("examples", "columns")),
        "command": mode == "stream" or (mode == "batch" and chance.random() < 0.5),
        "form": form,
        "before": chance.random() < 0.3 and not form.endswith("/"),
    }


def _form(chance: random.Random, mode: str) -> str:
    form = chance.choice(FORMS) if mode != "stream" else chance.choice(("o.jsonl", "o.csv"))
    # a prediction writes a file
    return "o.parquet" if mode == "predict" and form.endswith("/") else form


def _tasks(workers: int, servers: int, evaluator: bool) -> list[str]:
    return ["chief-0", *(f"worker-{i}" for i in range(workers - 1)), *["ps-0"] * servers, *["evaluator-0"] * evaluator]


def _target(chance: random.Random, tasks: list[str], but: str = "") -> str:
    others = [name for name in ("host", "guard") if name != but]
    weights = [3.0] * len(others) + [4.0 / max(1, len(tasks))] * len(tasks)
    return chance.choices([*others, *tasks], weights)[0]


def _signal(chance: random.Random, target: str) -> str:
    weights = (
        (8, 0, 1, 1) if target in ("guard", "agentguard") else (6, 2, 0, 1) if target in ("java", *SHARED) else (6, 2, 1, 1)
    )
    return chance.choices(("KILL", "TERM", "SEGV", "STOP"), weights)[0]
