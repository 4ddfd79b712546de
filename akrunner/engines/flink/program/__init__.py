"""The code in a process that has PyFlink and Java, which is akrunner's own or a user's program: job graphs, and PyFlink
tables on their way to the tasks."""
