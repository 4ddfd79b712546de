"""Reads tables from, and writes them to, files, databases and other systems."""
