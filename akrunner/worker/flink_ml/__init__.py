"""The packages that Alink's own package imports from Flink-AI-Extended. In the bundle, each of them is a top-level package."""
