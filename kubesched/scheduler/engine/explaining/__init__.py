"""Explaining: why a node was refused or chosen, what would help, which events wake a waiting pod."""
