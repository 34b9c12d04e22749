"""Dry runs: manifests applied to a captured cluster in memory, and what the real engine would make of them.

manifests > desk, belongings, standing > staging > echo, planning > plan;  copying, capacity on the same ground
"""
