"""A cluster's state as one file: captured from an API server, read, and with names hidden."""
