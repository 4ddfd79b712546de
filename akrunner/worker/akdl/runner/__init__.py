"""The task's config that a script is given, and the means to return rows and models."""
