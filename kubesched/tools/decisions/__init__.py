"""Decisions on record: of a running scheduler, in a decision log, or made again from an inbox log."""
