"""In a process that has PyFlink and Java, ours or a user's own program: job graphs, and tables of PyFlink's on their way to the tasks."""
