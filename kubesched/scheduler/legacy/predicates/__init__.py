"""Predicates of old releases: each refuses nodes."""
