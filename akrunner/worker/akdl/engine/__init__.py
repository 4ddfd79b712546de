"""Estimators and Keras models from a description of the columns."""
