"""Arithmetic and lookups that several plugins use."""
