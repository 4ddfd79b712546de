"""SavedModels for the tests, made by whatever TensorFlow an interpreter has, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

#: float64, string and matrix in; any rank out. Refuses x >= 1e6, never comes back from x == 13: if the string is an absolute path then, there is
#: a file when it has begun
EVERYTHING = """
import sys
import tensorflow as tf

class Everything(tf.Module):
    def tell(self, path):
        with tf.control_dependencies([tf.io.write_file(path, "stuck")]):
            return tf.constant(0)

    @tf.function(input_signature=[
        tf.TensorSpec([None], tf.float64), tf.TensorSpec([None], tf.string), tf.TensorSpec([None, 2, 2], tf.float32)])
    def __call__(self, x, s, v):
        tf.debugging.assert_less(x, tf.constant(1e6, tf.float64), message="x is too large")
        stuck = tf.reduce_any(tf.equal(x, 13.0))
        path = tf.boolean_mask(s, tf.equal(x, 13.0))[:1]
        told = tf.cond(tf.reduce_any(tf.strings.regex_full_match(path, "/.*")), lambda: self.tell(path[0]), lambda: tf.constant(0))
        (turns,) = tf.while_loop(lambda i: stuck, lambda i: [i + 1], [told])
        # what depends on nothing is optimised away
        return {"y": 2 * x + tf.cast(tf.minimum(turns, 0), tf.float64), "t": tf.strings.join([s, "!"]), "w": v + 1, "n": tf.size(s, tf.int64) * tf.ones_like(x, tf.int64)}

everything = Everything()
tf.saved_model.save(everything, sys.argv[1], signatures=everything.__call__)
"""

#: y = 2 x, the way each TensorFlow saves: a float in, a float out
DOUBLE = """
import sys
import tensorflow as tf

if tf.executing_eagerly():
    class Double(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
        def __call__(self, x):
            return {"y": 2.0 * x}
    double = Double()
    tf.saved_model.save(double, sys.argv[1], signatures=double.__call__)
else:
    v1 = tf.compat.v1
    with v1.Session(graph=tf.Graph()) as session:
        x = v1.placeholder(tf.float32, [None])
        factor = v1.get_variable("factor", initializer=2.0)
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, sys.argv[1], {"x": x}, {"y": factor * x})
"""

#: a Keras model, exported as Keras of its time does: four numbers in, three out
KERAS = """
import sys
import tensorflow as tf

layers = [tf.keras.layers.InputLayer((4,)), tf.keras.layers.Dense(3, activation="softmax")]
model = tf.keras.Sequential(layers)
if hasattr(model, "export"):
    model.export(sys.argv[1], verbose=False)
else:
    tf.saved_model.save(model, sys.argv[1])
"""


def make(python: str, code: str, path: Path) -> str:
    """Make one; returns its directory."""
    with tempfile.TemporaryDirectory() as temp:  # TensorFlow leaves the bytecode of what it compiles there
        env = {**os.environ, "TMPDIR": temp}
        done = subprocess.run([python, "-c", code, str(path)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    return str(path)
