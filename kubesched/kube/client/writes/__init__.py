"""Writing to the API server: bindings, status patches, evictions and events."""
