"""L2: where tables come from and go to."""
