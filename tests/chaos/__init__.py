"""The whole system in one process, in virtual time, from one seed; see docs/testing.md."""
