"""L4: a trained model over rows: `predict`, `predict_stream`, `LocalPredictor`."""
