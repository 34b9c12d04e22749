"""Pods that are tried together: gangs, pod groups, and groups of groups."""
