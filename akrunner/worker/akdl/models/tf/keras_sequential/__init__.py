"""A Keras Sequential model from its layers as text."""
