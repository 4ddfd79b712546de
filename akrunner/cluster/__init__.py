"""L2: roles -> TF_CONFIG, ports, and which failure is the root cause."""
