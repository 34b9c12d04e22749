"""Stored objects: read, written, patched, deleted and watched as the API defines it; and the log on disk."""
