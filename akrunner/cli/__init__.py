"""L5: the command line. Parses arguments, shows progress, chooses the exit code; nothing else prints."""
