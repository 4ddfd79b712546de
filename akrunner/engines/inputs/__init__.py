"""The input doctor: says why a script waits for its input, and what to change, from the clocks in the tasks."""
