"""Beside a live scheduler, without any write: follow the cluster, decide what it decides, and tell where we would differ."""
