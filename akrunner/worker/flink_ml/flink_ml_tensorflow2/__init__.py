"""The names that Alink's own package imports from the TensorFlow 2 package of Flink-AI-Extended."""
