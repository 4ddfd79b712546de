"""The input doctor: what the tasks' own clocks say of how their script waited for its input, in words, and what to change."""
