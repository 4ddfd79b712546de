"""What a save has beside its place in the rows: the TensorFlow objects, and what the script's `save=` writes."""

from __future__ import annotations

import os
from typing import Any, Callable, List, Mapping, Optional

_OBJECTS = "objects"
_STATE = "state"


class State(object):
    """The objects of one `checkpoint()`.

    Attributes:
        names: what is saved, in a form that a save can be compared with.
    """

    def __init__(
        self, objects: Mapping[str, Any], save: Optional[Callable[[str], Any]], restore: Optional[Callable[[str], Any]]
    ) -> None:  # fmt: skip
        """Note the arguments; nothing is read or written yet.

        Args:
            objects: name -> TensorFlow object.
            save, restore: see `BatchTaskConfig.checkpoint`.
        Raises:
            ValueError: there is nothing to save, or it could not be read again.
        """
        if (save is None) != (restore is None):
            raise ValueError("save= and restore= belong together: what one writes, the other reads")
        if save is None and not objects:
            raise ValueError(
                "checkpoint(): name what is saved, such as model=model, optimizer=optimizer; or give save= and restore="
            )
        self._objects = dict(objects)
        self._save = save
        self._restore = restore
        self.names: List[str] = sorted(objects) + (["save="] if save is not None else [])

    def write(self, folder: str) -> None:
        """Write everything to a save's directory."""
        if self._objects:
            import tensorflow as tf

            _made(tf, self._objects).write(os.path.join(folder, _OBJECTS))
        if self._save is not None:
            state = os.path.join(folder, _STATE)
            os.mkdir(state)
            self._save(state)

    def read(self, folder: str) -> None:
        """Give everything the values in a save's directory. Raises: ValueError: these are of other objects."""
        if self._objects:
            import tensorflow as tf

            made = _made(tf, self._objects)
            status = getattr(made, "read", made.restore)(os.path.join(folder, _OBJECTS))
            try:
                # variables that are made later get their values then
                status.assert_existing_objects_matched()
            except AssertionError as e:
                raise ValueError("checkpoint(): the objects are not those that %s was saved with: %s" % (folder, e)) from None
        if self._restore is not None:
            self._restore(os.path.join(folder, _STATE))


def _made(tf: Any, objects: Mapping[str, Any]) -> Any:
    """Return TensorFlow's checkpoint of the objects."""
    made = tf.train.Checkpoint(**objects)
    if not hasattr(made, "read"):
        # TensorFlow 1.15 looks for this counter when it restores, and makes it only if it is asked for
        assert made.save_counter is not None
    return made
