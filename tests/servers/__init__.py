"""Servers that tests talk to: real ones, on loopback, each gone with its session."""
