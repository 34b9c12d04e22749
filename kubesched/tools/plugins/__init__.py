"""Plugins of one's own: a file to start from."""
