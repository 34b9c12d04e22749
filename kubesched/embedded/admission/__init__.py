"""Admission and defaults: what the API server changes in an object, or refuses, before it is stored."""
