"""L2: reading tables from, and writing them to, files, databases and other systems."""
