"""Predictions of a trained model for rows: `predict`, `predict_stream`, `LocalPredictor`."""
