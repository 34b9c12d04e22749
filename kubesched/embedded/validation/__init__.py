"""Validation: every field that is wrong, with the API's own message."""
