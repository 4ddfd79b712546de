"""Writes a function that is given in place of a script, with everything that it needs, as a script; `writing` is what others call."""
