"""Warm workers: worker processes that wait for a job with TensorFlow imported. In the code, such a process is called a spare.

`pool` keeps them in this process; they are forked from a process that has imported TensorFlow. This package is the host's
side; `akrunner.worker.spare` and `akrunner.worker.template` are the other side. A job takes a spare that is exactly the worker
process it would start (`wanted`), and starts its workers cold if there is none. A spare is used once.
"""
