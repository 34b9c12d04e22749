"""Priorities of old releases: each scores nodes."""
