"""Trains a Keras Sequential model whose layers are given as text."""
