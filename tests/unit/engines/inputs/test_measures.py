"""The shares of time that rules of advice use, and how a piece of advice is worded."""

from __future__ import annotations

from typing import Any

import pytest

from akrunner.engines.inputs import blame, measures
from akrunner.engines.inputs.measures import Advice
from tests.unit.engines.inputs.test_wording import CHAIN, MAPPED, node, record


def test_advice_says_what_is_wrong_and_what_to_change_and_whether_that_is_sure() -> None:
    sure = Advice("map", 0.5, 0.25, "`Map` runs one call at a time", "more")
    assert sure.words == "`Map` runs one call at a time: more"
    likely = Advice("map", 0.5, 0.25, "`Map` is slow", "more", "--profile-input")
    assert likely.words == "most likely because `Map` is slow: more; --profile-input tells for sure"


@pytest.mark.parametrize(
    "more, seconds, words",
    [({}, 10.0, measures.STEPS), ({"known": False}, 11.0, measures.MAIN), ({"by": ""}, 11.0, measures.MAIN), ({"wait": 0.0, "between": 0.0}, 11.0, measures.MAIN)],
)  # fmt: skip
def test_shares_are_of_the_steps_or_else_of_main(more: dict[str, Any], seconds: float, words: str) -> None:
    told = record({}, CHAIN, **more)
    assert (measures.whole(told), measures.base(told)) == (seconds, words)


def test_of_several_pipelines_only_a_part_of_the_waiting_is_for_one() -> None:
    assert measures.for_it(record({}, CHAIN)) == pytest.approx(0.8)
    assert measures.for_it(record({}, CHAIN, part=0.5)) == pytest.approx(0.4)


CACHED = [node("Repeat", 5, count=4), node("Cache", 4), node("Map", 3), node("TFRecord", 2)]


@pytest.mark.parametrize(
    "more, share",
    [
        # four passes of 25 batches each, and the first window is all of the first pass
        ({"windows": [[0.0, 25, 6.0, 0.0], [1.0, 75, 2.0, 0.0]]}, 0.75), ({"windows": [[0.0, 50, 4.0, 0.0], [1.0, 50, 4.0, 0.0]]}, 0.25), ({"windows": [[0.0, 100, 8.0, 0.0]]}, 0.25),
        ({"windows": []}, 0.0), ({"windows": [[0.0, 0, 3.0, 0.0], [0.0, 100, 5.0, 0.0]]}, (3 + 5 / 4) / 8),
        ({"pipelines": [{"nodes": CACHED, "passes": 1, "filled": 3.0, "waited": 4.0}]}, 0.75), ({"pipelines": [{"nodes": CACHED, "passes": 1, "filled": 9.0, "waited": 4.0}]}, 1.0),
    ],
    ids=range(7),
)  # fmt: skip
def test_how_much_of_the_waiting_was_in_the_first_pass(more: dict[str, Any], share: float) -> None:
    assert measures.first_pass(record({}, CACHED, **more)) == pytest.approx(share)


def test_only_nodes_behind_a_cache_work_in_the_first_pass_alone() -> None:
    windows = [[0.0, 25, 6.0, 0.0], [1.0, 75, 2.0, 0.0]]
    nodes = {"Root": (0.0, 1), "Root::MemoryCache::Map": (1.0, 1), "Root::Shuffle": (1.0, 1)}
    told = record(nodes, [node("Shuffle", 6), *CACHED], windows=windows)
    shares = {one.kind: measures.of_passes(one, told) for one in blame.blamed(told)}
    assert shares == {"Map": pytest.approx(0.75), "Shuffle": 1.0}
    assert not measures.behind(blame.blamed(told)[0], None, told)


@pytest.mark.parametrize(
    "nodes, chain, ahead",
    [
        (MAPPED, CHAIN, True), ({}, CHAIN, True), ({}, CHAIN[1:], False), ({}, [node("Take", 40), *CHAIN], True), ({}, [node("Map", 40), *CHAIN], False),
        ({"Root::Prefetch::BatchV2": (1.0, 1)}, CHAIN[1:], True),
    ],
)  # fmt: skip
def test_batches_are_made_ahead_where_a_prefetch_is_at_the_end(nodes: Any, chain: Any, ahead: bool) -> None:
    assert measures.is_ahead(record(nodes, chain)) == ahead


def test_the_line_of_python_is_that_of_a_thread_of_the_pipeline() -> None:
    lines = [{"main": True, "at": "/a/main.py:1"}, {"main": False, "at": "/a/rows.py:7"}, {"main": False, "at": "/a/rows.py:9"}]
    assert measures.line_of_python(record({}, CHAIN, lines=lines)) == " (Python at rows.py:7)"
    assert measures.line_of_python(record({}, CHAIN, lines=lines[:1])) == ""
