"""How far `main` is, as far as this process can know it: told to the host while the script reads, at most once a second, and at each
percent of the whole, so that a display's share and its step agree.

::

    task_config.report(..., steps=)                          what the script says
    task_config.checkpoint()                                 its epochs, and the batches of each
    Keras's fit()                                            the same
    task_config.batches(), eager loops over dataset()        their rows, epoch by epoch

The first of these that is known counts. A script that reads in other ways tells nothing: nobody guesses.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, Optional

from akrunner.wire.messages import Reached

#: who tells: what counts rows, Keras's fit(), `task_config.checkpoint()`, the script itself. The greatest counts
ROWS, FIT, CHECKPOINT, SCRIPT = 1, 2, 3, 4
#: seconds between two messages of the same percent, at least
_EVERY = 1.0
_now: Dict[str, Any] = {"course": None}


class Course(object):
    """Tells the host how far `main` is.

    Args:
        say: sends a message.
        clock: returns the time in seconds.
    """

    def __init__(self, say: Callable[[Reached], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._pid = os.getpid()
        self._best = 0
        self._told: Optional[float] = None
        self._epoch = 0
        self._percent: Optional[int] = None

    def tell(self, who: int, done: int, total: Optional[int], epoch: int = 0, epochs: Optional[int] = None) -> None:
        """Tell how far it is, unless that was told within the last second, to the percent, or somebody knows better.

        Args:
            who: ROWS, FIT, CHECKPOINT or SCRIPT.
            done: steps, batches or rows of this epoch that are done.
            total: of how many; None: not known.
            epoch: which epoch it is, from 1; 0: these are no epochs.
            epochs: how many there will be; None: not known.
        """
        if who < self._best or os.getpid() != self._pid:
            return
        now, percent = self._clock(), _percent(done, total, epoch, epochs)
        lately = self._told is not None and now - self._told < _EVERY
        if who == self._best and lately and percent == self._percent:
            return
        self._best, self._told, self._epoch, self._percent = who, now, epoch, percent
        self._say(Reached(done=max(done, 0), total=total, epoch=max(epoch, 0), epochs=epochs))

    def ended(self, who: int, total: int, epoch: int) -> None:
        """Tell at once that an epoch was done wholly, if something of it was told. Args: as for `tell`."""
        if who == self._best and epoch == self._epoch:
            self._told = None
            self.tell(who, total, total, epoch)

    def over(self, who: int) -> None:
        """Tell that this one has no more to tell, so that what the script does next is anybody's to tell."""
        if who == self._best and os.getpid() == self._pid:
            self._best, self._told, self._epoch, self._percent = 0, None, 0, None
            self._say(Reached(done=0, total=None, epoch=0, epochs=None))


def _percent(done: int, total: Optional[int], epoch: int, epochs: Optional[int]) -> Optional[int]:
    """Return how many percent are done of the whole; None: not known, as of one epoch of nobody knows how many. Args: as for `Course.tell`."""
    if epoch and not epochs:
        return None
    one = total or 1
    within = min(done, one) if total else 0
    return 100 * (max(epoch - 1, 0) * one + within) // (one * (epochs or 1))


class Rows(object):
    """Counts the rows of the epochs over one table, or over one split of it. Epochs count that were read to their end.

    Args: total: the rows of one epoch; None: not known, as in a stream, of which nothing is told.
    """

    def __init__(self, total: Optional[int]) -> None:
        self.total = total
        self._epoch = 1
        self._splits: Dict[int, Rows] = {}

    def of(self, split: int) -> Rows:
        """Return what counts the rows of a split, the same one each time. Args: split: its number."""
        return self._splits.setdefault(split, Rows(None))

    def read(self, rows: int) -> None:
        """Take how many rows of this epoch the script has got so far."""
        course = current()
        if course is not None and self.total:
            course.tell(ROWS, min(rows, self.total), self.total, self._epoch)

    def ended(self) -> None:
        """Note that an epoch was read to its end."""
        course = current()
        if course is not None and self.total:
            course.ended(ROWS, self.total, self._epoch)
        self._epoch += 1


class Fits(object):
    """Follows the epochs of Keras's `fit`, as its list of callbacks is told of them."""

    def __init__(self) -> None:
        self._fit: Any = None
        self._several = False
        self._epoch = self._before = self._done = 0
        self._total: Optional[int] = None
        self._epochs: Optional[int] = None

    def epoch_begins(self, fit: int, epoch: int, epochs: Any, steps: Any) -> None:
        """Note that an epoch begins.

        Args: fit: tells one call of `fit` from the others; epoch: its number, from 0; epochs: how many there will be; steps: the
            batches of each; of both anything but a whole number means that nobody knows.
        """
        if self._fit is not None and fit != self._fit:
            # a loop over fit(): how often it goes round is the script's to know
            self._several, self._before = True, self._before + self._epoch
            self._total = None
        measured = self._done if self._fit == fit and self._done else self._total
        self._fit, self._epoch, self._done = fit, epoch + 1, 0
        self._total = steps if isinstance(steps, int) and steps > 0 else measured
        self._epochs = epochs if isinstance(epochs, int) and epochs > 0 and not self._several else None
        self._tell()

    def batch_ended(self, batch: int, batches: Optional[int] = None) -> None:
        """Note that a batch is done. Args: batch: its number in the epoch, from 0; batches: those of the dataset that was read from
        last, None: not known."""
        self._done = batch + 1
        if self._total is None and batches is not None and self._done <= batches:
            # Keras itself knows it only when the first epoch has ended
            self._total = batches
        self._tell()

    def ended(self) -> None:
        """Note that `fit` has ended."""
        course = current()
        if course is not None:
            course.over(FIT)

    def _tell(self) -> None:
        course = current()
        if course is not None:
            course.tell(FIT, self._done, self._total, self._before + self._epoch, self._epochs)


def begin(say: Callable[[Reached], None]) -> None:
    """Note that `main` begins, and how the host is told how far it is."""
    _now["course"] = Course(say)


def end() -> None:
    """Note that `main` has ended: nothing more is told."""
    _now["course"] = None


def current() -> Optional[Course]:
    """Return what tells the host; None if `main` does not run, or its host is no job's."""
    course: Optional[Course] = _now["course"]
    return course
