"""What a task says, as values whose types are declared."""

from __future__ import annotations

from typing import get_args, get_type_hints

from akrunner.launch import events, session
from akrunner.spec import TaskSpec
from akrunner.wire import messages


def test_the_body_of_an_event_is_declared_as_its_frames() -> None:
    made = {kind: get_type_hints(event)["body"] for kind, event in session._EVENTS.items()}
    assert made == {kind: messages.SHAPES[kind] for kind in session._EVENTS}


def test_every_event_is_one_of_the_declared() -> None:
    declared = {one for one in vars(events).values() if isinstance(one, type) and issubclass(one, events._Event)}
    assert set(get_args(events.Event)) == declared - {events._Event}
    assert {event for event in declared if "body" in get_type_hints(event)} == set(session._EVENTS.values())
    assert events.Ended(TaskSpec("chief", 0)) == events.Ended(TaskSpec("chief", 0))
