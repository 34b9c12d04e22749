"""Allocation of devices: from the requests of claims and the pools to a choice for each node."""
