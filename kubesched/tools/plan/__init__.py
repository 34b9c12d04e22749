"""Dry runs: manifests applied to a captured cluster in memory, and what the real engine would make of them.

manifests > admission, claims, existing > applying > planning > plan;  replicas, capacity on the same ground
"""
