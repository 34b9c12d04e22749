"""The whole system in one process, in virtual time, from one seed; see docs/explanation/testing.md."""
