"""Benchmarks: decisions in memory, a cluster through an API server, scheduler_perf, hours of faults."""
