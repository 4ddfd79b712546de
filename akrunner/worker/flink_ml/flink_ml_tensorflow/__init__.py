"""The names that Alink's own package imports from the TensorFlow package of Flink-AI-Extended."""
