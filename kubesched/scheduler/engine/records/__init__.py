"""The record of decisions: what is kept of each one, in memory, in a log file and as traces."""
