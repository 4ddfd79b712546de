"""The names of the Flink-AI-Extended TensorFlow package that Alink's own package imports."""
