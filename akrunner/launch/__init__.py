"""The parts that launch one worker process: its session, its log, the interpreter it runs under and the bundle it runs."""
