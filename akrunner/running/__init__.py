"""What every way to run a job needs, whichever verb asked for it: the engine, the input, the output, and the result."""
