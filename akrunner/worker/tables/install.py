"""Prepares a task of a job with tables before its script begins: makes the broker, and adds PAI's names."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from akrunner.worker import quick
from akrunner.worker.tables import asking, sharing, writer
from akrunner.worker.tables.broker import Broker

if TYPE_CHECKING:
    from akrunner.wire.context import Context
    from akrunner.wire.frames import FrameWriter


def enter(context: Context, frames: FrameWriter) -> Broker:
    """Make the broker of this task, which readers and writers find from now on, and return it.

    Args:
        context: the task's context.
        frames: sends frames to the host.
    """
    folder = os.path.join(context["task_dir"], "tables")
    os.mkdir(folder, 0o700)
    broker = Broker(frames, folder)
    broker.close_writers = writer.close_all
    asking.serve(broker)
    path = os.path.join(folder, "ask")
    sharing.listen(broker, path)
    os.environ[asking.VARIABLE] = path
    # at the end of the path, so that the script's own modules of these names win
    names = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "pai")
    if names not in sys.path:
        sys.path.append(names)
    quick.afterwards(_into_tensorflow)
    return broker


def _into_tensorflow() -> None:
    # imported only here, because it needs TensorFlow
    from akrunner.worker.tables import names

    names.into_tensorflow()
