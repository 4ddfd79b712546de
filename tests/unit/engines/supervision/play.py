"""An attempt without a process: what happens is said, time passes when the test says so, and what is asked is answered as the test wants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from akrunner.engines.supervision import actions as do
from akrunner.engines.supervision import events as on
from akrunner.engines.supervision import machine
from akrunner.engines.supervision.stall import Facts
from akrunner.engines.supervision.states import LastWord, Moment, Rules, State, Verdict
from akrunner.spec import ClusterSpec, SupervisionSpec, TaskSpec

CHIEF, WORKER, OTHER, SERVER, EVALUATOR = (
    TaskSpec("chief", 0),
    TaskSpec("worker", 0),
    TaskSpec("worker", 1),
    TaskSpec("ps", 0),
    TaskSpec("evaluator", 0),
)
TICK = 0.1
ROWS = 10

#: as faulthandler prints it in TensorFlow 1.15
_STACK = 'Current thread 0x00007ff3a0231b80 (most recent call first):\n  File "/lib/python3.7/site-packages/{}", line 5 in {}\n'
IN_SESSION = _STACK.format("tensorflow_core/python/client/session.py", "_extend_graph")
IN_JOIN = _STACK.format("tensorflow/python/training/server_lib.py", "join")
IN_MAIN = _STACK.format("train.py", "main")

Kind = TypeVar("Kind")


def rules(workers: int = 1, wait: Any = None, **others: Any) -> Rules:
    """Args: wait: of `SupervisionSpec`; others: of `ClusterSpec` and `Rules`."""
    of_rules = {
        name: others.pop(name) for name in ("streaming", "counted", "schema_given", "program", "staying") if name in others
    }
    return Rules(ClusterSpec(workers, **others), SupervisionSpec(**(wait or {})), **of_rules)


class Play:
    """Does what the supervisor does.

    Attributes:
        state, now: of the attempt.
        did: what was to be done, in order.
        exits: what is answered of a process that has ended: (words, well); of others: they run on.
        stacks: of tasks that are asked.
        computing: whether a close look finds somebody who computes; waiting: frames of theirs that were not taken.
        facts: what the host sees; it changes when a test changes it.
    """

    def __init__(self, rules: Rules) -> None:
        self.now = 100.0
        self.state = State.first(rules, self.now, self.now)
        self.did: list[do.Action] = []
        self.exits: dict[TaskSpec, tuple[str, bool]] = {}
        self.stacks: dict[TaskSpec, str] = {}
        self.computing = False
        self.waiting = 0
        self.facts = Facts()
        self.happened(on.Spawning())

    @property
    def verdict(self) -> Verdict:
        assert self.state.verdict is not None, self.state
        return self.state.verdict

    @property
    def tasks(self) -> tuple[TaskSpec, ...]:
        return self.state.rules.cluster.tasks

    def states(self) -> list[str]:
        return [record.state.value for record in self.state.tasks.values()]

    def done(self, kind: type[Kind]) -> list[Kind]:
        return [action for action in self.did if isinstance(action, kind)]

    def stopped(self) -> list[TaskSpec]:
        return [action.task for action in self.done(do.Stop)]

    def warnings(self) -> list[str]:
        return [action.what for action in self.done(do.Warn)]

    def happened(self, *events: on.Event) -> None:
        for event in events:
            self.state, actions = machine.step(self.state, event, Moment(self.now, round(self.now * 1e9)))
            for action in actions:
                self.did.append(action)
                answer = self._answer(action)
                if answer is not None:
                    self.happened(answer)

    def _answer(self, action: do.Action) -> Any:
        if isinstance(action, do.AwaitExit):
            words, well = self.exits.get(action.task, ("", False))
            return on.Exited(action.task, words, well, round(self.now * 1e9))
        if isinstance(action, do.AskStacks):
            running = [task for task in action.tasks if self.state.tasks[task].state.prints_stacks]
            return on.Stacks(action.purpose, {task: self.stacks[task] for task in running if task in self.stacks})
        if isinstance(action, do.LookClosely):
            self.now += 1.0
            return on.LookedClosely(1.0 if self.computing else 0.0, 1.0, self.waiting)
        if isinstance(action, do.TellStall):
            return on.StallTold(f"nothing has moved for {action.seconds:g} s; {action.vain}", action.fatal)
        return None

    def wait(self, seconds: float) -> float:
        """Let time pass, or until the verdict. Returns: how much has."""
        began = self.now
        while self.now < began + seconds and self.state.verdict is None:
            self.now += TICK
            self.happened(on.Tick(self.facts))
        return self.now - began

    # -- what mostly happens

    def import_all(self) -> None:
        """Every task is importing the script."""
        self.happened(*(on.Opened(task) for task in self.tasks))

    def enter_all(self) -> None:
        """Every task is in `main`."""
        self.import_all()
        rows = {task: ROWS if task in self.state.rules.cluster.with_rows else 0 for task in self.tasks}
        self.happened(on.Fed(), *(on.Ready(task, rows[task], rows[task]) for task in self.tasks))
        self.happened(*(on.Entered(task) for task in self.tasks))

    def write(self, task: TaskSpec, rows: int = 2) -> None:
        self.happened(on.Wrote(task, rows, 8 * rows))

    def close(self, *tasks: TaskSpec, **said: Any) -> None:
        """They say that they are done, with as many rows as have arrived; then their processes end."""
        for task in tasks:
            record = self.state.tasks[task]
            body = {"rows": record.rows_out, "read": ROWS, **said}
            self.happened(on.Closed(task, LastWord(main_ns=5), **body), on.PipeEnded(task))


def names(tasks: Sequence[TaskSpec]) -> list[str]:
    return [task.name for task in tasks]
