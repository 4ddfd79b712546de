"""`DNNClassifier` over float columns, or one tensor column, in every mode."""
