"""Stands in for Snowflake's driver in tests: there is no Snowflake to be had here."""
