"""Configurations and policies of all releases: read, checked, shown with their defaults, converted."""
