"""The command line: it parses arguments, shows progress and chooses the exit code. No other part of akrunner prints."""
