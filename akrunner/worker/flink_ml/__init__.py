"""The packages Alink's own imports from Flink-AI-Extended. In the bundle each lies at the top."""
