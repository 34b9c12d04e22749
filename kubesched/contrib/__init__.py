"""Batteries: plugins beyond those of kube-scheduler, off by default, one file each.

They know the framework and the cluster as any plugin outside this package does, and nothing else of ours.
"""
