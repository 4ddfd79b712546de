"""The names that scripts import from the TensorFlow package of Deep Learning on Flink."""
