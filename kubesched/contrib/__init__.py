"""Plugins beyond those of kube-scheduler, off by default, one file each.

They import the framework and the cluster, as a plugin outside this package can.
"""
