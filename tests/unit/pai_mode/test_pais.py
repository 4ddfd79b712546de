"""PAI's worker 1 is worker:0 here, and whoever comes from PAI is told both."""

from __future__ import annotations

import pytest

from akrunner.errors import ScriptFailedError, TaskFailure
from akrunner.pai_mode import pais
from akrunner.spec import ClusterSpec

KNOWN = pais.names(ClusterSpec(3, 1, True, flags=True))


def test_the_chief_is_pais_worker_0() -> None:
    assert KNOWN == {"chief:0": "PAI's worker 0", "worker:0": "PAI's worker 1", "worker:1": "PAI's worker 2"}
    assert pais.names(ClusterSpec(1)) == {}


@pytest.mark.parametrize(
    "text, said",
    [
        ("[worker:0] raised ValueError", "[worker:0] (PAI's worker 1) raised ValueError"),
        ("waits for worker:1, chief:0", "waits for worker:1 (PAI's worker 2), chief:0 (PAI's worker 0)"),
        ("[ps:0] and [evaluator:0]", "[ps:0] and [evaluator:0]"),
        ("akrunner replay DIR --task worker:0", "akrunner replay DIR --task worker:0"),
        ("/job:worker/task:0 in tasks/worker-0/log.txt", "/job:worker/task:0 in tasks/worker-0/log.txt"),
        ("my-worker:0, worker:10", "my-worker:0, worker:10"),
    ],
)
def test_a_task_has_both_names_where_it_is_named(text: str, said: str) -> None:
    assert pais.both(text, KNOWN) == said
    assert pais.both(said, KNOWN) == said


def test_an_error_has_both_names() -> None:
    failure = TaskFailure("worker:0", "raised", traceback="worker:0 in the script's own words")
    error = ScriptFailedError(
        "[worker:0] raised", failure=failure, others=[TaskFailure("chief:0", "was stopped"), TaskFailure("ps:0", "was stopped")]
    )
    error.warnings = ("[worker:1] was killed",)
    with pytest.raises(ScriptFailedError) as caught, pais.telling(KNOWN):
        raise error
    assert str(caught.value).splitlines() == [
        "[worker:0] (PAI's worker 1) raised",
        "worker:0 in the script's own words",
        "other tasks:",
        "  [chief:0] (PAI's worker 0) was stopped",
        "  [ps:0] was stopped",
        "before that:",
        "  [worker:1] (PAI's worker 2) was killed",
    ]
    assert caught.value.failure is failure
