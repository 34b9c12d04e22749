"""Stored objects under one version counter: their past, their watches, selectors, and the log on disk."""
