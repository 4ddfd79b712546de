"""What one process of the warm ones has of the machine's memory."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from akrunner.spares import spare as spare_module
from akrunner.spares.spare import Memory, Spare


def test_memory_that_is_shared_counts_in_part() -> None:
    found = Memory.of(os.getpid())
    assert 0 < found.own <= found.part <= found.whole


def test_one_that_is_gone_has_none() -> None:
    assert Memory.of(1 << 22) == (0, 0, 0)


def test_what_it_has_printed_is_known_after_it_was_closed() -> None:
    """Whoever waited for it may ask only then; the number of its log's descriptor may be another file's by now."""
    (commands, ours), (says, heard), (log, prints) = os.pipe(), os.pipe(), os.pipe()
    process = SimpleNamespace(
        pid=1 << 22, input_fd=ours, output_fd=says, log_fd=log, kill=lambda: None, wait=lambda seconds: None
    )
    spare = Spare(SimpleNamespace(), process, "no mark", [], 0.0)  # type: ignore[arg-type]
    os.write(prints, b"first\nModuleNotFoundError: No module named 'tensorflow'\n")
    for fd in (commands, heard, prints):
        os.close(fd)
    spare.end()
    others, theirs = os.pipe()
    os.write(theirs, b"not for you")
    try:
        assert spare.last_words() == "ModuleNotFoundError: No module named 'tensorflow'"
        assert os.get_blocking(others) and os.read(others, 100) == b"not for you"
    finally:
        os.close(others)
        os.close(theirs)


@pytest.mark.parametrize("given", ["order", "hand_over"])
def test_its_process_learns_when_a_job_takes_it(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pipes = [os.pipe() for _ in range(3)]
    began: list[str] = []
    process = SimpleNamespace(
        pid=1 << 22, input_fd=pipes[0][1], output_fd=pipes[1][0], log_fd=pipes[2][0], begins=lambda: began.append("job")
    )
    monkeypatch.setattr(spare_module, "become", lambda *given: None)
    spare = Spare(SimpleNamespace(), process, "no mark", [], 0.0)  # type: ignore[arg-type]
    os.close(pipes[1][1])
    spare.order({}, "/", "/b.zip") if given == "order" else spare.hand_over()
    assert began == ["job"]
    for fd in (*pipes[0], pipes[1][0], *pipes[2]):
        os.close(fd)
