"""Predicts, for a dry run, the calls of odpscmd that a shell script would make, without running anything; `reader` is what others call."""
