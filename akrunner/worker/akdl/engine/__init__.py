"""Trains Estimators and Keras models on columns that are given by a description."""
